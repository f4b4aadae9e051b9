//! Cohorts and scores as text.

use super::NOT_FOR_CLINICAL_USE;
use super::folder::CohortFile;
use super::limits::by_part;
use super::scoring::{Scored, Scores};
use super::units::{action_in_words, in_unit};
use super::verdicts::{about_rules, rare_actions, rules, verdict};
use crate::failure::Failure;
use crate::numbers::{count, short};
use crate::text::{self, Tabular};
use coirl::model::Cmdp;
use coirl::resampling::Estimate;
use coirl_cohort::off_policy::{Assessment, Outcome};
use coirl_cohort::synthetic::{Worth, Yardsticks};
use coirl_cohort::{
    AgentAgreement, CandidateScore, Cohort, Finding, Flow, FlowStep, OffPolicy, PartSummary, Selected, SelectionStage,
    Severity, TrainStays,
};
use coirl_experiments::Entrant;
use coirl_experiments::cohort::Fared;
use std::io::Write;
use std::path::Path;

/// Where a number would tell of too few patients.
pub(crate) const TOO_FEW: &str = "too few to tell";
/// Rows of the screening that are shown.
const SCREENED: usize = 8;

/// What was built.
pub(crate) fn write_build(out: &mut dyn Write, cohort: &Cohort, file: &CohortFile) -> Result<(), Failure> {
    flow(file).write(out)?;
    writeln!(out)?;
    let Cohort { model, train, validation, test, .. } = cohort;
    let parts =
        [train.stays(), validation.stays(), test.stays()].map(|stays| PartSummary::of(stays, &file.encoder.contexts));
    by_part(file, &parts).write(out)?;
    writeln!(out)?;
    for (label, words) in described(file, model, train, [validation.stays().len(), test.stays().len()]) {
        text::pair(out, label, &words)?;
    }
    write_findings(out, &cohort.findings)
}

/// Who was left out and why.
pub(crate) fn flow(file: &CohortFile) -> Tabular {
    flow_of(&file.table, &file.flow)
}

/// Who of a table was left out and why.
pub(crate) fn flow_of(table: &Path, flow: &Flow) -> Tabular {
    let row = |step: &FlowStep| {
        let out = |n: usize| if n == 0 { String::new() } else { format!("−{}", count(n)) };
        vec![step.rule.clone(), out(step.stays_out), out(step.rows_out), count(step.stays), count(step.rows)]
    };
    let header = ["left out", "stays", "rows", "stays left", "rows left"];
    let title = format!("Cohort of {}", table.display());
    Tabular::new(title, &header, flow.0.iter().map(row).collect())
}

/// What the parts of the model are. `held_out` counts the validation stays and the test stays.
pub(crate) fn described(
    file: &CohortFile,
    model: &Cmdp,
    train: &TrainStays,
    held_out: [usize; 2],
) -> Vec<(&'static str, String)> {
    let (encoder, support) = (&file.encoder, &file.support);
    let parts = [train.stays().len(), held_out[0], held_out[1]].map(count);
    vec![
        ("stays", format!("{} to learn from, {} to choose by, {} to score on", parts[0], parts[1], parts[2])),
        ("states", states(file)),
        ("actions", actions(file, train)),
        ("contexts", encoder.contexts.names().join(", ")),
        (
            "support",
            format!(
                "{} of {} pairs seen are admitted, {} of them for being the commonest of a state where none was seen {} times; {:.1} % of the \
                 training steps take another",
                count(support.pairs_supported),
                count(support.pairs_seen),
                count(support.pairs_rare),
                file.spec.dynamics.min_support,
                100.0 * support.steps_unsupported
            ),
        ),
        ("features", format!("{} of the reward; discount {}", count(model.n_features()), file.spec.discount)),
    ]
}

/// How many states there are, and what they are made of.
fn states(file: &CohortFile) -> String {
    let encoder = &file.encoder;
    let n = count(encoder.centroids.n_clusters());
    if let Some(column) = &file.spec.state.column {
        return format!("{n}, the numbers in {column}");
    }
    let measured = encoder.measurements.iter().filter(|measurement| measurement.is_measured()).count();
    let before = if file.spec.action.previous { " and the action before" } else { "" };
    let explained = if file.variance > 0.0 { 1.0 - file.inertia / file.variance } else { 1.0 };
    let per_cent = short((1000.0 * explained).round() / 10.0);
    format!("{n} from {measured} measurements{before}; {per_cent} % of the variance is between states")
}

