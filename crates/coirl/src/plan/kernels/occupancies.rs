//! Feature expectations of many policies over one kernel, each a lane of a SIMD register.
//!
//! All policies share the kernel's entries, seen from the states that they lead to; a mask per row says which policies take it. Each
//! lane stops on its own account, so what a policy gets does not depend on its neighbours.

use crate::model::{Features, Mdp};
use crate::plan::kernels::lanes::{
    ArrivalPair, LaneContraction, LanePull, LaneWork, Lanes, PullLanes, PullSource, PullStart,
};
use crate::plan::kernels::linear::SLOW_SWEEP;
use crate::simd::Simd;

/// Policies side by side.
pub(in crate::plan) const LANES: usize = 16;
/// Terms of the series before a lane is given up.
const MAX_TERMS: usize = 200;

/// Masks that may be held for every row of the kernel.
const MASKS_PER_ROW: usize = 8;

/// The kernel of a model seen from its targets, among the states that any policy reaches from the start.
#[derive(Debug)]
pub(in crate::plan) struct Arrivals {
    /// The states that are reached, ascending.
    states: Vec<u32>,
    start: Vec<usize>,
    arrivals: Vec<ArrivalPair>,
    row_bits: u32,
}

/// What the steps of the lanes write to.
#[derive(Debug, Default)]
pub(in crate::plan) struct LaneBuffers {
    x: Vec<Lanes<f32, LANES>>,
    next: Vec<Lanes<f32, LANES>>,
    sum: Vec<Lanes<f32, LANES>>,
    start: Vec<f32>,
    masks: Vec<u16>,
    taken: Vec<u32>,
}

impl Arrivals {
    /// Nothing where few states have most of the rows: every state gets as many masks as the one with the most.
    pub(in crate::plan) fn new(mdp: &Mdp<'_>) -> Option<Self> {
        const UNSEEN: u32 = u32::MAX;
        let kernel = mdp.kernel();
        let layout = kernel.layout();
        let rows_of = |s: u32| layout.state_rows[s as usize] as usize..layout.state_rows[s as usize + 1] as usize;
        let mut states: Vec<u32> = (0..mdp.n_states() as u32).filter(|&s| mdp.initial()[s as usize] != 0.0).collect();
        let mut local = vec![UNSEEN; mdp.n_states()];
        states.iter().for_each(|&s| local[s as usize] = 0);
        let mut done = 0;
        while done < states.len() {
            for &next in rows_of(states[done]).flat_map(|row| kernel.row(row).0) {
                if local[next as usize] == UNSEEN {
                    local[next as usize] = 0;
                    states.push(next);
                }
            }
            done += 1;
        }
        states.sort_unstable();
        states.iter().enumerate().for_each(|(i, &s)| local[s as usize] = i as u32);
        let most = states.iter().map(|&s| rows_of(s).len()).max().unwrap_or(1);
        let masks_per_state = most.next_power_of_two();
        let n_masks = states.len().checked_mul(masks_per_state)?;
        if n_masks > MASKS_PER_ROW * kernel.n_rows() || u32::try_from(n_masks).is_err() {
            return None;
        }
        let row_bits = masks_per_state.trailing_zeros();
        // A counting sort by target; sources and rows stay in order.
        let entries = || states.iter().enumerate().flat_map(|(i, &s)| rows_of(s).map(move |row| (i as u32, row)));
        let mut start = vec![0_usize; states.len() + 1];
        for (_, row) in entries() {
            kernel.row(row).0.iter().for_each(|&next| start[local[next as usize] as usize + 1] += 1);
        }
        (0..states.len()).for_each(|i| start[i + 1] = start[i] + start[i + 1].div_ceil(2));
        let mut free: Vec<usize> = start.iter().map(|i| 2 * i).collect();
        // What is only there to make two of one comes from a state behind all others, where nobody ever is.
        let nothing = ArrivalPair { codes: [n_masks as u32; 2], p: [0.0; 2] };
        let mut arrivals = vec![nothing; start[states.len()]];
        for (from, row) in entries() {
            let own = row as u32 - layout.state_rows[states[from as usize] as usize];
            for (&next, &p) in kernel.row(row).0.iter().zip(kernel.row(row).1) {
                let at = &mut free[local[next as usize] as usize];
                let two = &mut arrivals[*at / 2];
                (two.codes[*at % 2], two.p[*at % 2]) = (from << row_bits | own, p as f32);
                *at += 1;
            }
        }
        start.push(start[states.len()]);
        Some(Self { states, start, arrivals, row_bits })
    }

