//! What a run came to: a small table for people, one object for programs.

use super::dynamics::LearnedDynamics;
use crate::cohorts::NOT_FOR_CLINICAL_USE;
use crate::failure::Failure;
use crate::numbers::{bound, count, short};
use crate::text;
use coirl::agent::Agent;
use coirl::learn::{Adaptive, Choice, Form, FormChoice, Neural, RunCertificate, Status, Watched};
use coirl::methods::{Fitted, Method, Reference, Rule};
use coirl::objective::ObjectiveChoice;
use coirl::score::Score;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Widest mapping that is printed.
const MOST_COLUMNS: usize = 8;
/// Longest name of a method that fits among the numbers.
const LONGEST_NAME: usize = 15;
/// Longest kind of agent that leaves room for remarks.
const LONGEST_KIND: usize = 10;
/// Longest mapping that is printed.
const MOST_ROWS: usize = 12;

/// A finished run. Nothing in it varies from one run to the next, but what [`Report::write`] is told.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    method: &'a str,
    status: Status,
    steps: u64,
    demonstrations: u64,
    planner_calls: u64,
    #[serde(flatten)]
    certificate: &'a RunCertificate,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_likelihood: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    training_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_accuracy: Option<f64>,
    /// Share of the validation steps that the model does not admit, which count as misses above.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_left_out: Option<f64>,
    #[serde(flatten)]
    score: Option<Score>,
    /// Where the score was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    scored_on: Option<String>,
    agent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<Vec<&'a [f64]>>,
    source: &'a str,
    seed: u64,
    digest: &'a str,
    files: BTreeMap<&'static str, String>,
    /// What the dynamics were learned from, where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamics: Option<LearnedDynamics>,
    /// Rules that need no reward, on demonstrations that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<Reference>,
    /// What limits a run on a cohort, by what kind of limit it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<(&'static str, String)>,
    #[serde(skip)]
    fitted: &'a Fitted,
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        method: &'a str,
        source: &'a str,
        fitted: &'a Fitted,
        score: Option<(Score, String)>,
        validation_loss: Option<f64>,
        files: BTreeMap<&'static str, String>,
    ) -> Self {
        Self {
            method,
            status: fitted.status,
            steps: fitted.steps,
            demonstrations: fitted.demonstrations,
            planner_calls: fitted.planner_calls,
            certificate: &fitted.certificate,
            log_likelihood: fitted.history.last().and_then(|record| record.log_likelihood),
            training_accuracy: fitted.history.last().and_then(|record| record.training_accuracy),
            validation_loss,
            validation_accuracy: None,
            validation_left_out: None,
            score: score.as_ref().map(|(score, _)| *score),
            scored_on: score.map(|(_, on)| on),
            agent: fitted.agent.kind(),
            mapping: rows_of_mapping(fitted),
            source,
            seed: fitted.settings.seed,
            digest: &fitted.digest,
            files,
            dynamics: None,
            references: Vec::new(),
            limits: Vec::new(),
            fitted,
        }
    }

    /// The same with the share of validation actions that the agent would take, of those that the model admits. The share that it does not admit,
    /// `left_out`, counts as misses from here on, as in all scores.
    pub(crate) fn with_validation_accuracy(self, of_admitted: Option<f64>, left_out: f64) -> Self {
        let validation_accuracy = of_admitted.map(|share| share * (1.0 - left_out));
        Self { validation_accuracy, validation_left_out: validation_accuracy.map(|_| left_out), ..self }
    }

    /// The report with rules that the fit has to beat.
    pub(crate) fn with_references(self, references: Vec<Reference>) -> Self {
        Self { references, ..self }
    }

    /// The report with what limits a run on a cohort.
    pub(crate) fn with_limits(self, limits: Vec<(&'static str, String)>) -> Self {
        Self { limits, ..self }
    }

    /// The same with what is known of learned dynamics.
    pub(crate) fn with_dynamics(self, dynamics: Option<LearnedDynamics>) -> Self {
        Self { dynamics, ..self }
    }

    pub(crate) fn write(&self, out: &mut dyn Write, taken: Duration, planning: Duration) -> Result<(), Failure> {
        if let Some(verdict) = self.verdict() {
            writeln!(out, "{verdict}\n")?;
        }
        text::title(out, &format!("Learned from {}", self.source))?;
        let mut rows = self.learner();
        rows.extend(self.held_out());
        rows.extend(self.loss());
        rows.extend(self.against_the_truth());
        rows.extend(self.explained());
        rows.extend(self.effort());
        if let Agent::Neural(_) = self.fitted.agent {
            let share = planning.as_secs_f64() / taken.as_secs_f64();
            rows.push(row("planning", percent(share), "of the time; the rest is the network"));
        }
        rows.push(row("seconds", format!("{:.2}", taken.as_secs_f64()), ""));
        text::table(out, &["", "", ""], &[1], rows)?;
        if !self.limits.is_empty() {
            writeln!(out)?;
            text::title(out, "What limits the scores")?;
            for (label, words) in &self.limits {
                text::pair(out, label, words)?;
            }
        }
        if self.fitted.names.model == "sepsis" {
            writeln!(out, "\n{NOT_FOR_CLINICAL_USE}")?;
        }
        write_mapping(out, self.fitted)?;
        if self.certificate.bound.is_some() {
            writeln!(out, "\nbound: {}", self.certificate.guarantee)?;
        }
        if let Some(game) = &self.certificate.game_value {
            writeln!(out)?;
            text::pair(out, "game", &game.to_string())?;
        }
        Ok(())
    }

    /// What learned, and what acts.
    pub(crate) fn learner(&self) -> Vec<Vec<String>> {
        // A long name would push the remarks off the page.
        let (short_name, long_name) =
            if self.method.len() <= LONGEST_NAME { (self.method, "") } else { ("", self.method) };
        let mut rows = vec![row("method", short_name.into(), long_name)];
        if let Method::Adaptive(Adaptive { objective, .. }) | Method::Neural(Neural { objective, .. }) =
            &self.fitted.settings.method
        {
            let remark = match objective {
                ObjectiveChoice::Likelihood { .. } => "the likelihood of single actions",
                ObjectiveChoice::Loss | ObjectiveChoice::Auto => "the loss of the paper",
            };
            rows.push(row("objective", String::new(), remark));
        }
        let short_kind = if self.agent.len() <= LONGEST_KIND { self.agent } else { "" };
        rows.push(row("agent", short_kind.into(), &agent_in_words(&self.fitted.agent)));
        if let Some(accuracy) = self.validation_accuracy {
            rows.push(row("same action", format!("{:.1} %", 100.0 * accuracy), "on validation stays, by step"));
            if let Some(left_out) = self.validation_left_out.filter(|share| *share > 0.0) {
                let remark = "of these steps the model does not admit: misses";
                rows.push(row("", format!("{:.1} %", 100.0 * left_out), remark));
            }
        }
        rows
    }

    /// How it does on what was not learned from.
    pub(crate) fn held_out(&self) -> Vec<Vec<String>> {
        let on = self.scored_on.as_deref().unwrap_or_default();
        let mut rows = Vec::new();
        match (self.score, self.validation_loss) {
            (_, Some(loss)) if matches!(self.fitted.agent, Agent::ClonedNetwork(_)) => {
                rows.push(row("validation", short(loss), "−log-likelihood of a held-out decision"));
            }
            // Without a mapping there is no loss, held out or not.
            _ if self.mapping.is_none() => {}
            (Some(score), _) if on.ends_with("learned from") => {
                rows.push(row("loss beside the truth", score.held_out_loss.map_or("–".into(), short), on));
            }
            (Some(score), _) => rows.push(row("held-out loss", score.held_out_loss.map_or("–".into(), short), on)),
            (None, Some(loss)) => rows.push(row("held-out loss", short(loss), "on the validation demonstrations")),
            (None, None) => rows.push(row("held-out loss", "–".into(), "give --true-mapping or --validation")),
        }
        if let (Some(_), Some(_), Some(loss)) = (&self.mapping, self.score, self.validation_loss) {
            rows.push(row("validation loss", short(loss), "on the validation demonstrations"));
        }
        rows
    }

    /// How well the demonstrations are explained.
    pub(crate) fn loss(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        if self.fitted.mapping().is_ok_and(|mapping| mapping.values().iter().all(|w| *w == 0.0)) {
            rows.push(row("mapping", "0".into(), "nothing was learned: every policy explains it"));
        }
        if let Some(loss) = self.certificate.loss {
            let remark = if loss < 0.0 { "below 0: the paths are noisy" } else { "on the demonstrations, unexplained" };
            rows.push(row("loss", short(loss), remark));
        }
        rows
    }

    /// How it compares with the expert, where a truth is known.
    pub(crate) fn against_the_truth(&self) -> Vec<Vec<String>> {
        let on = self.scored_on.as_deref().unwrap_or_default();
        match self.score {
            Some(score) => vec![
                row("value above random", percent(score.relative_value), on),
                row("value relative to the expert", percent(score.value_ratio), "acting at random counts too"),
                row("accuracy", percent(score.accuracy), "states with the expert's action"),
                row("accuracy with a choice", percent(score.choice_accuracy), "of states with several actions"),
                row("accuracy along the way", percent(score.visited_accuracy), "as often as the expert is there"),
                row("optimal actions", percent(score.optimal_accuracy), "states with an action as good"),
            ],
            None if self.mapping.is_none() => vec![row("value", "–".into(), "give --true-mapping to know it")],
            None => Vec::new(),
        }
    }

    /// What a reader must know before anything else.
    fn verdict(&self) -> Option<String> {
        let explained = self.certificate.explained.as_ref()?;
        let own = explained.held_out()?;
        let best = self.references.iter().max_by(|a, b| a.log_likelihood.total_cmp(&b.log_likelihood))?;
        (own.log_likelihood <= best.log_likelihood).then(|| {
            format!(
                "Not better than a trivial rule: decisions that were left out are likelier\n\
                 by {} ({:.4} each) than by the learned reward ({:.4}).",
                rule_in_words(best.rule),
                best.log_likelihood,
                own.log_likelihood
            )
        })
    }

    /// What demonstrated choices look like to the choice model, beside rules that need no reward.
    fn explained(&self) -> Vec<Vec<String>> {
        let Some(explained) = &self.certificate.explained else { return Vec::new() };
        let compared = !explained.candidates.is_empty();
        let chosen = |yes| if yes && compared { "chosen by decisions left out" } else { "" };
        let settings = match &self.fitted.settings.method {
            Method::Choice(own) => *own,
            _ => Choice::default(),
        };
        let mut rows =
            vec![row("reward", form_in_words(explained.form).into(), chosen(settings.mapping == FormChoice::Auto))];
        let from_actions = explained.lapses.is_some();
        for form in [Form::Constant, Form::Linear, Form::Network] {
            if let Some(own) = explained.best_of(form) {
                rows.push(left_out(form_in_words(form), own.log_likelihood, from_actions.then_some(own.accuracy)));
            }
        }
        for reference in &self.references {
            rows.push(left_out(rule_in_words(reference.rule), reference.log_likelihood, Some(reference.accuracy)));
        }
        rows.push(row("penalty", short(explained.penalty), chosen(settings.penalty.is_none())));
        if let Some(temperature) = explained.temperature {
            rows.push(row("temperature", short(temperature), "for rewards of length one"));
        }
        if let Some(lapses) = explained.lapses {
            rows.push(row("lapses", percent(lapses), "decisions that seem random"));
            rows.push(row("decisions", count(explained.decisions as usize), "where there is a choice"));
            if let Some(effective) = explained.effective_decisions {
                rows.push(row("effective decisions", count(effective.round() as usize), "each as far as it was open"));
            }
        }
        rows.push(row("from the optimum", short(explained.distance), "standard errors of the parameters"));
        if explained.left_out > 0.0 {
            rows.push(row("actions not known", count(explained.left_out as usize), "left out of the likelihood"));
        }
        if !explained.can_be_left_out.is_empty() {
            let n = count(explained.can_be_left_out.len());
            rows.push(row("can be left out", n, "features, one at a time: open signs"));
        }
        if explained.same_columns > 0 {
            rows.push(row("not identified", count(explained.same_columns), "context numbers, the same for all"));
        }
        rows
    }

    /// What the run took, and what is proved about its result.
    pub(crate) fn effort(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        if let Some(log_likelihood) = self.log_likelihood {
            rows.push(row("log-likelihood", short(log_likelihood), "per demonstrated action"));
        }
        if let Some(share) = self.training_accuracy {
            rows.push(row("demonstrated actions", percent(share), "taken by the agent as well"));
        }
        rows.push(row("demonstrations used", count(self.demonstrations as usize), ""));
        rows.push(row("planner calls", count(self.planner_calls as usize), "of the learner, not of the scores"));
        rows.push(row(
            "steps",
            count(self.steps as usize),
            status_in_words(self.status, self.fitted.settings.stop.watched.unwrap_or_default()),
        ));
        if let Some(most) = self.certificate.bound {
            rows.push(row("bound", short(most), "see below"));
        }
        if let Some(distance) = self.certificate.distance {
            rows.push(row("distance", short(distance), "from the expert's expectations"));
        }
        if let Some(game) = &self.certificate.game_value {
            rows.push(row(
                "game value",
                short(game.lower),
                &format!("of the agent; of nobody above {}", short(game.upper)),
            ));
        }
        if let Some(gap) = self.certificate.gap {
            let played = self.certificate.game_value.is_some();
            let what = if played { "to the value of the game, at most" } else { "to the least possible loss, at most" };
            rows.push(row("gap", short(gap), what));
        }
        if self.certificate.bias_bound > 0.0 {
            rows.push(row("bias", bound(self.certificate.bias_bound), "of estimated expectations, at most"));
        }
        for (what, number, remark) in self.dynamics.iter().flat_map(LearnedDynamics::rows) {
            rows.push(row(what, number, &remark));
        }
        rows
    }
}

