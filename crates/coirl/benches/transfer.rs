//! What transfer costs beside planning, in the sepsis simulator (716 states, 25 actions, 42 features, contexts of 7 numbers,
//! discount 0.9) and with libraries of up to 400 policies. Medians over many new patients, all in one run; then what
//! transfer is worth in the offline driving setting, over ten seeds.
//! `cargo bench --bench transfer [-- --driving [--seeds N]]`.
#![allow(clippy::print_stdout)] // a benchmark reports on standard output

#[path = "../tests/offline_driving/mod.rs"]
mod offline_driving;

use coirl::domains::{Driving, Sepsis};
use coirl::model::{Context, StateId};
use coirl::plan::Planner;
use coirl::transfer::{Basis, How, PolicyLibrary, Transfer};
use offline_driving::Outcome;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

const POLICIES: usize = 100;
const NEW_CONTEXTS: usize = 41;
/// States in which somebody acts.
const CLUSTERS: usize = 713;

fn patients(n: usize, seed: u64) -> coirl::Result<Vec<Context>> {
    Ok(Sepsis::patients(n, seed)?.into_iter().map(|patient| patient.context).collect())
}

/// Median seconds of what is done once per context.
fn median(contexts: &[Context], mut once: impl FnMut(&Context) -> coirl::Result<()>) -> coirl::Result<f64> {
    let mut seconds = Vec::with_capacity(contexts.len());
    for context in contexts {
        let begun = Instant::now();
        once(context)?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

fn act(transfer: &Transfer<'_>, context: &Context, state: StateId) -> coirl::Result<()> {
    black_box(transfer.act(context, state)?);
    Ok(())
}

fn row(what: &str, seconds: f64, planning: f64) {
    println!("| {what} | {:.4} | {:.1} |", 1e3 * seconds, planning / seconds);
}

fn main() -> coirl::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--driving") {
        let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
        return driving(after("--seeds").and_then(|n| n.parse().ok()).unwrap_or(10));
    }
    beside_planning()
}

/// The share of the expert's value in new contexts, and the sweeps that planning needs there.
fn driving(seeds: u64) -> coirl::Result<()> {
    let model = Driving::default().build()?;
    println!(
        "| training contexts | policies | planned | improved | nearest | largest gap | largest bound | sweeps, cold | warm |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for n in [5, 10, 20, 40, 80] {
        let outcomes: Vec<_> = (0..seeds)
            .into_par_iter()
            .map(|seed| offline_driving::run(&model, n, seed))
            .collect::<coirl::Result<_>>()?;
        let mean = |number: fn(&Outcome) -> f64| offline_driving::mean(&outcomes, number);
        let per_context = |sweeps: f64| sweeps / offline_driving::TEST_CONTEXTS as f64;
        println!(
            "| {n} | {:.1} | {:.2} | {:.2} | {:.2} | {:.1e} | {:.1e} | {:.1} | {:.1} |",
            mean(|o| o.n_policies as f64),
            mean(|o| 100.0 * o.planned),
            mean(|o| 100.0 * o.improved),
            mean(|o| 100.0 * o.nearest),
            outcomes.iter().map(|o| o.largest_gap).fold(0.0, f64::max),
            outcomes.iter().map(|o| o.largest_bound).fold(0.0, f64::max),
            per_context(mean(|o| o.sweeps.0 as f64)),
            per_context(mean(|o| o.sweeps.1 as f64)),
        );
    }
    Ok(())
}

/// What transfer costs beside planning.
fn beside_planning() -> coirl::Result<()> {
    let model = Sepsis::default().build()?;
    let mapping = Sepsis::linear_mapping();
    let contexts = patients(NEW_CONTEXTS, 1)?;
    let known = patients(POLICIES, 2)?;
    let mdp = model.shared_mdp()?;
    let plan = |context: &Context| {
        Planner::default().plan(&mdp, &mdp.reward(&mapping.weights(context)?)?).map(|plan| drop(black_box(plan)))
    };
    let planning = median(&contexts, plan)?;
    println!("| for a new context | milliseconds | times cheaper than planning |");
    println!("|---|---|---|");
    row("plan from scratch", planning, planning);

    let mut transfer = Transfer::new(&model, mapping.clone())?;
    let begun = Instant::now();
    transfer.learn(&known)?;
    let learning = begun.elapsed().as_secs_f64();
    let mut state = 0;
    let mut next_state = || {
        state = (state + 17) % CLUSTERS;
        StateId(state as u32)
    };
    let first = median(&contexts, |context| act(&transfer, context, next_state()))?;
    row("action in one state, asked about for the first time", first, planning);
    let begun = Instant::now();
    transfer.policy(&contexts[0])?;
    let preparing = begun.elapsed().as_secs_f64();
    let again = median(&contexts, |context| act(&transfer, context, next_state()))?;
    row("action in one state, asked about before", again, planning);
    let whole = median(&contexts, |context| transfer.policy(context).map(|policy| drop(black_box(policy))))?;
    row("the improved policy in all states", whole, planning);
    let judged = median(&contexts, |context| transfer.transfer(context, None).map(|it| drop(black_box(it))))?;
    row("the same with its value and the bound of a backup", judged, planning);
    let mut sweeps = (0, 0);
    let warm = median(&contexts, |context| {
        let transferred = transfer.transfer(context, None)?;
        if let How::Planned { sweeps: needed, .. } = transfer.plan(context, Some(&transferred))?.how {
            sweeps.0 += needed;
        }
        Ok(())
    })?;
    row("the same, then planned from there", warm, planning);
    for context in &contexts {
        if let How::Planned { sweeps: needed, .. } = transfer.plan(context, None)?.how {
            sweeps.1 += needed;
        }
    }
    println!();
    println!("{} policies of {POLICIES} contexts: {learning:.2} s to plan and evaluate,", transfer.n_policies());
    println!("{preparing:.2} s to make all states ready (once, with the first improved policy).");
    println!("Planning from the transferred policy takes {} sweeps, from scratch {}.", sweeps.0, sweeps.1);

    println!("\n| policies | improved policy, milliseconds | times cheaper than planning |");
    println!("|---|---|---|");
    for n in [5, 10, 20, 50, 100, 200, 400] {
        let mut library = PolicyLibrary::shared(&model, &Basis::linear(&mapping))?;
        let more = patients(n, 3)?;
        let planned: Vec<_> = more
            .iter()
            .map(|context| Ok(Planner::default().plan(&mdp, &mdp.reward(&mapping.weights(context)?)?)?.policy))
            .collect::<coirl::Result<_>>()?;
        library.add(more.iter().map(Context::values).zip(&planned))?;
        library.prepare();
        let once = |context: &Context| library.improve(context.values()).map(|choices| drop(black_box(choices)));
        row(&library.known().n_policies().to_string(), median(&contexts, once)?, planning);
    }
    Ok(())
}
