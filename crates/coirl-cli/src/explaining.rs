//! An explanation, for people and for programs.

mod effort;

pub(crate) use effort::Effort;

use crate::failure::Failure;
use crate::networks::NetworkReport;
use crate::numbers::short;
use crate::text;
use coirl::inspect::{Bootstrap, Choice, ContextHelps, Determination, Entry, Interval, Reason, Terms, Verdict};
use coirl::mapping::LinearMapping;
use coirl::model::Names;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;

/// Longest tables.
const MOST_ENTRIES: usize = 40;
const MOST_TERMS: usize = 12;

/// Scale and sign, spelled out.
const CONVENTIONS: &str = "\
The mapping is shown with |W| = 1, for a positive multiple of it explains the same behaviour; ranges are of mappings under \
which the experts gain as much over chance as under this one. Signs are not a convention: a positive weight is sought, a \
negative one avoided, and -W would explain the opposite.";

/// The same for a network.
const NETWORK_CONVENTIONS: &str = "\
Weights are those that the network gives this context. What single context fields add to them is not said: a network does \
not add them up. A positive multiple of the weights of a context explains the same behaviour in it. Signs are not a \
convention: a positive weight is sought, a negative one avoided.";

/// What is not said about a network.
const NO_MATRIX: &str = "\
a network has no matrix W: which entries are determined, and how they vary with other demonstrations, is left out";

/// One entry of the mapping with all that is known about it.
#[derive(Serialize)]
pub(crate) struct EntryReport {
    field: usize,
    feature: usize,
    weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    determined: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    converged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap: Option<Interval>,
}

impl EntryReport {
    /// Every entry, row by row. Those of features that can be left out are not determined, whatever their range.
    pub(crate) fn all(
        mapping: &LinearMapping,
        found: Option<&Determination>,
        resampled: Option<&Bootstrap>,
        can_be_left_out: &[usize],
    ) -> Vec<Self> {
        let report = |(index, &weight): (usize, &f64)| {
            let (field, feature) = (index / mapping.n_features(), index % mapping.n_features());
            let own = |entry: &&Entry| (entry.field, entry.feature) == (field, feature);
            let entry = found.and_then(|found| found.entries.iter().find(own));
            let not_needed = can_be_left_out.contains(&feature);
            Self {
                field,
                feature,
                weight,
                determined: entry.map(|entry| entry.determined && !not_needed),
                range: entry.map(|entry| entry.interval),
                converged: entry.map(|entry| entry.converged),
                reason: entry.and_then(|entry| match entry.determined && not_needed {
                    true => Some(Reason::NotNeeded),
                    false => entry.reason.clone(),
                }),
                bootstrap: resampled.and_then(|resampled| resampled.intervals.get(index).copied()),
            }
        };
        let all = mapping.values().iter().chain(mapping.intercept().unwrap_or_default());
        all.enumerate().map(report).collect()
    }

    /// Whether it lies beyond what fits on resampled demonstrations give it.
    fn is_beyond_resampled(&self) -> bool {
        self.bootstrap.is_some_and(|own| own.lower.is_finite() && !own.contains(self.weight))
    }

    /// Whether no mapping that explains the demonstrations best has this weight.
    fn is_outside(&self) -> bool {
        self.range.is_some_and(|range| !range.contains(self.weight))
    }

    /// "yes", or why not.
    fn in_words(&self, names: &Names) -> String {
        match (self.determined, &self.reason) {
            (None, _) => "not looked at".into(),
            (Some(true), _) => "yes".into(),
            (Some(false), reason) => {
                let why = reason.as_ref().map(|reason| reason_in_words(reason, names)).unwrap_or_default();
                let sign = self.range.map_or("", |range| match (range.lower > 0.0, range.upper < 0.0) {
                    (true, _) => ", but positive",
                    (_, true) => ", but negative",
                    _ => "",
                });
                format!("no: {why}{sign}")
            }
        }
    }
}

fn reason_in_words(reason: &Reason, names: &Names) -> String {
    match reason {
        Reason::FieldAlwaysZero => "field always zero".into(),
        Reason::FieldsDependent => "fields dependent".into(),
        Reason::FeatureFixed => "no policy changes it".into(),
        Reason::FeaturesDependent(others) => {
            let others: Vec<String> = others.iter().take(3).map(|&j| text::name_of(&names.features, j)).collect();
            format!("goes with {}", others.join(", "))
        }
        Reason::FeatureNeverShown => "no expert meets it".into(),
        Reason::PathsTooShort => "paths too short".into(),
        Reason::Loose => "shown too little".into(),
        Reason::NotNeeded => "can be left out".into(),
    }
}