/// A line of the table: what, the number, and a remark.
fn row(what: &str, number: String, remark: &str) -> Vec<String> {
    vec![what.into(), number, remark.into()]
}

/// A line about decisions that were left out.
fn left_out(by: &str, log_likelihood: f64, accuracy: Option<f64>) -> Vec<String> {
    let remark =
        accuracy.map_or_else(|| "log-likelihood".into(), |share| format!("log-likelihood; {} right", percent(share)));
    row(&format!("left out, {by}"), short(log_likelihood), &remark)
}

/// The form of a reward, in a word.
fn form_in_words(form: Form) -> &'static str {
    match form {
        Form::Constant => "constant",
        Form::Linear => "linear",
        Form::Network => "network",
    }
}

/// A rule, in words.
fn rule_in_words(rule: Rule) -> &'static str {
    match rule {
        Rule::Shares => "shares",
        Rule::State => "shares by state",
        Rule::Previous => "action before",
        Rule::Cloning => "cloning",
    }
}

/// How an agent acts.
pub(crate) fn agent_in_words(agent: &Agent) -> String {
    match agent {
        Agent::Planned(_) => "plans for the mapping".into(),
        Agent::Neural(_) => "plans for the reward of a network".into(),
        Agent::Mixed(mixture) => format!("one of {} rewards, drawn per episode", mixture.shares().len()),
        Agent::Soft(_) => "good actions more often than others".into(),
        Agent::Nearest(_) => "by the reward of the nearest one".into(),
        Agent::Cloned(_) => "draws actions by their scores".into(),
        Agent::ClonedNetwork(_) => "cloned: scores actions by a network".into(),
        Agent::Copied(_) => "as was seen in the nearest one".into(),
        Agent::Fixed(_) => "the same in every context".into(),
        Agent::Uniform => "any known action".into(),
        _ => "by a policy of its own".into(),
    }
}

