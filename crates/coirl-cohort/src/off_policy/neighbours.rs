//! Actions that were taken where the covariates were nearest, by patients of other folds. Exact: [`KdTree`] leaves out only what is provably
//! farther. Cost: a search per step, side by side; from about twenty covariates on it comes near steps² × covariates.

use super::Record;
use super::kd_tree::KdTree;
use coirl::network::Standardisation;
use coirl::{Error, Result};
use rayon::prelude::*;

/// Row-major [step, action]: among the k nearest steps of other folds, all of them where there are fewer; the earlier step of equally near ones.
pub(super) fn neighbour_counts(record: &Record, fold_of_steps: &[usize], k: usize) -> Result<Vec<f64>> {
    let Some((width, rows)) = record.covariates() else {
        return Err(Error::NoCovariates);
    };
    if k == 0 {
        return Err(Error::InvalidSetting { name: "k", value: "0".into(), reason: "expected at least 1 neighbour" });
    }
    let rows: Vec<f64> = rows.iter().map(|&x| f64::from(x)).collect();
    let scaling = Standardisation::fitted(width, rows.chunks_exact(width).map(|row| (row, 1.0)));
    let points: Vec<f64> = rows.chunks_exact(width).flat_map(|row| scaling.of(row)).collect();
    let tree = KdTree::new(width, &points);
    let n = record.n_actions();
    let counts = |step: usize| {
        let mut row = vec![0.0; n];
        let near = tree
            .nearest(&points[step * width..(step + 1) * width], k, |other| fold_of_steps[other] != fold_of_steps[step]);
        near.into_iter().for_each(|other| row[record.actions()[other] as usize] += 1.0);
        row
    };
    let rows: Vec<Vec<f64>> = (0..record.n_steps()).into_par_iter().map(counts).collect();
    Ok(rows.concat())
}
