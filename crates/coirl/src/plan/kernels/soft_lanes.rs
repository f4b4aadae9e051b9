//! Passes of soft planning over one kernel for several rewards at once, each a lane: the soft backup, a sweep under its policy, and a
//! push of visits along that policy.
//!
//! Lanes never mix and sums have a fixed order, so that a reward gets the same bits whatever its neighbours. The exponential is a
//! polynomial of our own: the same bits on every machine, and whole registers at a time.

#![allow(unsafe_code)] // unchecked gathers

use crate::model::Kernel;
use crate::plan::kernels::lanes::{LaneChange, LaneWork, Lanes, Rows, larger, minus};
use crate::plan::kernels::real::Real;

/// exp(x) for x ≤ 0, to about an ulp; zero below the smallest normal number.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    const LOG2_E: f64 = std::f64::consts::LOG2_E;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// Adding this leaves the nearest whole number in the last bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    let bounded = if x > -708.0 { x } else { -708.0 };
    let shifted = bounded * LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = (bounded - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's series to the thirteenth power: |r| ≤ ln 2 / 2 leaves 4e-18.
    let mut sum = 1.0 / 6_227_020_800.0;
    for inverse in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum * r + inverse;
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    if x > -708.0 { sum * power } else { 0.0 }
}

/// Rewards of a block in lanes: per state, or per pair.
#[derive(Debug, Clone)]
pub(crate) enum SoftReward<const L: usize> {
    State(Vec<Lanes<f64, L>>),
    Pair(Vec<Lanes<f64, L>>),
}

/// Q(s, a) = R + γ Σ P v, V(s) = log Σ exp Q and π = exp(Q − V), of all lanes.
pub(crate) struct SoftBackup<'a, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: f64,
    pub(crate) reward: &'a SoftReward<L>,
    /// States whose value is zero, whatever is done there.
    pub(crate) ended: &'a [bool],
    pub(crate) v: &'a [Lanes<f64, L>],
    /// Tv.
    pub(crate) out: &'a mut [Lanes<f64, L>],
    /// π of every pair.
    pub(crate) policy: &'a mut [Lanes<f64, L>],
    /// Σ π of the pairs that share a row; zero where no lane takes it with more than `negligible` probability.
    pub(crate) row_share: &'a mut [Lanes<f64, L>],
    pub(crate) negligible: f64,
}

impl<const L: usize> LaneWork for SoftBackup<'_, L> {
    type Output = LaneChange<f64, L>;

    #[inline(always)]
    fn body(self) -> LaneChange<f64, L> {
        let Self { kernel, gamma, reward, ended, v, out, policy, row_share, negligible } = self;
        let (layout, rows, pairs) = (kernel.layout(), Rows::of(kernel), kernel.pairs());
        assert!(v.len() == kernel.n_states() && out.len() == v.len() && ended.len() == v.len());
        assert!(policy.len() == pairs.len() && row_share.len() == kernel.n_rows());
        let mut change = LaneChange::NONE;
        let mut expected: Vec<Lanes<f64, L>> = Vec::new();
        for s in 0..v.len() {
            let (first, end) = (layout.state_rows[s] as usize, layout.state_rows[s + 1] as usize);
            let range = pairs.of_state(s);
            expected.clear();
            for row in first..end {
                // SAFETY: the row is one of a state, and the length of `v` was compared.
                expected.push(Lanes(unsafe { rows.expected(row, v) }));
                row_share[row] = Lanes::ZERO;
            }
            let mut best = [f64::NEG_INFINITY; L];
            for pair in range.clone() {
                let later = &expected[layout.pair_row[pair] as usize - first].0;
                let own = match reward {
                    SoftReward::State(rewards) => &rewards[s].0,
                    SoftReward::Pair(rewards) => &rewards[pair].0,
                };
                let q: [f64; L] = std::array::from_fn(|l| own[l] + gamma * later[l]);
                best = larger(best, q);
                policy[pair].0 = q;
            }
            let mut value = best;
            if ended[s] {
                let share = 1.0 / range.len() as f64;
                range.for_each(|pair| policy[pair].0 = [share; L]);
                value = [0.0; L];
            } else if range.len() == 1 {
                policy[range.start].0 = [1.0; L];
                row_share[first].0 = [1.0; L];
            } else {
                let mut sum = [0.0; L];
                for pair in range.clone() {
                    let q = policy[pair].0;
                    let weight: [f64; L] = std::array::from_fn(|l| exp_of_negative(q[l] - best[l]));
                    sum = std::array::from_fn(|l| sum[l] + weight[l]);
                    policy[pair].0 = weight;
                }
                let inverse: [f64; L] = std::array::from_fn(|l| 1.0 / sum[l]);
                for pair in range {
                    let probability: [f64; L] = std::array::from_fn(|l| policy[pair].0[l] * inverse[l]);
                    policy[pair].0 = probability;
                    let share = &mut row_share[layout.pair_row[pair] as usize].0;
                    *share = std::array::from_fn(|l| share[l] + probability[l]);
                }
                for share in &mut row_share[first..end] {
                    let most = share.0.iter().fold(0.0, |most: f64, x| if *x > most { *x } else { most });
                    if most <= negligible {
                        *share = Lanes::ZERO;
                    }
                }
                value = std::array::from_fn(|l| best[l] + sum[l].ln());
            }
            change = change.with(minus(value, v[s].0));
            out[s].0 = value;
        }
        change
    }
}

