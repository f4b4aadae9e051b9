//! Actions that patients of the other folds took in the state of each step.

use super::Record;
use std::collections::HashMap;

/// Row-major [step, action]. Cost: steps × actions.
pub(super) fn state_counts(record: &Record, fold_of_steps: &[usize]) -> Vec<f64> {
    let n = record.n_actions();
    let all = record.pair_counts();
    let pair = |step: usize| record.states()[step] as usize * n + record.actions()[step] as usize;
    let mut own: HashMap<(usize, usize), u32> = HashMap::new();
    (0..record.n_steps()).for_each(|step| *own.entry((fold_of_steps[step], pair(step))).or_default() += 1);
    let mut counts = Vec::with_capacity(record.n_steps() * n);
    for step in 0..record.n_steps() {
        let first = record.states()[step] as usize * n;
        let others = |pair: usize| all[pair] - own.get(&(fold_of_steps[step], pair)).copied().unwrap_or(0);
        counts.extend((first..first + n).map(|pair| f64::from(others(pair))));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::Episode;
    use super::*;

    #[test]
    fn a_fold_is_not_among_its_own_predictors() {
        let stay = |patient, states: &[u32], actions: &[u32]| Episode {
            patient,
            states: states.to_vec(),
            actions: actions.to_vec(),
            rewards: vec![0.0; states.len()],
        };
        let stays = vec![stay(8, &[0, 0, 1], &[1, 0, 1]), stay(3, &[0, 1], &[1, 0]), stay(8, &[0], &[1])];
        let record = Record::new(2, 2, 1.0, stays).unwrap_or_else(|e| panic!("{e}"));
        let expected = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [0.0, 1.0], [0.0, 1.0]];
        assert_eq!(state_counts(&record, &[1, 1, 1, 0, 0, 1]), expected.concat());
    }
}