/// A choice with names.
#[derive(Serialize)]
pub(crate) struct ChoiceReport {
    #[serde(flatten)]
    choice: Choice,
    action_name: String,
    runner_up_name: String,
}

impl ChoiceReport {
    pub(crate) fn new(choice: Choice, names: &Names) -> Self {
        let name = |action: coirl::model::ActionId| text::name_of(&names.actions, action.index());
        Self { action_name: name(choice.action), runner_up_name: name(choice.runner_up), choice }
    }
}

/// Everything that is said about a run. What could not be found out is there as the reason why.
pub(crate) struct Explanation<'a> {
    pub(crate) run: String,
    pub(crate) source: &'a str,
    pub(crate) names: &'a Names,
    /// The network, where the mapping is one; entries and what is said about them are then missing.
    pub(crate) network: Option<NetworkReport>,
    pub(crate) entries: Vec<EntryReport>,
    pub(crate) determination: Result<Determination, String>,
    pub(crate) resampled: Option<Result<usize, String>>,
    pub(crate) context: Vec<f64>,
    pub(crate) context_given: bool,
    pub(crate) weights: Terms,
    pub(crate) value: Terms,
    pub(crate) choice: Result<Option<ChoiceReport>, String>,
    pub(crate) helps: Option<Result<ContextHelps, String>>,
    /// What was left out or cut short because it would have taken long, in words.
    pub(crate) shortened: Vec<String>,
}

impl Explanation<'_> {
    fn conventions(&self) -> &'static str {
        if self.network.is_some() { NETWORK_CONVENTIONS } else { CONVENTIONS }
    }

    /// What a row of terms belongs to.
    fn field_name(&self, field: usize) -> String {
        match &self.network {
            Some(_) => "all fields".into(),
            None if field >= self.context.len() => "everybody".into(),
            None => text::name_of(&self.names.contexts, field),
        }
    }

    pub(crate) fn as_json(&self) -> Value {
        let rows = |terms: &Terms| terms.rows().map(<[f64]>::to_vec).collect::<Vec<_>>();
        let refused = |reason: &String| json!({ "refused": reason });
        json!({
            "run": self.run,
            "source": self.source,
            "conventions": self.conventions(),
            "network": self.network,
            "context_names": self.names.contexts,
            "feature_names": self.names.features,
            "entries": self.entries,
            "determination": self.determination.as_ref().map_or_else(refused, |found| json!({
                "converged": found.converged, "complete": found.complete, "slack": found.slack, "unseen": found.unseen,
                "fitted_loss": found.fitted_loss, "null_dimension": found.null_dimension,
                "null_dimension_exact": found.null_dimension_exact, "n_parameters": found.n_parameters,
                "rounds": found.rounds, "plans": found.plans,
            })),
            "bootstrap": self.resampled.as_ref().map(|found| {
                found.as_ref().map_or_else(refused, |replicates| json!({ "replicates": replicates, "level": 0.95 }))
            }),
            "context": self.context,
            "weights": rows(&self.weights),
            "value": rows(&self.value),
            "choice": self.choice.as_ref().map_or_else(refused, |choice| json!(choice)),
            "cut_short": self.shortened,
            "context_helps": self.helps.as_ref().map(|found| {
                found.as_ref().map_or_else(refused, |found| json!(found))
            }),
        })
    }
}

/// Writes it for people.
pub(crate) fn write(out: &mut dyn Write, explanation: &Explanation<'_>) -> Result<(), Failure> {
    text::title(out, &format!("What {} holds", explanation.run))?;
    text::pair(out, "learned from", explanation.source)?;
    match &explanation.network {
        None => write_mapping(out, explanation)?,
        Some(network) => {
            network.write(out)?;
            text::pair(out, "left out", NO_MATRIX)?;
        }
    }
    writeln!(out)?;
    write_contributions(out, explanation)?;
    writeln!(out)?;
    write_choice(out, explanation)?;
    writeln!(out)?;
    text::title(out, "Does the context help?")?;
    match &explanation.helps {
        None => text::pair(out, "not asked", "--folds says in how many parts to look")?,
        Some(Err(reason)) => text::pair(out, "not known", reason)?,
        Some(Ok(helps)) => write_helps(out, helps)?,
    }
    if !explanation.shortened.is_empty() {
        writeln!(out)?;
        text::title(out, "Cut short, to answer in seconds")?;
        for words in &explanation.shortened {
            text::pair(out, "", words)?;
        }
    }
    writeln!(out)?;
    text::title(out, "How to read this")?;
    Ok(text::pair(out, "conventions", explanation.conventions())?)
}

