//! From trajectories to a contextual model.
//!
//! States 0 … K − 1 are clusters of rows. A stay ends in *death* or *survival* (or in *end*, where no outcome is recorded), which are absorbing. What an
//! action does that was seen fewer than `min_support` times in a state nobody can tell: it cannot be taken, or it leads to *unknown*, the last state, absorbing,
//! where every feature is −1. Where no action was seen so often, those seen most often count, whatever their number: a state without any action is none.
//! The rows of the others are
//!
//! ```text
//! P̂(s' | s, a) = (n(s, a, s') + α n(s, s') / n(s)) / (n(s, a) + α),
//! ```
//!
//! drawn to the successors of the state after whichever action by α observations' worth; with several clusters of contexts each is drawn to
//! this pool in turn. All counts are of training stays.

use super::encoder::Encoder;
use super::measurements::Measurement;
use super::recorded::RecordedStay;
use super::spec::{RewardFeatures, Spec, Unsupported};
use coirl::Result;
use coirl::dynamics::{
    Centres, Observations, Prior, PriorMean, StartCounts, Structure, Transition, TransitionCounts, Unseen, estimate,
};
use coirl::model::{Cmdp, Criterion, Features, Kernel, KernelBuilder, Names, Pairs, SparseRows, StateId};
use std::sync::Arc;

/// Standard deviations beyond which a centroid is clipped.
const CLIP: f64 = 3.0;

/// The states that are no clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    n_clusters: usize,
    with_outcome: bool,
    with_unknown: bool,
}

impl Ends {
    /// Of a model with so many clusters.
    pub fn of_spec(n_clusters: usize, spec: &Spec) -> Self {
        let with_unknown = spec.dynamics.unsupported == Unsupported::Unknown;
        Self { n_clusters, with_outcome: spec.outcome.is_some(), with_unknown }
    }

    /// Whether bad and good ends are told apart.
    pub fn with_outcome(self) -> bool {
        self.with_outcome
    }

    /// Where a stay ends.
    pub fn of(self, bad: Option<bool>) -> StateId {
        let survived = self.with_outcome && bad == Some(false);
        StateId((self.n_clusters + usize::from(survived)) as u32)
    }

    /// Where actions lead that were hardly ever seen, where they can be taken.
    pub fn unknown(self) -> Option<StateId> {
        self.with_unknown.then(|| StateId((self.n_clusters + 1 + usize::from(self.with_outcome)) as u32))
    }

    /// Number of states.
    pub fn n_states(self) -> usize {
        self.n_clusters + 1 + usize::from(self.with_outcome) + usize::from(self.with_unknown)
    }
}

/// What the transitions rest on.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SupportSummary {
    /// Training steps.
    pub steps: u64,
    /// Different (state, action) pairs among them.
    pub pairs_seen: usize,
    /// Those that the model admits: seen often enough, or most often in a state where none was.
    pub pairs_supported: usize,
    /// Those seen less often than an action needs that are admitted, being the commonest of their state.
    #[serde(default)]
    pub pairs_rare: usize,
    /// Share of the training steps in pairs that the model does not admit.
    pub steps_unsupported: f64,
    /// Share of the training steps in pairs that were seen less often than an action needs, admitted or not.
    #[serde(default)]
    pub steps_rare: f64,
    /// States where no action was seen as often as one needs, so that the commonest are admitted.
    #[serde(default)]
    pub states_rare: usize,
    /// States with fewer training rows than the support that an action needs.
    pub thin_states: usize,
}

