//! The paper's interactive comparison on the driving domain: an expert is shown the agent in one context after the other and
//! demonstrates only where the agent misses more than 10⁻³ of the scaled value. 500 contexts per sequence.
//! `cargo bench --bench interactive [-- --sequences N]`.
#![allow(clippy::print_stdout)] // a benchmark reports on standard output

use coirl::demos::SimulatedExpert;
use coirl::domains::Driving;
use coirl::evaluate::Examination;
use coirl::learn::{
    Centre, CuttingPlane, Ellipsoid, Method, Problem, ReplayedDescent, ReplayedEvolution, Settings, Watch, fit,
};
use rayon::prelude::*;
use std::time::Instant;

const CONTEXTS: usize = 500;
const TEST_CONTEXTS: usize = 80;
/// 10⁻³ on the value scaled by (1 − γ)/k.
const TOLERANCE: f64 = 1e-3 * 3.0 / (1.0 - 0.9);

fn main() -> coirl::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let sequences: u64 = after("--sequences").and_then(|n| n.parse().ok()).unwrap_or(5);
    let model = Driving::default().build()?;
    let truth = Driving::interactive_mapping();
    let chebyshev = CuttingPlane { centre: Centre::Chebyshev, ..CuttingPlane::default() };
    let methods = [
        ("ellipsoid (Algorithm 2)", Method::Ellipsoid(Ellipsoid { tolerance: TOLERANCE })),
        ("PSGD with replay", Method::ReplayedDescent(ReplayedDescent::default())),
        ("ES with replay", Method::ReplayedEvolution(ReplayedEvolution::default())),
        ("cutting planes, Chebyshev centre", Method::CuttingPlane(chebyshev)),
        ("cutting planes, analytic centre", Method::CuttingPlane(CuttingPlane::default())),
    ];
    println!("| method | demonstrations | fewest, most | final value | lowest | planner calls | seconds |");
    println!("|---|---|---|---|---|---|---|");
    for (name, method) in methods {
        let begun = Instant::now();
        let run = |seed: u64| -> coirl::Result<[f64; 3]> {
            let contexts = model.context_space().sample(CONTEXTS, 2 * seed)?;
            let test = model.context_space().sample(TEST_CONTEXTS, 2 * seed + 1)?;
            let expert = SimulatedExpert::new(&model, truth.clone(), TOLERANCE, seed)?;
            let problem = Problem::interactive(&model, contexts, &expert)?;
            let settings = Settings { seed, ..Settings::new(method.clone()) };
            let fitted = fit(&problem, &settings, Watch::default(), &mut ())?;
            let score = Examination::new(&model, &truth, test)?.score(&fitted.agent)?;
            Ok([fitted.demonstrations as f64, score.value_ratio, fitted.planner_calls as f64])
        };
        let rows: Vec<[f64; 3]> = (0..sequences).into_par_iter().map(run).collect::<coirl::Result<_>>()?;
        let mean = |j: usize| rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64;
        let least = |j: usize| rows.iter().map(|row| row[j]).fold(f64::INFINITY, f64::min);
        let most = rows.iter().map(|row| row[0]).fold(0.0, f64::max);
        println!(
            "| {name} | {:.1} | {}, {most} | {:.3} % | {:.3} % | {:.0} | {:.1} |",
            mean(0),
            least(0),
            100.0 * mean(1),
            100.0 * least(1),
            mean(2),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