fn actions(file: &CohortFile, train: &TrainStays) -> String {
    let encoder = &file.encoder;
    let mut times = vec![0_u64; encoder.actions.len()];
    for action in train.stays().iter().flat_map(|stay| &stay.trajectory.actions) {
        if let Some(n) = times.get_mut(action.index()) {
            *n += 1;
        }
    }
    let total: u64 = times.iter().sum();
    let most = times.iter().copied().max().unwrap_or_default();
    let at = times.iter().position(|n| *n == most).unwrap_or_default();
    let name = action_in_words(&file.spec, encoder, at);
    let share = 100.0 * most as f64 / total.max(1) as f64;
    format!("{}; the most frequent is {name}, {share:.1} % of the training steps", times.len())
}

/// What somebody should look at.
pub(crate) fn write_findings(out: &mut dyn Write, findings: &[Finding]) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    text::title(out, "Look at")?;
    for (label, finding) in by_severity(findings) {
        text::pair(out, label, &format!("{}: {}", finding.code, finding.message))?;
        if let Some(example) = &finding.example {
            text::pair(out, "", &format!("for example {example}"))?;
        }
    }
    Ok(())
}

/// Findings with how serious they are in a word, warnings first.
pub(crate) fn by_severity(findings: &[Finding]) -> Vec<(&'static str, &Finding)> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let label = |finding: &Finding| match finding.severity {
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    sorted.into_iter().map(|finding| (label(finding), finding)).collect()
}

/// Those that may make results wrong. That splits are by stay is only a note about a table; scores it may make too good.
pub(crate) fn warnings(findings: &[Finding]) -> Vec<&Finding> {
    let serious = |finding: &&Finding| finding.severity == Severity::Warning || finding.code == "no-patient-column";
    findings.iter().filter(serious).collect()
}

/// The candidates that were tried, below what was suspicious about the table and above what a single choice must be better than.
pub(crate) fn write_selection(out: &mut dyn Write, findings: &[Finding], selected: &Selected) -> Result<(), Failure> {
    write_warnings(out, "Before believing the choice: warnings about the table", findings)?;
    text::title(out, "States that were tried, on validation stays")?;
    let scores = &selected.candidates;
    let is_screening = |score: &&CandidateScore| score.candidate.stage == SelectionStage::Screening;
    let mut screened: Vec<&CandidateScore> = scores.iter().filter(is_screening).collect();
    screened.sort_by(|a, b| a.negative_log_likelihood.total_cmp(&b.negative_log_likelihood));
    let others = scores.iter().filter(|score| !is_screening(score));
    let row = |score: &CandidateScore| {
        let measurements: Vec<String> = score
            .candidate
            .measurements
            .iter()
            .map(|(name, weight)| if *weight == 1.0 { name.clone() } else { format!("{name}×{weight}") })
            .collect();
        let named = match &measurements[..] {
            [a, b, c, rest @ ..] if rest.len() > 2 => format!("{a}, {b}, {c} and {} more", rest.len()),
            all => all.join(", "),
        };
        vec![
            if score.chosen { "→".into() } else { String::new() },
            count(score.candidate.clusters),
            named,
            format!("{:.3} ± {:.3}", score.negative_log_likelihood, score.standard_error),
            format!("{:+.3} ± {:.3}", score.gain, score.gain_error),
            format!("{:.2} ({:.2})", score.actions_per_state, score.actions_per_state_shuffled),
            format!("{:.2}", score.states_per_step),
            format!("{:.1} %", 100.0 * score.unseen),
        ]
    };
    let header = ["", "states", "measurements", "−log-likelihood", "gain", "T1 (shuffled)", "T2 / step", "unseen"];
    let without = selected.without_state;
    let mut first = vec![String::new(), "none".into(), "(training shares of actions)".into()];
    first.push(format!("{:.3} ± {:.3}", without.negative_log_likelihood, without.standard_error));
    first.resize(header.len(), String::new());
    let rows = std::iter::once(first).chain(screened.into_iter().take(SCREENED).chain(others).map(row)).collect();
    text::table(out, &header, &[1, 3, 4, 5, 6, 7], rows)?;
    writeln!(out)?;
    text::pair(out, "→", "the smallest within one standard error of the best likelihood")?;
    text::pair(out, "gain", "on the training shares of actions, without any state, over the same patients")?;
    if selected.chosen().is_some_and(|chosen| chosen.gain <= 2.0 * chosen.gain_error) {
        let message =
            "the choice is not shown to be better than no state at all: these measurements hardly say what is done";
        text::pair(out, "warning", message)?;
    }
    Ok(())
}