/// out = γ P_π x.
pub(crate) struct SoftSweep<'a, T, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: T,
    pub(crate) row_share: &'a [Lanes<T, L>],
    /// Rows that any lane takes.
    pub(crate) taken: &'a [bool],
    pub(crate) x: &'a [Lanes<T, L>],
    pub(crate) out: &'a mut [Lanes<T, L>],
}

impl<T: Real, const L: usize> LaneWork for SoftSweep<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn body(self) {
        let Self { kernel, gamma, row_share, taken, x, out } = self;
        let (layout, rows) = (kernel.layout(), Rows::of(kernel));
        assert!(x.len() == kernel.n_states() && out.len() == x.len());
        assert!(row_share.len() == kernel.n_rows() && taken.len() == row_share.len());
        // Sums are stored before they are weighted: kept in registers, lanes are shuffled instead of added.
        let mut expected: Vec<Lanes<T, L>> = Vec::new();
        for s in 0..x.len() {
            let of_state = layout.state_rows[s] as usize..layout.state_rows[s + 1] as usize;
            expected.clear();
            for row in of_state.clone().filter(|&row| taken[row]) {
                // SAFETY: the row is one of a state, and the length of `x` was compared.
                expected.push(Lanes(unsafe { rows.expected(row, x) }));
            }
            let to = &mut out[s].0;
            *to = [T::ZERO; L];
            for (row, expected) in of_state.filter(|&row| taken[row]).zip(&expected) {
                let share = &row_share[row].0;
                *to = std::array::from_fn(|l| to[l] + share[l] * expected.0[l]);
            }
            *to = std::array::from_fn(|l| gamma * to[l]);
        }
    }
}

/// out = γ P_πᵀ x.
pub(crate) struct SoftPush<'a, T, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: T,
    pub(crate) row_share: &'a [Lanes<T, L>],
    /// Rows that any lane takes.
    pub(crate) taken: &'a [bool],
    pub(crate) x: &'a [Lanes<T, L>],
    pub(crate) out: &'a mut [Lanes<T, L>],
}

impl<T: Real, const L: usize> LaneWork for SoftPush<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn body(self) {
        let Self { kernel, gamma, row_share, taken, x, out } = self;
        let layout = kernel.layout();
        let probabilities = T::probabilities(kernel);
        assert!(x.len() == kernel.n_states() && out.len() == x.len());
        assert!(row_share.len() == kernel.n_rows() && taken.len() == row_share.len());
        out.fill(Lanes::ZERO);
        for s in 0..x.len() {
            for row in layout.state_rows[s] as usize..layout.state_rows[s + 1] as usize {
                if !taken[row] {
                    continue;
                }
                let flow: [T; L] = std::array::from_fn(|l| gamma * (row_share[row].0[l] * x[s].0[l]));
                for entry in layout.row_start[row]..layout.row_start[row + 1] {
                    // SAFETY: row starts ascend to the number of entries, and successors are states.
                    let (p, to) = unsafe {
                        let next = *layout.next.get_unchecked(entry) as usize;
                        (*probabilities.get_unchecked(entry), &mut out.get_unchecked_mut(next).0)
                    };
                    *to = std::array::from_fn(|l| to[l] + p * flow[l]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::exp_of_negative;

    #[test]
    fn the_exponential_is_right_to_an_ulp_or_two() {
        for i in 0..200_000 {
            let x = -f64::from(i) * 0.0037;
            let (found, expected) = (exp_of_negative(x), x.exp());
            let near = (found - expected).abs() <= 4.0 * f64::EPSILON * expected;
            assert!(near || (x <= -708.0 && found == 0.0), "{x}: {found} and {expected}");
        }
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!(exp_of_negative(f64::NEG_INFINITY), 0.0);
    }
}
