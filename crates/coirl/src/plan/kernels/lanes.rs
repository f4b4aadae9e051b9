//! Passes over one kernel for many rewards or policies at once: each is a lane of a SIMD register, all lanes share the kernel's entries.
//!
//! The bodies are plain loops over arrays of lanes, compiled once per instruction set and chosen at run time. No fused
//! multiply-add is used and each lane sums in a fixed order, so every instruction set gives the same bits.

#![allow(unsafe_code)] // unchecked gathers, calls into target-feature functions and loads of whole registers

use crate::model::Kernel;
use crate::plan::kernels::real::Real;
use crate::simd::Simd;
use std::mem::transmute;

/// `L` numbers side by side, one per reward, on a cache line of their own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes<T, const L: usize>(pub(crate) [T; L]);

impl<T: Real, const L: usize> Lanes<T, L> {
    pub(crate) const ZERO: Self = Lanes([T::ZERO; L]);
}

/// Work that is compiled once per instruction set.
pub(crate) trait LaneWork: Sized {
    type Output;

    /// The work in plain code; to be inlined always, or it is compiled for the least of all processors.
    fn body(self) -> Self::Output;

    /// # Safety
    /// The processor must have AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(self) -> Self::Output {
        self.body()
    }

    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(self) -> Self::Output {
        self.body()
    }

    /// The work, with the instructions that may be used and that this processor has.
    fn run(self, simd: Simd) -> Self::Output {
        match simd.resolve() {
            // SAFETY: `resolve` names an instruction set only where the processor has it.
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => unsafe { self.avx512() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => unsafe { self.avx2() },
            _ => self.body(),
        }
    }
}

/// Least and largest number of each lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneChange<T, const L: usize> {
    pub(crate) lo: [T; L],
    pub(crate) hi: [T; L],
}

impl<T: Real, const L: usize> LaneChange<T, L> {
    pub(crate) const NONE: Self = Self { lo: [T::HIGHEST; L], hi: [T::LOWEST; L] };

    pub(crate) fn mid(&self, l: usize) -> T {
        T::HALF * (self.lo[l] + self.hi[l])
    }

    pub(crate) fn half_span(&self, l: usize) -> T {
        T::HALF * (self.hi[l] - self.lo[l])
    }

    #[inline(always)]
    pub(crate) fn with(self, x: [T; L]) -> Self {
        Self { lo: smaller(self.lo, x), hi: larger(self.hi, x) }
    }
}

/// One backup of all lanes: `out = max over rows of r + γ P v − shift`; the change is measured before the shift.
pub(crate) struct LaneBackup<'a, T, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: T,
    /// Per state, or per row.
    pub(crate) reward: &'a [Lanes<T, L>],
    pub(crate) reward_per_row: bool,
    /// Taken off every new value, to keep them near zero.
    pub(crate) shift: [T; L],
    pub(crate) v: &'a [Lanes<T, L>],
    pub(crate) out: &'a mut [Lanes<T, L>],
    /// Where wanted, the first best row of each state, lane after lane.
    pub(crate) chosen: Option<&'a mut [[u32; L]]>,
}

impl<T: Real, const L: usize> LaneWork for LaneBackup<'_, T, L> {
    type Output = LaneChange<T, L>;

    #[inline(always)]
    fn body(self) -> LaneChange<T, L> {
        let (n_states, n_rows) = (self.kernel.n_states(), self.kernel.n_rows());
        assert!(self.v.len() == n_states && self.out.len() == n_states);
        assert_eq!(self.reward.len(), if self.reward_per_row { n_rows } else { n_states });
        assert!(self.chosen.as_ref().is_none_or(|chosen| chosen.len() == n_states));
        match (self.reward_per_row, self.chosen.is_some()) {
            (false, false) => self.backup::<false, false>(),
            (false, true) => self.backup::<false, true>(),
            (true, false) => self.backup::<true, false>(),
            (true, true) => self.backup::<true, true>(),
        }
    }
}

