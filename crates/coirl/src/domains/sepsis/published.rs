//! ICU-Sepsis as published: episodes end in death or survival, survival earns one, and an inadmissible action does what an admissible
//! one does on average.

use super::data::{Data, N_ACTIONS, N_CLUSTERS, N_STATES, SURVIVAL, UNKNOWN};
use crate::error::Result;
use crate::model::{Cmdp, Criterion, Dynamics, Features, KernelBuilder, Names, Pairs};
use crate::plan::Policy;
use std::sync::Arc;

/// The published process: 716 states, the last of them the end.
pub(super) fn model(data: &Data) -> Result<Cmdp> {
    let pairs = Arc::new(Pairs::all(N_STATES, N_ACTIONS)?);
    let mut builder = KernelBuilder::new(pairs);
    let mut rows = data.rows();
    let mut mean = vec![0.0; N_STATES];
    for admissible in data.admissible.chunks_exact(N_ACTIONS) {
        let known: Vec<Vec<(usize, f64)>> =
            rows.by_ref().take(admissible.iter().filter(|x| **x).count()).map(Iterator::collect).collect();
        mean.fill(0.0);
        known.iter().flatten().for_each(|&(next, p)| mean[next] += p / known.len() as f64);
        let mut of_action = known.iter();
        for &is_known in admissible {
            match is_known.then(|| of_action.next()).flatten() {
                Some(row) => builder.push_row(row.iter().map(|&(next, p)| (next as i64, p)))?,
                None => builder.push_row(mean.iter().enumerate().map(|(next, &p)| (next as i64, p)))?,
            }
        }
    }
    for _ in N_CLUSTERS * N_ACTIONS..N_STATES * N_ACTIONS {
        builder.push_row([(UNKNOWN as i64, 1.0)].into_iter())?;
    }
    let mut survived = vec![0.0; N_STATES];
    survived[SURVIVAL] = 1.0;
    let mut initial = data.start.clone();
    initial.resize(N_STATES, 0.0);
    let features = Features::per_state(N_STATES, 1, survived)?;
    Cmdp::new(Dynamics::Shared(builder.finish()?), features, initial, Criterion::TotalReward)?.with_names(Names {
        model: "icu-sepsis".into(),
        actions: super::action_names(),
        features: vec!["survival".into()],
        contexts: Vec::new(),
    })
}

/// The clinicians' policy on the pairs that count, scaled to one; anything where nobody acts any more.
pub(super) fn clinicians(data: &Data, pairs: &Pairs, counts: impl Fn(usize, usize) -> bool) -> Result<Policy> {
    let mut shares = vec![0.0; pairs.len()];
    for s in 0..N_STATES {
        let share = |pair: usize| {
            let a = pairs.action(pair).index();
            if !counts(s, a) {
                0.0
            } else if s < N_CLUSTERS {
                data.clinicians[s * N_ACTIONS + a]
            } else {
                1.0
            }
        };
        let total: f64 = pairs.of_state(s).map(share).sum();
        pairs.of_state(s).for_each(|pair| shares[pair] = share(pair) / total);
    }
    Policy::stochastic(pairs, shares)
}