/// Warnings under a title; nothing where there is none.
fn write_warnings(out: &mut dyn Write, title: &str, findings: &[Finding]) -> Result<(), Failure> {
    let warnings = warnings(findings);
    if warnings.is_empty() {
        return Ok(());
    }
    text::title(out, title)?;
    for finding in warnings {
        text::pair(out, "warning", &format!("{}: {}", finding.code, finding.message))?;
    }
    Ok(writeln!(out)?)
}

/// Scores of several runs on one cohort, below what was suspicious about its table.
pub(crate) fn write_scores(
    out: &mut dyn Write,
    file: &CohortFile,
    findings: &[Finding],
    scores: &Scores,
) -> Result<(), Failure> {
    let runs = &scores.runs;
    let Some(matched) = matching(scores) else { return Ok(()) };
    write_warnings(out, "Before believing the scores: warnings of the cohort", findings)?;
    text::title(out, "Verdict")?;
    for scored in runs {
        text::pair(out, &scored.method, &verdict(scored))?;
    }
    writeln!(out)?;
    let limits = scores.limits_in_words();
    if !limits.is_empty() {
        text::title(out, "What limits the scores")?;
        for (label, words) in limits {
            text::pair(out, label, &words)?;
        }
        writeln!(out)?;
    }
    matched.write(out)?;
    writeln!(out)?;
    for table in rules(scores) {
        table.write(out)?;
        writeln!(out)?;
    }
    for (label, words) in about_rules(scores.logistic) {
        text::pair(out, label, &words)?;
    }
    writeln!(out)?;
    if let Some(table) = rare_actions(scores) {
        table.write(out)?;
        writeln!(out)?;
    }
    subgroups(file, scores).write(out)?;
    if let Some(off_policy) = &scores.off_policy {
        writeln!(out)?;
        reached(off_policy).write(out)?;
        writeln!(out)?;
        for (label, words) in reservations(off_policy) {
            text::pair(out, label, &words)?;
        }
    }
    if let Some(worth) = in_truth(runs) {
        writeln!(out)?;
        worth.write(out)?;
        if let Some(words) = unseen_by_estimates(scores) {
            writeln!(out)?;
            text::pair(out, "beware", &words)?;
        }
    }
    writeln!(out, "\n{NOT_FOR_CLINICAL_USE}")?;
    Ok(())
}

/// How often each run does what was done; nothing where there is no run.
pub(crate) fn matching(scores: &Scores) -> Option<Tabular> {
    let runs = &scores.runs;
    let overall = &runs.first()?.agreement.matching.overall;
    type Measure = (&'static str, fn(&AgentAgreement) -> Option<Estimate>);
    let measures: [Measure; 7] = [
        ("same action, by step", |a| Some(a.matching.overall.top_one)),
        ("… by patient", |a| Some(a.matching.overall.top_one_by_patient)),
        ("… by visited state (paper)", |a| Some(a.published_accuracy)),
        ("among the first three", |a| Some(a.matching.overall.top_three)),
        ("within one level", |a| a.matching.overall.within_one),
        ("macro-F1", |a| Some(a.matching.overall.macro_f1)),
        ("log-loss", |a| Some(a.matching.overall.log_loss)),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, of) in measures {
        let percent = !matches!(name, "macro-F1" | "log-loss");
        let cell =
            |scored: &Scored| of(&scored.agreement).map_or(String::new(), |estimate| interval(estimate, percent));
        if runs.iter().any(|scored| of(&scored.agreement).is_some()) {
            rows.push([name.to_owned()].into_iter().chain(runs.iter().map(cell)).collect());
        }
    }
    let (patients, steps) = (count(overall.patients), count(overall.steps));
    let title = format!("Action matching on {patients} {} to score on, {steps} steps", scores.limits.people());
    Some(Tabular::new(title, &with_runs(&[""], runs), rows))
}

/// The same action by step, by subgroup.
pub(crate) fn subgroups(file: &CohortFile, scores: &Scores) -> Tabular {
    let runs = &scores.runs;
    let mut rows = Vec::new();
    for (g, grouping) in runs.iter().take(1).flat_map(|first| first.agreement.matching.groupings.iter().enumerate()) {
        for (i, group) in grouping.groups.iter().enumerate() {
            let label = format!("{} {}", grouping.name, group_in_words(file, &grouping.name, &group.label));
            let of_run = |scored: &Scored| {
                let own = scored.agreement.matching.groupings.get(g).and_then(|grouping| grouping.groups.get(i));
                let told = own.and_then(|group| group.agreement.as_ref());
                told.map_or(String::new(), |agreement| interval(agreement.top_one, true))
            };
            let patients = group.agreement.as_ref().map_or(TOO_FEW.into(), |agreement| count(agreement.patients));
            rows.push([label, patients].into_iter().chain(runs.iter().map(of_run)).collect());
        }
    }
    Tabular::new("The same action by step, by subgroup", &with_runs(&["", scores.limits.people()], runs), rows)
}

/// A subgroup with its bound in the units that people use.
fn group_in_words(file: &CohortFile, column: &str, label: &str) -> String {
    let field = file.encoder.contexts.fields.iter().find(|field| field.column == column);
    let side = ["at most ", "above "].into_iter().find(|side| label.starts_with(side));
    match (field, side) {
        (Some(field), Some(side)) => format!("{side}{}", in_unit(&file.spec, column, field.fill)),
        _ => label.to_owned(),
    }
}

/// A header with a column per run.
fn with_runs<'a>(first: &[&'a str], runs: &'a [Scored]) -> Vec<&'a str> {
    first.iter().copied().chain(runs.iter().map(|scored| scored.method.as_str())).collect()
}

