//! A model in numbers.

use crate::failure::Failure;
use crate::numbers::{count, short};
use crate::text;
use coirl::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;

/// Names listed before the rest is only counted.
const MOST_NAMES: usize = 12;
/// Longest list of example numbers that is written out.
const MOST_EXAMPLE_NUMBERS: usize = 16;

/// What `domain show` and `info` say about a model.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    name: String,
    states: usize,
    /// States that some policy reaches in some context.
    reachable_states: usize,
    actions: usize,
    action_names: Vec<String>,
    /// Admissible pairs of state and action.
    pairs: usize,
    /// Those of them that are known, where the model says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_pairs: Option<usize>,
    features: usize,
    feature_names: Vec<String>,
    features_per: &'static str,
    dynamics: &'static str,
    kernels: usize,
    /// Transition rows that differ within their state.
    distinct_rows: usize,
    /// Probabilities stored for them.
    entries: usize,
    /// Share of zeros among the probabilities of all admissible pairs.
    sparsity: f64,
    start: Start,
    criterion: Criterion,
    context_space: ContextSpace,
    context_names: Vec<String>,
    /// Length of the contexts that the dynamics depend on.
    #[serde(skip)]
    dynamics_need: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Start {
    /// States with positive probability.
    states: usize,
    most_likely: usize,
    probability: f64,
}

impl Summary {
    pub(crate) fn of(model: &Cmdp) -> Result<Self, Failure> {
        let (dynamics, kernels) = match model.dynamics() {
            Dynamics::Shared(kernel) => ("shared by all contexts", vec![Cow::Borrowed(kernel)]),
            Dynamics::Mixture(mixture) => {
                // In the middle of the simplex every base kernel's entries are there.
                let dimension = mixture.n_kernels();
                let middle = ContextSpace::Simplex { dimension }.context(vec![1.0 / dimension as f64; dimension])?;
                ("a mixture of base kernels, weighted by the context", vec![Cow::Owned(mixture.kernel(&middle)?)])
            }
            Dynamics::Clusters(clusters) => {
                ("one kernel per cluster of contexts", clusters.kernels().iter().map(Cow::Borrowed).collect())
            }
        };
        let (n_states, n_pairs) = (model.n_states(), model.pairs().len());
        let of_pairs = |kernel: &Cow<'_, Kernel>| (0..n_pairs).map(|pair| kernel.successors(pair).len()).sum::<usize>();
        let entries_of_pairs: usize = kernels.iter().map(of_pairs).sum();
        let dense = (kernels.len() * n_pairs) as f64 * n_states as f64;
        let initial = model.initial();
        let most_likely = (1..n_states).fold(0, |best, s| if initial[s] > initial[best] { s } else { best });
        let names = model.names();
        Ok(Self {
            name: names.model.clone(),
            states: n_states,
            reachable_states: reachable(model, &kernels),
            actions: model.n_actions(),
            action_names: names.actions.clone(),
            pairs: n_pairs,
            known_pairs: model.known_pairs().map(|known| known.iter().filter(|&&known| known).count()),
            features: model.n_features(),
            feature_names: names.features.clone(),
            features_per: match model.features() {
                Features::State { .. } => "state",
                Features::StateAction(_) => "state and action",
            },
            dynamics,
            kernels: match model.dynamics() {
                Dynamics::Mixture(mixture) => mixture.n_kernels(),
                Dynamics::Shared(_) | Dynamics::Clusters(_) => kernels.len(),
            },
            distinct_rows: kernels.iter().map(|kernel| kernel.n_rows()).sum(),
            entries: kernels.iter().map(|kernel| kernel.n_entries()).sum(),
            sparsity: 1.0 - entries_of_pairs as f64 / dense,
            start: Start {
                states: initial.iter().filter(|&&p| p > 0.0).count(),
                most_likely,
                probability: initial[most_likely],
            },
            criterion: model.criterion(),
            context_space: model.context_space().clone(),
            context_names: names.contexts.clone(),
            dynamics_need: model.dynamics().context_dimension(),
        })
    }

