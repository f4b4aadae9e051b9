//! k-means finds what plain Lloyd in double precision finds, bit for bit; its sum of squares never rises; on problems small
//! enough to try every partition the best of many restarts is the optimum; the threads do not show.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::Error;
use coirl::clustering::{Centroids, Clustering, KMeans, Points, Step};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Numbers in [−1, 1) by SplitMix64.
fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn points(values: &[f64], width: usize) -> Points {
    Points::new(values.iter().map(|&x| x as f32).collect(), width).unwrap()
}

fn squared_distance(row: &[f32], centre: &[f64]) -> f64 {
    row.iter().zip(centre).map(|(&x, c)| (f64::from(x) - c).powi(2)).sum()
}

fn exact(tolerance: f64) -> KMeans {
    KMeans { max_iterations: 500, tolerance, ..KMeans::default() }
}

fn from(settings: KMeans, points: &Points, first: &Centroids) -> Clustering {
    settings.fit_from(points, first, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Lloyd's iteration by comparing every row with every centre, until no row changes.
struct Plain {
    centres: Vec<Vec<f64>>,
    assignment: Vec<u32>,
}

impl Plain {
    fn nearest(row: &[f32], centres: &[Vec<f64>]) -> (u32, f64) {
        let distances = centres.iter().map(|centre| squared_distance(row, centre));
        let pick = |best: (u32, f64), new: (usize, f64)| if new.1 < best.1 { (new.0 as u32, new.1) } else { best };
        distances.enumerate().fold((0, f64::INFINITY), pick)
    }

    fn run(points: &Points, first: &Centroids, most: usize) -> Self {
        let mut centres: Vec<Vec<f64>> = first.rows().map(<[f64]>::to_vec).collect();
        let assign =
            |centres: &[Vec<f64>]| -> Vec<u32> { points.rows().map(|row| Self::nearest(row, centres).0).collect() };
        let mut assignment = assign(&centres);
        for _ in 0..most {
            let mut empty = Vec::new();
            for (cluster, centre) in centres.iter_mut().enumerate() {
                let rows: Vec<&[f32]> = points
                    .rows()
                    .zip(&assignment)
                    .filter(|(_, a)| **a as usize == cluster)
                    .map(|(row, _)| row)
                    .collect();
                if rows.is_empty() {
                    empty.push(cluster);
                    continue;
                }
                for (j, x) in centre.iter_mut().enumerate() {
                    *x = rows.iter().map(|row| f64::from(row[j])).sum::<f64>() / rows.len() as f64;
                }
            }
            // Each empty cluster to the row that is now farthest from the centre it was given.
            let mut far: Vec<f64> =
                points.rows().zip(&assignment).map(|(row, &a)| squared_distance(row, &centres[a as usize])).collect();
            for cluster in empty.iter().copied() {
                let most = far.iter().copied().fold(0.0, f64::max);
                if most > 0.0 {
                    let row = points.rows().nth(far.iter().position(|&x| x == most).unwrap()).unwrap();
                    centres[cluster] = row.iter().map(|&x| x.into()).collect();
                    far.iter_mut().zip(points.rows()).for_each(|(far, row)| {
                        *far = far.min(squared_distance(row, &centres[cluster]));
                    });
                }
            }
            let next = assign(&centres);
            let all_used = (0..centres.len()).all(|cluster| next.contains(&(cluster as u32)));
            let settled = next == assignment && all_used;
            assignment = next;
            if settled {
                break;
            }
        }
        Self { centres, assignment }
    }
}

/// Rows on a coarse grid (ties, duplicates) or anywhere, near the origin or far from it, with some of them as first centres.
#[derive(Debug, Clone)]
struct Sketch {
    values: Vec<f64>,
    width: usize,
    first: Vec<usize>,
}

fn sketches() -> impl Strategy<Value = Sketch> {
    let number = prop_oneof![2 => (-3_i32..=3).prop_map(f64::from), 3 => -10.0..10.0_f64];
    (1..=5_usize, 2..=80_usize, prop_oneof![Just(0.0), Just(1000.0)]).prop_flat_map(move |(width, rows, offset)| {
        let values = prop::collection::vec(number.clone(), rows * width);
        let first = prop::collection::vec(0..rows, 1..=40);
        let grid = any::<bool>();
        (values, first, grid).prop_map(move |(values, first, grid)| {
            let place = |x: f64| offset + if grid { x.round() } else { x };
            Sketch { values: values.into_iter().map(place).collect(), width, first }
        })
    })
}

impl Sketch {
    fn points(&self) -> Points {
        points(&self.values, self.width)
    }

    /// The named rows; equal ones among them leave clusters empty.
    fn first(&self, points: &Points) -> Centroids {
        let rows: Vec<&[f32]> = points.rows().collect();
        let values = self.first.iter().flat_map(|&row| rows[row]).map(|&x| x.into()).collect();
        Centroids::new(values, self.width).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_same_as_plain_lloyd(sketch in sketches(), most in 0..6_usize) {
        let points = sketch.points();
        let first = sketch.first(&points);
        let ours = from(KMeans { max_iterations: most, ..exact(0.0) }, &points, &first);
        let plain = Plain::run(&points, &first, most);
        prop_assert_eq!(&ours.assignment, &plain.assignment);
        prop_assert_eq!(ours.centroids.values().to_vec(), plain.centres.concat());
        let inertia: f64 = points.rows().map(|row| Plain::nearest(row, &plain.centres).1).sum();
        prop_assert!((ours.inertia - inertia).abs() <= 1e-9 * inertia);
    }

    #[test]
    fn inertia_never_rises(sketch in sketches()) {
        let points = sketch.points();
        let first = sketch.first(&points);
        let after = |most| from(KMeans { max_iterations: most, ..exact(0.0) }, &points, &first).inertia;
        let path: Vec<f64> = (0..8).map(after).collect();
        prop_assert!(path.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-12)), "{path:?}");
    }

    #[test]
    fn a_settled_centroid_is_the_mean_of_its_rows(sketch in sketches()) {
        let points = sketch.points();
        let distinct: std::collections::BTreeSet<Vec<u32>> =
            points.rows().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect();
        let clusters = sketch.first.len().min(distinct.len());
        let found = KMeans { clusters, ..exact(0.0) }.fit(&points).unwrap();
        prop_assert!(found.converged);
        let own = |cluster: usize| points.rows().zip(&found.assignment).filter(move |(_, a)| **a as usize == cluster);
        for (cluster, centroid) in found.centroids.rows().enumerate() {
            let n = own(cluster).count();
            prop_assert_eq!(n as u32, found.counts[cluster]);
            prop_assert!(n > 0);
            for (j, c) in centroid.iter().enumerate() {
                let mean = own(cluster).map(|(row, _)| f64::from(row[j])).sum::<f64>() / n as f64;
                prop_assert!((mean - c).abs() <= 1e-12 * mean.abs().max(1.0));
            }
        }
        prop_assert_eq!(found.assign(&points).unwrap(), found.assignment);
    }

    #[test]
    fn tiny_problems_on_a_line_are_nearly_solved(values in prop::collection::vec(-20_i32..20, 2..9), clusters in 1..4_usize) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let distinct = { let mut all = sorted.clone(); all.dedup(); all.len() };
        prop_assume!(clusters <= distinct);
        let row: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let found = KMeans { clusters, restarts: 500, ..exact(0.0) }.fit(&points(&row, 1)).unwrap();
        let least = least_on_a_line(&sorted, clusters);
        // Nothing is below the least. Good seeds can all lead to a neighbour of it: -16, -5 × 3, 1, 3, 6, 13 in three clusters gives 82.75, the least is 79.67.
        let found = found.inertia;
        prop_assert!(found >= least - 1e-9 * least.max(1.0) && found <= 1.25 * least + 1e-9, "{found} and {least}");
    }
}

