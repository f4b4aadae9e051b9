//! How likely demonstrated choices are to somebody who plans softly: dynamic discrete choice (Rust 1987), or maximum causal entropy
//! (Ziebart, Bagnell and Dey 2010).
//!
//! ```text
//! Q_c(s, a) = f(c)·φ(s, a) + γ Σ P_c(s′ | s, a) V_c(s′),    V_c(s) = log Σ_a exp Q_c(s, a),    π_c(a | s) = exp(Q_c(s, a) − V_c(s))
//! ```
//!
//! The rewards are not normalised: their length is the inverse temperature, and is estimated with their direction. From trajectories
//! the term of a demonstration is −Σ log P(a | s) over its decisions, with P = (1 − ε)π + ε/|A(s)| where somebody lapses with
//! probability ε. From feature expectations it is the dual of matching them, V_c(ξ) − f(c)·μ*, which for exact ones is the expected
//! discounted sum of −log π along the expert's way. Gradients by f(c) are exact: one linear system a demonstration
//! ([`SoftMany`]). Choices are among known pairs, and states that cannot be left offer none.

use crate::contextual::Origin;
use crate::demos::Demonstrations;
use crate::error::{Error, Result};
use crate::model::{Cmdp, Context, Criterion, Dynamics, Features, Mdp};
use crate::optim::dot;
use crate::plan::{SOFT_LANES, SoftBlock, SoftMany, SoftPlanner, evaluate};
use rayon::prelude::*;
use std::sync::Mutex;

/// Bytes of values that may be kept from one evaluation to the next.
const MEMORY_BYTES: usize = 512 << 20;

/// Demonstrated choices, prepared for any rewards.
pub struct Choices {
    model: Cmdp,
    contexts: Vec<Context>,
    evidence: Vec<Evidence>,
    left_out: f64,
    noisy: bool,
}

/// What a demonstration says.
pub(super) enum Evidence {
    /// How often which pair was taken.
    Actions(Vec<Decision>),
    /// What an expert's way adds up to from a start.
    Expectations { start: Vec<(usize, f64)>, mu: Vec<f64> },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    pub(super) state: usize,
    pub(super) pair: usize,
    pub(super) count: f64,
}

/// Values and visits of the last evaluation of each demonstration, to start the next from.
pub struct Warm(Vec<Mutex<Near>>);

#[derive(Default)]
struct Near {
    values: Vec<f64>,
    visits: Vec<f64>,
}

/// How well plans are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As far as double precision goes, for fits to many digits.
    Exact,
    /// Far beyond what data can tell.
    Full,
    /// To a part in ten thousand, for comparisons that need no more.
    Rough,
}

impl Warm {
    /// The values of a demonstration, where there are some.
    pub(super) fn values(&self, index: usize) -> Option<Vec<f64>> {
        let own = self.0[index].lock().ok()?;
        (!own.values.is_empty()).then(|| own.values.clone())
    }
}

impl Precision {
    pub(super) fn tolerance(self) -> f64 {
        match self {
            Precision::Exact => 1e-12,
            Precision::Full => 1e-9,
            Precision::Rough => 1e-4,
        }
    }
}

/// What one demonstration says about rewards.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Term {
    /// −log-likelihood, or the dual.
    pub value: f64,
    /// Its gradient by the reward weights of the context.
    pub gradient: Vec<f64>,
    /// Its derivative by the logit of ε.
    pub by_lapses: f64,
    /// π, 1/|A(s)| and the number of decisions of every kind: all that matters for ε.
    pub chances: Vec<[f64; 3]>,
    /// Decisions for which the likeliest action was taken; one of several equally likely counts in part.
    pub agreement: f64,
    /// The effective number of decisions: each counts as (1 − Σ π²)/(1 − 1/|A(s)|), one where all actions are as likely, nothing where one
    /// is certain.
    pub effective: f64,
    /// Sweeps that it took.
    pub sweeps: usize,
}

