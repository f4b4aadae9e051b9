//! Every row's nearest centre, kept up while the centres move (yinyang k-means: Ding et al., ICML 2015).
//!
//! For a row x with centre a the assignment keeps u ≥ ‖x − a‖ and, for each group G of centres, l_G ≤ ‖x − c‖ for all c ∈ G
//! other than a. A centre that moves by δ loosens u by δ and its group's bound by no more than the group's largest δ. While
//! u < l_G no centre of G can be nearer; only the other groups are scored, sixteen centres at a time ([`super::panels`]).
//!
//! Guarantee: the centre of a row is the first minimiser of [`super::distance::nearest`] over all centres, bit for bit what
//! comparing every pair would give. All bounds are rounded to the safe side, and where scores leave two centres within
//! their rounding error of each other, the row is compared with all centres in double precision.
//!
//! Cost of a pass: n·k·d products at first, soon a few per cent of it; memory of n numbers per group.

use super::distance::{nearest, squared_distance};
use super::frame::{Frame, FramedRows};
use super::panels::{Layout, NONE, Panels};
use super::points::Points;
use rayon::prelude::*;

/// Rows that one task scores together: few enough to stay in the cache beside a group of centres.
const BLOCK: usize = 252;
/// Numbers that the bounds of all groups may take.
const MAX_BOUNDS: usize = 1 << 26;
/// Groups are no more than this: each costs a comparison per row.
const MAX_GROUPS: usize = 256;
/// More than the relative error of any two operations in single precision.
const ROUNDING: f32 = 4.0 * f32::EPSILON;
/// Beyond every distance in a frame; what a group without other centres is bounded by.
const FAR: f32 = 1e18;

fn rounded_up(x: f64) -> f32 {
    (x as f32).next_up()
}

/// Rows, their centres and what is known of the distances between them.
pub(super) struct Assignment<'p> {
    points: &'p Points,
    frame: &'p Frame,
    rows: &'p FramedRows,
    layout: Layout,
    /// Centre of each row; [`NONE`] before the first pass.
    pub(super) centre_of: Vec<u32>,
    upper: Vec<f32>,
    /// The least of the groups' bounds.
    lower: Vec<f32>,
    /// Bounds by row and group, each raised by how far its group had moved when it was found.
    group_lower: Vec<f32>,
    /// How far each group has moved in all.
    moved: Vec<f64>,
}

impl<'p> Assignment<'p> {
    /// Nothing assigned yet. The centres, row-major, decide which of them are near one another.
    pub(super) fn new(points: &'p Points, frame: &'p Frame, rows: &'p FramedRows, centres: &[f64]) -> Self {
        let n_rows = points.n_rows();
        let max_groups = (MAX_BOUNDS / n_rows).clamp(1, MAX_GROUPS);
        let layout = Layout::new(centres, points.width(), max_groups);
        let n_groups = layout.n_groups();
        Self {
            points,
            frame,
            rows,
            centre_of: vec![NONE; n_rows],
            upper: vec![f32::INFINITY; n_rows],
            lower: vec![0.0; n_rows],
            group_lower: vec![0.0; n_rows * n_groups],
            moved: vec![0.0; n_groups],
            layout,
        }
    }

    /// Loosens the bounds by how far each centre has moved.
    pub(super) fn loosen(&mut self, shifts: &[f64]) {
        let shifts: Vec<f64> = shifts.iter().map(|&shift| self.frame.length(shift)).collect();
        let mut most = 0.0_f64;
        for (group, moved) in self.moved.iter_mut().enumerate() {
            let own = self.layout.members(group).iter().map(|&centre| shifts[centre as usize]).fold(0.0, f64::max);
            *moved += own;
            most = most.max(own);
        }
        let most = rounded_up(most);
        let rows = (self.upper.par_iter_mut(), self.lower.par_iter_mut(), self.centre_of.par_iter());
        rows.into_par_iter().with_min_len(BLOCK).for_each(|(upper, lower, &centre)| {
            let own = shifts.get(centre as usize).copied().unwrap_or(f64::INFINITY);
            if own > 0.0 {
                *upper = (*upper + rounded_up(own)) * (1.0 + ROUNDING);
            }
            *lower = ((*lower - most) * (1.0 - ROUNDING)).max(0.0);
        });
    }

