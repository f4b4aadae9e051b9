//! Backups for many rewards at once: each reward is a lane of a SIMD register, all lanes share the kernel's entries.
//!
//! The bodies are plain loops over arrays of lanes, compiled once per instruction set and chosen at run time. No fused
//! multiply-add is used and each lane sums in the order of the entries, so every instruction set gives the same bits.

#![allow(unsafe_code)] // unchecked gathers and calls into target-feature functions

use super::real::Real;
use crate::model::Kernel;
use crate::simd::Simd;

/// `L` numbers side by side, one per reward, on a cache line of their own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes<T, const L: usize>(pub(crate) [T; L]);

impl<T: Real, const L: usize> Lanes<T, L> {
    pub(crate) const ZERO: Self = Lanes([T::ZERO; L]);
}

/// Least and largest change of each lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneChange<T, const L: usize> {
    pub(crate) lo: [T; L],
    pub(crate) hi: [T; L],
}

/// One backup of all lanes.
pub(crate) struct LaneBackup<'a, T, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    /// The kernel's probabilities in the precision of the lanes.
    pub(crate) p: &'a [T],
    pub(crate) gamma: T,
    /// Per state, or per row.
    pub(crate) reward: &'a [Lanes<T, L>],
    pub(crate) reward_per_row: bool,
    /// Taken off every new value, to keep them near zero.
    pub(crate) shift: [T; L],
    pub(crate) v: &'a [Lanes<T, L>],
    pub(crate) out: &'a mut [Lanes<T, L>],
}

/// `out = max over rows of r + γ P v − shift` for every lane; the change is measured before the shift.
pub(crate) fn improve_lanes<T: Real, const L: usize>(simd: Simd, backup: LaneBackup<'_, T, L>) -> LaneChange<T, L> {
    let (n_states, n_rows) = (backup.kernel.n_states(), backup.kernel.n_rows());
    assert!(backup.v.len() == n_states && backup.out.len() == n_states);
    assert_eq!(backup.reward.len(), if backup.reward_per_row { n_rows } else { n_states });
    assert_eq!(backup.p.len(), backup.kernel.n_entries());
    match (simd.resolve(), backup.reward_per_row) {
        // SAFETY: `resolve` names an instruction set only where the processor has it.
        #[cfg(target_arch = "x86_64")]
        (Simd::Avx512, false) => unsafe { improve_avx512::<T, L, false>(backup) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (Simd::Avx512, true) => unsafe { improve_avx512::<T, L, true>(backup) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (Simd::Avx2, false) => unsafe { improve_avx2::<T, L, false>(backup) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (Simd::Avx2, true) => unsafe { improve_avx2::<T, L, true>(backup) },
        (_, false) => improve_body::<T, L, false>(backup),
        (_, true) => improve_body::<T, L, true>(backup),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn improve_avx512<T: Real, const L: usize, const PER_ROW: bool>(backup: LaneBackup<'_, T, L>) -> LaneChange<T, L> {
    improve_body::<T, L, PER_ROW>(backup)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn improve_avx2<T: Real, const L: usize, const PER_ROW: bool>(backup: LaneBackup<'_, T, L>) -> LaneChange<T, L> {
    improve_body::<T, L, PER_ROW>(backup)
}

#[inline(always)]
fn improve_body<T: Real, const L: usize, const PER_ROW: bool>(backup: LaneBackup<'_, T, L>) -> LaneChange<T, L> {
    let LaneBackup { kernel, p, gamma, reward, shift, v, out, .. } = backup;
    let layout = kernel.layout();
    let (starts, next) = (&layout.row_start[..], &layout.next[..]);
    // Everything that lives across states is a value of its own: lanes behind a reference become masked stores.
    let (mut lo, mut hi) = ([T::HIGHEST; L], [T::LOWEST; L]);
    for s in 0..v.len() {
        let (first, end) = (layout.state_rows[s] as usize, layout.state_rows[s + 1] as usize);
        let mut best = [T::LOWEST; L];
        for row in first..end {
            // SAFETY: a kernel's row starts ascend to the number of entries, and its successors are states; the lengths
            // of `p` and `v` were compared with the kernel's.
            let expected =
                unsafe { expected_lanes(next, p, *starts.get_unchecked(row), *starts.get_unchecked(row + 1), v) };
            let q = if PER_ROW { backed_up(&reward[row].0, gamma, expected) } else { expected };
            best = larger(best, q);
        }
        let value = if PER_ROW { best } else { backed_up(&reward[s].0, gamma, best) };
        let difference = minus(value, v[s].0);
        lo = smaller(lo, difference);
        hi = larger(hi, difference);
        out[s].0 = minus(value, shift);
    }
    LaneChange { lo, hi }
}

#[inline(always)]
fn backed_up<T: Real, const L: usize>(reward: &[T; L], gamma: T, expected: [T; L]) -> [T; L] {
    std::array::from_fn(|l| reward[l] + gamma * expected[l])
}

#[inline(always)]
fn minus<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| a[l] - b[l])
}

#[inline(always)]
fn larger<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| if b[l] > a[l] { b[l] } else { a[l] })
}

#[inline(always)]
fn smaller<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| if b[l] < a[l] { b[l] } else { a[l] })
}

