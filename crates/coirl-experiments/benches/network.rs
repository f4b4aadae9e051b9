//! Seconds per step of the paper's networks, and how much of them is planning:
//!
//! ```text
//! cargo bench -p coirl-experiments --bench network [-- simulator | real-life]
//! ```
//!
//! The simulator's network (three layers of 336) learns on the sepsis simulator; the network for patients (20K, 10K, 10K, 5K: 350 million
//! parameters) on 5,000 random states with a feature per state and action, mini-batches of 32, as in the paper.
#![allow(clippy::print_stdout)] // tables are the result

use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Garnet;
use coirl::learn::{Hidden, Neural, Problem, Watch};
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, ContextSpace, Criterion, Features};
use coirl::objective::ObjectiveChoice;
use coirl::optim::Optimiser;
use coirl_experiments::{Place, Seen, World};

const DEMONSTRATIONS: usize = 64;
const TRANSITIONS: usize = 20;

fn main() -> coirl::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    println!("| network | parameters | seconds per step | of it planning | most memory |\n|---|---|---|---|---|");
    let momentum = Optimiser::Sgd { momentum: 0.9 };
    if wanted("simulator") {
        let ward = World::new(Place::SepsisThreshold)?;
        let train = ward.demonstrations(&ward.subjects(DEMONSTRATIONS, 1)?, Seen::Trajectory, 1)?;
        for (name, hidden, objective, optimiser) in [
            ("3 x 336, batch normalisation, loss", Hidden::Simulator, ObjectiveChoice::Loss, momentum),
            ("3 x 336, likelihood, Adam", Hidden::Plain, ObjectiveChoice::likelihood(), Optimiser::Adam),
        ] {
            measure(name, ward.model(), &train, Neural { hidden, objective, optimiser, ..Neural::default() }, 20)?;
        }
    }
    if wanted("real-life") {
        let model = patients()?;
        let own = Neural {
            hidden: Hidden::RealLife,
            objective: ObjectiveChoice::Loss,
            optimiser: momentum,
            ..Neural::default()
        };
        measure("20K-10K-10K-5K, loss", &model, &demonstrated(&model)?, own, 3)?;
    }
    Ok(())
}

/// 5,000 states, five actions, an indicator per state and per action, discount 0.7.
fn patients() -> coirl::Result<Cmdp> {
    let garnet = Garnet { n_states: 5000, n_actions: 5, n_successors: 20, n_features: 1, ..Garnet::default() };
    let model = garnet.build()?;
    let (features, criterion) = (Features::indicators(model.pairs())?, Criterion::discounted(0.7)?);
    Cmdp::new(model.dynamics().clone(), features, model.initial().to_vec(), criterion)?
        .with_context_space(ContextSpace::Simplex { dimension: 7 })
}

fn demonstrated(model: &Cmdp) -> coirl::Result<Train> {
    let contexts = model.context_space().sample(DEMONSTRATIONS, 1)?;
    let demonstration = |(i, context): (usize, coirl::model::Context)| {
        let path = Trajectory::sample(&model.mdp(&context)?, &model.random_policy(), TRANSITIONS, 1, i as u64)?;
        Demonstration::from_trajectories(model, context, vec![path])
    };
    Ok(Train::new(contexts.into_iter().enumerate().map(demonstration).collect::<coirl::Result<_>>()?))
}

fn measure(name: &str, model: &Cmdp, train: &Train, own: Neural, steps: u64) -> coirl::Result<()> {
    let parameters = own.architecture(7, model.n_features()).n_parameters();
    let problem = Problem::new(model, train, &Estimator::Decisions)?;
    let mut settings =
        Settings { record_every: Some(0), record_loss: Some(false), ..Settings::new(Method::Neural(own)) };
    settings.stop.max_steps = Some(steps);
    let began = std::time::Instant::now();
    let _ = fit(&problem, &settings, Watch::default(), &mut ())?;
    let planning = problem.planner().time();
    let rest = began.elapsed().saturating_sub(planning);
    let all = (planning + rest).as_secs_f64();
    let (step, share) = (all / steps as f64, 100.0 * planning.as_secs_f64() / all);
    println!("| {name} | {parameters} | {step:.3} | {share:.0} % | {} |", most_memory());
    Ok(())
}

/// The most that this process has held so far, where the system tells.
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or("–".into(), |n: f64| format!("{:.1} GiB", n / (1 << 20) as f64))
}