fn write_mapping(out: &mut dyn Write, explanation: &Explanation<'_>) -> Result<(), Failure> {
    let names = explanation.names;
    let mut shown: Vec<&EntryReport> = explanation.entries.iter().collect();
    let left_out = shown.len().saturating_sub(MOST_ENTRIES);
    if left_out > 0 {
        shown.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()));
        shown.truncate(MOST_ENTRIES);
    }
    let interval = |interval: Option<Interval>| match interval {
        Some(Interval { lower, upper }) => format!("{lower:.2}..{upper:.2}"),
        None => "–".into(),
    };
    let row = |entry: &&EntryReport| {
        vec![
            explanation.field_name(entry.field),
            text::name_of(&names.features, entry.feature),
            format!("{:.3}{}", entry.weight, if entry.is_outside() { "*" } else { " " }),
            interval(entry.range),
            format!("{}{}", interval(entry.bootstrap), if entry.is_beyond_resampled() { "†" } else { " " }),
            entry.in_words(names),
        ]
    };
    let header = ["context", "feature", "weight", "range", "resampled", "determined?"];
    text::table(out, &header, &[2, 3, 4], shown.iter().map(row).collect())?;
    if left_out > 0 {
        writeln!(out, "  and {left_out} entries with smaller weights; --json has all")?;
    }
    match &explanation.determination {
        Err(reason) => text::pair(out, "ranges", reason)?,
        Ok(found) => {
            let too_short = found.entries.iter().any(|entry| entry.reason == Some(Reason::PathsTooShort));
            if too_short {
                let says = "not known: the paths are short for the discount, and what lies beyond their ends can outweigh what they \
                            show; these are the ranges without any demonstration";
                text::pair(out, "ranges", says)?;
            } else if found.unseen > 0.0 {
                let says = format!(
                    "wider by {} of what the experts gain, for what lies beyond the ends of the paths",
                    percent(found.unseen)
                );
                text::pair(out, "ranges", &says)?;
            }
            if !found.converged && !too_short {
                let says = "not all have converged: the true ones may be narrower, never wider";
                text::pair(out, "ranges", says)?;
            }
            if !found.complete {
                text::pair(out, "", &format!("of the {} largest entries only; --entries", found.entries.len()))?;
            }
            if shown.iter().any(|entry| entry.is_outside()) {
                let says = format!(
                    "weights outside their range: this mapping leaves {} unexplained, the best {}; fit on, or with bundle",
                    percent(found.fitted_loss),
                    percent(found.slack)
                );
                text::pair(out, "*", &says)?;
            }
            if let Some(n @ 1..) = found.null_dimension {
                let at_most = if found.null_dimension_exact { "" } else { "at most " };
                let says = format!(
                    "{at_most}{n} of {} directions of W change nothing that anybody could see",
                    found.n_parameters
                );
                text::pair(out, "out of sight", &says)?;
            }
        }
    }
    match &explanation.resampled {
        Some(Err(reason)) => text::pair(out, "resampled", reason)?,
        Some(Ok(n)) => text::pair(out, "resampled", &format!("95 % of {n} fits on resampled demonstrations"))?,
        None => {}
    }
    let beyond = explanation.entries.iter().filter(|entry| entry.is_beyond_resampled()).count();
    if beyond > 0 {
        let says = format!(
            "{beyond} of {} weights lie beyond their own resampled fits. A resample holds only two thirds of the demonstrations, some of them twice: a \
             fit that is held back by a penalty or stopped early ends elsewhere on it. The interval shows the spread of such fits and is not \
             centred on the weight",
            explanation.entries.len()
        );
        text::pair(out, "†", &says)?;
    }
    Ok(())
}