/// The least sum of squares of `clusters` intervals of sorted numbers, by trying every cut.
fn least_on_a_line(sorted: &[i32], clusters: usize) -> f64 {
    let spread = |part: &[i32]| {
        let mean = part.iter().sum::<i32>() as f64 / part.len() as f64;
        part.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>()
    };
    if clusters == 1 {
        return spread(sorted);
    }
    let cuts = 1..=sorted.len() - (clusters - 1);
    cuts.map(|cut| spread(&sorted[..cut]) + least_on_a_line(&sorted[cut..], clusters - 1)).fold(f64::INFINITY, f64::min)
}

/// Enough rows, columns and clusters for many groups, tiles with a rest, and bounds that are used for long.
fn crowd(n_rows: usize, width: usize, seed: u64) -> Points {
    let (kinds, noise) = (numbers(seed, 40 * width), numbers(seed + 1, n_rows * width));
    let value = |(i, noise): (usize, &f64)| {
        let (row, column) = (i / width, i % width);
        2.0 * kinds[row * 7919 % 40 * width + column] + noise
    };
    points(&noise.iter().enumerate().map(value).collect::<Vec<_>>(), width)
}

#[test]
fn many_groups_give_the_same_as_plain_lloyd() {
    for (width, seed) in [(1, 3), (3, 4), (17, 5)] {
        let points = crowd(1500, width, seed);
        let values = points.rows().step_by(11).flatten().map(|&x| x.into()).collect();
        let first = Centroids::new(values, width).unwrap();
        let ours = from(exact(0.0), &points, &first);
        let plain = Plain::run(&points, &first, 500);
        assert!(ours.converged && ours.iterations > 5);
        assert_eq!(ours.assignment, plain.assignment);
        assert_eq!(ours.centroids.values(), plain.centres.concat());
    }
}

