//! The test beds that mix slowly have the numbers of an independent implementation in NumPy and SciPy, and what their headers say.
//!
//! The numbers below were printed by policy iteration with dense solves (`numpy.linalg.solve`) on kernels built with
//! `scipy.stats.binom.pmf` and `numpy.searchsorted`:
//!
//! ```text
//! n, m, P, R = pendulum(21)            # epidemic(60, width=20); maze(6) with WALLS in place of NumPy's random ones
//! x = P @ np.cos(np.arange(n))
//! print(P.nnz, R.sum(), (x * np.sin(np.arange(n * m))).sum(), (x ** 2).sum())
//! v = policy_iteration(P, R, discount); print(v.mean(), v.min(), v[0])
//! ```
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::domains::{Epidemic, Maze, Pendulum};
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Criterion, Mdp, Reward};
use coirl::plan::Planner;

/// What NumPy found.
struct Reference {
    entries: usize,
    /// Σ R(s, a), Σ x·sin(pair) and Σ x² with x = P·cos(state).
    sums: [f64; 3],
    /// Mean, least and first value at discounts 0.99 and 0.9999.
    values: [[f64; 3]; 2],
}

const PENDULUM_VALUES: [[f64; 3]; 2] = [
    [-5_832.061_393_538_08, -13_538.902_140_797_1, -11_048.090_537_712_4],
    [-52_054.843_549_608_8, -69_672.140_556_588_6, -63_422.123_127_492_2],
];
const EPIDEMIC_VALUES: [[f64; 3]; 2] = [
    [-6.431_652_152_522_08, -15.731_737_021_185_4, -7.107_385_383_068_64],
    [1_973.411_513_971_15, 1_964.134_464_027_05, 1_972.892_614_617_15],
];
const MAZE_VALUES: [[f64; 3]; 2] =
    [[-13.420_205_956_528_9, -100.0, -100.0], [-852.314_115_281_628, -10_000.000_000_011, -10_000.000_000_011]];

fn standard_weights(model: &Cmdp, mapping: &LinearMapping, context: [f64; 3]) -> Vec<f64> {
    mapping.weights(&model.context_space().context(context).unwrap()).unwrap()
}

fn standard_reward(mdp: &Mdp<'_>, weights: &[f64]) -> Reward {
    mdp.reward(weights).unwrap()
}

fn assert_close(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {found}, expected {expected}");
}

fn compare(model: Cmdp, weights: &[f64], reference: &Reference) {
    let mdp = model.shared_mdp().unwrap();
    let reward = standard_reward(&mdp, weights);
    let (pairs, kernel) = (mdp.pairs(), mdp.kernel());
    let (mut entries, mut sums) = (0, [0.0; 3]);
    for pair in 0..pairs.len() {
        entries += kernel.successors(pair).filter(|(_, p)| *p > 1e-12).count();
        let x: f64 = kernel.successors(pair).map(|(next, p)| p * (next as f64).cos()).sum();
        sums[0] += reward.at(pairs.state(pair).index(), pair);
        sums[1] += x * (pair as f64).sin();
        sums[2] += x * x;
    }
    assert_eq!(entries, reference.entries);
    for (i, (found, expected)) in sums.into_iter().zip(reference.sums).enumerate() {
        assert_close(&format!("sum {i}"), found, expected);
    }
    for (discount, expected) in [0.99, 0.9999].into_iter().zip(reference.values) {
        let model = model.clone().with_criterion(Criterion::discounted(discount).unwrap()).unwrap();
        let values = Planner::default().plan(&model.shared_mdp().unwrap(), &reward).unwrap().values;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        for (what, found, expected) in
            [("mean", mean, expected[0]), ("least", least, expected[1]), ("first", values[0], expected[2])]
        {
            assert_close(&format!("{what} value at {discount}"), found, expected);
        }
    }
}

#[test]
fn the_pendulum_is_that_of_numpy() {
    let model = Pendulum { grid: 21, ..Pendulum::default() }.build().unwrap();
    let weights = standard_weights(&model, &Pendulum::standard_mapping(), Pendulum::STANDARD_CONTEXT);
    assert_eq!(weights, [-2.0, -2.0, -1.0]);
    let reference = Reference {
        entries: 15_003,
        sums: [-334_670.220_569_810_7, -0.147_688_841_928_798, 1_120.448_743_776_382_6],
        values: PENDULUM_VALUES,
    };
    compare(model, &weights, &reference);
}

#[test]
fn the_epidemic_is_that_of_scipy() {
    let model = Epidemic { people: 60, window: 20, ..Epidemic::default() }.build().unwrap();
    let weights = standard_weights(&model, &Epidemic::standard_mapping(), Epidemic::STANDARD_CONTEXT);
    assert_eq!(weights, [-0.5, 0.2, -0.3]);
    let reference = Reference {
        entries: 15_304,
        sums: [-24_495.103_751_296_592, -3.747_520_906_471_648, 264.542_895_234_310_1],
        values: EPIDEMIC_VALUES,
    };
    compare(model, &weights, &reference);
}

