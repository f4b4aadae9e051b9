//! Cohorts and scores as text.

use super::NOT_FOR_CLINICAL_USE;
use super::folder::CohortFile;
use crate::failure::Failure;
use crate::numbers::{count, short};
use crate::text;
use coirl::cohort::synthetic::{CarriedBack, Worth, Yardsticks};
use coirl::cohort::{AgentAgreement, CandidateScore, Cohort, Finding, OffPolicy, Severity};
use coirl::evaluate::Estimate;
use coirl::evaluate::off_policy::Outcome;
use coirl::experiments::cohort::{Entrant, Fared};
use serde::Serialize;
use std::io::Write;

/// Rows of the screening that are shown.
const SCREENED: usize = 8;

/// What was built.
pub(crate) fn write_build(out: &mut dyn Write, cohort: &Cohort, file: &CohortFile) -> Result<(), Failure> {
    text::title(out, &format!("Cohort of {}", file.table.display()))?;
    let rows = cohort.flow.0.iter().map(|step| {
        let out = |n: usize| if n == 0 { String::new() } else { format!("−{}", count(n)) };
        vec![step.rule.clone(), out(step.stays_out), out(step.rows_out), count(step.stays), count(step.rows)]
    });
    text::table(out, &["left out", "stays", "rows", "stays left", "rows left"], &[1, 2, 3, 4], rows.collect())?;
    writeln!(out)?;
    let (encoder, support) = (&cohort.encoder, &cohort.support);
    let parts = [cohort.train.stays().len(), cohort.validation.stays().len(), cohort.test.stays().len()].map(count);
    text::pair(
        out,
        "stays",
        &format!("{} to learn from, {} to choose by, {} to score on", parts[0], parts[1], parts[2]),
    )?;
    text::pair(
        out,
        "states",
        &format!(
            "{} from {} measurements; {} % of the variance is between states",
            count(encoder.centroids.n_clusters()),
            encoder.measurements.len(),
            short(explained(cohort)),
        ),
    )?;
    text::pair(out, "actions", &actions(cohort))?;
    text::pair(out, "contexts", &encoder.contexts.names().join(", "))?;
    text::pair(
        out,
        "support",
        &format!(
            "{} of {} pairs seen are known; {:.1} % of the training steps take another",
            count(support.pairs_supported),
            count(support.pairs_seen),
            100.0 * support.steps_unsupported
        ),
    )?;
    text::pair(
        out,
        "features",
        &format!("{} of the reward; discount {}", count(cohort.model.n_features()), cohort.spec.discount),
    )?;
    write_findings(out, &cohort.findings)
}

/// Per cent of the weighted variance of training rows that lies between states.
fn explained(cohort: &Cohort) -> f64 {
    let total: f64 =
        cohort.encoder.measurements.iter().map(|measurement| measurement.weight * measurement.weight).sum();
    (1000.0 * (1.0 - cohort.inertia / total)).round() / 10.0
}

fn actions(cohort: &Cohort) -> String {
    let mut times = vec![0_u64; cohort.encoder.actions.len()];
    let all = cohort.train.stays().iter().flat_map(|stay| &stay.trajectory.actions);
    all.for_each(|action| times[action.index()] += 1);
    let total: u64 = times.iter().sum();
    let most = times.iter().copied().max().unwrap_or_default();
    let at = times.iter().position(|n| *n == most).unwrap_or_default();
    let name = cohort.encoder.actions.names().get(at).cloned().unwrap_or_default();
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
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in sorted {
        let label = match finding.severity {
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        text::pair(out, label, &format!("{}: {}", finding.code, finding.message))?;
    }
    Ok(())
}

/// The candidates that were tried.
pub(crate) fn write_selection(out: &mut dyn Write, scores: &[CandidateScore]) -> Result<(), Failure> {
    text::title(out, "States that were tried, on validation stays")?;
    let mut screened: Vec<&CandidateScore> =
        scores.iter().filter(|score| score.candidate.stage == coirl::cohort::SelectionStage::Screening).collect();
    screened.sort_by(|a, b| a.negative_log_likelihood.total_cmp(&b.negative_log_likelihood));
    let others = scores.iter().filter(|score| score.candidate.stage != coirl::cohort::SelectionStage::Screening);
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
            format!("{:.2} ({:.2})", score.actions_per_state, score.actions_per_state_shuffled),
            format!("{:.2}", score.states_per_step),
            format!("{:.1} %", 100.0 * score.unseen),
        ]
    };
    let header = ["", "states", "measurements", "−log-likelihood", "T1 (shuffled)", "T2 / step", "unseen"];
    let rows = screened.into_iter().take(SCREENED).chain(others).map(row).collect();
    text::table(out, &header, &[1, 3, 4, 5, 6], rows)?;
    writeln!(out)?;
    text::pair(out, "→", "the smallest within one standard error of the best likelihood")?;
    Ok(())
}

