//! Scores ½‖c‖² − x·c of a row for sixteen centres at once: a *panel* holds their coordinates side by side, so that each is a
//! lane of vector registers, and a few rows share what was loaded. Neighbouring panels form a *group*; near centres stand in
//! the same group.
//!
//! Scores only rule centres out, by more than their rounding error ([`super::frame`]); they may therefore be fused on one
//! processor and not on another without changing a result.

#![allow(unsafe_code)] // reads without bounds checks and calls into target-feature functions

use super::frame::{Frame, FramedRows, Slack};
#[cfg(target_arch = "x86_64")]
use crate::simd::Simd;
use std::ops::Range;

/// Centres of a panel.
pub(super) const LANES: usize = 16;
/// Rows that are scored together: with sixteen lanes, as many sums as fit the registers.
const TILE: usize = 6;
/// No centre.
pub(super) const NONE: u32 = u32::MAX;

/// Sixteen numbers on a cache line of their own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Lanes([f32; LANES]);

/// Which centre stands where: a permutation that puts near centres into one group.
#[derive(Debug)]
pub(super) struct Layout {
    /// Centre at each position.
    centres: Vec<u32>,
    /// Position of each centre.
    positions: Vec<u32>,
    /// Centres of a group, a multiple of [`LANES`].
    group_size: usize,
}

impl Layout {
    /// `centres` of this width in no more than `max_groups` groups.
    pub(super) fn new(centres: &[f64], width: usize, max_groups: usize) -> Self {
        let n = centres.len() / width;
        let group_size = LANES * n.div_ceil(LANES).div_ceil(max_groups.max(1));
        let mut order: Vec<u32> = (0..n as u32).collect();
        bisect(&mut order, centres, width, group_size);
        let mut positions = vec![0; n];
        order.iter().enumerate().for_each(|(position, &centre)| positions[centre as usize] = position as u32);
        Self { centres: order, positions, group_size }
    }

    pub(super) fn n_groups(&self) -> usize {
        self.centres.len().div_ceil(self.group_size)
    }

    pub(super) fn group_of(&self, centre: u32) -> usize {
        self.positions[centre as usize] as usize / self.group_size
    }

    /// The centres of a group.
    pub(super) fn members(&self, group: usize) -> &[u32] {
        let start = group * self.group_size;
        &self.centres[start..(start + self.group_size).min(self.centres.len())]
    }

    /// Where in the group this centre stands; beyond its end if it is not there.
    fn place_in(&self, group: usize, centre: u32) -> usize {
        match self.positions.get(centre as usize) {
            Some(&position) => (position as usize).wrapping_sub(group * self.group_size),
            None => usize::MAX,
        }
    }
}

/// Orders the centres by halves along their main direction until a half is one group.
fn bisect(order: &mut [u32], centres: &[f64], width: usize, group_size: usize) {
    let groups = order.len().div_ceil(group_size);
    if groups < 2 {
        return;
    }
    let direction = main_direction(order, centres, width);
    let along = |&centre: &u32| -> f64 {
        let own = &centres[centre as usize * width..][..width];
        own.iter().zip(&direction).map(|(c, u)| c * u).sum()
    };
    order.sort_by_cached_key(|centre| Total(along(centre), *centre));
    let (left, right) = order.split_at_mut(groups / 2 * group_size);
    bisect(left, centres, width, group_size);
    bisect(right, centres, width, group_size);
}

/// A number with its centre, ordered.
#[derive(PartialEq)]
struct Total(f64, u32);

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The direction in which these centres spread most, roughly: a few steps of the power method.
fn main_direction(order: &[u32], centres: &[f64], width: usize) -> Vec<f64> {
    const STEPS: usize = 6;
    let own = |centre: &u32| &centres[*centre as usize * width..][..width];
    let mut mean = vec![0.0; width];
    for centre in order {
        mean.iter_mut().zip(own(centre)).for_each(|(m, c)| *m += c / order.len() as f64);
    }
    let mut direction: Vec<f64> = own(&order[0]).iter().zip(&mean).map(|(c, m)| c - m).collect();
    for _ in 0..STEPS {
        let mut next = vec![0.0; width];
        for centre in order {
            let along: f64 = own(centre).iter().zip(&mean).zip(&direction).map(|((c, m), u)| (c - m) * u).sum();
            next.iter_mut().zip(own(centre)).zip(&mean).for_each(|((y, c), m)| *y += along * (c - m));
        }
        let length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        if !(length > 0.0) {
            break;
        }
        next.iter_mut().for_each(|x| *x /= length);
        direction = next;
    }
    direction
}

/// The centres in a frame, panel by panel.
#[derive(Debug)]
pub(super) struct Panels {
    width: usize,
    panels_per_group: usize,
    /// Coordinate j of the centres of panel p at `p·width + j`.
    coordinates: Vec<Lanes>,
    /// ½‖c‖², infinite where there is no centre.
    half_squares: Vec<Lanes>,
    /// How wrong scores of each group can be.
    slacks: Vec<Slack>,
}

