//! P6 to P8: models that mix slowly, at two sizes and three discounts, one reward each.
//!
//! Sweeps gain little here, so that some peers take hours. Every variant has a limit of time; one that has no answer within it is
//! stopped with its process, told in the table, and not tried at a discount nearer to one, unless it is policy iteration.

use super::{Options, Peer, TOLERANCE, median, npy_values, seconds, write_problem};
use coirl::domains::{Epidemic, Maze, Pendulum};
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Mdp, Reward};
use coirl::plan::{Method, Plan, Planner, Status};
use cpu_time::ProcessTime;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const DISCOUNTS: [f64; 3] = [0.99, 0.999, 0.9999];
/// Interleaved runs of what answers; a model and its reward are the same in each.
const RUNS: usize = 3;
/// Building a peer's own structures is not planning, and is only kept from lasting for ever.
const LOADING: Duration = Duration::from_secs(900);

/// A model at one size, for any discount.
pub(crate) struct Bed {
    pub(crate) name: &'static str,
    what: &'static str,
    build: Box<dyn Fn(f64) -> Cmdp>,
    mapping: LinearMapping,
    context: [f64; 3],
}

pub(crate) fn beds(seed: u64) -> Vec<Bed> {
    let pendulum = |name, what, grid| Bed {
        name,
        what,
        build: Box::new(move |discount| Pendulum { grid, discount }.build().unwrap()),
        mapping: Pendulum::standard_mapping(),
        context: Pendulum::STANDARD_CONTEXT,
    };
    let maze = |name, what, side| Bed {
        name,
        what,
        build: Box::new(move |discount| Maze { side, discount, seed, ..Maze::default() }.build().unwrap()),
        mapping: Maze::standard_mapping(),
        context: Maze::STANDARD_CONTEXT,
    };
    let epidemic = |name, what, people| Bed {
        name,
        what,
        build: Box::new(move |discount| Epidemic { people, discount, ..Epidemic::default() }.build().unwrap()),
        mapping: Epidemic::standard_mapping(),
        context: Epidemic::STANDARD_CONTEXT,
    };
    vec![
        pendulum("P6a", "pendulum, 51 × 51 points, 2,601 × 9 × 4", 51),
        pendulum("P6b", "pendulum, 201 × 201 points, 40,401 × 9 × 4", 201),
        maze("P7a", "maze, 50 × 50 cells, 2,500 × 4 × 3", 50),
        maze("P7b", "maze, 300 × 300 cells, 90,000 × 4 × 3", 300),
        epidemic("P8a", "epidemic, 500 people, 501 × 20 × up to 100", 500),
        epidemic("P8b", "epidemic, 5,000 people, 5,001 × 20 × up to 100", 5_000),
    ]
}

/// How a peer's variant ended.
#[derive(Clone)]
enum Outcome {
    /// CPU seconds of every run, and the residual reached.
    Answered(Vec<f64>, f64),
    NoAnswer,
    /// It had none at a discount further from one.
    NotTried,
    Failed(String),
}

/// What ours took at one discount.
struct Ours {
    tolerant: f64,
    exact: f64,
    /// Wall-clock seconds on one and on two threads, of the exact plan.
    wall: [f64; 2],
    status: Status,
}

/// The table of a model: a column per discount.
pub(crate) fn compare(bed: &Bed, options: &Options, peers: &mut [Peer], folder: &Path) -> String {
    let path = folder.join(format!("{}.npz", bed.name));
    let mut ours = Vec::new();
    let mut rows: Vec<(String, Vec<Outcome>)> = Vec::new();
    let mut worst: f64 = 0.0;
    for (column, discount) in DISCOUNTS.into_iter().enumerate() {
        let model = (bed.build)(discount);
        let mdp = model.shared_mdp().unwrap();
        let weights = bed.mapping.weights(&model.context_space().context(bed.context).unwrap()).unwrap();
        let reward = mdp.reward(&weights).unwrap();
        let (own, plan) = measure(&mdp, &reward);
        ours.push(own);
        write_problem(&path, &mdp, &[of_pairs(&mdp, &reward)]);
        for peer in peers.iter_mut() {
            let variants = match peer.load_slow(&path, LOADING) {
                Ok(variants) => variants,
                Err(reason) => {
                    outcomes_of(&mut rows, peer.name.clone(), column).push(Outcome::Failed(reason));
                    continue;
                }
            };
            for variant in variants {
                let row = outcomes_of(&mut rows, format!("{} {variant}", peer.name), column);
                let hopeless = !variant.starts_with("pi") && row.iter().any(|o| !matches!(o, Outcome::Answered(..)));
                row.push(if hopeless {
                    Outcome::NotTried
                } else {
                    try_out(peer, &variant, options.limit, &path, folder)
                });
                if let Some(Outcome::Answered(_, residual)) = row.last()
                    && *residual <= 1.001 * TOLERANCE
                {
                    let values = npy_values(&folder.join("values.npy"));
                    worst = values.iter().zip(&plan.values).fold(worst, |worst, (a, b)| worst.max((a - b).abs()));
                }
            }
        }
        println!("{}: discount {discount} done", bed.name);
    }
    let mut section = String::new();
    let heads = DISCOUNTS.map(|discount| format!("discount {discount}")).join(" | ");
    let _ = writeln!(section, "### {}: {}\n\n| planner | {heads} |\n|---|---|---|---|", bed.name, bed.what);
    let mut line = |name: &str, cells: Vec<String>| {
        let _ = writeln!(section, "| {name} | {} |", cells.join(" | "));
    };
    line("**coirl**", ours.iter().map(|own| seconds(own.tolerant)).collect());
    line("coirl, exact", ours.iter().map(|own| format!("{}{}", seconds(own.exact), shortfall(own.status))).collect());
    line(
        "coirl, exact: wall clock on one thread, on two",
        ours.iter().map(|own| format!("{}, {}", seconds(own.wall[0]), seconds(own.wall[1]))).collect(),
    );
    for (name, outcomes) in &rows {
        line(
            name,
            outcomes.iter().zip(&ours).map(|(outcome, own)| cell(outcome, own.tolerant, options.limit)).collect(),
        );
    }
    let _ = writeln!(section, "\nLargest difference of the values from ours: {worst:.1e}.\n");
    section
}

