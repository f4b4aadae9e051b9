//! What a mapping can be seen by: the directions of W in which some policy and some demonstration differ.
//!
//! The loss depends on W only through W·(c_i ⊙ (μ^π − μ^π′)). Let M be the span of μ^π − μ^π′ over all policies, found by
//! planning for both signs of a direction: where the two values differ, the difference of the feature expectations is a new
//! direction of M, and where they do not, no policy changes that direction. k such steps settle all of it, exactly. W can
//! move freely at right angles to span{c_i ⊗ m : m ∈ M_i}; with one process for all that is span{c_i} ⊗ M.
//!
//! Cost: 2k plans per distinct process (kernel and start) that is looked at, and up to 4k(dk)² products to bring its directions together with those of the others.

use super::basis::Basis;
use crate::demos::Origin;
use crate::error::Result;
use crate::learn::Problem;
use crate::model::{Dynamics, Mdp};
use crate::optim::dot;
use crate::plan::{ManyOptions, Planner};
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::ControlFlow;

/// Features up to which the directions are computed.
const MOST_FEATURES: usize = 512;
/// Values that differ by less than this share of the largest possible one are the same to rounding.
const SAME: f64 = 1e-9;

/// The directions that matter.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// Of the contexts.
    pub(super) contexts: Basis,
    /// Of what policies can change, over all processes looked at.
    pub(super) features: Basis,
    /// Of W.
    pub(super) parameters: Basis,
    /// Whether every process was looked at; otherwise there may be more directions.
    pub(super) complete: bool,
}

impl Span {
    /// The span, where there are few enough features. Of more processes than `most` an even choice is looked at.
    pub(super) fn of(problem: &Problem<'_>, most: usize) -> Result<Option<Self>> {
        let k = problem.n_features();
        if k > MOST_FEATURES {
            return Ok(None);
        }
        let contexts = Basis::spanning((0..problem.len()).map(|i| problem.data().input(i).values()));
        let processes = processes(problem)?;
        let every = processes.len().div_ceil(most.max(1));
        let chosen: Vec<&Vec<usize>> = processes.iter().step_by(every).collect();
        let scale = problem.model().features().max_abs() * problem.horizon()?;
        let of_process = |members: &&Vec<usize>| changeable(&problem.mdp(members[0])?, SAME * scale);
        let spans: Vec<Basis> = chosen.par_iter().map(of_process).collect::<Result<_>>()?;
        let features = Basis::spanning(spans.iter().flat_map(Basis::directions).map(Vec::as_slice));
        let parameters = match &processes[..] {
            // Products of orthonormal directions are orthonormal.
            [_] => products(&contexts, &features),
            _ => {
                let of_process = |(members, span): (&&Vec<usize>, &Basis)| {
                    let own = Basis::spanning(members.iter().map(|&i| problem.data().input(i).values()));
                    products(&own, span)
                };
                let all: Vec<Basis> = chosen.iter().zip(&spans).map(of_process).collect();
                Basis::spanning(all.iter().flat_map(Basis::directions).map(Vec::as_slice))
            }
        };
        Ok(Some(Self { contexts, features, parameters, complete: every == 1 }))
    }
}

/// c ⊗ m for every pair of directions.
fn products(contexts: &Basis, features: &Basis) -> Basis {
    let product = |c: &[f64], m: &[f64]| -> Vec<f64> { c.iter().flat_map(|x| m.iter().map(move |y| x * y)).collect() };
    let mut products = Basis::default();
    for c in contexts.directions() {
        features.directions().iter().for_each(|m| products.push(product(c, m)));
    }
    products
}

/// The span of the differences of feature expectations between policies of one process.
fn changeable(mdp: &Mdp<'_>, tolerance: f64) -> Result<Basis> {
    let k = mdp.features().n_features();
    let (mut span, mut settled) = (Basis::default(), Basis::default());
    // Every round settles one direction more.
    for _ in 0..k {
        let Some(direction) = unsettled(&settled, k) else { break };
        let weights: Vec<f64> = direction.iter().copied().chain(direction.iter().map(|x| -x)).collect();
        let mut ends: Vec<Vec<f64>> = Vec::with_capacity(2);
        Planner::default().plan_many(mdp, &weights, ManyOptions::default(), |plan| {
            ends.push(plan.feature_expectations.unwrap_or_default());
            ControlFlow::Continue(())
        })?;
        let difference: Vec<f64> = match &ends[..] {
            [most, least] => most.iter().zip(least).map(|(x, y)| x - y).collect(),
            _ => vec![0.0; k],
        };
        if dot(&difference, &direction) > tolerance && span.add(&difference) {
            settled.add(&difference);
        } else {
            settled.add(&direction);
        }
    }
    Ok(span)
}

/// A unit vector at right angles to all that is settled: what is left of the coordinate with the largest remainder.
fn unsettled(settled: &Basis, k: usize) -> Option<Vec<f64>> {
    let j = (0..k).map(|j| (j, settled.share_outside(j))).reduce(|a, b| if b.1 > a.1 { b } else { a })?.0;
    let unit: Vec<f64> = (0..k).map(|i| f64::from(u8::from(i == j))).collect();
    let mut one = Basis::default();
    one.add(&settled.remainder(&unit)).then(|| one.directions()[0].clone())
}

/// Demonstrations with the same kernel, in the order of their first member.
pub(super) fn kernels(problem: &Problem<'_>) -> Result<Vec<Vec<usize>>> {
    grouped(problem, |i| kernel_key(problem, i))
}

/// Demonstrations with the same kernel and start.
fn processes(problem: &Problem<'_>) -> Result<Vec<Vec<usize>>> {
    grouped(problem, |i| Ok::<(Vec<u64>, Origin), _>((kernel_key(problem, i)?, problem.data().origin(i).clone())))
}

fn kernel_key(problem: &Problem<'_>, i: usize) -> Result<Vec<u64>> {
    Ok(match problem.model().dynamics() {
        Dynamics::Shared(_) => Vec::new(),
        Dynamics::Clusters(clusters) => vec![clusters.assign(problem.context(i))? as u64],
        Dynamics::Mixture(_) => problem.context(i).values().iter().map(|x| x.to_bits()).collect(),
    })
}

fn grouped<K: Hash + Eq>(problem: &Problem<'_>, key: impl Fn(usize) -> Result<K>) -> Result<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut number: HashMap<K, usize> = HashMap::new();
    for i in 0..problem.len() {
        let group = *number.entry(key(i)?).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(i);
    }
    Ok(groups)
}