/// The walls of seed 1, which NumPy was given.
const WALLS: &str = "..#....#....#..##.....#........#..#.";

#[test]
fn the_maze_is_that_of_numpy_with_the_same_walls() {
    let settings = Maze { side: 6, seed: 1, ..Maze::default() };
    let walls: String = settings.wall_cells().iter().map(|&wall| if wall { '#' } else { '.' }).collect();
    assert_eq!(walls, WALLS);
    let model = settings.build().unwrap();
    let weights = standard_weights(&model, &Maze::standard_mapping(), Maze::STANDARD_CONTEXT);
    assert_eq!(weights, [-1.0, 0.0, 0.0]);
    let reference =
        Reference { entries: 383, sums: [-140.0, 1.770_048_429_964_467_2, 66.779_136_962_345_15], values: MAZE_VALUES };
    compare(model, &weights, &reference);
}

#[test]
fn mazes_have_the_shares_that_were_asked_for_and_ground_where_one_can_be() {
    let settings = Maze { side: 200, seed: 3, ..Maze::default() };
    let walls = settings.wall_cells();
    let share = |n: usize, of: usize| n as f64 / of as f64;
    assert!((share(walls.iter().filter(|&&wall| wall).count(), walls.len()) - 0.3).abs() < 0.01);
    let model = settings.build().unwrap();
    let coirl::model::Features::State { values, .. } = model.features() else { panic!("features per state") };
    let cells: Vec<&[f64]> = values.chunks_exact(3).collect();
    let free = walls.iter().filter(|&&wall| !wall).count();
    for (feature, wanted) in [(1, 0.2), (2, 0.05)] {
        assert!((share(cells.iter().filter(|cell| cell[feature] == 1.0).count(), free) - wanted).abs() < 0.01);
    }
    assert!(walls.iter().zip(&cells).all(|(&wall, cell)| !wall || cell[1..] == [0.0, 0.0]));
    assert_eq!(cells.last().unwrap(), &[0.0; 3]);
    // Every context goes another way.
    let plan = |context: [f64; 3]| {
        let mdp = model.shared_mdp().unwrap();
        let weights = standard_weights(&model, &Maze::standard_mapping(), context);
        Planner::default().plan(&mdp, &standard_reward(&mdp, &weights)).unwrap().policy
    };
    assert_ne!(plan([1.0, 0.0, 0.0]), plan([0.5, 0.0, 0.5]));
}

#[test]
fn settings_out_of_range_are_refused_with_their_name() {
    let refused = |result: coirl::Result<Cmdp>| result.unwrap_err().to_string();
    assert!(refused(Pendulum { grid: 1, ..Pendulum::default() }.build()).starts_with("grid = 1"));
    assert!(
        refused(Pendulum { grid: usize::MAX, ..Pendulum::default() }.build()).contains("transitions of a pendulum")
    );
    assert!(refused(Pendulum { discount: 1.5, ..Pendulum::default() }.build()).contains("1.5"));
    assert!(refused(Maze { side: 0, ..Maze::default() }.build()).starts_with("side = 0"));
    assert!(refused(Maze { slip: f64::NAN, ..Maze::default() }.build()).starts_with("slip = NaN"));
    assert!(refused(Maze { side: usize::MAX, ..Maze::default() }.build()).contains("transitions of a maze"));
    assert!(refused(Epidemic { people: 0, ..Epidemic::default() }.build()).starts_with("people = 0"));
    assert!(refused(Epidemic { window: 0, ..Epidemic::default() }.build()).starts_with("window = 0"));
    assert!(
        refused(Epidemic { people: usize::MAX, ..Epidemic::default() }.build()).contains("transitions of an epidemic")
    );
}

#[test]
fn the_smallest_test_beds_can_be_planned() {
    for model in [
        Pendulum { grid: 2, ..Pendulum::default() }.build().unwrap(),
        Maze { side: 1, ..Maze::default() }.build().unwrap(),
        Maze { side: 5, walls: 1.0, slip: 1.0, ..Maze::default() }.build().unwrap(),
        Epidemic { people: 1, window: 1, ..Epidemic::default() }.build().unwrap(),
        // So many meetings that everybody is sure to be infected, up to what doubles tell.
        Epidemic { people: 30_000, window: 2, ..Epidemic::default() }.build().unwrap(),
    ] {
        let mdp = model.shared_mdp().unwrap();
        let _ = Planner::to_tolerance(coirl::plan::Method::Automatic, 1e-3)
            .plan(&mdp, &standard_reward(&mdp, &[-1.0, 0.5, -1.0]))
            .unwrap();
    }
}
