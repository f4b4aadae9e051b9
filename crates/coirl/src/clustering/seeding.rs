//! First guesses: greedy k-means++ (Arthur and Vassilvitskii, SODA 2007, §3).
//!
//! Each new centre is a row drawn with probability proportional to D², its squared distance from the centres drawn so far; of
//! a few drawn candidates the one that lowers Σ D² most is kept, judged by a part of the rows where there are many. A row x
//! with nearest centre a keeps it beside every candidate q with ‖q − a‖ ≥ 2 D(x), so that only the rows near a candidate are
//! measured.
//!
//! Where there are many rows per centre a random sample of them is seeded from: a start need not be more exact than the
//! iteration that follows. Cost at most n·k·d·candidates, n being the rows of the sample.

use super::candidates::{CANDIDATES, measure, squared_distance};
use super::points::Points;
use crate::error::{Error, Result};
use crate::random::outcome;
use rand::{Rng, RngExt};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Rows per centre that are seeded from.
const ROWS_PER_CENTRE: usize = 400;
/// One row in so many judges the candidates, another one each time.
const JUDGES: usize = 4;
/// Of fewer rows than this every one judges.
const FEW: usize = 50_000;
/// Of fewer rows per centre as well, a part of them would say too little; and there are twice as many candidates.
const FEW_PER_CENTRE: usize = 55;
/// Rows per task.
const BLOCK: usize = 1024;

/// The first centres, row-major: `number` different rows. `scale` takes squares of differences away from overflow; `tell`
/// hears how many are drawn.
///
/// Fails where there are fewer different rows than that (rows whose squared difference vanishes in single precision count
/// as the same), and where `tell` says stop.
pub(super) fn seeds(
    points: &Points,
    scale: f64,
    number: usize,
    rng: &mut impl Rng,
    tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vec<f64>> {
    let sampled = sample(points.n_rows(), number.saturating_mul(ROWS_PER_CENTRE), rng);
    let whole = sampled.len() == points.n_rows();
    let drawn = Draw::new(points, sampled, scale).centres(number, rng, tell)?;
    let drawn = if drawn.len() < number && !whole {
        let all = (0..points.n_rows() as u32).collect();
        Draw::new(points, all, scale).centres(number, rng, tell)?
    } else {
        drawn
    };
    if drawn.len() < number {
        return Err(Error::TooFewDistinctRows { distinct: drawn.len(), clusters: number });
    }
    Ok(drawn.iter().flat_map(|&row| points.row(row as usize)).map(|&x| x.into()).collect())
}

/// `most` of the rows, ascending; all of them if there are no more.
fn sample(n_rows: usize, most: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..n_rows as u32).collect();
    if most < n_rows {
        for i in 0..most {
            rows.swap(i, rng.random_range(i..n_rows));
        }
        rows.truncate(most);
        rows.sort_unstable();
    }
    rows
}

/// The state of a draw.
struct Draw {
    /// Numbers of the rows.
    sampled: Vec<u32>,
    values: Vec<f32>,
    width: usize,
    blocks: Vec<Block>,
    /// Centres drawn so far, as rows of the sample.
    centres: Vec<u32>,
    /// Their coordinates, row-major.
    centre_values: Vec<f32>,
}

/// Neighbouring rows and how far they are from the centres.
struct Block {
    first: usize,
    /// D² of each row.
    squares: Vec<f32>,
    /// Which centre is nearest.
    nearest: Vec<u32>,
    /// Σ D².
    total: f64,
    /// Rows close enough to a candidate to be measured.
    listed: Vec<u32>,
}

impl Block {
    /// Lists every `step`-th row from the `start`-th whose D² exceeds the reach of its nearest centre.
    fn list(&mut self, reach: &[f32], start: usize, step: usize) {
        let Self { first, squares, nearest, listed, .. } = self;
        let near = |i: &usize| reach.get(nearest[*i] as usize).is_none_or(|&reach| squares[*i] > reach);
        listed.clear();
        listed.extend((start..squares.len()).step_by(step).filter(near).map(|i| (*first + i) as u32));
    }
}

impl Draw {
    fn new(points: &Points, sampled: Vec<u32>, scale: f64) -> Self {
        let width = points.width();
        let values =
            sampled.iter().flat_map(|&row| points.row(row as usize)).map(|&x| (f64::from(x) * scale) as f32).collect();
        let block = |first: usize| {
            let n = BLOCK.min(sampled.len() - first);
            let (squares, nearest) = (vec![f32::INFINITY; n], vec![0; n]);
            Block { first, squares, nearest, total: 0.0, listed: Vec::new() }
        };
        let blocks = (0..sampled.len()).step_by(BLOCK).map(block).collect();
        Self { sampled, values, width, blocks, centres: Vec::new(), centre_values: Vec::new() }
    }

