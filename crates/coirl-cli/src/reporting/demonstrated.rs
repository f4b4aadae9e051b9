//! What was learned from, and where the agent would have done something else.

use super::markup::{Markup, facts, paragraph, table};
use super::page::Section;
use crate::failure::Failure;
use crate::numbers::{count, short};
use crate::text::{Tabular, name_of};
use coirl::agent::Predictions;
use coirl::demos::{Demonstration, Evidence, Train, Trajectory};
use coirl::inspect::Support;
use coirl::methods::Fitted;
use coirl::model::{Cmdp, Context, StateId};
use std::collections::{BTreeMap, BTreeSet};

/// States that are listed.
const MOST: usize = 10;

/// Every trajectory with its context and the number of its demonstration.
fn paths(train: &Train) -> impl Iterator<Item = (usize, &Context, &Trajectory)> {
    train.demonstrations().iter().enumerate().flat_map(|(i, demonstration)| {
        let paths: &[Trajectory] = match demonstration.evidence() {
            Evidence::Trajectories(paths) => paths,
            Evidence::FeatureExpectations(_) => &[],
        };
        paths.iter().map(move |path| (i, demonstration.context(), path))
    })
}

/// Steps, and the demonstrations they are from.
#[derive(Default)]
struct Steps {
    steps: usize,
    demonstrations: BTreeSet<usize>,
}

impl Steps {
    fn add(&mut self, demonstration: usize) {
        self.steps += 1;
        self.demonstrations.insert(demonstration);
    }
}

/// The steps in a state, and how often which action was shown instead of which.
#[derive(Default)]
struct StateSteps {
    all: Steps,
    otherwise: BTreeMap<(usize, usize), Steps>,
}

impl StateSteps {
    fn missed(&self) -> usize {
        self.otherwise.values().map(|own| own.steps).sum()
    }

    /// What was shown most often instead of which, among what at least `smallest` demonstrations show.
    fn usual(&self, smallest: usize) -> Option<(usize, usize)> {
        let told = self.otherwise.iter().filter(|(_, own)| own.demonstrations.len() >= smallest);
        told.max_by(|a, b| a.1.steps.cmp(&b.1.steps).then(b.0.cmp(a.0))).map(|(pair, _)| *pair)
    }
}

/// How often the agent would have acted as it was shown, and the states in which it would most often not. Nothing where no single actions were seen.
///
/// `actions` are the names of the actions. Only states in which at least `smallest` demonstrations show one action instead of another are listed.
pub(crate) fn agreement(
    model: &Cmdp,
    fitted: &Fitted,
    actions: &[String],
    train: &Train,
    smallest: usize,
) -> Result<Option<Section>, Failure> {
    let contexts: Vec<Context> = paths(train).map(|(_, context, _)| context.clone()).collect();
    let visits: Vec<&[StateId]> = paths(train).map(|(_, _, path)| &path.states[..path.actions.len()]).collect();
    let taken: Vec<u32> = paths(train).flat_map(|(_, _, path)| path.actions.iter().map(|action| action.0)).collect();
    if taken.is_empty() {
        return Ok(None);
    }
    let predictions = Predictions::of(model, &fitted.agent, &contexts, &visits)?;
    let n_actions = predictions.n_actions();
    let likeliest = |row: &[f64]| (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best });
    let chosen: Vec<usize> = predictions.probabilities().chunks_exact(n_actions).map(likeliest).collect();
    let states =
        paths(train).flat_map(|(i, _, path)| path.states[..path.actions.len()].iter().map(move |state| (i, state)));
    let mut of_states: BTreeMap<u32, StateSteps> = BTreeMap::new();
    for ((demonstration, state), (&shown, &own)) in states.zip(taken.iter().zip(&chosen)) {
        let entry = of_states.entry(state.0).or_default();
        entry.all.add(demonstration);
        if shown as usize != own {
            entry.otherwise.entry((shown as usize, own)).or_default().add(demonstration);
        }
    }
    let mut order: Vec<(&u32, &StateSteps)> = of_states.iter().filter(|(_, entry)| entry.missed() > 0).collect();
    order.sort_by(|a, b| b.1.missed().cmp(&a.1.missed()).then(a.0.cmp(b.0)));
    let row = |(state, entry): &(&u32, &StateSteps)| {
        let (shown, own) = entry.usual(smallest)?;
        let name = |action: usize| name_of(actions, action);
        Some(vec![state.to_string(), count(entry.all.steps), count(entry.missed()), name(shown), name(own)])
    };
    let differing: usize = of_states.values().map(StateSteps::missed).sum();
    let share = 100.0 * (1.0 - differing as f64 / taken.len() as f64);
    let words = format!(
        "In {share:.1} % of the {} steps that were learned from, the agent would have done what was shown. It would have done something else in {} of {} states.",
        count(taken.len()),
        count(order.len()),
        count(of_states.len())
    );
    let header = ["state", "steps", "otherwise", "most often shown", "instead of"];
    let rows: Vec<Vec<String>> = order.iter().filter_map(row).take(MOST).collect();
    let listed = match rows.is_empty() {
        true => Markup::default(),
        false => table(&Tabular::new("Where the agent would most often have done something else", &header, rows)),
    };
    Ok(Some(Section::new("agreement", "Where agent and expert differ", Markup::all([paragraph(&words), listed]))))
}