fn write_contributions(out: &mut dyn Write, explanation: &Explanation<'_>) -> Result<(), Failure> {
    let Explanation { names, weights, value, context, .. } = explanation;
    let numbers: Vec<String> = context
        .iter()
        .enumerate()
        .map(|(i, x)| format!("{}={}", text::name_of(&names.contexts, i), short(*x)))
        .collect();
    text::title(out, if explanation.context_given { "In this context" } else { "In the mean of the contexts" })?;
    text::pair(out, "context", &numbers.join(", "))?;
    let total = value.total();
    let row = |(field, feature): (usize, usize)| {
        let term = value.at(field, feature);
        let share = if total == 0.0 { "–".into() } else { percent(term / total) };
        vec![
            explanation.field_name(field),
            text::name_of(&names.features, feature),
            short(weights.at(field, feature)),
            short(term),
            share,
        ]
    };
    let (shown, others) = largest(value, weights);
    let mut rows: Vec<Vec<String>> = shown.into_iter().map(row).collect();
    if let Some(Others { number, sum }) = others {
        let share = if total == 0.0 { "–".into() } else { percent(sum / total) };
        rows.push(vec![format!("{number} others"), String::new(), String::new(), short(sum), share]);
    }
    rows.push(vec!["all".into(), String::new(), String::new(), short(total), percent(1.0)]);
    Ok(text::table(out, &["context", "feature", "adds to weight", "to value", "share"], &[2, 3, 4], rows)?)
}

fn write_choice(out: &mut dyn Write, explanation: &Explanation<'_>) -> Result<(), Failure> {
    let names = explanation.names;
    let ChoiceReport { choice, action_name, runner_up_name } = match &explanation.choice {
        Ok(Some(choice)) => choice,
        Ok(None) => {
            text::title(out, "The choice")?;
            return Ok(text::pair(out, "none", "there is only one action in this state")?);
        }
        Err(reason) => {
            text::title(out, "The choice")?;
            return Ok(text::pair(out, "not known", reason)?);
        }
    };
    text::title(out, &format!("In state {}: {action_name} rather than {runner_up_name}", choice.state.0))?;
    let row = |(field, feature): (usize, usize)| {
        vec![
            explanation.field_name(field),
            text::name_of(&names.features, feature),
            short(choice.features[feature]),
            short(choice.terms.at(field, feature)),
        ]
    };
    let (shown, others) = largest(&choice.terms, &choice.terms);
    let mut rows: Vec<Vec<String>> = shown.into_iter().map(row).collect();
    if let Some(Others { number, sum }) = others {
        rows.push(vec![format!("{number} others"), String::new(), String::new(), short(sum)]);
    }
    rows.push(vec!["all".into(), String::new(), String::new(), short(choice.difference)]);
    text::table(out, &["context", "feature", "more of it", "worth"], &[2, 3], rows)?;
    if choice.tied {
        text::pair(out, "tied", "the two are equally good, and the lower index was taken")?;
    }
    Ok(())
}

fn write_helps(out: &mut dyn Write, helps: &ContextHelps) -> Result<(), Failure> {
    let (answer, says) = match helps.verdict {
        Verdict::Helps => ("yes", "mappings that see the context explain held-out experts better"),
        Verdict::DoesNotHelp => ("no", "one vector of weights for all explains held-out experts as well"),
        Verdict::NotDecided => ("not decided", "there are too few demonstrations to tell"),
    };
    text::pair(out, answer, says)?;
    let left = format!(
        "{} with context, {} without, of what there is to gain over chance in {} held-out demonstrations",
        percent(helps.with_context),
        percent(helps.without_context),
        helps.demonstrations
    );
    text::pair(out, "unexplained", &left)?;
    let difference = format!(
        "{}, 95 % interval {} to {}",
        percent(helps.difference),
        percent(helps.interval.lower),
        percent(helps.interval.upper)
    );
    Ok(text::pair(out, "difference", &difference)?)
}

/// Terms that a table leaves out, and what they add up to.
struct Others {
    number: usize,
    sum: f64,
}

/// The places of the largest terms, by the first table and where that is zero by the second, and the rest.
fn largest(terms: &Terms, next: &Terms) -> (Vec<(usize, usize)>, Option<Others>) {
    let n_features = terms.of_features().len();
    let mut places: Vec<(usize, usize)> =
        (0..terms.of_fields().len()).flat_map(|i| (0..n_features).map(move |j| (i, j))).collect();
    let size = |&(i, j): &(usize, usize)| (terms.at(i, j).abs(), next.at(i, j).abs());
    places.sort_by(|a, b| size(b).partial_cmp(&size(a)).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b)));
    places.retain(|place| size(place) != (0.0, 0.0));
    let others = places.split_off(places.len().min(MOST_TERMS));
    let sum = others.iter().map(|&(i, j)| terms.at(i, j)).sum();
    (places, (!others.is_empty()).then_some(Others { number: others.len(), sum }))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}