    /// Rows of `number` centres, or as many as there are different rows.
    fn centres(
        mut self,
        number: usize,
        rng: &mut impl Rng,
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<u32>> {
        let n_rows = self.sampled.len();
        let few_per_centre = n_rows < number.saturating_mul(FEW_PER_CENTRE);
        let judges = if n_rows < FEW || few_per_centre { 1 } else { JUDGES };
        let candidates = match few_per_centre && n_rows >= FEW {
            true => 2 * CANDIDATES,
            false => CANDIDATES.min(2 + (number as f64).ln() as usize),
        };
        self.take(rng.random_range(0..self.sampled.len()) as u32);
        while self.centres.len() < number {
            let total: f64 = self.blocks.iter().map(|block| block.total).sum();
            if !(total > 0.0) {
                break;
            }
            let drawn: Vec<u32> = (0..candidates).map(|_| self.draw(total, rng)).collect();
            let gains: Vec<f64> = drawn.chunks(CANDIDATES).flat_map(|some| self.gains(some, judges)).collect();
            let better = |best: usize, new: usize| if gains[new] > gains[best] { new } else { best };
            let best = (0..candidates).fold(0, better);
            self.take(drawn[best]);
            if tell(self.centres.len()).is_break() {
                return Err(Error::Interrupted { done: self.centres.len(), total: number });
            }
        }
        Ok(self.centres.iter().map(|&row| self.sampled[row as usize]).collect())
    }

    /// A row with probability proportional to D².
    fn draw(&self, total: f64, rng: &mut impl Rng) -> u32 {
        let totals = self.blocks.iter().map(|block| block.total).enumerate();
        let block = &self.blocks[outcome(totals, rng.random::<f64>() * total)];
        let squares = block.squares.iter().map(|&square| f64::from(square)).enumerate();
        (block.first + outcome(squares, rng.random::<f64>() * block.total)) as u32
    }

    fn row(&self, row: u32) -> &[f32] {
        &self.values[row as usize * self.width..][..self.width]
    }

    /// A quarter of the least squared distance between each centre and these candidates, and a little less: rows closer to
    /// their centre than its root have no candidate nearer.
    fn reach(&self, distance: impl Fn(&[f32]) -> f32 + Sync) -> Vec<f32> {
        let shrunk = 0.25 * (1.0 - 4.0 * self.width as f32 * f32::EPSILON);
        let centres = self.centre_values.par_chunks_exact(self.width).with_min_len(BLOCK);
        centres.map(|centre| shrunk * distance(centre)).collect()
    }

    /// By how much each candidate would lower Σ D² over the rows that judge: one in `judges`.
    fn gains(&mut self, candidates: &[u32], judges: usize) -> [f64; CANDIDATES] {
        let mut coordinates = vec![[0.0; CANDIDATES]; self.width];
        for lane in 0..CANDIDATES {
            let row = self.row(candidates[lane.min(candidates.len() - 1)]);
            coordinates.iter_mut().zip(row).for_each(|(q, &x)| q[lane] = x);
        }
        let reach = self.reach(|centre| {
            let mut least = f32::INFINITY;
            measure(centre, &[0], &coordinates, |_, squares| least = squares.into_iter().fold(least, f32::min));
            least
        });
        let (start, values) = (self.centres.len() % judges, &self.values);
        let gains: Vec<[f64; CANDIDATES]> = self
            .blocks
            .par_iter_mut()
            .map(|block| {
                block.list(&reach, start, judges);
                let mut gains = [0.0; CANDIDATES];
                measure(values, &block.listed, &coordinates, |row, new| {
                    let square = block.squares[row as usize - block.first];
                    for (gain, new) in gains.iter_mut().zip(new) {
                        *gain += f64::from(if new < square { square - new } else { 0.0 });
                    }
                });
                gains
            })
            .collect();
        std::array::from_fn(|lane| gains.iter().map(|gains| gains[lane]).sum())
    }

    /// Makes a row the next centre.
    fn take(&mut self, row: u32) {
        let centre = self.row(row).to_vec();
        let reach = self.reach(|other| squared_distance(other, &centre));
        let (number, width, values) = (self.centres.len() as u32, self.width, &self.values);
        self.blocks.par_iter_mut().for_each(|block| {
            block.list(&reach, 0, 1);
            for &row in &block.listed {
                let square = squared_distance(&values[row as usize * width..][..width], &centre);
                let at = row as usize - block.first;
                if square < block.squares[at] {
                    block.squares[at] = square;
                    block.nearest[at] = number;
                }
            }
            block.total = block.squares.iter().map(|&square| f64::from(square)).sum();
        });
        self.centres.push(row);
        self.centre_values.extend(centre);
    }
}