impl<T: Real, const L: usize> LaneBackup<'_, T, L> {
    #[inline(always)]
    fn backup<const PER_ROW: bool, const CHOOSE: bool>(self) -> LaneChange<T, L> {
        let LaneBackup { kernel, gamma, reward, shift, v, out, mut chosen, .. } = self;
        let (state_rows, rows) = (&kernel.layout().state_rows[..], Rows::of(kernel));
        // Everything that lives across states is a value of its own: lanes behind a reference become masked stores.
        let mut change = LaneChange::NONE;
        for s in 0..v.len() {
            let (first, end) = (state_rows[s] as usize, state_rows[s + 1] as usize);
            let mut best = [T::LOWEST; L];
            let mut pick = [0_u64; L];
            for row in first..end {
                // SAFETY: the row is one of a state, and the length of `v` was compared.
                let expected = unsafe { rows.expected(row, v) };
                // A reward of the state adds the same to all of its rows, so it can wait; a choice looks at sums as they are rounded.
                let q = match (PER_ROW, CHOOSE) {
                    (false, false) => expected,
                    _ => backed_up(&reward[if PER_ROW { row } else { s }].0, gamma, expected),
                };
                if CHOOSE {
                    for l in 0..L {
                        pick[l] = if q[l] > best[l] { row as u64 } else { pick[l] };
                    }
                }
                best = larger(best, q);
            }
            let value = if PER_ROW || CHOOSE { best } else { backed_up(&reward[s].0, gamma, best) };
            change = change.with(minus(value, v[s].0));
            out[s].0 = minus(value, shift);
            if let (true, Some(chosen)) = (CHOOSE, &mut chosen) {
                chosen[s] = pick.map(|row| row as u32);
            }
        }
        change
    }
}

/// The least and the largest Σ p·x over all rows.
pub(crate) struct LaneRange<'a, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) x: &'a [Lanes<f32, L>],
}

impl<const L: usize> LaneWork for LaneRange<'_, L> {
    type Output = LaneChange<f32, L>;

    #[inline(always)]
    fn body(self) -> LaneChange<f32, L> {
        let Self { kernel, x } = self;
        assert_eq!(x.len(), kernel.n_states());
        let rows = Rows::of(kernel);
        let mut range = LaneChange::NONE;
        for row in 0..kernel.n_rows() {
            // SAFETY: the length of `x` was compared.
            range = range.with(unsafe { rows.expected(row, x) });
        }
        range
    }
}

#[inline(always)]
fn backed_up<T: Real, const L: usize>(reward: &[T; L], gamma: T, expected: [T; L]) -> [T; L] {
    std::array::from_fn(|l| reward[l] + gamma * expected[l])
}

#[inline(always)]
pub(crate) fn minus<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| a[l] - b[l])
}

#[inline(always)]
pub(crate) fn larger<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| if b[l] > a[l] { b[l] } else { a[l] })
}

#[inline(always)]
fn smaller<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| if b[l] < a[l] { b[l] } else { a[l] })
}

#[inline(always)]
fn plus<T: Real, const L: usize>(a: [T; L], b: [T; L]) -> [T; L] {
    std::array::from_fn(|l| a[l] + b[l])
}

/// The rows of a kernel, in one precision.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    start: &'a [usize],
    next: &'a [u32],
    p: &'a [T],
}

impl<'a, T: Real> Rows<'a, T> {
    pub(crate) fn of(kernel: &'a Kernel) -> Self {
        let layout = kernel.layout();
        Self { start: &layout.row_start, next: &layout.next, p: T::probabilities(kernel) }
    }