    /// μ of each of at most [`LANES`] policies, given by their pairs; nothing where the series takes long. To about `tolerance`,
    /// relative to the sum of an occupancy.
    pub(in crate::plan) fn feature_expectations(
        &self,
        simd: Simd,
        mdp: &Mdp<'_>,
        policies: &[&[u32]],
        tolerance: f64,
        buffers: &mut LaneBuffers,
    ) -> Vec<Option<Vec<f64>>> {
        let kernel = mdp.kernel();
        let gamma = mdp.criterion().discount();
        let LaneBuffers { x, next, sum, start, masks, taken } = buffers;
        masks.clear();
        masks.resize((self.states.len() << self.row_bits) + 1, 0);
        for (l, chosen) in policies.iter().enumerate() {
            for (i, &s) in self.states.iter().enumerate() {
                let own = kernel.row_of(chosen[s as usize] as usize) - kernel.layout().state_rows[s as usize] as usize;
                masks[(i << self.row_bits) + own] |= 1 << l;
            }
        }
        taken.resize(self.arrivals.len(), 0);
        start.clear();
        start.extend(self.states.iter().map(|&s| mdp.initial()[s as usize] as f32));
        for lanes in [&mut *x, next, sum] {
            lanes.clear();
            lanes.extend(start.iter().map(|&x| Lanes([x; LANES])));
            lanes.push(Lanes::ZERO);
        }
        start.push(0.0);
        let n = policies.len();
        let mut found = vec![None; n];
        let mut open = vec![true; n];
        let mut last_defect = [f64::INFINITY; LANES];
        for term in 0..MAX_TERMS {
            let defect = match term {
                0 => {
                    let source = PullStart { x: start, masks, taken };
                    self.pull(simd, gamma, source, sum, next)
                }
                _ => self.pull(simd, gamma, PullLanes { x, taken }, sum, next),
            };
            // Terms that shrink by γ are what the tail formula is right for. Each further term is off by ρ times what this one is,
            // and that share of all that follows: ρ / (1 − ρ) in all, relative to what an occupancy sums to.
            let allowed: [f64; LANES] = std::array::from_fn(|l| {
                let rate = defect[l] / last_defect[l];
                tolerance * ((1.0 - rate) / rate).clamp(0.5, 4.0)
            });
            // The error of μ falls faster than that of the occupancy, but may vanish by chance while the occupancy is far off.
            let near: Vec<usize> = (0..n).filter(|&l| open[l] && defect[l] <= 100.0 * allowed[l]).collect();
            if !near.is_empty() {
                let off = self.contract(simd, mdp, policies, next, x, -gamma);
                let good: Vec<usize> =
                    near.into_iter().filter(|&l| off[l].iter().all(|e| e.abs() <= allowed[l])).collect();
                if !good.is_empty() {
                    let mut mu = self.contract(simd, mdp, policies, sum, next, gamma / (1.0 - gamma));
                    for l in good {
                        open[l] = false;
                        found[l] = Some(std::mem::take(&mut mu[l])).filter(|mu| mu.iter().all(|x| x.is_finite()));
                    }
                }
            }
            (0..n).for_each(|l| open[l] &= defect[l] <= SLOW_SWEEP * last_defect[l]);
            if !open.contains(&true) {
                break;
            }
            last_defect = defect;
            std::mem::swap(x, next);
        }
        found
    }

    fn pull(
        &self,
        simd: Simd,
        gamma: f64,
        source: impl PullSource,
        sum: &mut [Lanes<f32, LANES>],
        out: &mut [Lanes<f32, LANES>],
    ) -> [f64; LANES] {
        let Self { start, arrivals, row_bits, .. } = self;
        let pull = LanePull { start, arrivals, row_bits: *row_bits, gamma: gamma as f32, source, sum, out };
        pull.run(simd).map(f64::from)
    }

    /// Σ_s (a(s) + scale · b(s)) φ(s, π(s)) for every policy.
    fn contract(
        &self,
        simd: Simd,
        mdp: &Mdp<'_>,
        policies: &[&[u32]],
        a: &[Lanes<f32, LANES>],
        b: &[Lanes<f32, LANES>],
        scale: f64,
    ) -> Vec<Vec<f64>> {
        let n_features = mdp.features().n_features();
        match mdp.features() {
            Features::State { values, .. } => {
                let sums = LaneContraction { features: values, n_features, states: &self.states, a, b, scale };
                let sums = sums.run(simd);
                (0..policies.len()).map(|l| sums.iter().map(|sum| sum[l]).collect()).collect()
            }
            Features::StateAction(_) => {
                let lane = |(l, chosen): (usize, &&[u32])| {
                    let mut mu = vec![0.0; n_features];
                    for (i, &s) in self.states.iter().enumerate() {
                        let weight = f64::from(a[i].0[l]) + scale * f64::from(b[i].0[l]);
                        mdp.features().add_scaled(s as usize, chosen[s as usize] as usize, weight, &mut mu);
                    }
                    mu
                };
                policies.iter().enumerate().map(lane).collect()
            }
        }
    }
}