#[test]
fn separated_blobs_are_found() {
    let (clusters, each, width) = (20, 30, 4);
    let noise = numbers(8, clusters * each * width);
    let corner = |blob: usize, column: usize| 100.0 * f64::from((blob * (column + 3)) as u32 % 23);
    let value = |(i, noise): (usize, &f64)| corner(i / width % clusters, i % width) + noise;
    let points = points(&noise.iter().enumerate().map(value).collect::<Vec<_>>(), width);
    let found = KMeans { clusters, restarts: 5, seed: 2, ..KMeans::default() }.fit(&points).unwrap();
    assert!(found.converged);
    for (row, &cluster) in found.assignment.iter().enumerate() {
        assert_eq!(cluster, found.assignment[row % clusters], "row {row}");
    }
    assert_eq!(found.counts, vec![each as u32; clusters]);
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let points = crowd(9000, 6, 1);
    let settings = KMeans { clusters: 90, restarts: 2, seed: 3, ..KMeans::default() };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| settings.fit(&points)).unwrap();
        let bits: Vec<u64> = found.centroids.values().iter().map(|x| x.to_bits()).collect();
        (bits, found.assignment, found.inertia.to_bits(), found.iterations)
    };
    let one = run(1);
    assert!(one == run(2) && one == run(7));
    let other = KMeans { seed: 4, ..settings }.fit(&points).unwrap();
    assert_ne!(one.1, other.assignment);
}

#[test]
fn new_rows_go_to_the_nearest_centroid() {
    let (points, others) = (crowd(800, 5, 20), crowd(700, 5, 21));
    let found = KMeans { clusters: 70, ..KMeans::default() }.fit(&points).unwrap();
    let together = found.assign(&others).unwrap();
    for (row, &cluster) in others.rows().zip(&together) {
        let (nearest, square) = found.centroids.nearest(row).unwrap();
        assert_eq!(nearest as u32, cluster);
        let least = found.centroids.rows().map(|c| squared_distance(row, c)).fold(f64::INFINITY, f64::min);
        assert!((square - least).abs() <= 1e-12 * least);
    }
}

