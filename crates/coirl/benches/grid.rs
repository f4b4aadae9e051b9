//! The paper's comparison on the 3 × 4 grid, W* = identity: apprenticeship learning with the contexts inside the state against
//! projected subgradients on mini-batches of six, by the number of contexts. Time per iteration of the large MDP planned context by
//! context, as one sparse process, and as the dense block matrix that was published; value and accuracy after 99 and 59
//! iterations, on the contexts learned from and on 100 others. `cargo bench --bench grid [-- --seeds N]`.
#![allow(clippy::print_stdout)] // a benchmark reports on standard output

use coirl::agent::Agent;
use coirl::baselines::{FrankWolfe, LargeMdp, MaxMargin, Mwal, Projection, States};
use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Estimator, Origin, Train};
use coirl::domains::Grid;
use coirl::learn::{Batch, MirrorDescent, Problem, Stop, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Fitted, Method, Settings, fit};
use coirl::model::{Cmdp, Context};
use coirl::plan::ManyOptions;
use coirl::score::Examination;
use faer::{Mat, Par};
use std::time::Instant;

const SIZES: [usize; 4] = [5, 10, 20, 40];
const TEST_CONTEXTS: usize = 100;
const APPRENTICE_STEPS: u64 = 99;
const SUBGRADIENT_STEPS: u64 = 59;
const MINI_BATCH: usize = 6;
/// Sweeps of the published value iteration: its least number, which its tolerance never exceeds here.
const SWEEPS: usize = 100;
/// Dense iterations that are timed.
const DENSE_STEPS: usize = 3;

