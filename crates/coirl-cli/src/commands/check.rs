//! `coirl check`: whether demonstrations can be learned from, before a fit.

use crate::arguments::{Global, PAGE};
use crate::destination::{to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::fitting::{Data, DataArgs};
use crate::numbers::{count, short};
use crate::{progress, text};
use clap::Args;
use coirl::inspect::{self, BoundsKind, Check, CheckSettings, Finding, LeastLoss, Level, Support, Topic};
use coirl::model::Names;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Findings on one topic that are written out.
const MOST_FINDINGS: usize = 8;

const EXPLANATION: &str = "\
Looks at a model and demonstrations before anything is learned from them: which states, pairs and features the \
demonstrations show; actions and transitions that the model does not have; feature expectations that no policy can reach; \
demonstrations that repeat or contradict each other; and the smallest loss that a mapping can reach, as a share of what \
the experts gain over acting at random. Without arguments it looks at what ships with the program.";

const EXAMPLES: &str = "\
Examples:
  coirl check
  coirl check model.npz trajectories.csv --contexts contexts.csv
  coirl check --model driving --contexts contexts.csv \\
      --feature-expectations mu.csv --json

Exit status: 0 also with warnings; 1 when the demonstrations cannot be fitted.";

/// Check demonstrations before a fit
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct CheckArgs {
    /// A model file or the name of a built-in domain, as --model
    #[arg(value_name = "MODEL")]
    model_file: Option<PathBuf>,
    /// Trajectories or feature expectations, whichever the file holds
    #[arg(value_name = "DEMOS")]
    demonstrations: Option<PathBuf>,
    /// Steps towards the smallest loss, one plan per demonstration each; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = CheckSettings::default().max_steps)]
    loss_steps: u64,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    source: &'a str,
    demonstrations: usize,
    can_be_fitted: bool,
    level: Level,
    findings: Vec<Said>,
    support: &'a Support,
    bounds: Option<BoundsKind>,
    least_loss: Option<LeastLossReport>,
}

#[derive(Serialize)]
struct Said {
    level: Level,
    topic: Topic,
    says: String,
}

#[derive(Serialize)]
struct LeastLossReport {
    reached: f64,
    /// Of the mappings under which the experts gain at least 1/radius of what they could under a mapping of that length.
    lower_bound: f64,
    radius: f64,
    /// What lies beyond the ends of the paths, at most; null where that has no bound.
    unseen: f64,
    certain: bool,
    per_norm: f64,
    converged: bool,
    advantage: f64,
    advantage_noise: f64,
}

pub(crate) fn run(args: &CheckArgs, global: &Global) -> Result<Outcome, Failure> {
    let files = args.data.with_files(args.model_file.as_deref(), args.demonstrations.as_deref())?;
    let Data { model, demonstrations, estimator, source, .. } = files.read(global.seed)?;
    let settings = CheckSettings { max_steps: args.loss_steps, ..CheckSettings::default() };
    let bar = progress::stage("looking for the least loss", global.quiet);
    let found = inspect::check(&model, &demonstrations, &estimator.unwrap_or_default(), &settings, &mut |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    let names = model.names();
    if global.json {
        let said =
            |finding: &Finding| Said { level: finding.level(), topic: finding.topic(), says: in_names(finding, names) };
        let report = Report {
            source: &source,
            demonstrations: demonstrations.len(),
            can_be_fitted: found.can_be_fitted(),
            level: found.findings.iter().map(Finding::level).max().unwrap_or(Level::Fine),
            findings: found.findings.iter().map(said).collect(),
            support: &found.support,
            bounds: found.bounds.as_ref().map(|bounds| bounds.kind),
            least_loss: found.least_loss.as_ref().map(LeastLossReport::of),
        };
        let line = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| write(out, &found, &source, names))?;
    }
    if !found.can_be_fitted() {
        return Err(Failure::refused("the demonstrations cannot be fitted with this model"));
    }
    match found.findings.iter().filter(|finding| finding.level() == Level::Error).count() {
        0 => Ok(Outcome::Done),
        n => Err(Failure::refused(format!("{n} errors in the demonstrations; a fit would explain what nobody did"))),
    }
}

impl LeastLossReport {
    fn of(least: &LeastLoss) -> Self {
        Self {
            reached: least.reached,
            lower_bound: least.lower_bound,
            radius: least.radius,
            unseen: least.unseen,
            certain: least.is_certain(),
            per_norm: least.per_norm,
            converged: least.converged,
            advantage: least.advantage,
            advantage_noise: least.advantage_noise,
        }
    }
}

fn write(out: &mut dyn Write, found: &Check, source: &str, names: &Names) -> Result<(), Failure> {
    text::title(out, &format!("Checked {source}"))?;
    let row = |&topic: &Topic| {
        let n = found.about(topic).count();
        let findings = match n {
            0 => all_is_well(found, topic),
            1 => "1 finding".into(),
            n => format!("{} findings", count(n)),
        };
        vec![level_in_words(found.level(topic)).into(), topic_in_words(topic).into(), findings]
    };
    text::table(out, &["", "", ""], &[], Topic::ALL.iter().map(row).collect())?;
    if !found.findings.is_empty() {
        writeln!(out)?;
    }
    for topic in Topic::ALL {
        let all = found.about(topic);
        for finding in all.take(MOST_FINDINGS) {
            text::pair(out, level_in_words(finding.level()), &in_names(finding, names))?;
        }
        let more = found.about(topic).count().saturating_sub(MOST_FINDINGS);
        if more > 0 {
            text::pair(out, "", &format!("and {} more about {}", count(more), topic_in_words(topic)))?;
        }
    }
    writeln!(out)?;
    write_support(out, &found.support, names)?;
    if let Some(least) = &found.least_loss {
        let end = match (least.is_certain(), least.paths_are_short(), least.converged) {
            (true, ..) => "certain".into(),
            (_, true, _) => "of the paths alone, which are too short for the discount: nothing is certain".into(),
            (_, _, false) => "not closed".into(),
            _ => format!(
                "as the paths end; {} if what lies beyond, up to {} of the gain, favours the experts",
                percent(least.lower_bound_with_unseen().min(least.reached)),
                percent(least.unseen)
            ),
        };
        let says = format!(
            "{} of what the experts gain over chance is left unexplained by the best mapping found, {} per |W|. Of mappings \
             under which they gain at least {:.0} % of what they could under a mapping of that length, none leaves less than \
             {} ({end}); others were not looked at.",
            percent(least.reached),
            short(least.per_norm),
            100.0 / least.radius,
            percent(least.lower_bound.min(least.reached)),
        );
        text::pair(out, "least loss", &says)?;
        if least.reached < 0.0 {
            let noise = "a share below zero is noise of the estimates, or the mark of data that no policy produces";
            text::pair(out, "", noise)?;
        }
    }
    Ok(())
}

fn write_support(out: &mut dyn Write, support: &Support, names: &Names) -> Result<(), Failure> {
    if support.trajectories == 0 {
        let says = "feature expectations show features only; states and actions are not known";
        return Ok(text::pair(out, "support", says)?);
    }
    let of = |seen: usize, all: usize, what: &str| {
        format!("{} of {} reachable {what} ({})", count(seen), count(all), percent(seen as f64 / all.max(1) as f64))
    };
    text::pair(out, "support", &of(support.states_seen, support.states_reachable, "states"))?;
    text::pair(out, "", &of(support.pairs_seen, support.pairs_reachable, "state-action pairs"))?;
    if !support.actions_never_taken.is_empty() {
        let actions: Vec<String> =
            support.actions_never_taken.iter().map(|action| text::name_of(&names.actions, action.index())).collect();
        text::pair(out, "never taken", &actions.join(", "))?;
    }
    Ok(())
}

/// What is true where nothing was found.
fn all_is_well(found: &Check, topic: Topic) -> String {
    let crude = found.bounds.as_ref().is_some_and(|bounds| bounds.kind == BoundsKind::Crude);
    match topic {
        Topic::Admissibility => "all known to the model",
        _ if !found.can_be_fitted() => "not looked at",
        Topic::Transitions => "all possible",
        Topic::Support => "every feature and field can be learned about",
        Topic::Expectations if crude => "within crude bounds; exact ones need more plans",
        Topic::Expectations => "within what policies can reach",
        Topic::Repeats => "no duplicates, no contradictions",
        Topic::LeastLoss if found.least_loss.is_none() => "not looked at",
        Topic::LeastLoss => "some mapping explains nearly everything",
    }
    .into()
}

fn topic_in_words(topic: Topic) -> &'static str {
    match topic {
        Topic::Admissibility => "states and actions",
        Topic::Transitions => "transitions",
        Topic::Support => "what can be learned",
        Topic::Expectations => "feature expectations",
        Topic::Repeats => "repeats",
        Topic::LeastLoss => "smallest loss",
    }
}

fn level_in_words(level: Level) -> &'static str {
    match level {
        Level::Fine => "fine",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// The finding with the names of what it counts.
fn in_names(finding: &Finding, names: &Names) -> String {
    let name = match finding {
        Finding::FeatureNeverShown { feature }
        | Finding::FeatureFixed { feature }
        | Finding::OutOfBounds { feature, .. } => names.features.get(*feature),
        Finding::FieldFixed { field, .. } => names.contexts.get(*field),
        _ => None,
    };
    match name {
        Some(name) => format!("{name}: {finding}"),
        None => finding.to_string(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}