/// The rows of the mapping, where one was learned.
pub(crate) fn rows_of_mapping(fitted: &Fitted) -> Option<Vec<&[f64]>> {
    fitted.mapping().ok().map(|mapping| mapping.values().chunks_exact(mapping.n_features()).collect())
}

/// The mapping with its names, where it fits the page.
pub(crate) fn write_mapping(out: &mut dyn Write, fitted: &Fitted) -> Result<(), Failure> {
    let (Ok(mapping), names) = (fitted.mapping(), &fitted.names) else {
        return Ok(());
    };
    if mapping.n_features() > MOST_COLUMNS || mapping.dimension() > MOST_ROWS {
        return Ok(());
    }
    let features: Vec<String> = (0..mapping.n_features()).map(|j| text::name_of(&names.features, j)).collect();
    let mut header = vec!["mapping"];
    header.extend(features.iter().map(String::as_str));
    let named = mapping.values().chunks_exact(mapping.n_features()).enumerate();
    let named = named.map(|(i, row)| (text::name_of(&names.contexts, i), row));
    let everybody = mapping.intercept().map(|row| ("everybody".to_owned(), row));
    let rows = named
        .chain(everybody)
        .map(|(name, row)| std::iter::once(name).chain(row.iter().map(|w| format!("{w:.4}"))).collect());
    let right: Vec<usize> = (1..=mapping.n_features()).collect();
    writeln!(out)?;
    Ok(text::table(out, &header, &right, rows.collect())?)
}

/// Why a run ended; `watched` is what validation demonstrations were looked at for.
pub(crate) fn status_in_words(status: Status, watched: Watched) -> &'static str {
    match status {
        Status::Finished => "until the method was done",
        Status::Converged => "until the likelihood had converged",
        Status::Separable => "until only the penalty held it back",
        Status::NotIdentified => "no reward is likelier than another",
        Status::StepLimit => "as many as asked for",
        Status::LossReached => "until the loss was reached",
        Status::GapReached => "until the gap was reached",
        Status::ValidationStalled => match watched {
            Watched::Loss => "until the validation loss stopped falling",
            Watched::Accuracy => "until validation accuracy stopped rising",
        },
        Status::Interrupted => "until the run was interrupted",
    }
}

/// "99.985 %" rather than "100.0 %" for what is not all.
pub(super) fn percent(share: f64) -> String {
    if share.is_nan() {
        return "–".into();
    }
    let percent = 100.0 * share;
    if percent > 99.9 && share < 1.0 { format!("{percent:.3} %") } else { format!("{percent:.2} %") }
}