/// Σ p·v over the entries `from..to`, in two interleaved partial sums per lane.
///
/// # Safety
/// `from..to` must lie within `next` and `p`, and the entries of `next` below `v.len()`.
#[inline(always)]
unsafe fn expected_lanes<T: Real, const L: usize>(
    next: &[u32],
    p: &[T],
    from: usize,
    to: usize,
    v: &[Lanes<T, L>],
) -> [T; L] {
    // SAFETY: the caller promises the bounds.
    unsafe {
        let scaled = |e: usize| -> [T; L] {
            let p = *p.get_unchecked(e);
            let v = &v.get_unchecked(*next.get_unchecked(e) as usize).0;
            std::array::from_fn(|l| p * v[l])
        };
        let plus = |a: [T; L], b: [T; L]| -> [T; L] { std::array::from_fn(|l| a[l] + b[l]) };
        if to == from + 1 {
            return scaled(from);
        }
        let mut even = [T::ZERO; L];
        let mut odd = [T::ZERO; L];
        let mut e = from;
        while e + 2 <= to {
            even = plus(even, scaled(e));
            odd = plus(odd, scaled(e + 1));
            e += 2;
        }
        if e < to {
            even = plus(even, scaled(e));
        }
        plus(even, odd)
    }
}

/// The last pass over a block: the policy of each lane, with what its certificate needs.
pub(crate) struct LaneChoice<const L: usize> {
    /// The chosen pair of each state, lane after lane.
    pub(crate) chosen: Vec<[u32; L]>,
    /// The value of the chosen pair, r + γ P v.
    pub(crate) values: Vec<Lanes<f64, L>>,
    /// max and min over states of (best q − v).
    pub(crate) backup: LaneChange<f64, L>,
    /// max and min over states of (chosen q − v).
    pub(crate) own: LaneChange<f64, L>,
    /// max over states of (best q − chosen q).
    pub(crate) gap: [f64; L],
    /// Largest |q| over all pairs.
    pub(crate) largest: [f64; L],
}

/// Chooses in each state and lane the lowest action whose q is within the lane's `tie` of the best.
pub(crate) fn choose_lanes<const L: usize>(
    simd: Simd,
    kernel: &Kernel,
    gamma: f64,
    pair_reward: PairReward<'_, L>,
    tie: [f64; L],
    v: &[Lanes<f64, L>],
) -> LaneChoice<L> {
    assert_eq!(v.len(), kernel.n_states());
    match simd.resolve() {
        // SAFETY: `resolve` names an instruction set only where the processor has it.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512 => unsafe { choose_avx512(kernel, gamma, pair_reward, tie, v) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => unsafe { choose_avx2(kernel, gamma, pair_reward, tie, v) },
        _ => choose_body(kernel, gamma, pair_reward, tie, v),
    }
}