/// A run with its scores.
#[derive(Debug, Serialize)]
pub(crate) struct Scored {
    pub(crate) run: String,
    pub(crate) method: String,
    pub(crate) agreement: AgentAgreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<CarriedBack>,
}

/// Scores of several runs on one cohort.
pub(crate) fn write_scores(
    out: &mut dyn Write,
    scores: &[Scored],
    off_policy: Option<&OffPolicy>,
) -> Result<(), Failure> {
    let Some(first) = scores.first() else { return Ok(()) };
    let overall = &first.agreement.matching.overall;
    text::title(
        out,
        &format!("Action matching on {} patients to score on, {} steps", count(overall.patients), count(overall.steps)),
    )?;
    let header: Vec<&str> = [""].into_iter().chain(scores.iter().map(|scored| scored.method.as_str())).collect();
    let right: Vec<usize> = (1..header.len()).collect();
    type Measure = (&'static str, fn(&AgentAgreement) -> Option<Estimate>);
    let measures: [Measure; 8] = [
        ("same action, by step", |a| Some(a.matching.overall.top_one)),
        ("… by patient", |a| Some(a.matching.overall.top_one_by_patient)),
        ("… by visited state (paper)", |a| Some(a.published_accuracy)),
        ("among the first three", |a| Some(a.matching.overall.top_three)),
        ("within one level", |a| a.matching.overall.within_one),
        ("macro-F1", |a| Some(a.matching.overall.macro_f1)),
        ("log-loss", |a| Some(a.matching.overall.log_loss)),
        ("always the most frequent", |a| Some(a.matching.overall.majority)),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, of) in measures {
        let percent = !matches!(name, "macro-F1" | "log-loss");
        let cell =
            |scored: &Scored| of(&scored.agreement).map_or(String::new(), |estimate| interval(estimate, percent));
        rows.push([name.to_owned()].into_iter().chain(scores.iter().map(cell)).collect());
    }
    text::table(out, &header, &right, rows)?;
    writeln!(out)?;
    text::title(out, "The same action by step, by subgroup")?;
    let mut rows = Vec::new();
    for (g, grouping) in first.agreement.matching.groupings.iter().enumerate() {
        for (i, group) in grouping.groups.iter().enumerate() {
            let label = format!("{} {}", grouping.name, group.label);
            let of_run = |scored: &Scored| {
                let own = scored.agreement.matching.groupings.get(g).and_then(|grouping| grouping.groups.get(i));
                own.map_or(String::new(), |group| interval(group.agreement.top_one, true))
            };
            rows.push([label, count(group.agreement.patients)].into_iter().chain(scores.iter().map(of_run)).collect());
        }
    }
    let header: Vec<&str> =
        ["", "patients"].into_iter().chain(scores.iter().map(|scored| scored.method.as_str())).collect();
    text::table(out, &header, &(1..header.len()).collect::<Vec<_>>(), rows)?;
    if let Some(off_policy) = off_policy {
        write_off_policy(out, off_policy)?;
    }
    write_truth(out, scores)?;
    writeln!(out, "\n{NOT_FOR_CLINICAL_USE}")?;
    Ok(())
}

fn write_off_policy(out: &mut dyn Write, off_policy: &OffPolicy) -> Result<(), Failure> {
    writeln!(out)?;
    text::title(out, "Survival that policies would have reached, by the recorded outcome")?;
    let cell = |outcome: &Outcome| match outcome {
        Outcome::Estimated { value, interval: own } => interval(Estimate { value: *value, interval: *own }, true),
        Outcome::Refused { .. } => "refused".into(),
    };
    let mut rows = vec![vec!["clinicians, recorded".into(), interval(off_policy.recorded, true)]];
    rows[0].resize(6, String::new());
    for (name, assessment) in &off_policy.policies {
        rows.push(vec![
            name.clone(),
            cell(&assessment.fitted_q),
            cell(&assessment.weighted),
            cell(&assessment.per_decision),
            cell(&assessment.weighted_doubly_robust),
            format!("{:.0}", assessment.effective_sample_size),
        ]);
    }
    text::table(out, &["", "FQE", "WIS", "per decision", "WDR", "stays"], &[1, 2, 3, 4, 5], rows)?;
    writeln!(out)?;
    let mut told: Vec<(&str, &str)> = Vec::new();
    for (name, assessment) in &off_policy.policies {
        let outcomes = [&assessment.fitted_q, &assessment.weighted, &assessment.weighted_doubly_robust];
        let reasons = outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Refused { reason } => Some(reason.as_str()),
            Outcome::Estimated { .. } => None,
        });
        if let Some(reason) = reasons.min_by_key(|reason| reason.len()) {
            told.push((name, reason));
        }
    }
    for (name, reason) in told {
        text::pair(out, "refused", &format!("{name}: {reason}"))?;
    }
    let calibration = &off_policy.calibration;
    text::pair(
        out,
        "behaviour",
        &format!(
            "calibration error {:.3}, log-loss {:.3} (overall shares {:.3})",
            calibration.error, calibration.log_loss, calibration.overall_log_loss
        ),
    )?;
    text::pair(out, "intervals", "resample patients: they show spread, not what was never recorded")?;
    Ok(())
}