impl Panels {
    pub(super) fn new(layout: &Layout, frame: &Frame, centres: &[f64], width: usize) -> Self {
        let n_groups = layout.n_groups();
        let panels_per_group = layout.group_size / LANES;
        let n_panels = n_groups * panels_per_group;
        let mut coordinates = vec![Lanes([0.0; LANES]); n_panels * width];
        let mut half_squares = vec![Lanes([f32::INFINITY; LANES]); n_panels];
        let mut longest = vec![0.0_f64; n_groups];
        for (position, &centre) in layout.centres.iter().enumerate() {
            let (panel, lane) = (position / LANES, position % LANES);
            let mut square = 0.0;
            for (j, c) in frame.centre(&centres[centre as usize * width..][..width]).enumerate() {
                coordinates[panel * width + j].0[lane] = c as f32;
                square += c * c;
            }
            half_squares[panel].0[lane] = (0.5 * square) as f32;
            let group = position / layout.group_size;
            longest[group] = longest[group].max(square.sqrt());
        }
        // Rounded up, for a slack must not come out too small.
        let slacks = longest.iter().map(|&length| Slack::new(width, (length as f32).next_up())).collect();
        Self { width, panels_per_group, coordinates, half_squares, slacks }
    }

    pub(super) fn slack(&self, group: usize) -> Slack {
        self.slacks[group]
    }

    fn panels(&self, group: usize) -> Range<usize> {
        group * self.panels_per_group..(group + 1) * self.panels_per_group
    }

    /// For each listed row the least score in a group, the row's own centre left aside. `own` is by row.
    pub(super) fn least_scores(
        &self,
        layout: &Layout,
        group: usize,
        rows: &FramedRows,
        listed: &[u32],
        own: impl Fn(u32) -> u32,
        least: &mut Vec<f32>,
    ) {
        assert_eq!(rows.width, self.width);
        assert!(listed.iter().all(|&row| (row as usize) < rows.lengths.len()));
        least.clear();
        let set_aside = |row| layout.place_in(group, own(row));
        #[cfg(target_arch = "x86_64")]
        if Simd::Auto.resolve() != Simd::Portable && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: whatever is not portable has AVX2, and the processor has FMA.
            unsafe { least_scores_avx2(self, group, rows, listed, set_aside, least) };
            return;
        }
        least_scores_body::<false>(self, group, rows, listed, set_aside, least);
    }

    /// The two least scores of a row in a group, its own centre left aside, and where in the group the least stands.
    pub(super) fn two_least(&self, layout: &Layout, group: usize, row: &[f32], own: u32) -> (usize, f32, f32) {
        let aside = layout.place_in(group, own);
        let (mut place, mut first, mut second) = (0, f32::INFINITY, f32::INFINITY);
        for (number, panel) in self.panels(group).enumerate() {
            let mut scores = self.half_squares[panel].0;
            for (x, c) in row.iter().zip(&self.coordinates[panel * self.width..]) {
                scores.iter_mut().zip(&c.0).for_each(|(s, c)| *s -= x * c);
            }
            for (lane, &score) in scores.iter().enumerate().filter(|(lane, _)| number * LANES + lane != aside) {
                if score < first {
                    (second, first, place) = (first, score, number * LANES + lane);
                } else if score < second {
                    second = score;
                }
            }
        }
        (place, first, second)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn least_scores_avx2(
    panels: &Panels,
    group: usize,
    rows: &FramedRows,
    listed: &[u32],
    set_aside: impl Fn(u32) -> usize,
    least: &mut Vec<f32>,
) {
    least_scores_body::<true>(panels, group, rows, listed, set_aside, least);
}

#[inline(always)]
fn least_scores_body<const FUSED: bool>(
    panels: &Panels,
    group: usize,
    rows: &FramedRows,
    listed: &[u32],
    set_aside: impl Fn(u32) -> usize,
    least: &mut Vec<f32>,
) {
    let (tiles, rest) = listed.as_chunks::<TILE>();
    for tile in tiles {
        least.extend(tile_least::<FUSED, TILE>(panels, group, rows, tile, &set_aside));
    }
    for &row in rest {
        least.extend(tile_least::<FUSED, 1>(panels, group, rows, &[row], &set_aside));
    }
}

#[inline(always)]
fn tile_least<const FUSED: bool, const R: usize>(
    panels: &Panels,
    group: usize,
    rows: &FramedRows,
    tile: &[u32; R],
    set_aside: &impl Fn(u32) -> usize,
) -> [f32; R] {
    let width = panels.width;
    let starts: [usize; R] = std::array::from_fn(|r| tile[r] as usize * width);
    let aside: [usize; R] = std::array::from_fn(|r| set_aside(tile[r]));
    let mut least = [[f32::INFINITY; LANES]; R];
    for (number, panel) in panels.panels(group).enumerate() {
        let mut scores = [panels.half_squares[panel].0; R];
        for (j, c) in panels.coordinates[panel * width..][..width].iter().enumerate() {
            for r in 0..R {
                // SAFETY: the caller has checked that every listed row exists, and j is below their width.
                let x = -unsafe { *rows.values.get_unchecked(starts[r] + j) };
                for l in 0..LANES {
                    scores[r][l] = if FUSED { x.mul_add(c.0[l], scores[r][l]) } else { scores[r][l] + x * c.0[l] };
                }
            }
        }
        for r in 0..R {
            // Compared lane by lane, for an index known only at run time would push the scores out of the registers.
            let lane = aside[r].wrapping_sub(number * LANES) as u32;
            for l in 0..LANES {
                let score = if l as u32 == lane { f32::INFINITY } else { scores[r][l] };
                least[r][l] = if score < least[r][l] { score } else { least[r][l] };
            }
        }
    }
    std::array::from_fn(|r| {
        let mut lanes = least[r];
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = if lanes[l + half] < lanes[l] { lanes[l + half] } else { lanes[l] };
            }
            half /= 2;
        }
        lanes[0]
    })
}