fn identity(n: usize) -> coirl::Result<LinearMapping> {
    LinearMapping::new(n, n, (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect())
}

fn demonstrations(model: &Cmdp, truth: &LinearMapping, contexts: &[Context]) -> coirl::Result<Train> {
    let plans = plan_mapping(model, truth, contexts, ManyOptions::default())?;
    let shown = contexts.iter().zip(plans).map(|(context, plan)| {
        let mu = plan.feature_expectations.unwrap_or_default();
        Demonstration::from_feature_expectations(model, context.clone(), mu)
    });
    Ok(Train::new(shown.collect::<coirl::Result<_>>()?))
}

fn subgradients(n: usize) -> (Method, Option<Vec<f64>>) {
    let batch = Batch::WithReplacement { size: MINI_BATCH };
    let method = Method::MirrorDescent(MirrorDescent { batch, ..MirrorDescent::default() });
    (method, Some(vec![1.0 / n as f64; n]))
}

/// Learns without scores on the way, and says how long an iteration took, in milliseconds.
fn timed(
    problem: &Problem<'_>,
    method: Method,
    initial: Option<Vec<f64>>,
    steps: u64,
    seed: u64,
) -> coirl::Result<(Fitted, f64)> {
    let stop = Stop { max_steps: Some(steps), ..Stop::default() };
    let settings = Settings { seed, initial, stop, record_loss: Some(false), ..Settings::new(method) };
    let begun = Instant::now();
    let fitted = fit(problem, &settings, Watch::default(), &mut ())?;
    let milliseconds = 1e3 * begun.elapsed().as_secs_f64();
    let taken = fitted.steps.max(1);
    Ok((fitted, milliseconds / taken as f64))
}

/// One iteration as published: value iteration that carries the feature expectations of every state through dense matrices
/// over all contexts. Returns them from the start, and the milliseconds.
fn dense_iteration(large: &LargeMdp, mapping: &[f64]) -> coirl::Result<(Vec<f64>, f64)> {
    let mdp = large.model().shared_mdp()?;
    let (n, pairs, dk) = (mdp.n_states(), mdp.pairs(), mapping.len());
    let mut transitions = Mat::<f64>::zeros(pairs.len(), n);
    let mut features = Mat::<f64>::zeros(pairs.len(), dk);
    for pair in 0..pairs.len() {
        mdp.kernel().successors(pair).for_each(|(next, p)| transitions[(pair, next)] = p);
        if let coirl::model::Features::StateAction(rows) = mdp.features() {
            rows.row(pair).for_each(|(j, x)| features[(pair, j)] = x);
        }
    }
    let gamma = mdp.criterion().discount();
    let begun = Instant::now();
    let mut carried = Mat::<f64>::zeros(n, dk);
    for _ in 0..SWEEPS {
        let mut q = features.clone();
        faer::linalg::matmul::matmul(
            q.as_mut(),
            faer::Accum::Add,
            transitions.as_ref(),
            carried.as_ref(),
            gamma,
            Par::Seq,
        );
        let value = |pair: usize| (0..dk).map(|j| q[(pair, j)] * mapping[j]).sum::<f64>();
        for s in 0..n {
            let best = pairs.of_state(s).map(|pair| (value(pair), pair)).reduce(|a, b| if b.0 > a.0 { b } else { a });
            if let Some((_, pair)) = best {
                (0..dk).for_each(|j| carried[(s, j)] = q[(pair, j)]);
            }
        }
    }
    let milliseconds = 1e3 * begun.elapsed().as_secs_f64();
    let start = mdp.initial();
    Ok(((0..dk).map(|j| (0..n).map(|s| start[s] * carried[(s, j)]).sum()).collect(), milliseconds))
}

/// Means over the seeds.
struct Row([f64; 8], u64);

impl Row {
    fn mean(&self, i: usize) -> f64 {
        self.0[i] / self.1 as f64
    }
}

fn main() -> coirl::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let seeds: u64 = after("--seeds").and_then(|n| n.parse().ok()).unwrap_or(5);
    let model = Grid::default().build()?;
    let k = model.n_features();
    let truth = identity(k)?;

    println!("Milliseconds per iteration, mean of {seeds} seeds, {} threads:\n", rayon::current_num_threads());
    println!("| contexts | projection, separate | joint, sparse | joint, dense | PSGD, batch of {MINI_BATCH} |");
    println!("|---|---|---|---|---|");
    for size in SIZES {
        let mut row = Row([0.0; 8], seeds);
        for seed in 0..seeds {
            let contexts = model.context_space().sample(size, 2 * seed)?;
            let train = demonstrations(&model, &truth, &contexts)?;
            // A problem remembers policies: each method has its own.
            let problem = || Problem::new(&model, &train, &Estimator::default());
            for (i, states) in [States::Separate, States::Joint].into_iter().enumerate() {
                let method = Method::Projection(Projection { states });
                row.0[i] += timed(&problem()?, method, None, APPRENTICE_STEPS, seed)?.1;
            }
            let origin = Origin::Model;
            let started: Vec<(&Context, &Origin)> = contexts.iter().map(|context| (context, &origin)).collect();
            let large = LargeMdp::new(&model, &started)?;
            if seed == 0 {
                for step in 0..DENSE_STEPS {
                    let mapping: Vec<f64> = (0..k * k).map(|j| ((j * 7 + step) % 5) as f64).collect();
                    let (dense, milliseconds) = dense_iteration(&large, &mapping)?;
                    let exact = large.respond(&mapping)?.1;
                    let value = |mu: &[f64]| mu.iter().zip(&mapping).map(|(x, w)| x * w).sum::<f64>();
                    // What a hundred sweeps leave undone is 0.9^100.
                    assert!((value(&dense) / value(&exact) - 1.0).abs() < 1e-4, "the dense matrix is another process");
                    row.0[2] += seeds as f64 * milliseconds / DENSE_STEPS as f64;
                }
            }
            let (method, initial) = subgradients(k * k);
            row.0[3] += timed(&problem()?, method, initial, SUBGRADIENT_STEPS, seed)?.1;
        }
        println!("| {size} | {:.3} | {:.3} | {:.1} | {:.3} |", row.mean(0), row.mean(1), row.mean(2), row.mean(3));
    }

    println!("\nShare of the expert's value and states with the expert's action, per cent, mean of {seeds} seeds:\n");
    println!(
        "| contexts | method | steps | distance | value, learned from | accuracy | value, 100 others | accuracy |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let apprentices = [
        ("projection", Method::Projection(Projection::default())),
        ("maximum margin", Method::MaxMargin(MaxMargin::default())),
        ("away steps", Method::FrankWolfe(FrankWolfe::default())),
        ("MWAL, signed", Method::Mwal(Mwal::default())),
        ("MWAL, positive, x30", Method::Mwal(Mwal { signed: false, step_multiplier: 30.0, ..Mwal::default() })),
    ];
    for size in SIZES {
        let mut rows: Vec<(&str, Row)> = apprentices.iter().map(|(name, _)| (*name, Row([0.0; 8], seeds))).collect();
        rows.push(("projection, last policy", Row([0.0; 8], seeds)));
        rows.push(("PSGD", Row([0.0; 8], seeds)));
        for seed in 0..seeds {
            let contexts = model.context_space().sample(size, 2 * seed)?;
            let test = model.context_space().sample(TEST_CONTEXTS, 2 * seed + 1)?;
            let problem = Problem::new(&model, &demonstrations(&model, &truth, &contexts)?, &Estimator::default())?;
            let examinations =
                [Examination::new(&model, &truth, contexts.clone())?, Examination::new(&model, &truth, test)?];
            let mut note = |row: usize, agent: &Agent, fitted: &Fitted| -> coirl::Result<()> {
                let sums = &mut rows[row].1.0;
                sums[0] += fitted.steps as f64;
                sums[1] += fitted.certificate.distance.unwrap_or(f64::NAN);
                for (i, examination) in examinations.iter().enumerate() {
                    let score = examination.score(agent)?;
                    sums[2 + 2 * i] += 100.0 * score.value_ratio;
                    sums[3 + 2 * i] += 100.0 * score.accuracy;
                }
                Ok(())
            };
            for (i, (_, method)) in apprentices.iter().enumerate() {
                let (fitted, _) = timed(&problem, method.clone(), None, APPRENTICE_STEPS, seed)?;
                note(i, &fitted.agent, &fitted)?;
                if let (0, Agent::Mixed(mixture)) = (i, &fitted.agent)
                    && let Some(last) = mixture.mappings().last()
                {
                    note(apprentices.len(), &Agent::Planned(last.clone()), &fitted)?;
                }
            }
            let (method, initial) = subgradients(k * k);
            let (fitted, _) = timed(&problem, method, initial, SUBGRADIENT_STEPS, seed)?;
            note(apprentices.len() + 1, &fitted.agent, &fitted)?;
        }
        for (name, row) in &rows {
            let distance = if row.mean(1).is_nan() { "–".into() } else { format!("{:.2e}", row.mean(1)) };
            println!(
                "| {size} | {name} | {:.0} | {distance} | {:.2} | {:.1} | {:.2} | {:.1} |",
                row.mean(0),
                row.mean(2),
                row.mean(3),
                row.mean(4),
                row.mean(5)
            );
        }
    }
    Ok(())
}
