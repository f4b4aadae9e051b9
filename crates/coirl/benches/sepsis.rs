//! Section 4.3 of the paper on the sepsis simulator, as tables for docs/sepsis.md:
//!
//! ```text
//! cargo bench -p coirl --bench sepsis -- online | linear | threshold [--seeds N] [--contexts N,N,…] [--only WORD] [--without WORD]
//! ```
#![allow(clippy::print_stdout)] // tables are the result

use coirl::evaluate::Score;
use coirl::experiments::sepsis::{
    Seen, Size, Truth, Yardsticks, linear_contenders, offline, online, online_contenders, threshold_contenders,
    yardsticks,
};
use coirl::experiments::{Acting, Contender, Measurement, over_seeds};
use std::ops::ControlFlow;

const TEST_CONTEXTS: usize = 300;

fn main() -> coirl::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
    let seeds: u64 = after("--seeds").and_then(|n| n.parse().ok()).unwrap_or(5);
    let contexts = |usual: &[usize]| -> Vec<usize> {
        after("--contexts")
            .map_or_else(|| usual.to_vec(), |list| list.split(',').filter_map(|n| n.parse().ok()).collect())
    };
    let size =
        |usual: &[usize]| Size { contexts: contexts(usual), seeds: (0..seeds).collect(), test_contexts: TEST_CONTEXTS };
    let chosen = |contenders: Vec<Contender>| -> Vec<Contender> {
        let fits = |contender: &Contender| {
            after("--only").is_none_or(|word| contender.name.contains(word.as_str()))
                && after("--without").is_none_or(|word| !contender.name.contains(word.as_str()))
        };
        contenders.into_iter().filter(fits).collect()
    };
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if wanted("online") {
        for seen in [Seen::FeatureExpectations, Seen::Trajectory] {
            let (size, contenders) = (size(&[25, 100, 500, 1000]), chosen(online_contenders(seen)));
            let mut all = Vec::new();
            online(seen, &contenders, &size, &mut |m| keep(&mut all, m))?;
            println!("\n### Online, {seen:?}\n");
            table(&all, &contenders, &size, Acting::Test, "gap-normalised value", |score| 100.0 * score.relative_value);
        }
    }
    for (name, truth, usual, contenders) in [
        ("linear", Truth::Linear, &[10, 25, 100, 200, 500, 1000][..], chosen(linear_contenders())),
        ("threshold", Truth::Threshold, &[200, 1000, 4000][..], chosen(threshold_contenders())),
    ] {
        if wanted(name) {
            let size = size(usual);
            println!("\n### Offline, {name} truth\n");
            stand(truth, seeds)?;
            let mut all = Vec::new();
            offline(truth, &contenders, &size, &mut |m| keep(&mut all, m))?;
            let percent = |number: fn(&Score) -> f64| move |score: &Score| 100.0 * number(score);
            for (acting, what) in [
                (Acting::Test, "gap-normalised value, test"),
                (Acting::Training, "gap-normalised value, training"),
                (Acting::Improved, "gap-normalised value, GPI"),
            ] {
                table(&all, &contenders, &size, acting, what, percent(|score| score.relative_value));
            }
            for (what, number) in [
                ("plain ratio, test", percent(|score| score.value_ratio)),
                ("accuracy on the expert's way, test", percent(|score| score.visited_accuracy)),
                ("accuracy in states with a choice, test", percent(|score| score.choice_accuracy)),
            ] {
                table(&all, &contenders, &size, Acting::Test, what, number);
            }
        }
    }
    Ok(())
}

fn keep(all: &mut Vec<Measurement>, measurement: Measurement) -> ControlFlow<()> {
    eprintln!(
        "{} contexts, seed {}: {} ({:?}) {:.2} %",
        measurement.contexts,
        measurement.seed,
        measurement.contender,
        measurement.acting,
        100.0 * measurement.score.relative_value
    );
    all.push(measurement);
    ControlFlow::Continue(())
}

/// Agents that do not learn, over all seeds.
fn stand(truth: Truth, seeds: u64) -> coirl::Result<()> {
    let each = (0..seeds).map(|seed| yardsticks(truth, TEST_CONTEXTS, seed)).collect::<coirl::Result<Vec<_>>>()?;
    let mean = |number: &dyn Fn(&Yardsticks) -> f64| 100.0 * each.iter().map(number).sum::<f64>() / each.len() as f64;
    println!("| agent that does not learn | gap-normalised value | plain ratio |\n|---|---|---|");
    type Stick = fn(&Yardsticks) -> &Score;
    let named: [(&str, Stick); 3] = [
        ("one policy for the mean context", |stick| &stick.one_policy),
        ("survival only", |stick| &stick.outcome_only),
        ("random", |stick| &stick.random),
    ];
    for (name, score) in named {
        let relative = mean(&|stick| score(stick).relative_value);
        let ratio = mean(&|stick| score(stick).value_ratio);
        println!("| {name} | {relative:.1} | {ratio:.1} |");
    }
    Ok(())
}

fn table(
    all: &[Measurement],
    contenders: &[Contender],
    size: &Size,
    acting: Acting,
    what: &str,
    number: impl Fn(&Score) -> f64,
) {
    let heads: String = size.contexts.iter().map(|n| format!(" {n} |")).collect();
    println!("\n| {what}, by contexts |{heads}\n|---|{}", "---|".repeat(size.contexts.len()));
    for contender in contenders {
        let cells: Vec<Option<String>> = size
            .contexts
            .iter()
            .map(|&n| {
                over_seeds(all, contender.name, n, acting, &number)
                    .map(|(mean, spread)| format!("{mean:.1} ± {spread:.1}"))
            })
            .collect();
        if cells.iter().any(Option::is_some) {
            let row: String = cells.into_iter().map(|cell| format!(" {} |", cell.unwrap_or_default())).collect();
            println!("| {} |{row}", contender.name);
        }
    }
}