    /// Assigns every row to the nearest of these centres, row-major.
    pub(super) fn assign(&mut self, centres: &[f64]) {
        let (points, frame, rows, layout) = (self.points, self.frame, self.rows, &self.layout);
        let n_groups = layout.n_groups();
        let panels = Panels::new(layout, frame, centres, points.width());
        // Rounded up: what is subtracted from a bound must not be too small.
        let moved: Vec<f32> = self.moved.iter().map(|&moved| rounded_up(moved)).collect();
        let pass = Pass { points, frame, rows, layout, panels: &panels, centres, moved: &moved };
        let blocks = (
            self.centre_of.par_chunks_mut(BLOCK),
            self.upper.par_chunks_mut(BLOCK),
            self.lower.par_chunks_mut(BLOCK),
            self.group_lower.par_chunks_mut(BLOCK * n_groups),
        );
        blocks.into_par_iter().enumerate().for_each_init(
            || Scratch::new(n_groups),
            |scratch, (number, (centre_of, upper, lower, group_lower))| {
                pass.block(Block { first: number * BLOCK, centre_of, upper, lower, group_lower }, scratch);
            },
        );
    }
}

/// What all blocks of a pass read.
struct Pass<'a> {
    points: &'a Points,
    frame: &'a Frame,
    rows: &'a FramedRows,
    layout: &'a Layout,
    panels: &'a Panels,
    centres: &'a [f64],
    moved: &'a [f32],
}

/// The rows of one task.
struct Block<'b> {
    /// Number of the first row.
    first: usize,
    centre_of: &'b mut [u32],
    upper: &'b mut [f32],
    lower: &'b mut [f32],
    group_lower: &'b mut [f32],
}

/// Between which scores a row's best centre so far lies, and below which no other does.
#[derive(Clone, Copy)]
struct Contest {
    best: u32,
    best_from: f32,
    best_to: f32,
    others_from: f32,
    /// Below which no other centre of the best one's group lies.
    group_from: f32,
}

impl Contest {
    const OPEN: Self = Self {
        best: NONE,
        best_from: f32::INFINITY,
        best_to: f32::INFINITY,
        others_from: f32::INFINITY,
        group_from: f32::INFINITY,
    };
}

/// Buffers of a thread.
struct Scratch {
    /// Rows to score: up to [`BLOCK`] places per group, and how many are taken.
    listed: Vec<u32>,
    n_listed: Vec<usize>,
    /// Rows in any list, counted from the first of the block.
    contested: Vec<usize>,
    contests: [Contest; BLOCK],
    least: Vec<f32>,
}

impl Scratch {
    fn new(n_groups: usize) -> Self {
        Self {
            listed: vec![0; n_groups * BLOCK],
            n_listed: vec![0; n_groups],
            contested: Vec::with_capacity(BLOCK),
            contests: [Contest::OPEN; BLOCK],
            least: Vec::with_capacity(BLOCK),
        }
    }
}