    /// Σ p·v over the entries of a row, in two interleaved partial sums per lane.
    ///
    /// # Safety
    /// The row must be one of the kernel's, and `v` have a number per state.
    #[inline(always)]
    pub(crate) unsafe fn expected<const L: usize>(self, row: usize, v: &[Lanes<T, L>]) -> [T; L] {
        // SAFETY: row starts ascend to the number of entries, of which each has a probability, and successors are states.
        unsafe {
            let (from, to) = (*self.start.get_unchecked(row), *self.start.get_unchecked(row + 1));
            let scaled = |e: usize| -> [T; L] {
                let p = *self.p.get_unchecked(e);
                let v = &v.get_unchecked(*self.next.get_unchecked(e) as usize).0;
                std::array::from_fn(|l| p * v[l])
            };
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
}

/// What the last pass over a block finds: the policy of each lane, with what its certificate needs.
pub(crate) struct LaneChoice<const L: usize> {
    /// The chosen pair of each state, lane after lane.
    pub(crate) chosen: Vec<[u32; L]>,
    /// The value of the chosen pair, r + γ P v.
    pub(crate) values: Vec<Lanes<f64, L>>,
    /// Least and largest (best q − v) of all states; after a look ahead, those of its averages over rows, for which the same bounds hold.
    pub(crate) backup: LaneChange<f64, L>,
    /// Least and largest (chosen q − v) of all states.
    pub(crate) own: LaneChange<f64, L>,
    /// max over states of (best q − chosen q).
    pub(crate) gap: [f64; L],
}

/// The last pass of exact planning: in each state and lane the lowest action whose q is within the lane's `tie` of the best. Returns
/// the largest |q| of each lane as well.
pub(crate) struct LaneTies<'a, const L: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: f64,
    pub(crate) reward: PairReward<'a, L>,
    pub(crate) tie: [f64; L],
    pub(crate) v: &'a [Lanes<f64, L>],
}

/// Rewards of a block, per state or per pair.
#[derive(Clone, Copy)]
pub(crate) enum PairReward<'a, const L: usize> {
    State(&'a [Lanes<f64, L>]),
    Pair(&'a [Lanes<f64, L>]),
}

impl<const L: usize> LaneWork for LaneTies<'_, L> {
    type Output = (LaneChoice<L>, [f64; L]);

    #[inline(always)]
    fn body(self) -> Self::Output {
        let Self { kernel, gamma, reward, tie, v } = self;
        assert_eq!(v.len(), kernel.n_states());
        let (layout, rows) = (kernel.layout(), Rows::of(kernel));
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
                // SAFETY: the row is one of a state, and the length of `v` was compared.
                let expected = unsafe { rows.expected(row, v) };
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
        let choice = LaneChoice {
            chosen,
            values,
            backup: LaneChange { lo, hi },
            own: LaneChange { lo: own_lo, hi: own_hi },
            gap,
        };
        (choice, std::array::from_fn(|l| if most[l] > -least[l] { most[l] } else { -least[l] }))
    }
}

/// `out[s][l] = Σ_j features[s][j] · weights[j][l]`: the rewards of a block from dense state features.
pub(crate) struct LaneRewards<'a, const L: usize> {
    pub(crate) features: &'a [f64],
    pub(crate) weights: &'a [[f64; L]],
    pub(crate) out: &'a mut [Lanes<f64, L>],
}

impl<const L: usize> LaneWork for LaneRewards<'_, L> {
    type Output = ();

    #[inline(always)]
    fn body(self) {
        assert_eq!(self.features.len(), self.weights.len() * self.out.len());
        for (row, sums) in self.features.chunks_exact(self.weights.len()).zip(self.out) {
            let mut total = [0.0; L];
            for (x, w) in row.iter().zip(self.weights) {
                for l in 0..L {
                    total[l] += x * w[l];
                }
            }
            sums.0 = total;
        }
    }
}

/// Where a target state is entered from: two entries of the kernel, seen from their end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalPair {
    /// The states that are left and which of their rows lead here: a state's number, shifted by as many bits as hold the row's.
    pub(crate) codes: [u32; 2],
    pub(crate) p: [f32; 2],
}

/// What a step of many policies starts from.
pub(crate) trait PullSource {
    /// Which policies take the rows of two arrivals: bit `l` stands for lane `l` and the first, bit `16 + l` for the second.
    fn taken(&mut self, two: usize, codes: [u32; 2]) -> u32;

    /// The mass at a state, in every lane.
    fn at(&self, state: usize) -> [f32; 16];
}