/// The model of the training stays.
pub(super) fn model(
    spec: &Spec,
    encoder: &Encoder,
    train: &[RecordedStay],
    seed: u64,
) -> Result<(Cmdp, SupportSummary)> {
    let n_clusters = encoder.centroids.n_clusters();
    let ends = Ends::of_spec(n_clusters, spec);
    let n_actions = encoder.actions.len();
    let every = Arc::new(Pairs::all(ends.n_states(), n_actions)?);
    let mut counts = TransitionCounts::new(every.clone());
    for stay in train {
        counts.add_all(stay.trajectory.transitions())?;
    }
    let (known, summary) = known_pairs(&counts, n_clusters, spec.dynamics.min_support.max(1) as f64);
    let pairs = match spec.dynamics.unsupported {
        Unsupported::Unknown => every.clone(),
        Unsupported::Masked => {
            // Nobody chooses at the end.
            let admissible =
                |pair: usize| if pair < n_clusters * n_actions { known[pair] } else { pair.is_multiple_of(n_actions) };
            let mask: Vec<bool> = (0..every.len()).map(admissible).collect();
            Arc::new(Pairs::from_mask(ends.n_states(), n_actions, &mask)?)
        }
    };
    let mut observations = Observations::new(pairs.clone());
    let mut starts = StartCounts::new(ends.n_states());
    for stay in train {
        let counted = |step: &Transition| known[step.state.index() * n_actions + step.action.index()];
        observations.add(&stay.context, stay.trajectory.transitions().filter(counted))?;
        starts.add(stay.trajectory.states[0])?;
    }
    let mean = PriorMean::Kernel(Arc::new(successors_of_states(&counts, &pairs, ends, &known)?));
    let prior = Prior { strength: spec.dynamics.prior, mean, unseen: Unseen::PriorMean };
    let structure = match spec.dynamics.context_clusters {
        1 => Structure::Pooled,
        number => Structure::Clusters { centres: Centres::Found { number, seed }, shrinkage: spec.dynamics.shrinkage },
    };
    let learned = estimate(&observations, &structure, &prior)?;
    let initial = starts.distribution(0.0, &vec![0.0; ends.n_states()])?;
    let (features, names) = features(spec, encoder, &pairs, ends)?;
    let model = Cmdp::new(learned.dynamics, features, initial, Criterion::discounted(spec.discount)?)?
        .with_context_space(encoder.contexts.space())?
        .with_names(Names {
            model: "cohort".into(),
            actions: encoder.actions.names(),
            features: names,
            contexts: encoder.contexts.names(),
        })?;
    let model = match spec.dynamics.unsupported {
        Unsupported::Unknown => model.with_known_pairs(known)?,
        Unsupported::Masked => model,
    };
    Ok((model, summary))
}

/// Which pairs were seen often enough to know where they lead, and what that means for the steps that were taken.
fn known_pairs(counts: &TransitionCounts, n_clusters: usize, least: f64) -> (Vec<bool>, SupportSummary) {
    let (pairs, support) = (counts.pairs(), counts.support());
    let seen = |pair: usize| support.of(pair);
    // A state without any action is none: where no action was seen often enough, the one seen most often counts.
    let enough = |state: usize| pairs.of_state(state).map(seen).fold(1.0, f64::max).min(least);
    let mut known: Vec<bool> = (0..pairs.len())
        .map(|pair| pairs.state(pair).index() >= n_clusters || seen(pair) >= enough(pairs.state(pair).index()))
        .collect();
    for state in 0..n_clusters {
        // Nobody was seen to act in a state that only ever ended a record that breaks off.
        let own = pairs.of_state(state);
        if own.clone().all(|pair| !known[pair]) {
            known[own.start] = true;
        }
    }
    let of_clusters = || (0..n_clusters).flat_map(|state| pairs.of_state(state));
    let steps = counts.n_transitions();
    let thin: f64 = of_clusters().filter(|&pair| !known[pair]).map(seen).sum();
    let rare = |pair: &usize| seen(*pair) > 0.0 && seen(*pair) < least;
    let rows_of = |state: usize| pairs.of_state(state).map(seen).sum::<f64>();
    let summary = SupportSummary {
        steps,
        pairs_seen: of_clusters().filter(|&pair| seen(pair) > 0.0).count(),
        pairs_supported: of_clusters().filter(|&pair| known[pair] && seen(pair) > 0.0).count(),
        pairs_rare: of_clusters().filter(rare).filter(|&pair| known[pair]).count(),
        steps_unsupported: thin / steps.max(1) as f64,
        steps_rare: of_clusters().filter(rare).map(seen).sum::<f64>() / steps.max(1) as f64,
        states_rare: (0..n_clusters).filter(|&state| pairs.of_state(state).all(|pair| seen(pair) < least)).count(),
        thin_states: (0..n_clusters).filter(|&state| rows_of(state) < least).count(),
    };
    (known, summary)
}

