//! How agents compare with rules that know no reward, in words and tables.

use super::report::interval;
use super::scoring::{Scored, Scores};
use crate::numbers::{count, short};
use crate::text::Tabular;
use coirl::resampling::Estimate;
use coirl_cohort::agreement::{Difference, Foreseen, HazardBin, Standing};
use coirl_cohort::rules::{Comparison, LogisticFit, Rule, Verdict};

/// The verdict on an agent: whether it beats the best rule at foreseeing what was done, and then by its probabilities.
pub(crate) fn verdict(scored: &Scored) -> String {
    let overall = &scored.agreement.matching.overall;
    let sentence = |verdict: Verdict, told: &dyn Fn(&Comparison) -> String| {
        let own = scored.agreement.comparisons.iter().find(|own| own.rule == verdict.rule)?;
        let (says, rule) = (standing_in_words(verdict.standing), rule_in_words(verdict.rule));
        Some(format!("{says} the best trivial rule, {rule}: {}", told(own)))
    };
    let by_action = scored.verdict.and_then(|verdict| {
        sentence(verdict, &|own| {
            let (agent, rule) = (percent(overall.top_one.value), percent(own.pairing.same_action.value));
            let difference = difference_in_words(&own.pairing.same_action_difference, true);
            format!("the same action in {agent} % of the steps, the rule in {rule} %, difference {difference}")
        })
    });
    let by_probability = scored.log_loss_verdict.and_then(|verdict| {
        sentence(verdict, &|own| {
            let (agent, rule) = (overall.log_loss.value, own.pairing.log_loss.value);
            let difference = difference_in_words(&own.pairing.log_loss_difference, false);
            format!("{agent:.3}, the rule {rule:.3}, difference {difference}")
        })
    });
    let told = [by_action, by_probability.map(|says| format!("by log-loss it {says}"))];
    let told: Vec<String> = told.into_iter().flatten().collect();
    if told.is_empty() { "was compared with no rule".into() } else { told.join("; ") }
}

fn standing_in_words(standing: Standing) -> &'static str {
    match standing {
        Standing::Better => "is better than",
        Standing::NotShown => "is not shown to be better than",
        Standing::Worse => "is worse than",
    }
}

pub(crate) fn rule_in_words(rule: Rule) -> &'static str {
    match rule {
        Rule::MostFrequent => "always the most frequent training action",
        Rule::MostFrequentOfState => "the most frequent training action of the state",
        Rule::Previous => "the previous action of the stay",
        Rule::Logistic => "a logistic model of the actions",
    }
}

/// Each rule beside the differences of all runs, by the action taken first and by log-loss; nothing without rules.
pub(crate) fn rules(scores: &Scores) -> Vec<Tabular> {
    let runs = &scores.runs;
    let Some(first) = runs.first().filter(|first| !first.agreement.comparisons.is_empty()) else { return Vec::new() };
    let differences: Vec<String> = runs.iter().map(|scored| format!("{} − rule", scored.method)).collect();
    type Measure = (&'static str, bool, fn(&Comparison) -> (Estimate, Difference));
    let measures: [Measure; 2] = [
        ("Trivial rules: the same action, by step", true, |own| {
            (own.pairing.same_action, own.pairing.same_action_difference)
        }),
        ("Trivial rules: log-loss (an agent is better below zero)", false, |own| {
            (own.pairing.log_loss, own.pairing.log_loss_difference)
        }),
    ];
    let of_measure = |(title, percent, of): Measure| {
        let row = |(i, own): (usize, &Comparison)| {
            let cell = |scored: &Scored| {
                let own = scored.agreement.comparisons.get(i);
                own.map_or(String::new(), |own| difference_in_words(&of(own).1, percent))
            };
            let name = match (own.rule, percent) {
                (Rule::MostFrequent, false) => "the training shares of actions",
                (rule, _) => rule_in_words(rule),
            };
            [name.to_owned(), interval(of(own).0, percent)].into_iter().chain(runs.iter().map(cell)).collect()
        };
        let header: Vec<&str> = ["", "rule"].into_iter().chain(differences.iter().map(String::as_str)).collect();
        Tabular::new(title, &header, first.agreement.comparisons.iter().enumerate().map(row).collect())
    };
    measures.map(of_measure).into()
}

/// What is to be known about the rules.
pub(crate) fn about_rules(logistic: Option<LogisticFit>) -> Vec<(&'static str, String)> {
    let fitted = match logistic {
        None => "left out: there are too few training steps, or the same action was always taken".to_owned(),
        Some(own) => {
            let on = if own.measurements { "measurements" } else { "the state" };
            let ended = if own.converged { "converged" } else { "not converged" };
            format!(
                "multinomial, on {on}, context and the action before; {} training steps, penalty {}, {ended}",
                count(own.steps),
                short(own.penalty)
            )
        }
    };
    vec![
        (
            "rules",
            "learned on the training stays; differences are of the same steps, both resampled together by patient"
                .into(),
        ),
        ("previous", "at the first step of a stay: the most frequent first action of the training stays".into()),
        ("logistic", fitted),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A difference with its sign and its interval.
fn difference_in_words(difference: &Difference, percent: bool) -> String {
    let shown = |x: f64| {
        let text = if percent { format!("{:+.1}", 100.0 * x) } else { format!("{x:+.3}") };
        text.replace('-', "−")
    };
    let value = shown(difference.value);
    match difference.interval {
        Some(own) => format!("{value} [{}, {}]", shown(own.lower), shown(own.upper)),
        None if difference.patients == 0 => format!("{value} (no difference)"),
        None => format!("{value} (they differ on {} patients only)", difference.patients),
    }
}

/// How well each run foresees what is rare; nothing where nothing is.
pub(crate) fn rare_actions(scores: &Scores) -> Option<Tabular> {
    let (runs, people) = (&scores.runs, scores.limits.people());
    let first = runs.first().filter(|first| !first.agreement.rare.is_empty())?;
    let header: Vec<String> = runs.iter().map(|scored| format!("AUC of {}", scored.method)).collect();
    let row = |(i, own): (usize, &Foreseen)| {
        let cell = |scored: &Scored| scored.agreement.rare.get(i).map_or(String::new(), |own| interval(own.auc, false));
        let start = [own.event.clone(), count(own.patients), format!("{:.2} %", 100.0 * own.share)];
        start.into_iter().chain(runs.iter().map(cell)).collect()
    };
    let header: Vec<&str> = ["", people, "of steps"].into_iter().chain(header.iter().map(String::as_str)).collect();
    let rows = first.agreement.rare.iter().enumerate().map(row).collect();
    Some(Tabular::new("Rare actions: whether they are more probable to the agent where they were taken", &header, rows))
}

/// The share of the steps with an event, recorded and by the agent, by steps since the clock began.
pub(crate) fn hazard(own: &Foreseen, people: &str) -> Tabular {
    let row = |bin: &HazardBin| {
        let [from, to] = bin.steps.map(count);
        let steps = if from == to { from } else { format!("{from} to {to}") };
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        vec![steps, count(bin.patients), percent(bin.recorded), percent(bin.foreseen)]
    };
    let title = format!("{}: by steps since the start of the stay, or since it was last taken", own.event);
    Tabular::new(title, &["steps", people, "recorded", "agent"], own.hazard.iter().map(row).collect())
}