/// Rewards of a block, per state or per pair.
#[derive(Clone, Copy)]
pub(crate) enum PairReward<'a, const L: usize> {
    State(&'a [Lanes<f64, L>]),
    Pair(&'a [Lanes<f64, L>]),
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn choose_avx512<const L: usize>(
    kernel: &Kernel,
    gamma: f64,
    reward: PairReward<'_, L>,
    tie: [f64; L],
    v: &[Lanes<f64, L>],
) -> LaneChoice<L> {
    choose_body(kernel, gamma, reward, tie, v)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn choose_avx2<const L: usize>(
    kernel: &Kernel,
    gamma: f64,
    reward: PairReward<'_, L>,
    tie: [f64; L],
    v: &[Lanes<f64, L>],
) -> LaneChoice<L> {
    choose_body(kernel, gamma, reward, tie, v)
}

#[inline(always)]
fn choose_body<const L: usize>(
    kernel: &Kernel,
    gamma: f64,
    reward: PairReward<'_, L>,
    tie: [f64; L],
    v: &[Lanes<f64, L>],
) -> LaneChoice<L> {
    let layout = kernel.layout();
    let mut chosen = Vec::with_capacity(v.len());
    let mut values = Vec::with_capacity(v.len());
    let (mut lo, mut hi) = ([f64::INFINITY; L], [f64::NEG_INFINITY; L]);
    let (mut own_lo, mut own_hi) = (lo, hi);
    let (mut gap, mut most, mut least) = ([0.0; L], [0.0; L], [0.0; L]);
    let mut q: Vec<Lanes<f64, L>> = Vec::new();
    for s in 0..v.len() {
        let first_row = layout.state_rows[s] as usize;
        let range = kernel.pairs().of_state(s);
        q.clear();
        let mut best = [f64::NEG_INFINITY; L];
        for row in first_row..layout.state_rows[s + 1] as usize {
            // SAFETY: as in `improve_body`.
            let expected = unsafe {
                expected_lanes(
                    &layout.next,
                    kernel.probabilities(),
                    layout.row_start[row],
                    layout.row_start[row + 1],
                    v,
                )
            };
            let value = match reward {
                PairReward::State(values) => backed_up(&values[s].0, gamma, expected),
                PairReward::Pair(_) => std::array::from_fn(|l| gamma * expected[l]),
            };
            q.push(Lanes(value));
        }
        // Pairs share rows; only where rewards depend on the pair do their q differ.
        let q_of = |pair: usize| -> [f64; L] {
            let q = q[layout.pair_row[pair] as usize - first_row].0;
            match reward {
                PairReward::State(_) => q,
                PairReward::Pair(values) => std::array::from_fn(|l| values[pair].0[l] + q[l]),
            }
        };
        for pair in range.clone() {
            let q = q_of(pair);
            best = larger(best, q);
            most = larger(most, q);
            least = smaller(least, q);
        }
        let bar = minus(best, tie);
        // From the last pair to the first, so that the lowest that qualifies is written last. Pairs are counted in
        // floating point to keep all lanes of one width.
        let mut pick = [0.0; L];
        let mut value = [0.0; L];
        for pair in range.rev() {
            let q = q_of(pair);
            let number = f64::from(pair as u32);
            pick = std::array::from_fn(|l| if q[l] >= bar[l] { number } else { pick[l] });
            value = std::array::from_fn(|l| if q[l] >= bar[l] { q[l] } else { value[l] });
        }
        let (up, own) = (minus(best, v[s].0), minus(value, v[s].0));
        lo = smaller(lo, up);
        hi = larger(hi, up);
        own_lo = smaller(own_lo, own);
        own_hi = larger(own_hi, own);
        gap = larger(gap, minus(best, value));
        chosen.push(pick.map(|number| number as u32));
        values.push(Lanes(value));
    }
    LaneChoice {
        chosen,
        values,
        backup: LaneChange { lo, hi },
        own: LaneChange { lo: own_lo, hi: own_hi },
        gap,
        largest: std::array::from_fn(|l| if most[l] > -least[l] { most[l] } else { -least[l] }),
    }
}

/// `out[s][l] = Σ_j features[s][j] · weights[j][l]`: the rewards of a block from dense state features.
pub(crate) fn reward_lanes<const L: usize>(
    simd: Simd,
    features: &[f64],
    weights: &[[f64; L]],
    out: &mut [Lanes<f64, L>],
) {
    assert_eq!(features.len(), weights.len() * out.len());
    match simd.resolve() {
        // SAFETY: `resolve` names an instruction set only where the processor has it.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512 => unsafe { reward_avx512(features, weights, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => unsafe { reward_avx2(features, weights, out) },
        _ => reward_body(features, weights, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn reward_avx512<const L: usize>(features: &[f64], weights: &[[f64; L]], out: &mut [Lanes<f64, L>]) {
    reward_body(features, weights, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn reward_avx2<const L: usize>(features: &[f64], weights: &[[f64; L]], out: &mut [Lanes<f64, L>]) {
    reward_body(features, weights, out);
}

#[inline(always)]
fn reward_body<const L: usize>(features: &[f64], weights: &[[f64; L]], out: &mut [Lanes<f64, L>]) {
    for (row, sums) in features.chunks_exact(weights.len()).zip(out) {
        let mut total = [0.0; L];
        for (x, w) in row.iter().zip(weights) {
            for l in 0..L {
                total[l] += x * w[l];
            }
        }
        sums.0 = total;
    }
}

/// Where a target state is entered from: one entry of the kernel, seen from its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// The state that is left and which of its rows leads here: the state's number, shifted by a number of bits that hold the row's.
    pub(crate) code: u32,
    pub(crate) p: f32,
}

/// One step of the distributions of many policies over one kernel, each a lane.
pub(crate) struct LanePull<'a, const L: usize> {
    /// The arrivals at state `s` are `start[s]..start[s + 1]`.
    pub(crate) start: &'a [usize],
    pub(crate) arrivals: &'a [Arrival],
    /// Bits of a code that number the row.
    pub(crate) row_bits: u32,
    /// By code; bit `l` tells whether the policy of lane `l` takes that row.
    pub(crate) masks: &'a [u32],
    pub(crate) gamma: f32,
    pub(crate) x: &'a [Lanes<f32, L>],
    pub(crate) out: &'a mut [Lanes<f32, L>],
}

/// `out = γ Pᵀ x` for every lane with the rows that its policy takes; returns ‖out − γ x‖₁.
///
/// Pulling reads each source once per entry and writes each target once; pushing would read and write targets all over.
pub(crate) fn pull_lanes<const L: usize>(simd: Simd, pull: LanePull<'_, L>) -> [f32; L] {
    const { assert!(L <= 32, "a mask has 32 bits") };
    assert!(pull.start.len() == pull.out.len() + 1 && pull.x.len() == pull.out.len());
    match simd.resolve() {
        // SAFETY: `resolve` names an instruction set only where the processor has it.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512 => unsafe { pull_avx512(pull) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => unsafe { pull_avx2(pull) },
        _ => pull_body(pull),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn pull_avx512<const L: usize>(pull: LanePull<'_, L>) -> [f32; L] {
    pull_body(pull)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pull_avx2<const L: usize>(pull: LanePull<'_, L>) -> [f32; L] {
    pull_body(pull)
}

#[inline(always)]
fn pull_body<const L: usize>(pull: LanePull<'_, L>) -> [f32; L] {
    let LanePull { start, arrivals, row_bits, masks, gamma, x, out } = pull;
    let mut defect = [0.0_f32; L];
    for s in 0..x.len() {
        let (mut even, mut odd) = ([0.0_f32; L], [0.0_f32; L]);
        let mut pairs = arrivals[start[s]..start[s + 1]].chunks_exact(2);
        for pair in &mut pairs {
            let (first, second) = (arriving(&pair[0], row_bits, masks, x), arriving(&pair[1], row_bits, masks, x));
            even = std::array::from_fn(|l| even[l] + first[l]);
            odd = std::array::from_fn(|l| odd[l] + second[l]);
        }
        for last in pairs.remainder() {
            let last = arriving(last, row_bits, masks, x);
            even = std::array::from_fn(|l| even[l] + last[l]);
        }
        let old = x[s].0;
        let new: [f32; L] = std::array::from_fn(|l| gamma * (even[l] + odd[l]));
        defect = std::array::from_fn(|l| defect[l] + (new[l] - gamma * old[l]).abs());
        out[s].0 = new;
    }
    defect
}

#[inline(always)]
fn arriving<const L: usize>(arrival: &Arrival, row_bits: u32, masks: &[u32], x: &[Lanes<f32, L>]) -> [f32; L] {
    let mask = masks[arrival.code as usize];
    let x = &x[(arrival.code >> row_bits) as usize].0;
    // Without branches: a mask's bit becomes a whole lane of bits.
    let keep: [u32; L] = std::array::from_fn(|l| ((mask << (31 - l)) as i32 >> 31) as u32);
    std::array::from_fn(|l| f32::from_bits((arrival.p * x[l]).to_bits() & keep[l]))
}

/// Sums of features over states, weighted by two vectors of lanes.
pub(crate) struct LaneContraction<'a, const L: usize> {
    /// Dense rows of the features of all states.
    pub(crate) features: &'a [f64],
    pub(crate) n_features: usize,
    /// The states that the lanes are about.
    pub(crate) states: &'a [u32],
    pub(crate) a: &'a [Lanes<f32, L>],
    pub(crate) b: &'a [Lanes<f32, L>],
    pub(crate) scale: f64,
}

/// Σ_s (a[s] + scale · b[s]) φ_j(s) for every feature and lane.
pub(crate) fn contract_lanes<const L: usize>(simd: Simd, sums: LaneContraction<'_, L>) -> Vec<[f64; L]> {
    const { assert!(L.is_multiple_of(8), "lanes are taken eight at a time") };
    match simd.resolve() {
        // SAFETY: `resolve` names an instruction set only where the processor has it.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512 => unsafe { contract_avx512(sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => unsafe { contract_avx2(sums) },
        _ => contract_body(sums),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn contract_avx512<const L: usize>(sums: LaneContraction<'_, L>) -> Vec<[f64; L]> {
    contract_body(sums)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn contract_avx2<const L: usize>(sums: LaneContraction<'_, L>) -> Vec<[f64; L]> {
    contract_body(sums)
}

#[inline(always)]
fn contract_body<const L: usize>(sums: LaneContraction<'_, L>) -> Vec<[f64; L]> {
    let LaneContraction { features, n_features, states, a, b, scale } = sums;
    let mut totals = vec![[0.0; L]; n_features];
    // As many lanes at a time as a register holds.
    for part in 0..L / 8 {
        let mut weights = Vec::with_capacity(states.len());
        for (a, b) in a.iter().zip(b) {
            let weight = |l: usize| f64::from(a.0[part * 8 + l]) + scale * f64::from(b.0[part * 8 + l]);
            weights.push(Lanes::<f64, 8>(std::array::from_fn(weight)));
        }
        let mut done = 0;
        while done < n_features {
            let sums = match n_features - done {
                ..4 => weighted_sums::<1>(&features[done..], n_features, states, &weights).to_vec(),
                _ => weighted_sums::<4>(&features[done..], n_features, states, &weights).to_vec(),
            };
            for sum in sums {
                totals[done][part * 8..][..8].copy_from_slice(&sum);
                done += 1;
            }
        }
    }
    totals
}

/// Σ_s weight(s) φ_j(s) of the first `J` features, at most four.
#[inline(always)]
fn weighted_sums<const J: usize>(
    features: &[f64],
    n_features: usize,
    states: &[u32],
    weights: &[Lanes<f64, 8>],
) -> [[f64; 8]; J] {
    // Each sum a value of its own, to stay in a register while the states go by.
    let [mut first, mut second, mut third, mut fourth] = [[0.0; 8]; 4];
    for (&s, weight) in states.iter().zip(weights) {
        let row = &features[s as usize * n_features..][..J];
        first = plus_scaled(first, row[0], &weight.0);
        if J > 1 {
            second = plus_scaled(second, row[1], &weight.0);
            third = plus_scaled(third, row[2], &weight.0);
            fourth = plus_scaled(fourth, row[3], &weight.0);
        }
    }
    let sums = [first, second, third, fourth];
    std::array::from_fn(|j| sums[j])
}

#[inline(always)]
fn plus_scaled(sum: [f64; 8], x: f64, weight: &[f64; 8]) -> [f64; 8] {
    std::array::from_fn(|l| sum[l] + x * weight[l])
}