/// One distribution for all policies, before their first step. Which rows are taken is looked up, and noted for the steps to come.
pub(crate) struct PullStart<'a> {
    pub(crate) x: &'a [f32],
    /// By code; bit `l` tells whether the policy of lane `l` takes a row.
    pub(crate) masks: &'a [u16],
    pub(crate) taken: &'a mut [u32],
}

impl PullSource for PullStart<'_> {
    #[inline(always)]
    fn taken(&mut self, two: usize, codes: [u32; 2]) -> u32 {
        let [first, second] = codes.map(|code| u32::from(self.masks[code as usize]));
        self.taken[two] = first | second << 16;
        self.taken[two]
    }

    #[inline(always)]
    fn at(&self, state: usize) -> [f32; 16] {
        [self.x[state]; 16]
    }
}

/// A distribution per policy.
pub(crate) struct PullLanes<'a> {
    pub(crate) x: &'a [Lanes<f32, 16>],
    pub(crate) taken: &'a [u32],
}

impl PullSource for PullLanes<'_> {
    #[inline(always)]
    fn taken(&mut self, two: usize, _: [u32; 2]) -> u32 {
        self.taken[two]
    }

    #[inline(always)]
    fn at(&self, state: usize) -> [f32; 16] {
        self.x[state].0
    }
}

/// One step of the distributions of sixteen policies over one kernel, each a lane: `out = γ Pᵀ x` with the rows that each policy takes,
/// and `sum` with `out` added. Gives ‖out − γ x‖₁.
///
/// Pulling reads each source once per entry and writes each target once; pushing would read and write targets all over.
pub(crate) struct LanePull<'a, S> {
    /// The arrivals at state `s` are `start[s]..start[s + 1]`.
    pub(crate) start: &'a [usize],
    pub(crate) arrivals: &'a [ArrivalPair],
    /// Bits of a code that number the row.
    pub(crate) row_bits: u32,
    pub(crate) gamma: f32,
    pub(crate) source: S,
    pub(crate) sum: &'a mut [Lanes<f32, 16>],
    pub(crate) out: &'a mut [Lanes<f32, 16>],
}

impl<S: PullSource> LanePull<'_, S> {
    /// The step, with what adds p·x to the lanes whose bit is set.
    #[inline(always)]
    fn step(self, add: impl Fn([f32; 16], f32, [f32; 16], u32) -> [f32; 16]) -> [f32; 16] {
        let LanePull { start, arrivals, row_bits, gamma, mut source, sum, out } = self;
        let mut defect = [0.0; 16];
        for s in 0..out.len() {
            let (mut first, mut second) = ([0.0; 16], [0.0; 16]);
            for two in start[s]..start[s + 1] {
                let ArrivalPair { codes, p } = arrivals[two];
                let taken = source.taken(two, codes);
                let sources = codes.map(|code| (code >> row_bits) as usize);
                first = add(first, p[0], source.at(sources[0]), taken);
                second = add(second, p[1], source.at(sources[1]), taken >> 16);
            }
            let new = plus(first, second).map(|x| gamma * x);
            let old = source.at(s);
            defect = std::array::from_fn(|l| defect[l] + (new[l] - gamma * old[l]).abs());
            sum[s].0 = plus(sum[s].0, new);
            out[s].0 = new;
        }
        defect
    }
}

