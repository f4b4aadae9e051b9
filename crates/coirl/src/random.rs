//! Random streams: every one is derived from the user's seed by a name and a number, so that adding a stream never
//! changes another and parallel work draws the same numbers as serial work.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The stream of this name and number.
pub fn stream(seed: u64, name: &str, number: u64) -> ChaCha8Rng {
    // FNV-1a: a fixed function of the name, independent of the standard library's hasher.
    let digest = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&digest.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(number);
    rng
}

/// The outcome at this quantile; the last possible one where rounding leaves a remainder.
pub fn outcome(outcomes: impl Iterator<Item = (usize, f64)>, mut quantile: f64) -> usize {
    let mut last = 0;
    for (outcome, p) in outcomes {
        if p > 0.0 {
            last = outcome;
            if quantile < p {
                return outcome;
            }
            quantile -= p;
        }
    }
    last
}