impl Choices {
    /// From single actions where they are known and no estimator of feature expectations was chosen, else from feature expectations.
    /// Actions that are not known are left out.
    pub fn new(model: &Cmdp, data: &Demonstrations) -> Result<Self> {
        let restricted = model.restricted(&choices_of(model))?;
        let from_actions = (0..data.len()).any(|i| uses_actions(data, i));
        let decisions = match from_actions {
            true => Some(data.actions().decisions(model, true)?),
            false => None,
        };
        let evidence = (0..data.len())
            .map(|i| match &decisions {
                Some(decisions) if uses_actions(data, i) => {
                    let own = decisions.of_demonstration(i).iter().filter_map(|&(pair, count)| {
                        let state = model.pairs().state(pair).index();
                        let pair = restricted.pairs().find(state, model.pairs().action(pair).index())?;
                        Some(Decision { state, pair, count })
                    });
                    Ok(Evidence::Actions(own.collect()))
                }
                _ => {
                    if data.queries(&[i])[0].signed_start.is_some() {
                        return Err(Error::InvalidSetting {
                            name: "estimator",
                            value: "decisions".into(),
                            reason: "the choice model looks at single decisions itself; leave the estimator out",
                        });
                    }
                    let mu = data.expectations(i)?.to_vec();
                    let initial = match data.origin(i) {
                        Origin::Model => model.initial().to_vec(),
                        origin => origin.of(model.mdp(&data.contexts()[i])?)?.initial().to_vec(),
                    };
                    let start = initial.into_iter().enumerate().filter(|entry| entry.1 != 0.0).collect();
                    Ok(Evidence::Expectations { start, mu })
                }
            })
            .collect::<Result<_>>()?;
        let left_out = decisions.map_or(0.0, |decisions| decisions.left_out());
        let noisy = from_actions || !data.is_exact();
        Ok(Self { model: restricted, contexts: data.contexts().to_vec(), evidence, left_out, noisy })
    }

    /// The model over the pairs among which is chosen.
    pub fn model(&self) -> &Cmdp {
        &self.model
    }