/// What policies would have reached.
pub(crate) fn reached(off_policy: &OffPolicy) -> Tabular {
    let cell = |outcome: &Outcome| match outcome {
        Outcome::Estimated { value, interval: own } => interval(Estimate { value: *value, interval: *own }, true),
        Outcome::Refused { .. } => "refused".into(),
    };
    let header = ["", "FQE", "WIS", "per decision", "WDR", "stays", "unseen"];
    let row = |(name, assessment): &(String, Assessment)| {
        vec![
            name.clone(),
            cell(&assessment.fitted_q),
            cell(&assessment.weighted),
            cell(&assessment.per_decision),
            cell(&assessment.weighted_doubly_robust),
            format!("{:.0}", assessment.effective_sample_size),
            format!("{:.1} %", 100.0 * assessment.unseen),
        ]
    };
    let rows = off_policy.policies.iter().map(row).collect();
    Tabular::new("Good ends (survival) that policies would have reached, in %", &header, rows)
}

/// Why numbers were refused, and what to keep in mind about the others.
pub(crate) fn reservations(off_policy: &OffPolicy) -> Vec<(&'static str, String)> {
    let refused = |(name, assessment): &(String, Assessment)| {
        let outcomes = [&assessment.fitted_q, &assessment.weighted, &assessment.weighted_doubly_robust];
        let reasons = outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Refused { reason } => Some(reason.as_str()),
            Outcome::Estimated { .. } => None,
        });
        reasons.min_by_key(|reason| reason.len()).map(|reason| ("refused", format!("{name}: {reason}")))
    };
    let calibration = &off_policy.calibration;
    let behaviour = format!(
        "calibration error {:.3}, log-loss {:.3} (overall shares {:.3})",
        calibration.error, calibration.log_loss, calibration.overall_log_loss
    );
    let recorded = format!(
        "{} % of the stays ended well (survival), whatever policy they followed",
        interval(off_policy.recorded, true)
    );
    let others = [
        ("behaviour", behaviour),
        ("unseen", "share of a policy on actions that were never recorded in their state; FQE takes them to be as good as what was done".into()),
        ("FQE", "takes states to be Markov; what is not in the table is not seen. Refused with the weights that could contradict it, unless asked for by --fitted-q-alone".into()),
        ("intervals", "resample patients: they show spread, not what was never recorded".into()),
    ];
    [("recorded", recorded)].into_iter().chain(off_policy.policies.iter().filter_map(refused)).chain(others).collect()
}

/// What estimates of survival cannot know, where the truth is known and a run takes actions whose consequences nobody has seen.
pub(crate) fn unseen_by_estimates(scores: &Scores) -> Option<String> {
    scores.off_policy.as_ref()?;
    let taken = |scored: &Scored| {
        let share = scored.truth.as_ref()?.policy.unknown;
        (share > 0.0).then(|| format!("{} in {:.1} % of the stays", scored.method, 100.0 * share))
    };
    let taken: Vec<String> = scores.runs.iter().filter_map(taken).collect();
    (!taken.is_empty()).then(|| {
        format!(
            "actions of unknown consequence are taken in truth ({}). FQE cannot see this: fitted states merge conditions in which an action was \
             taken with others in which it never was, so that it counts as known. Its number beside this one is no evidence",
            taken.join(", ")
        )
    })
}