impl Pass<'_> {
    fn block(&self, mut block: Block<'_>, scratch: &mut Scratch) {
        self.list(&mut block, scratch);
        if scratch.contested.is_empty() {
            return;
        }
        for group in 0..self.layout.n_groups() {
            self.score(group, &mut block, scratch);
        }
        for &at in &scratch.contested {
            self.decide(at, scratch.contests[at], &mut block);
        }
    }

    /// The distance that decides, in the frame.
    fn distance(&self, row: usize, centre: u32) -> f64 {
        let width = self.points.width();
        let centre = &self.centres[centre as usize * width..][..width];
        self.frame.length(squared_distance(self.points.row(row), centre).sqrt())
    }

    /// A group's bound as it is stored: with what the group has moved, rounded down by more than adding and subtracting
    /// that can round up.
    fn stored(&self, bound: f32, group: usize) -> f32 {
        (bound.min(FAR) + self.moved[group]) * (1.0 - ROUNDING)
    }

    /// The least of a row's stored bounds as they are now.
    fn least_bound(&self, stored: &[f32]) -> f32 {
        const SIDE_BY_SIDE: usize = 8;
        let (chunks, rest) = stored.as_chunks::<SIDE_BY_SIDE>();
        let (moved, moved_rest) = self.moved.as_chunks::<SIDE_BY_SIDE>();
        let mut least = [f32::INFINITY; SIDE_BY_SIDE];
        for (stored, moved) in chunks.iter().zip(moved) {
            for lane in 0..SIDE_BY_SIDE {
                let bound = stored[lane] - moved[lane];
                least[lane] = if bound < least[lane] { bound } else { least[lane] };
            }
        }
        let rest = rest.iter().zip(moved_rest).map(|(stored, moved)| stored - moved);
        least.into_iter().chain(rest).fold(f32::INFINITY, f32::min)
    }

    /// Finds the groups that may hold a nearer centre, for each row.
    fn list(&self, block: &mut Block<'_>, scratch: &mut Scratch) {
        let n_groups = self.layout.n_groups();
        scratch.n_listed.fill(0);
        scratch.contested.clear();
        for at in 0..block.centre_of.len() {
            if block.upper[at] < block.lower[at] {
                continue;
            }
            let stored = &block.group_lower[at * n_groups..(at + 1) * n_groups];
            block.lower[at] = self.least_bound(stored);
            if block.upper[at] < block.lower[at] {
                continue;
            }
            let (row, own) = (block.first + at, block.centre_of[at]);
            scratch.contests[at] = Contest::OPEN;
            if own != NONE {
                let distance = self.distance(row, own);
                block.upper[at] = rounded_up(distance) * (1.0 + ROUNDING);
                if block.upper[at] < block.lower[at] {
                    continue;
                }
                let square = self.rows.lengths[row].1;
                let score = (0.5 * (distance * distance - f64::from(square))) as f32;
                let slack = 2.0 * f32::EPSILON * (square + score.abs());
                scratch.contests[at] =
                    Contest { best: own, best_from: score - slack, best_to: score + slack, ..Contest::OPEN };
            }
            scratch.contested.push(at);
            let upper = block.upper[at];
            // Written always and counted where it holds, for whether it holds cannot be predicted.
            let groups = scratch.n_listed.iter_mut().zip(scratch.listed.chunks_exact_mut(BLOCK));
            for (((n_listed, listed), stored), moved) in groups.zip(stored).zip(self.moved) {
                listed[*n_listed] = row as u32;
                *n_listed += usize::from(!(upper < stored - moved));
            }
        }
    }

    /// Scores the rows listed for a group.
    fn score(&self, group: usize, block: &mut Block<'_>, scratch: &mut Scratch) {
        let Scratch { listed, n_listed, contests, least, .. } = scratch;
        let listed = &listed[group * BLOCK..][..n_listed[group]];
        let own = |row: u32| block.centre_of[row as usize - block.first];
        self.panels.least_scores(self.layout, group, self.rows, listed, own, least);
        let slack = self.panels.slack(group);
        let n_groups = self.layout.n_groups();
        for (&row, &score) in listed.iter().zip(least.iter()) {
            let (at, lengths) = (row as usize - block.first, self.rows.lengths[row as usize]);
            let slack = slack.of(lengths);
            block.group_lower[at * n_groups + group] = self.stored(lower_bound(lengths.1, score - slack), group);
            let contest = &mut contests[at];
            if score + slack < contest.best_to {
                let width = self.rows.width;
                let framed = &self.rows.values[row as usize * width..][..width];
                let (place, first, second) = self.panels.two_least(self.layout, group, framed, block.centre_of[at]);
                *contest = Contest {
                    best: self.layout.members(group)[place],
                    best_from: first - slack,
                    best_to: first + slack,
                    others_from: contest.others_from.min(contest.best_from).min(second - slack),
                    group_from: second - slack,
                };
            } else {
                contest.others_from = contest.others_from.min(score - slack);
            }
        }
    }

    /// Gives a row to the centre that has won, and its bounds what was learned.
    fn decide(&self, at: usize, contest: Contest, block: &mut Block<'_>) {
        let (row, n_groups) = (block.first + at, self.layout.n_groups());
        let own = block.centre_of[at];
        let bounds = &mut block.group_lower[at * n_groups..(at + 1) * n_groups];
        if !(contest.best_to < contest.others_from) {
            return self.compare_all(at, block);
        }
        if contest.best != own {
            let entered = self.layout.group_of(contest.best);
            bounds[entered] = self.stored(lower_bound(self.rows.lengths[row].1, contest.group_from), entered);
            // The centre that is left, maybe in the same group, now counts among the others.
            if own != NONE {
                let left = self.layout.group_of(own);
                let distance = block.upper[at] * (1.0 - 4.0 * ROUNDING);
                bounds[left] = bounds[left].min(self.stored(distance, left));
            }
            block.centre_of[at] = contest.best;
            block.upper[at] = rounded_up(self.distance(row, contest.best)) * (1.0 + ROUNDING);
        }
        block.lower[at] = self.least_bound(bounds);
    }

    /// Compares a row with all centres in double precision.
    fn compare_all(&self, at: usize, block: &mut Block<'_>) {
        let (row, n_groups) = (block.first + at, self.layout.n_groups());
        let best = nearest(self.points.row(row), self.centres).0 as u32;
        let bounds = &mut block.group_lower[at * n_groups..(at + 1) * n_groups];
        for (group, bound) in bounds.iter_mut().enumerate() {
            let others = self.layout.members(group).iter().filter(|&&centre| centre != best);
            let least = others.map(|&centre| self.distance(row, centre)).fold(f64::INFINITY, f64::min);
            *bound = self.stored(least as f32 * (1.0 - ROUNDING), group);
        }
        block.lower[at] = self.least_bound(bounds);
        block.centre_of[at] = best;
        block.upper[at] = rounded_up(self.distance(row, best)) * (1.0 + ROUNDING);
    }
}

/// ‖x − c‖ is at least this where ‖x‖² is `square` and the score no less than `score`.
fn lower_bound(square: f32, score: f32) -> f32 {
    let distance = (square + 2.0 * score - ROUNDING * square).max(0.0);
    distance.sqrt() * (1.0 - ROUNDING)
}