/// Where a state leads after whichever action; ends stay, and pairs that are not known lead to *unknown*.
fn successors_of_states(counts: &TransitionCounts, pairs: &Arc<Pairs>, ends: Ends, known: &[bool]) -> Result<Kernel> {
    let mut builder = KernelBuilder::new(pairs.clone());
    let mut times = vec![0_u64; pairs.n_states()];
    for state in 0..pairs.n_states() {
        let mut seen: Vec<usize> = Vec::new();
        for (next, n) in counts.pairs().of_state(state).flat_map(|pair| counts.successors(pair)) {
            if times[next] == 0 {
                seen.push(next);
            }
            times[next] += n;
        }
        seen.sort_unstable();
        let total: u64 = seen.iter().map(|&next| times[next]).sum();
        for pair in pairs.of_state(state) {
            let is_known = known[state * pairs.n_actions() + pairs.action(pair).index()];
            match ends.unknown() {
                Some(unknown) if state < ends.n_clusters && !is_known => {
                    builder.push_row([(i64::from(unknown.0), 1.0)].into_iter())?;
                }
                _ if seen.is_empty() => builder.push_row([(state as i64, 1.0)].into_iter())?,
                _ => builder.push_row(seen.iter().map(|&next| (next as i64, times[next] as f64 / total as f64)))?,
            }
        }
        seen.into_iter().for_each(|next| times[next] = 0);
    }
    builder.finish()
}

fn features(spec: &Spec, encoder: &Encoder, pairs: &Pairs, ends: Ends) -> Result<(Features, Vec<String>)> {
    match spec.reward.features {
        RewardFeatures::Indicators => {
            let (k, n_actions) = (ends.n_clusters, pairs.n_actions());
            let n_features = k + n_actions;
            let (mut row_start, mut feature, mut value) = (vec![0], Vec::new(), Vec::new());
            for pair in 0..pairs.len() {
                let state = pairs.state(pair).index();
                if state < k {
                    feature.extend([state as u32, (k + pairs.action(pair).index()) as u32]);
                    value.extend([1.0, 1.0]);
                } else if ends.unknown().is_some_and(|unknown| unknown.index() == state) {
                    feature.extend(0..n_features as u32);
                    value.extend(std::iter::repeat_n(-1.0, n_features));
                }
                row_start.push(feature.len());
            }
            let rows = SparseRows::new(n_features, row_start, feature, value)?;
            let states = (0..k).map(|state| format!("state {state}"));
            let names = states.chain(encoder.actions.names()).collect();
            Ok((Features::per_pair(pairs, rows)?, names))
        }
        RewardFeatures::Centroids => {
            let width = encoder.measurements.len();
            let n_features = width + usize::from(spec.outcome.is_some());
            let mut values = vec![0.0; ends.n_states() * n_features];
            for (row, centroid) in values.chunks_exact_mut(n_features).zip(encoder.centroids.rows()) {
                for ((x, y), measurement) in row.iter_mut().zip(centroid).zip(encoder.measurements.iter()) {
                    let weight = if measurement.weight > 0.0 { measurement.weight } else { 1.0 };
                    *x = (y / weight).clamp(-CLIP, CLIP) / CLIP;
                }
            }
            if spec.outcome.is_some() {
                values[ends.of(Some(true)).index() * n_features + width] = -0.5;
                values[ends.of(Some(false)).index() * n_features + width] = 0.5;
            }
            if let Some(unknown) = ends.unknown() {
                values[unknown.index() * n_features..].fill(-1.0);
            }
            let names = encoder.measurements.iter().map(Measurement::name);
            let names = names.chain(spec.outcome.is_some().then(|| "outcome".to_owned())).collect();
            Ok((Features::per_state(ends.n_states(), n_features, values)?, names))
        }
    }
}