    /// The numbers, one aligned line each.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let listed = |n: usize, names: &[String]| match names {
            [] => String::new(),
            names if n <= MOST_NAMES => format!(": {}", names.join(", ")),
            names => format!(": {}, …", names[..MOST_NAMES.min(names.len())].join(", ")),
        };
        let states = match self.reachable_states {
            all if all == self.states => format!("{}, all reachable from the start", count(self.states)),
            some => format!("{}, of which {} can be reached from the start", count(self.states), count(some)),
        };
        text::pair(out, "states", &states)?;
        let actions = listed(self.actions, &self.action_names);
        text::pair(out, "actions", &format!("{}{actions}", count(self.actions)))?;
        if self.pairs < self.states * self.actions {
            let pairs = format!("{} admissible of {}", count(self.pairs), count(self.states * self.actions));
            text::pair(out, "pairs", &pairs)?;
        }
        if let Some(known) = self.known_pairs {
            let known = format!("{} of {} pairs are known", count(known), count(self.pairs));
            text::pair(out, "known", &known)?;
        }
        let features = listed(self.features, &self.feature_names);
        text::pair(out, "features", &format!("{} per {}{features}", count(self.features), self.features_per))?;
        let kernels = if self.kernels > 1 { format!(" ({} kernels)", self.kernels) } else { String::new() };
        text::pair(out, "dynamics", &format!("{}{kernels}", self.dynamics))?;
        let per_row = self.entries as f64 / self.distinct_rows as f64;
        let rows = format!(
            "{} distinct with {} entries ({per_row:.1} each); {} % of all probabilities are 0",
            count(self.distinct_rows),
            count(self.entries),
            share_in_percent(self.sparsity)
        );
        text::pair(out, "rows", &rows)?;
        text::pair(out, "start", &self.start_in_words())?;
        text::pair(out, "criterion", &self.criterion_in_words())?;
        Ok(text::pair(out, "contexts", &self.contexts_in_words())?)
    }

    fn start_in_words(&self) -> String {
        let Start { states, most_likely, probability } = self.start;
        match states {
            1 => format!("state {most_likely}"),
            all if all == self.states && (probability * all as f64 - 1.0).abs() < 1e-9 => "any state, uniformly".into(),
            _ => format!("{} states, most likely {most_likely} ({})", count(states), short(probability)),
        }
    }

    fn criterion_in_words(&self) -> String {
        match self.criterion {
            Criterion::Discounted { discount } => format!("discounted, γ = {discount}"),
            Criterion::FiniteHorizon { steps, discount } => format!("{steps} decisions, γ = {discount}"),
            Criterion::TotalReward => "total reward until absorption".into(),
            Criterion::Average => "average reward per step".into(),
        }
    }

    fn contexts_in_words(&self) -> String {
        let space = match &self.context_space {
            ContextSpace::Simplex { dimension } => format!("{dimension} numbers on the simplex"),
            ContextSpace::Box { lower, .. } => format!("{} numbers within bounds", lower.len()),
            ContextSpace::Any => "any numbers".into(),
        };
        match self.context_names.as_slice() {
            [] => space,
            names if names.len() <= MOST_NAMES => format!("{space}: {}", names.join(", ")),
            names => format!("{space}: {}, …", names[..MOST_NAMES].join(", ")),
        }
    }

    /// A command that plans in this model.
    pub(crate) fn example(&self, model: &str, weights: Option<&str>) -> String {
        let unit = |n: usize| (0..n).map(|i| if i == 0 { "1" } else { "0" }).collect::<Vec<_>>().join(",");
        let reward = match weights {
            Some(weights) => format!("--weights {weights}"),
            None if self.features <= MOST_EXAMPLE_NUMBERS => format!("--weights {}", unit(self.features)),
            None => "--weights-file weights.csv".into(),
        };
        let context = match self.dynamics_need {
            None => String::new(),
            Some(d) if d <= MOST_EXAMPLE_NUMBERS => format!(" --context {}", unit(d)),
            Some(_) => " --contexts contexts.csv".into(),
        };
        format!("coirl plan {model} {reward}{context}")
    }
}

/// "99.96" rather than "100" for what is not all.
fn share_in_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 99.9 && share < 1.0 { format!("{percent:.3}") } else { format!("{percent:.1}") }
}

/// How many states some policy can reach from the start in some context.
fn reachable(model: &Cmdp, kernels: &[Cow<'_, Kernel>]) -> usize {
    let mut seen: Vec<bool> = model.initial().iter().map(|&p| p > 0.0).collect();
    let mut open: Vec<usize> = (0..seen.len()).filter(|&s| seen[s]).collect();
    let mut reached = open.len();
    while let Some(state) = open.pop() {
        for pair in model.pairs().of_state(state) {
            for (next, _) in kernels.iter().flat_map(|kernel| kernel.successors(pair)) {
                if !seen[next] {
                    seen[next] = true;
                    reached += 1;
                    open.push(next);
                }
            }
        }
    }
    reached
}
