//! A small k-means: k-means++ seeding and Lloyd's iteration, capped. Costs n·k·d per iteration; for contexts, which are
//! few and short.

use crate::error::{Error, Result};
use crate::model::Context;
use crate::random::stream;
use rand::RngExt;

/// Lloyd's iteration ends by itself; this is for the case that it takes long.
const MAX_ITERATIONS: usize = 200;

/// `number` centres of the contexts, each the mean of those nearest to it.
pub(crate) fn centres(contexts: &[Context], number: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
    if number == 0 || number > contexts.len() {
        let expected = format!("between 1 and {}, the number of distinct contexts", contexts.len());
        return Err(Error::shape("clusters", expected, number));
    }
    let mut centres = spread(contexts, number, seed);
    let mut assigned: Vec<usize> = Vec::new();
    for _ in 0..MAX_ITERATIONS {
        let nearest: Vec<usize> = contexts.iter().map(|c| nearest(c.values(), &centres).0).collect();
        if nearest == assigned {
            break;
        }
        assigned = nearest;
        for (cluster, centre) in centres.iter_mut().enumerate() {
            let members = || (0..contexts.len()).filter(|&i| assigned[i] == cluster).map(|i| contexts[i].values());
            let n = members().count();
            // A centre that lost its members stays where it is.
            if n > 0 {
                centre.iter_mut().enumerate().for_each(|(j, x)| *x = members().map(|c| c[j]).sum::<f64>() / n as f64);
            }
        }
    }
    Ok(centres)
}

/// k-means++: each new centre is a context drawn with probability proportional to its squared distance from those chosen.
fn spread(contexts: &[Context], number: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = stream(seed, "centres of contexts", 0);
    let mut centres = vec![contexts[rng.random_range(0..contexts.len())].values().to_vec()];
    while centres.len() < number {
        let distances: Vec<f64> = contexts.iter().map(|c| nearest(c.values(), &centres).1).collect();
        let mut quantile = rng.random::<f64>() * distances.iter().sum::<f64>();
        let mut chosen = 0;
        // Contexts are distinct, so fewer centres than contexts leave one at a distance; rounding may pass the last.
        for (i, &distance) in distances.iter().enumerate().filter(|entry| *entry.1 > 0.0) {
            chosen = i;
            if quantile < distance {
                break;
            }
            quantile -= distance;
        }
        centres.push(contexts[chosen].values().to_vec());
    }
    centres
}

/// The nearest centre, the first of equals, and its squared distance.
fn nearest(context: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let distance = |centre: &Vec<f64>| context.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let pick = |best: (usize, f64), new: (usize, f64)| if new.1 < best.1 { new } else { best };
    centres.iter().map(distance).enumerate().fold((0, f64::INFINITY), pick)
}