    /// The process of the first context, over the pairs among which is chosen.
    pub fn first_mdp(&self) -> Result<Mdp<'_>> {
        self.model.mdp(&self.contexts[0])
    }

    pub(super) fn context(&self, index: usize) -> &Context {
        &self.contexts[index]
    }

    pub(super) fn evidence(&self, index: usize) -> &Evidence {
        &self.evidence[index]
    }

    /// Whether linear systems of the model cost next to nothing.
    pub(crate) fn is_small(&self) -> Result<bool> {
        let sums = matches!(self.model.criterion(), Criterion::Discounted { .. } | Criterion::TotalReward);
        Ok(sums && SoftMany::new(self.first_mdp()?, Precision::Rough.tolerance())?.is_small())
    }

    /// Number of demonstrations.
    pub fn len(&self) -> usize {
        self.evidence.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.evidence.is_empty()
    }

    /// Actions that are not known, and say nothing here.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// Whether they are a sample: single actions, or feature expectations that were estimated.
    pub fn is_noisy(&self) -> bool {
        self.noisy
    }

    /// Whether every demonstration is known by its actions.
    pub fn from_actions(&self) -> bool {
        self.evidence.iter().all(|evidence| matches!(evidence, Evidence::Actions(_)))
    }

    /// Decisions of a demonstration; for feature expectations the discounted number of steps that they stand for.
    pub fn decisions(&self, index: usize) -> f64 {
        match &self.evidence[index] {
            Evidence::Actions(own) => own.iter().map(|decision| decision.count).sum(),
            Evidence::Expectations { .. } => match self.model.criterion() {
                Criterion::Discounted { discount } => 1.0 / (1.0 - discount),
                Criterion::FiniteHorizon { steps, .. } => steps as f64,
                Criterion::TotalReward | Criterion::Average => 1.0,
            },
        }
    }

    /// Room for values, where it is not too much.
    pub fn warm(&self) -> Option<Warm> {
        let bytes = 16 * self.len().saturating_mul(self.model.n_states());
        (bytes <= MEMORY_BYTES).then(|| Warm((0..self.len()).map(|_| Mutex::default()).collect()))
    }

    /// The terms of some demonstrations, given the reward weights of each, row by row.
    pub fn terms(
        &self,
        indices: &[usize],
        weights: &[f64],
        lapses: f64,
        precision: Precision,
        warm: Option<&Warm>,
    ) -> Result<Vec<Term>> {
        let k = self.model.n_features();
        let rows: Vec<(usize, &[f64])> = indices.iter().copied().zip(weights.chunks_exact(k)).collect();
        if !matches!(self.model.criterion(), Criterion::Discounted { .. } | Criterion::TotalReward) {
            return rows.par_iter().map(|&(i, w)| self.term_in_stages(i, w)).collect();
        }
        let blocks = self.blocks(indices)?;
        let evaluate = |members: &Vec<usize>| {
            let own: Vec<(usize, &[f64])> = members.iter().map(|&at| rows[at]).collect();
            let terms = match own.len() {
                1 => self.block::<1>(&own, lapses, precision, warm),
                _ => self.block::<SOFT_LANES>(&own, lapses, precision, warm),
            };
            Ok(members.iter().copied().zip(terms?).collect::<Vec<_>>())
        };
        let found: Vec<Vec<(usize, Term)>> = blocks.par_iter().with_max_len(1).map(evaluate).collect::<Result<_>>()?;
        let mut terms: Vec<Term> = vec![Term::default(); rows.len()];
        found.into_iter().flatten().for_each(|(at, term)| terms[at] = term);
        Ok(terms)
    }

    /// Places of a list of demonstrations, those together that are planned for side by side.
    pub(super) fn blocks(&self, indices: &[usize]) -> Result<Vec<Vec<usize>>> {
        Ok(match self.model.dynamics() {
            Dynamics::Shared(_) => chunked((0..indices.len()).collect()),
            Dynamics::Mixture(_) => (0..indices.len()).map(|at| vec![at]).collect(),
            Dynamics::Clusters(clusters) => {
                let mut groups = vec![Vec::new(); clusters.kernels().len()];
                for (at, i) in indices.iter().enumerate() {
                    groups[clusters.assign(&self.contexts[*i])?].push(at);
                }
                groups.into_iter().flat_map(chunked).collect()
            }
        })
    }

    /// The terms of demonstrations that share a kernel.
    fn block<const L: usize>(
        &self,
        rows: &[(usize, &[f64])],
        lapses: f64,
        precision: Precision,
        warm: Option<&Warm>,
    ) -> Result<Vec<Term>> {
        let many = SoftMany::new(self.model.mdp(&self.contexts[rows[0].0])?, precision.tolerance())?;
        let weights: Vec<f64> = rows.iter().flat_map(|row| row.1).copied().collect();
        let kept = |i: usize| warm.and_then(|warm| warm.0[i].lock().ok().map(|mut own| std::mem::take(&mut *own)));
        let kept: Vec<Near> = rows.iter().map(|(i, _)| kept(*i).unwrap_or_default()).collect();
        let near = |of: fn(&Near) -> &Vec<f64>| -> Vec<Option<&[f64]>> {
            kept.iter().map(|own| Some(&of(own)[..]).filter(|own| !own.is_empty())).collect()
        };
        let first = near(|own| &own.values);
        let mut block = many.plan::<L>(&weights, &first)?;
        let mut terms = Vec::with_capacity(rows.len());
        let mut on_pairs = Vec::with_capacity(rows.len());
        for (l, (i, _)) in rows.iter().enumerate() {
            let (term, own) = match &self.evidence[*i] {
                Evidence::Actions(decisions) => self.of_actions(&block, l, decisions, lapses),
                Evidence::Expectations { start, .. } => self.of_start(&block, l, start),
            };
            terms.push(term);
            on_pairs.push(own);
        }
        let (gradients, visits) = block.pull_back_from(&on_pairs, &near(|own| &own.visits))?;
        for (l, (((i, w), gradient), visits)) in rows.iter().zip(gradients).zip(visits).enumerate() {
            terms[l].gradient = gradient;
            if let Evidence::Expectations { mu, .. } = &self.evidence[*i] {
                terms[l].value -= dot(w, mu);
                terms[l].gradient.iter_mut().zip(mu).for_each(|(g, mu)| *g -= mu);
            }
            terms[l].sweeps = block.sweeps();
            if let Some(mut own) = warm.and_then(|warm| warm.0[*i].lock().ok()) {
                *own = Near { values: block.values(l), visits };
            }
        }
        Ok(terms)
    }

    /// −Σ log P of decisions, and the weights on pairs that make its gradient.
    fn of_actions<const L: usize>(
        &self,
        block: &SoftBlock<'_, '_, L>,
        l: usize,
        decisions: &[Decision],
        lapses: f64,
    ) -> (Term, Vec<(usize, f64)>) {
        let pairs = self.model.pairs();
        let mut term = Term::default();
        let mut on_pairs = Vec::new();
        for own in decisions.chunk_by(|a, b| a.state == b.state) {
            let choices = pairs.of_state(own[0].state);
            let by_chance = 1.0 / choices.len() as f64;
            let likeliest = choices.clone().map(|pair| block.probability(l, pair)).fold(0.0, f64::max);
            let even: f64 = choices.clone().map(|pair| block.probability(l, pair).powi(2)).sum();
            let openness = ((1.0 - even) / (1.0 - by_chance)).clamp(0.0, 1.0);
            // Decisions that were meant, of all that were made here.
            let mut meant = 0.0;
            let from = on_pairs.len();
            on_pairs.extend(choices.clone().map(|pair| (pair, 0.0)));
            for decision in own {
                let log = block.log_probability(l, decision.state, decision.pair);
                let (log, share) = if lapses > 0.0 {
                    let (p, lapse) = ((1.0 - lapses) * log.exp(), lapses * by_chance);
                    term.by_lapses -= decision.count * lapses * (1.0 - lapses) * (by_chance - log.exp()) / (p + lapse);
                    ((p + lapse).ln(), p / (p + lapse))
                } else {
                    (log, 1.0)
                };
                term.value -= decision.count * log;
                term.chances.push([block.probability(l, decision.pair), by_chance, decision.count]);
                meant += decision.count * share;
                term.effective += decision.count * openness;
                on_pairs[from + decision.pair - choices.start].1 -= decision.count * share;
                if block.probability(l, decision.pair) >= likeliest * (1.0 - 1e-9) {
                    term.agreement += decision.count;
                }
            }
            for (pair, weight) in &mut on_pairs[from..] {
                *weight += meant * block.probability(l, *pair);
            }
        }
        (term, on_pairs)
    }

    /// V(ξ), and the weights on pairs that make its gradient.
    pub(super) fn of_start<const L: usize>(
        &self,
        block: &SoftBlock<'_, '_, L>,
        l: usize,
        start: &[(usize, f64)],
    ) -> (Term, Vec<(usize, f64)>) {
        let values = block.values(l);
        let value = start.iter().map(|(s, share)| share * values[*s]).sum();
        let on_pairs = start.iter().flat_map(|&(s, share)| {
            self.model.pairs().of_state(s).map(move |pair| (pair, share * block.probability(l, pair)))
        });
        let on_pairs = on_pairs.collect();
        (Term { value, ..Term::default() }, on_pairs)
    }

    /// The dual of a demonstration under a finite horizon.
    fn term_in_stages(&self, index: usize, weights: &[f64]) -> Result<Term> {
        let Evidence::Expectations { start, mu } = &self.evidence[index] else {
            return Err(Error::CriterionMismatch {
                operation: "the likelihood of single actions",
                criterion: self.model.criterion().name(),
                hint: "give feature expectations, a discount below 1, or total reward until absorption",
            });
        };
        let mut initial = vec![0.0; self.model.n_states()];
        start.iter().for_each(|(s, share)| initial[*s] = *share);
        let mdp = self.model.mdp(&self.contexts[index])?.with_initial(initial)?;
        let plan = SoftPlanner::default().plan(&mdp, &mdp.reward(weights)?)?;
        let mut gradient = evaluate::feature_expectations(&mdp, &plan.policy)?;
        gradient.iter_mut().zip(mu).for_each(|(g, mu)| *g -= mu);
        Ok(Term { value: plan.value - dot(weights, mu), gradient, sweeps: plan.certificate.sweeps, ..Term::default() })
    }
}