/// What policies are worth in the simulator that wrote the table; nothing where the truth is not known.
pub(crate) fn in_truth(runs: &[Scored]) -> Option<Tabular> {
    let yardsticks = &runs.iter().find_map(|scored| scored.truth.as_ref())?.yardsticks;
    let row = |name: &str, yardsticks: &Yardsticks, worth: Worth| {
        vec![
            name.to_owned(),
            short(worth.value),
            format!("{:.1} %", 100.0 * yardsticks.relative(worth)),
            format!("{:.1} %", 100.0 * worth.survival),
            format!("{:.1} %", 100.0 * worth.unknown),
        ]
    };
    let of_run =
        |scored: &Scored| scored.truth.as_ref().map(|carried| row(&scored.method, &carried.yardsticks, carried.policy));
    let others = [
        ("clinicians without lapses", yardsticks.optimal),
        ("clinicians", yardsticks.clinicians),
        ("one policy for everybody", yardsticks.one_policy),
        ("random admissible actions", yardsticks.random),
    ];
    let others = others.map(|(name, worth)| row(name, yardsticks, worth));
    Some(Tabular::new(
        "In truth: the table is synthetic, and policies are carried back to its simulator",
        &["", "value", "above random", "survival", "takes unknown"],
        runs.iter().filter_map(of_run).chain(others).collect(),
    ))
}

/// All methods over several seeds, beside the paper's figures.
pub(crate) fn write_comparison(
    out: &mut dyn Write,
    entrants: &[Entrant],
    fared: &[Fared],
    seeds: u64,
) -> Result<(), Failure> {
    let majority = fared.iter().map(|run| run.majority).sum::<f64>() / fared.len().max(1) as f64;
    let over = if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") };
    text::title(out, &format!("The same action as clinicians, % of test steps, {over}"))?;
    let spread = |name: &str, of: &dyn Fn(&Fared) -> Option<f64>| {
        let values: Option<Vec<f64>> = fared.iter().filter(|run| run.name == name).map(of).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Some((mean, variance.sqrt()))
    };
    let shown = |spread: Option<(f64, f64)>, scale: f64, digits: usize| match spread {
        Some((mean, _)) if seeds == 1 => format!("{:.digits$}", scale * mean),
        Some((mean, deviation)) => format!("{:.digits$} ± {:.digits$}", scale * mean, scale * deviation),
        None => "–".into(),
    };
    let row = |entrant: &Entrant| {
        vec![
            entrant.name.to_owned(),
            shown(spread(&entrant.name, &|run| Some(run.by_step)), 100.0, 1),
            shown(spread(&entrant.name, &|run| Some(run.by_visited_state)), 100.0, 1),
            shown(spread(&entrant.name, &|run| Some(run.macro_f1)), 1.0, 2),
            shown(spread(&entrant.name, &|run| run.true_value), 100.0, 1),
            entrant.paper.map_or(String::new(), |(mean, deviation)| format!("{mean:.2} ± {deviation:.2}")),
        ]
    };
    let header = ["", "by step", "by visited state", "macro-F1", "true value", "paper"];
    text::table(out, &header, &[1, 2, 3, 4, 5], entrants.iter().map(row).collect())?;
    writeln!(out)?;
    text::pair(out, "majority", &format!("one action everywhere matches {:.1} %", 100.0 * majority))?;
    text::pair(out, "true value", "above random, % of the clinicians' without lapses; synthetic tables only")?;
    text::pair(
        out,
        "paper",
        "quoted there as well: TRIL 80 ± 2, DSFN 79 ± 5. Other patients, five levels of vasopressors, 5,000 states; not comparable number by number",
    )?;
    writeln!(out, "\n{NOT_FOR_CLINICAL_USE}")?;
    Ok(())
}

/// A number with its interval.
pub(super) fn interval(estimate: Estimate, percent: bool) -> String {
    let shown = |x: f64| if percent { format!("{:.1}", 100.0 * x) } else { format!("{x:.3}") };
    match estimate.interval {
        Some(interval) => format!("{} [{}, {}]", shown(estimate.value), shown(interval.lower), shown(interval.upper)),
        None => shown(estimate.value),
    }
}