fn outcomes_of(rows: &mut Vec<(String, Vec<Outcome>)>, name: String, column: usize) -> &mut Vec<Outcome> {
    let at = rows.iter().position(|row| row.0 == name).unwrap_or_else(|| {
        // A variant that failed to load before has nothing to show there.
        rows.push((name, vec![Outcome::NotTried; column]));
        rows.len() - 1
    });
    &mut rows[at].1
}

fn shortfall(status: Status) -> &'static str {
    if status == Status::Exact { "" } else { " (not exact)" }
}

fn cell(outcome: &Outcome, own: f64, limit: Duration) -> String {
    match outcome {
        Outcome::Answered(times, residual) => {
            let time = median(&mut times.clone());
            let reached =
                if *residual <= 1.001 * TOLERANCE { String::new() } else { format!(", stopped at {residual:.0e}") };
            format!("{} (**{:.1}**{reached})", seconds(time), time / own)
        }
        Outcome::NoAnswer => format!("no answer in {} s (**> {:.0}**)", limit.as_secs(), limit.as_secs_f64() / own),
        Outcome::NotTried => "–".into(),
        Outcome::Failed(reason) => reason.clone(),
    }
}

/// R(s, a) of all pairs, in their order.
fn of_pairs(mdp: &Mdp<'_>, reward: &Reward) -> Vec<f64> {
    let pairs = mdp.pairs();
    (0..mdp.n_states()).flat_map(|s| pairs.of_state(s).map(move |pair| reward.at(s, pair))).collect()
}

fn measure(mdp: &Mdp<'_>, reward: &Reward) -> (Ours, Plan) {
    let threads = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let (one, two) = (threads(1), threads(2));
    let tolerant = Planner::to_tolerance(Method::Automatic, TOLERANCE);
    let exact = Planner::default();
    let (mut times, mut walls) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut kept = None;
    for _ in 0..RUNS {
        let cpu = ProcessTime::now();
        let _ = one.install(|| tolerant.plan(mdp, reward)).unwrap();
        times[0].push(cpu.elapsed().as_secs_f64());
        let (cpu, wall) = (ProcessTime::now(), Instant::now());
        kept = Some(one.install(|| exact.plan(mdp, reward)).unwrap());
        times[1].push(cpu.elapsed().as_secs_f64());
        walls[0].push(wall.elapsed().as_secs_f64());
        let wall = Instant::now();
        let _ = two.install(|| exact.plan(mdp, reward)).unwrap();
        walls[1].push(wall.elapsed().as_secs_f64());
    }
    let plan = kept.unwrap();
    let [tolerant, exact] = times.map(|mut times| median(&mut times));
    (Ours { tolerant, exact, wall: walls.map(|mut walls| median(&mut walls)), status: plan.certificate.status }, plan)
}

/// A variant as often as [`RUNS`], while it answers.
fn try_out(peer: &mut Peer, variant: &str, limit: Duration, path: &Path, folder: &Path) -> Outcome {
    let (mut times, mut residual) = (Vec::new(), 0.0_f64);
    let values = folder.join("values.npy");
    for _ in 0..RUNS {
        match peer.solve_within(variant, &values, limit) {
            Ok(Some((seconds, reached))) => {
                times.push(seconds);
                residual = residual.max(reached);
            }
            Ok(None) => {
                let outcome = if times.is_empty() { Outcome::NoAnswer } else { Outcome::Answered(times, residual) };
                // Its process was ended; the next variant needs another.
                return peer.load_slow(path, LOADING).map_or_else(Outcome::Failed, |_| outcome);
            }
            Err(reason) => {
                let _ = peer.load_slow(path, LOADING);
                return Outcome::Failed(reason);
            }
        }
        // What takes long is not worth a third of it again.
        if times.iter().sum::<f64>() > limit.as_secs_f64() {
            break;
        }
    }
    Outcome::Answered(times, residual)
}