fn chunked(members: Vec<usize>) -> Vec<Vec<usize>> {
    members.chunks(SOFT_LANES).map(<[usize]>::to_vec).collect()
}

/// Whether a demonstration is looked at action by action.
fn uses_actions(data: &Demonstrations, index: usize) -> bool {
    !data.estimator_chosen() && !data.trajectories(index).is_empty()
}

/// The pairs among which is chosen: the known ones, and one alone where a state cannot be left and its features do not
/// depend on what is done.
pub(crate) fn choices_of(model: &Cmdp) -> Vec<bool> {
    let pairs = model.pairs();
    let mut keep: Vec<bool> = (0..pairs.len()).map(|pair| model.is_known(pair)).collect();
    for s in (0..model.n_states()).filter(|&s| model.dynamics().is_absorbing(s)) {
        let same = match model.features() {
            Features::State { .. } => true,
            Features::StateAction(rows) => {
                let first: Vec<(usize, f64)> = rows.row(pairs.of_state(s).start).collect();
                pairs.of_state(s).all(|pair| rows.row(pair).eq(first.iter().copied()))
            }
        };
        if same {
            let kept = pairs.of_state(s).find(|&pair| keep[pair]);
            pairs.of_state(s).for_each(|pair| keep[pair] = Some(pair) == kept);
        }
    }
    keep
}