/// A number of a context, or a field that contexts are made of, in all demonstrations.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
    /// How its values are written.
    pub(crate) shown: Box<dyn Fn(f64) -> String>,
}

/// The numbers of the contexts as the model has them.
pub(crate) fn fields_of_contexts(model: &Cmdp, train: &Train) -> Vec<Field> {
    let demonstrations = train.demonstrations();
    let d = demonstrations.first().map_or(0, |shown| shown.context().values().len());
    let field = |i: usize| Field {
        name: name_of(&model.names().contexts, i),
        values: demonstrations.iter().map(|shown: &Demonstration| shown.context().values()[i]).collect(),
        shown: Box::new(short),
    };
    (0..d).map(field).collect()
}

/// Which contexts, states and actions there was to learn from. Ranges are those that at least `smallest` demonstrations reach at either end.
pub(crate) fn coverage(model: &Cmdp, train: &Train, fields: &[Field], smallest: usize) -> Section {
    let demonstrations = train.demonstrations();
    let support = Support::new(model, demonstrations);
    let share = |part: usize, whole: usize| {
        format!("of {} that can be reached, {:.1} %", count(whole), 100.0 * part as f64 / whole.max(1) as f64)
    };
    let mut rows =
        vec![vec!["demonstrations".into(), count(demonstrations.len()), "contexts that were learned from".into()]];
    if support.trajectories > 0 {
        rows.push(vec![
            "states seen".into(),
            count(support.states_seen),
            share(support.states_seen, support.states_reachable),
        ]);
        rows.push(vec![
            "pairs seen".into(),
            count(support.pairs_seen),
            share(support.pairs_seen, support.pairs_reachable),
        ]);
    } else {
        rows.push(vec!["states".into(), "–".into(), "feature expectations do not say which were visited".into()]);
    }
    let field = |own: &Field| {
        let mut values = own.values.clone();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        values.sort_by(f64::total_cmp);
        let at = smallest.saturating_sub(1).min(values.len() / 2);
        let ends = [values.get(at), values.len().checked_sub(1 + at).and_then(|at| values.get(at))];
        let [least, most] = ends.map(|end| end.map_or("–".into(), |x| (own.shown)(*x)));
        vec![own.name.clone(), least, (own.shown)(mean), most]
    };
    let ranges = Tabular::new(
        "Contexts that were learned from",
        &["field", "least", "mean", "most"],
        fields.iter().map(field).collect(),
    );
    let note = match smallest {
        0 | 1 => "Outside of these ranges the mapping is extrapolated.".to_owned(),
        n => {
            format!("At least {n} demonstrations reach each end. Outside of these ranges the mapping is extrapolated.")
        }
    };
    let content = Markup::all([facts("What there was to learn from", rows), table(&ranges), paragraph(&note)]);
    Section::new("coverage", "Coverage", content)
}
