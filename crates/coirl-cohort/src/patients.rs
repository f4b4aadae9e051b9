//! Patients of a table: numbered densely, and dealt into folds. Whatever is held out or resampled is a whole patient, because
//! the steps of one are not independent.

use coirl::random::stream;
use rand::seq::SliceRandom;

/// The place of each number among the distinct ones in rising order, and how many there are.
pub(crate) fn dense(numbers: &[u64]) -> (Vec<usize>, usize) {
    let mut distinct = numbers.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let place = |number: &u64| distinct.partition_point(|other| other < number);
    (numbers.iter().map(place).collect(), distinct.len())
}

/// A fold per patient, at random and as even as can be.
pub(crate) fn folds(n_patients: usize, n_folds: usize, seed: u64) -> Vec<usize> {
    let mut fold: Vec<usize> = (0..n_patients).map(|i| i % n_folds.max(1)).collect();
    fold.shuffle(&mut stream(seed, "folds of patients", 0));
    fold
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patients_keep_their_number_and_folds_are_even() {
        assert_eq!(dense(&[70, 7, 70, 9]), (vec![2, 0, 2, 1], 3));
        let fold = folds(11, 3, 5);
        let mut sizes = [0; 3];
        fold.iter().for_each(|&f| sizes[f] += 1);
        sizes.sort_unstable();
        assert_eq!(sizes, [3, 4, 4]);
        assert_ne!(fold, folds(11, 3, 6));
    }
}