#[test]
fn magnitudes_do_not_matter() {
    for factor in [1e-30, 1e-3, 1e3, 1e30] {
        let plain = crowd(300, 3, 30);
        let scaled =
            Points::new(plain.values().iter().map(|x| x * 2_f32.powi((factor as f32).log2() as i32)).collect(), 3);
        let fit = |points: &Points| KMeans { clusters: 12, ..KMeans::default() }.fit(points).unwrap();
        assert_eq!(fit(&plain).assignment, fit(&scaled.unwrap()).assignment, "{factor}");
    }
}

#[test]
fn few_different_rows_are_refused_and_enough_are_not() {
    let rows: Vec<f64> = (0..300).map(|i| f64::from(i % 3)).collect();
    let rows = points(&rows, 1);
    let refused = KMeans { clusters: 4, ..KMeans::default() }.fit(&rows);
    assert!(matches!(refused, Err(Error::TooFewDistinctRows { distinct: 3, clusters: 4 })), "{refused:?}");
    let found = KMeans { clusters: 3, ..KMeans::default() }.fit(&rows).unwrap();
    assert_eq!((found.inertia, found.counts), (0.0, vec![100; 3]));
    // The sample that is seeded from misses the odd rows.
    let mut rows = vec![0.0; 20_000];
    (0..4).for_each(|i| rows[5000 * i + 17] = 1.0 + i as f64);
    let found = KMeans { clusters: 5, ..KMeans::default() }.fit(&points(&rows, 1)).unwrap();
    assert_eq!(found.inertia, 0.0);
}

#[test]
fn nonsense_is_refused() {
    assert!(matches!(Points::new(vec![], 3), Err(Error::Shape { .. })));
    assert!(matches!(Points::new(vec![1.0], 0), Err(Error::Shape { .. })));
    assert!(matches!(Points::new(vec![1.0; 5], 2), Err(Error::Shape { .. })));
    let gap = Points::new(vec![0.0, 1.0, 2.0, f32::NAN, 4.0, 5.0], 2);
    assert!(matches!(gap, Err(Error::CellNotFinite { row: 1, column: 1, .. })), "{gap:?}");
    assert!(matches!(Centroids::new(vec![0.0, f64::INFINITY], 2), Err(Error::CellNotFinite { row: 0, column: 1, .. })));
    let points = points(&[1.0, 2.0, 3.0], 1);
    let refused = |settings: KMeans| matches!(settings.fit(&points), Err(Error::InvalidSetting { .. }));
    assert!(refused(KMeans { clusters: 0, ..KMeans::default() }));
    assert!(refused(KMeans { clusters: 1, restarts: 0, ..KMeans::default() }));
    assert!(refused(KMeans { clusters: 1, tolerance: -1.0, ..KMeans::default() }));
    assert!(refused(KMeans { clusters: 1, tolerance: f64::NAN, ..KMeans::default() }));
    let found = KMeans { clusters: 1, ..KMeans::default() }.fit(&points).unwrap();
    assert!(found.centroids.nearest(&[1.0, 2.0]).is_err() && found.centroids.nearest(&[f32::NAN]).is_err());
    assert!(found.assign(&Points::new(vec![1.0, 2.0], 2).unwrap()).is_err());
}

#[test]
fn progress_is_told_and_can_stop() {
    let points = crowd(500, 2, 40);
    let settings = KMeans { clusters: 30, ..KMeans::default() };
    let (mut drawn, mut moved) = (0, 0);
    let found = settings.fit_with(&points, &mut |progress| {
        match progress.step {
            Step::Drawn { centroids } => drawn = centroids,
            Step::Moved { iterations, .. } => moved = iterations,
        }
        ControlFlow::Continue(())
    });
    assert_eq!((drawn, moved), (30, found.unwrap().iterations));
    let stopped = settings.fit_with(&points, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Interrupted { total: 30, .. })));
}

#[test]
fn settings_refuse_unknown_names() {
    let settings: KMeans = serde_json::from_str(r#"{"clusters": 5}"#).unwrap();
    assert_eq!(settings, KMeans { clusters: 5, ..KMeans::default() });
    assert!(serde_json::from_str::<KMeans>(r#"{"cluster": 5}"#).is_err());
}