fn write_truth(out: &mut dyn Write, scores: &[Scored]) -> Result<(), Failure> {
    let Some(first) = scores.iter().find_map(|scored| scored.truth.as_ref()) else { return Ok(()) };
    let first = &first.yardsticks;
    writeln!(out)?;
    text::title(out, "In truth: the table is synthetic, and policies are carried back to its simulator")?;
    let row = |name: &str, yardsticks: &Yardsticks, worth: Worth| {
        vec![
            name.to_owned(),
            short(worth.value),
            format!("{:.1} %", 100.0 * yardsticks.relative(worth)),
            format!("{:.1} %", 100.0 * worth.survival),
            format!("{:.1} %", 100.0 * worth.unknown),
        ]
    };
    let mut rows: Vec<Vec<String>> = scores
        .iter()
        .filter_map(|scored| {
            scored.truth.as_ref().map(|carried| row(&scored.method, &carried.yardsticks, carried.policy))
        })
        .collect();
    rows.push(row("clinicians without lapses", first, first.optimal));
    rows.push(row("clinicians", first, first.clinicians));
    rows.push(row("one policy for everybody", first, first.one_policy));
    rows.push(row("random admissible actions", first, first.random));
    text::table(out, &["", "value", "above random", "survival", "takes unknown"], &[1, 2, 3, 4], rows)?;
    Ok(())
}

/// All methods over several seeds, beside the paper's figures.
pub(crate) fn write_comparison(
    out: &mut dyn Write,
    entrants: &[Entrant],
    fared: &[Fared],
    seeds: u64,
) -> Result<(), Failure> {
    let majority = fared.iter().map(|run| run.majority).sum::<f64>() / fared.len().max(1) as f64;
    text::title(out, &format!("The same action as clinicians, % of test steps, {seeds} seeds"))?;
    let spread = |name: &str, of: &dyn Fn(&Fared) -> Option<f64>| {
        let values: Option<Vec<f64>> = fared.iter().filter(|run| run.name == name).map(of).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Some((mean, variance.sqrt()))
    };
    let shown = |spread: Option<(f64, f64)>, scale: f64, digits: usize| match spread {
        Some((mean, deviation)) => format!("{:.digits$} ± {:.digits$}", scale * mean, scale * deviation),
        None => "–".into(),
    };
    let row = |entrant: &Entrant| {
        vec![
            entrant.name.to_owned(),
            shown(spread(entrant.name, &|run| Some(run.by_step)), 100.0, 1),
            shown(spread(entrant.name, &|run| Some(run.by_visited_state)), 100.0, 1),
            shown(spread(entrant.name, &|run| Some(run.macro_f1)), 1.0, 2),
            shown(spread(entrant.name, &|run| run.true_value), 100.0, 1),
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
fn interval(estimate: Estimate, percent: bool) -> String {
    let shown = |x: f64| if percent { format!("{:.1}", 100.0 * x) } else { format!("{x:.3}") };
    match estimate.interval {
        Some(interval) => format!("{} [{}, {}]", shown(estimate.value), shown(interval.lower), shown(interval.upper)),
        None => shown(estimate.value),
    }
}
