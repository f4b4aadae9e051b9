//! Behavioural cloning in the sepsis simulator, by the logistic model and by a network: value above random on 300 new patients, for
//! experts with a linear and with a non-linear reward. One trajectory of 40 transitions per patient, from where the stay begins.
//! `cargo bench --bench cloning [-- --contexts 100,200] [-- --seeds N]`.
#![allow(clippy::print_stdout)] // a benchmark reports on standard output

use coirl::baselines::{Cloning, NeuralCloning};
use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Sepsis;
use coirl::learn::{Problem, Watch};
use coirl::mapping::RewardMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::Cmdp;
use coirl::plan::ManyOptions;
use coirl::score::Examination;

const TEST_CONTEXTS: usize = 300;
const TEST_SEED: u64 = 1_000_001;
const TRANSITIONS: usize = 40;
const CONTEXTS: &str = "100,200,1000";
const SEEDS: u64 = 2;

fn demonstrations(model: &Cmdp, truth: &dyn RewardMapping, n: usize, seed: u64) -> coirl::Result<Vec<Demonstration>> {
    let patients = Sepsis::patients(n, 10 + seed)?;
    let contexts: Vec<_> = patients.iter().map(|patient| patient.context.clone()).collect();
    let plans = plan_mapping(model, truth, &contexts, ManyOptions::default())?;
    let shown = patients.into_iter().zip(plans).enumerate().map(|(i, (patient, plan))| {
        let mdp = model.mdp(&patient.context)?.starting_in(patient.start)?;
        let path = Trajectory::sample(&mdp, &plan.policy, TRANSITIONS, seed, i as u64)?;
        Demonstration::from_trajectories(model, patient.context, vec![path])
    });
    shown.collect()
}

fn methods() -> [(&'static str, Method); 4] {
    let (logistic, network) = (Cloning::default(), NeuralCloning::default());
    [
        ("logistic", Method::Cloning(logistic)),
        ("logistic, likeliest action", Method::Cloning(Cloning { most_probable: true, ..logistic })),
        ("network", Method::NeuralCloning(network.clone())),
        ("network, likeliest action", Method::NeuralCloning(NeuralCloning { most_probable: true, ..network })),
    ]
}

/// What follows a flag on the command line.
fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counts = option("--contexts").unwrap_or_else(|| CONTEXTS.into());
    let counts = counts.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let seeds = option("--seeds").map_or(Ok(SEEDS), |n| n.parse())?;
    let model = Sepsis::default().build()?;
    let (linear, threshold) = (Sepsis::linear_mapping(), Sepsis::threshold_mapping()?);
    let truths: [(&str, &dyn RewardMapping); 2] = [("linear", &linear), ("threshold", &threshold)];
    for (name, truth) in truths {
        let test = Sepsis::patients(TEST_CONTEXTS, TEST_SEED)?.into_iter().map(|patient| patient.context).collect();
        let examination = Examination::new(&model, truth, test)?;
        for seed in 1..=seeds {
            let most = counts.iter().copied().max().unwrap_or_default();
            let shown = demonstrations(&model, truth, most, seed)?;
            for &n in &counts {
                let train = Train::new(shown[..n].to_vec());
                let problem = Problem::new(&model, &train, &Estimator::default())?;
                for (method, settings) in methods() {
                    let settings = Settings { seed, ..Settings::new(settings) };
                    let fitted = fit(&problem, &settings, Watch::default(), &mut ())?;
                    let score = examination.score(&fitted.agent)?;
                    let (value, way) = (100.0 * score.relative_value, 100.0 * score.visited_accuracy);
                    println!(
                        "{name:9} {n:5} contexts, seed {seed}: {method:27} {value:6.1} % of value above random, {way:5.1} % of the expert's actions"
                    );
                }
            }
        }
    }
    Ok(())
}