/// Compilers find the masked multiplication by luck only, so it is written by hand.
impl<S: PullSource> LaneWork for LanePull<'_, S> {
    type Output = [f32; 16];

    #[inline(always)]
    fn body(self) -> [f32; 16] {
        // Without branches: a bit becomes a whole lane of bits.
        let kept =
            |x: f32, taken: u32, l: usize| f32::from_bits(x.to_bits() & ((taken << (31 - l)) as i32 >> 31) as u32);
        self.step(|sum, p, x, taken| std::array::from_fn(|l| sum[l] + kept(p * x[l], taken, l)))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(self) -> [f32; 16] {
        use std::arch::x86_64::*;
        // SAFETY: sixteen numbers are one register.
        let register = |x: [f32; 16]| unsafe { transmute::<[f32; 16], __m512>(x) };
        self.step(|sum, p, x, taken| {
            let kept = _mm512_maskz_mul_ps(taken as u16, _mm512_set1_ps(p), register(x));
            // SAFETY: as above.
            unsafe { transmute::<__m512, [f32; 16]>(_mm512_add_ps(register(sum), kept)) }
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(self) -> [f32; 16] {
        use std::arch::x86_64::*;
        let lane = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
        let half = |sum: __m256, p: __m256, x: __m256, taken: u32| {
            let keep = _mm256_srai_epi32::<31>(_mm256_sllv_epi32(_mm256_set1_epi32(taken as i32), lane));
            _mm256_add_ps(sum, _mm256_and_ps(_mm256_mul_ps(p, x), _mm256_castsi256_ps(keep)))
        };
        // SAFETY: sixteen numbers are two registers.
        let registers = |x: [f32; 16]| unsafe { transmute::<[f32; 16], [__m256; 2]>(x) };
        self.step(|sum, p, x, taken| {
            let (p, [low, high], [x, y]) = (_mm256_set1_ps(p), registers(sum), registers(x));
            // SAFETY: as above.
            unsafe { transmute::<[__m256; 2], [f32; 16]>([half(low, p, x, taken), half(high, p, y, taken >> 8)]) }
        })
    }
}

/// Σ_s (a[s] + scale · b[s]) φ_j(s) for every feature and lane.
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

impl<const L: usize> LaneWork for LaneContraction<'_, L> {
    type Output = Vec<[f64; L]>;

    #[inline(always)]
    fn body(self) -> Vec<[f64; L]> {
        /// States whose features stay near while all lanes and features are summed.
        const NEAR: usize = 64;
        const { assert!(L.is_multiple_of(8), "lanes are taken eight at a time") };
        let LaneContraction { features, n_features, states, a, b, scale } = self;
        let mut totals = vec![[0.0; L]; n_features];
        for ((states, a), b) in states.chunks(NEAR).zip(a.chunks(NEAR)).zip(b.chunks(NEAR)) {
            // As many lanes at a time as a register holds.
            for part in (0..L).step_by(8) {
                let mut weights = [[0.0; 8]; NEAR];
                for ((weight, a), b) in weights.iter_mut().zip(a).zip(b) {
                    *weight = std::array::from_fn(|l| f64::from(a.0[part + l]) + scale * f64::from(b.0[part + l]));
                }
                let mut done = 0;
                while done < n_features {
                    let (features, totals) = (&features[done..], &mut totals[done..]);
                    done += match n_features - done {
                        ..4 => add_weighted::<1, L>(features, n_features, states, &weights, totals, part),
                        _ => add_weighted::<4, L>(features, n_features, states, &weights, totals, part),
                    };
                }
            }
        }
        totals
    }
}

/// Adds Σ_s weight(s) φ_j(s) of the first `J` features, at most four, to their totals, in eight lanes from `part` on. Returns `J`.
#[inline(always)]
fn add_weighted<const J: usize, const L: usize>(
    features: &[f64],
    n_features: usize,
    states: &[u32],
    weights: &[[f64; 8]],
    totals: &mut [[f64; L]],
    part: usize,
) -> usize {
    let mut sums = [[0.0; 8]; 4];
    (0..J).for_each(|j| sums[j].copy_from_slice(&totals[j][part..part + 8]));
    // Each sum a value of its own, to stay in a register while the states go by.
    let [mut first, mut second, mut third, mut fourth] = sums;
    for (&s, weight) in states.iter().zip(weights) {
        let row = &features[s as usize * n_features..][..J];
        first = plus_scaled(first, row[0], weight);
        if J > 1 {
            second = plus_scaled(second, row[1], weight);
            third = plus_scaled(third, row[2], weight);
            fourth = plus_scaled(fourth, row[3], weight);
        }
    }
    let sums = [first, second, third, fourth];
    (0..J).for_each(|j| totals[j][part..part + 8].copy_from_slice(&sums[j]));
    J
}

#[inline(always)]
fn plus_scaled(sum: [f64; 8], x: f64, weight: &[f64; 8]) -> [f64; 8] {
    std::array::from_fn(|l| sum[l] + x * weight[l])
}
