//! Sparse LU factors of the system of a policy, I − γP, without pivoting: multifrontal (Duff and Reid 1983), in parallel over the tree.
//!
//! I − γP has a positive diagonal, no positive entry beside it, and rows that are dominated by their diagonals; elimination keeps all that, so
//! no pivot is small and factors do not grow. One factorisation serves both systems of a policy and every reward.
//! The order of every sum is fixed, whatever the number of threads.

use crate::plan::kernels::elimination::{Elimination, Front};
use crate::plan::kernels::front::eliminate;
use crate::plan::kernels::krylov::dot;
use crate::plan::kernels::sweep::PolicyMatrix;
use rayon::prelude::*;
use std::ops::Range;

/// Subtrees of at most this share of all operations are tasks of their own, and factorisations of fewer operations are not shared.
const TASK_SHARE: f64 = 1.0 / 24.0;
const SHARED_OPERATIONS: f64 = 2e7;

/// The factors, with the matrix in the order of elimination.
#[derive(Debug, Default)]
pub(in crate::plan) struct Factors {
    elimination: Elimination,
    system: System,
    values: Vec<f64>,
}

/// γP by positions. The entries of a row outside of its component come first.
#[derive(Debug, Default)]
struct System {
    start: Vec<usize>,
    /// Where the entries within the component start.
    inner: Vec<usize>,
    to: Vec<u32>,
    p: Vec<f64>,
    /// Entries below the diagonal within components, by column: row and value.
    below_start: Vec<usize>,
    below: Vec<(u32, f64)>,
}

impl System {
    fn new(matrix: &PolicyMatrix, elimination: &Elimination) -> Self {
        let Elimination { order, place, starts, .. } = elimination;
        let n = order.len();
        let entries = matrix.n_entries();
        let mut system = System {
            start: vec![0],
            inner: Vec::with_capacity(n),
            to: Vec::with_capacity(entries),
            p: Vec::with_capacity(entries),
            below_start: vec![0; n + 1],
            below: Vec::new(),
        };
        for component in starts.windows(2) {
            for &state in &order[component[0]..component[1]] {
                let (next, p) = matrix.row(state as usize);
                for inside in [false, true] {
                    if inside {
                        system.inner.push(system.to.len());
                    }
                    for (&to, &p) in next.iter().zip(p) {
                        let to = place[to as usize];
                        if (to as usize >= component[0]) == inside {
                            system.to.push(to);
                            system.p.push(matrix.gamma * p);
                        }
                    }
                }
                system.start.push(system.to.len());
            }
        }
        system.note_below();
        system
    }

    /// Lists the entries below the diagonal by column.
    fn note_below(&mut self) {
        let n = self.inner.len();
        let Self { start, inner, to, p, below_start, below } = self;
        let to = &*to;
        let lower = |i: usize| (inner[i]..start[i + 1]).filter(move |&at| (to[at] as usize) < i);
        for i in 0..n {
            lower(i).for_each(|at| below_start[to[at] as usize + 1] += 1);
        }
        for j in 0..n {
            below_start[j + 1] += below_start[j];
        }
        let mut next = below_start.clone();
        *below = vec![(0, 0.0); below_start[n]];
        for i in 0..n {
            for at in lower(i) {
                let column = to[at] as usize;
                below[next[column]] = (i as u32, p[at]);
                next[column] += 1;
            }
        }
    }

    fn within(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.inner[i]..self.start[i + 1]).map(|at| (self.to[at] as usize, self.p[at]))
    }

    fn outside(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.start[i]..self.inner[i]).map(|at| (self.to[at] as usize, self.p[at]))
    }

    /// γ times the probability to stay.
    fn stay(&self, i: usize) -> f64 {
        self.within(i).filter(|entry| entry.0 == i).map(|entry| entry.1).sum()
    }
}

/// What is eliminated, and which fronts add to which.
struct Work<'a> {
    elimination: &'a Elimination,
    system: &'a System,
    children: Vec<Vec<usize>>,
}

impl Factors {
    /// Factorises the system of a policy along its analysis.
    pub(in crate::plan) fn new(matrix: &PolicyMatrix, elimination: Elimination) -> Self {
        let system = System::new(matrix, &elimination);
        let mut values = vec![0.0; elimination.n_values];
        let fronts = &elimination.fronts;
        let mut children = vec![Vec::new(); fronts.len()];
        for (k, front) in fronts.iter().enumerate() {
            if let Some(parent) = front.parent {
                children[parent].push(k);
            }
        }
        let work = Work { elimination: &elimination, system: &system, children };
        let mut complements: Vec<Vec<f64>> = vec![Vec::new(); fronts.len()];
        let tasks = work.tasks();
        let mut done = vec![false; fronts.len()];
        let mut parts = Vec::with_capacity(tasks.len());
        let (mut rest, mut rest_complements, mut at, mut k) = (&mut values[..], &mut complements[..], 0, 0);
        for task in tasks {
            let (from, to) = (fronts[task.start].values, work.values_end(task.end));
            let (_, tail) = rest.split_at_mut(from - at);
            let (part, tail) = tail.split_at_mut(to - from);
            let (_, later) = rest_complements.split_at_mut(task.start - k);
            let (own, later) = later.split_at_mut(task.len());
            (rest, rest_complements, at, k) = (tail, later, to, task.end);
            done[task.clone()].fill(true);
            parts.push((task, part, own));
        }
        parts.into_par_iter().with_max_len(1).for_each(|(task, values, complements)| {
            let first = task.start;
            work.eliminate(task, first, values, complements);
        });
        let open: Vec<usize> = (0..fronts.len()).filter(|&k| !done[k]).collect();
        work.eliminate(open, 0, &mut values, &mut complements);
        Self { elimination, system, values }
    }

    /// Additions and multiplications that the factors took.
    pub(in crate::plan) fn operations(&self) -> f64 {
        self.elimination.operations
    }

    /// Numbers in the factors.
    pub(in crate::plan) fn n_values(&self) -> usize {
        self.values.len()
    }

    /// Solves (I − γP) x = b; `x` holds b by state and is replaced.
    pub(in crate::plan) fn solve_values(&self, x: &mut [f64]) {
        let Elimination { order, starts, fronts, .. } = &self.elimination;
        let mut y: Vec<f64> = order.iter().map(|&s| x[s as usize]).collect();
        let mut front = 0;
        for component in starts.windows(2) {
            let (first, end) = (component[0], component[1]);
            for i in first..end {
                y[i] += self.system.outside(i).map(|(to, p)| p * y[to]).sum::<f64>();
            }
            if end - first == 1 {
                y[first] /= 1.0 - self.system.stay(first);
                continue;
            }
            let own = fronts_until(fronts, front, end);
            for front in &fronts[own.clone()] {
                self.solve_lower(front, &mut y);
            }
            for front in fronts[own.clone()].iter().rev() {
                self.solve_upper(front, &mut y);
            }
            front = own.end;
        }
        order.iter().zip(&y).for_each(|(&s, &y)| x[s as usize] = y);
    }

    /// Solves (I − γPᵀ) x = b; `x` holds b by state and is replaced.
    pub(in crate::plan) fn solve_occupancy(&self, x: &mut [f64]) {
        let Elimination { order, starts, fronts, .. } = &self.elimination;
        let mut y: Vec<f64> = order.iter().map(|&s| x[s as usize]).collect();
        let mut last = fronts.len();
        for component in starts.windows(2).rev() {
            let (first, end) = (component[0], component[1]);
            if end - first == 1 {
                y[first] /= 1.0 - self.system.stay(first);
            } else {
                let own = fronts_from(fronts, last, first);
                for front in &fronts[own.clone()] {
                    self.solve_upper_transposed(front, &mut y);
                }
                for front in fronts[own.clone()].iter().rev() {
                    self.solve_lower_transposed(front, &mut y);
                }
                last = own.start;
            }
            for i in first..end {
                let visits = y[i];
                self.system.outside(i).for_each(|(to, p)| y[to] += p * visits);
            }
        }
        order.iter().zip(&y).for_each(|(&s, &y)| x[s as usize] = y);
    }

    /// The rows of a front's columns, with U on and above the diagonal and L below it, and what L has further down.
    fn parts(&self, front: &Front) -> (&[f64], &[f64], &[u32]) {
        let values = &self.values[front.values..front.values + front.n_values()];
        let (upper, lower) = values.split_at(front.width * front.size());
        (upper, lower, &self.elimination.rows[front.rows.0..front.rows.1])
    }

    fn solve_lower(&self, front: &Front, y: &mut [f64]) {
        let (upper, lower, rows) = self.parts(front);
        let (before, after) = y.split_at_mut(front.first + front.width);
        let own = &mut before[front.first..];
        for i in 1..front.width {
            let row = &upper[i * front.size()..];
            own[i] -= row.iter().zip(&own[..i]).map(|(l, y)| l * y).sum::<f64>();
        }
        let offset = front.first + front.width;
        for (l, &row) in lower.chunks_exact(front.width).zip(rows) {
            after[row as usize - offset] -= dot(l, own);
        }
    }

    fn solve_upper(&self, front: &Front, y: &mut [f64]) {
        let (upper, _, rows) = self.parts(front);
        for k in (0..front.width).rev() {
            let row = &upper[k * front.size()..(k + 1) * front.size()];
            let own = &y[front.first..front.first + front.width];
            let inner = dot(&row[k + 1..front.width], &own[k + 1..]);
            let outer: f64 = row[front.width..].iter().zip(rows).map(|(u, &i)| u * y[i as usize]).sum();
            y[front.first + k] = (y[front.first + k] - inner - outer) / row[k];
        }
    }

    fn solve_upper_transposed(&self, front: &Front, y: &mut [f64]) {
        let (upper, _, rows) = self.parts(front);
        for k in 0..front.width {
            let row = &upper[k * front.size()..(k + 1) * front.size()];
            let z = y[front.first + k] / row[k];
            y[front.first + k] = z;
            let own = &mut y[front.first + k + 1..front.first + front.width];
            own.iter_mut().zip(&row[k + 1..]).for_each(|(y, u)| *y -= u * z);
            rows.iter().zip(&row[front.width..]).for_each(|(&i, u)| y[i as usize] -= u * z);
        }
    }

    fn solve_lower_transposed(&self, front: &Front, y: &mut [f64]) {
        let (upper, lower, rows) = self.parts(front);
        let (before, after) = y.split_at_mut(front.first + front.width);
        let own = &mut before[front.first..];
        let offset = front.first + front.width;
        for (l, &row) in lower.chunks_exact(front.width).zip(rows) {
            let x = after[row as usize - offset];
            own.iter_mut().zip(l).for_each(|(y, l)| *y -= l * x);
        }
        for i in (1..front.width).rev() {
            let row = &upper[i * front.size()..];
            let x = own[i];
            own[..i].iter_mut().zip(row).for_each(|(y, l)| *y -= l * x);
        }
    }
}

impl Work<'_> {
    /// Where the factors of the fronts before this one end.
    fn values_end(&self, front: usize) -> usize {
        self.elimination.fronts.get(front).map_or(self.elimination.n_values, |front| front.values)
    }

    /// Subtrees that can be eliminated independently, as ranges of fronts, in order.
    fn tasks(&self) -> Vec<Range<usize>> {
        let Elimination { fronts, operations, .. } = self.elimination;
        if *operations < SHARED_OPERATIONS {
            return Vec::new();
        }
        let mut below: Vec<f64> = fronts.iter().map(Front::operations).collect();
        let mut first: Vec<usize> = (0..fronts.len()).collect();
        for k in 0..fronts.len() {
            if let Some(parent) = fronts[k].parent {
                below[parent] += below[k];
                first[parent] = first[parent].min(first[k]);
            }
        }
        let small = |k: usize| below[k] <= TASK_SHARE * operations;
        let roots = (0..fronts.len()).filter(|&k| small(k) && fronts[k].parent.is_none_or(|parent| !small(parent)));
        let mut tasks: Vec<Range<usize>> = Vec::new();
        let mut load = 0.0;
        for root in roots {
            // Neighbouring small subtrees are one task.
            match tasks.last_mut() {
                Some(last) if last.end == first[root] && load + below[root] <= TASK_SHARE * operations => {
                    last.end = root + 1;
                    load += below[root];
                }
                _ => {
                    tasks.push(first[root]..root + 1);
                    load = below[root];
                }
            }
        }
        tasks
    }

    /// Eliminates fronts in order. `values` and `complements` are those from front `base` on; a complement stays until its parent takes it.
    fn eliminate(
        &self,
        fronts: impl IntoIterator<Item = usize>,
        base: usize,
        values: &mut [f64],
        complements: &mut [Vec<f64>],
    ) {
        let all = &self.elimination.fronts;
        let offset = self.values_end(base);
        let mut block = Vec::new();
        for k in fronts {
            let front = &all[k];
            let (size, width) = (front.size(), front.width);
            block.clear();
            block.resize(size * size, 0.0);
            self.assemble(front, &mut block);
            for &child in &self.children[k] {
                let complement = std::mem::take(&mut complements[child - base]);
                self.add(&all[child], &complement, front, &mut block);
            }
            eliminate(&mut block, size, width);
            let from = front.values - offset;
            let (upper, lower) = values[from..from + front.n_values()].split_at_mut(width * size);
            upper.copy_from_slice(&block[..width * size]);
            let rest = block[width * size..].chunks_exact(size);
            lower.chunks_exact_mut(width).zip(rest.clone()).for_each(|(l, row)| l.copy_from_slice(&row[..width]));
            if front.parent.is_some() {
                complements[k - base] = rest.flat_map(|row| &row[width..]).copied().collect();
            }
        }
    }

    /// Where a position stands in a front.
    fn local(&self, front: &Front, position: usize) -> Option<usize> {
        if position < front.first + front.width {
            return Some(position - front.first);
        }
        let rows = &self.elimination.rows[front.rows.0..front.rows.1];
        rows.binary_search(&(position as u32)).ok().map(|at| front.width + at)
    }

    /// Writes the entries of I − γP that belong to a front.
    fn assemble(&self, front: &Front, block: &mut [f64]) {
        let size = front.size();
        for k in 0..front.width {
            let column = front.first + k;
            block[k * size + k] += 1.0;
            for (to, p) in self.system.within(column).filter(|&(to, _)| to >= front.first) {
                if let Some(at) = self.local(front, to) {
                    block[k * size + at] -= p;
                }
            }
            let below = &self.system.below[self.system.below_start[column]..self.system.below_start[column + 1]];
            for &(row, p) in below.iter().filter(|entry| entry.0 as usize >= front.first + front.width) {
                if let Some(at) = self.local(front, row as usize) {
                    block[at * size + k] -= p;
                }
            }
        }
    }

    /// Adds the Schur complement of a child.
    fn add(&self, child: &Front, complement: &[f64], front: &Front, block: &mut [f64]) {
        let size = front.size();
        let rows = &self.elimination.rows[child.rows.0..child.rows.1];
        let places: Vec<usize> = rows.iter().filter_map(|&row| self.local(front, row as usize)).collect();
        for (row, &i) in complement.chunks_exact(rows.len().max(1)).zip(&places) {
            let out = &mut block[i * size..(i + 1) * size];
            row.iter().zip(&places).for_each(|(x, &j)| out[j] += x);
        }
    }
}

/// The fronts from `from` on whose columns lie before `end`.
fn fronts_until(fronts: &[Front], from: usize, end: usize) -> Range<usize> {
    from..from + fronts[from..].iter().take_while(|front| front.first < end).count()
}

/// The fronts before `until` whose columns lie at or after `first`.
fn fronts_from(fronts: &[Front], until: usize, first: usize) -> Range<usize> {
    until - fronts[..until].iter().rev().take_while(|front| front.first >= first).count()..until
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::random;
    use rand::RngExt as _;

    /// Walks on a torus that drift one way, with a share of far jumps: one component, with fill-in.
    fn walk(side: u32, jumps: f64, gamma: f64) -> PolicyMatrix {
        let mut rng = random::stream(3, "walk", u64::from(side));
        let n = side * side;
        let rows = (0..n).map(|s| {
            let (i, j) = (s / side, s % side);
            let mut row = vec![
                ((i + 1) % side * side + j, 0.6),
                (i * side + (j + 1) % side, 0.2),
                (i * side + (j + side - 1) % side, 0.1),
                (s, 0.1),
            ];
            if rng.random::<f64>() < jumps {
                row = vec![(rng.random_range(0..n), 0.5), (s, 0.5)];
            }
            row
        });
        let rewards = (0..n).map(|s| f64::from(s % 7)).collect();
        PolicyMatrix::from_rows(gamma, rewards, rows.collect::<Vec<_>>().into_iter())
    }

    fn factors(matrix: &PolicyMatrix) -> Factors {
        Factors::new(matrix, Elimination::of(matrix, usize::MAX).unwrap())
    }

    fn largest_residual(matrix: &PolicyMatrix, transposed: bool) -> f64 {
        let factors = factors(matrix);
        let b: Vec<f64> = (0..matrix.len()).map(|i| ((i * 37 + 11) % 17) as f64 - 8.0).collect();
        let mut x = b.clone();
        let mut back = vec![0.0; b.len()];
        if transposed {
            factors.solve_occupancy(&mut x);
            matrix.apply_transposed(&x, &mut back);
        } else {
            factors.solve_values(&mut x);
            matrix.apply(&x, &mut back);
        }
        let size = x.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        b.iter().zip(&back).fold(0.0, |most: f64, (b, y)| most.max((b - y).abs())) / size
    }

    #[test]
    fn both_systems_are_solved() {
        for gamma in [0.0, 0.9, 0.9999, 1.0 - 1e-9] {
            for (side, jumps) in [(1, 0.0), (2, 0.0), (4, 0.1), (30, 0.0), (30, 0.3), (70, 0.02)] {
                let matrix = walk(side, jumps, gamma);
                for transposed in [false, true] {
                    let off = largest_residual(&matrix, transposed);
                    assert!(off <= 1e-13 * f64::from(side * side), "{side} {jumps} {gamma} {transposed}: {off}");
                }
            }
        }
    }

    #[test]
    fn components_are_solved_one_after_the_other() {
        // Two cycles of three, the first leads to the second, which leads to a state that is never left.
        let rows: Vec<Vec<(u32, f64)>> = vec![
            vec![(1, 1.0)],
            vec![(2, 0.9), (4, 0.1)],
            vec![(0, 1.0)],
            vec![(4, 1.0)],
            vec![(5, 0.8), (6, 0.2)],
            vec![(3, 1.0)],
            vec![(6, 1.0)],
        ];
        let matrix = PolicyMatrix::from_rows(0.99, vec![1.0; 7], rows.into_iter());
        let mut x = vec![1.0; 7];
        factors(&matrix).solve_values(&mut x);
        // Everybody collects one for ever.
        assert!(x.iter().all(|x| (x - 100.0).abs() < 1e-10), "{x:?}");
        assert!(largest_residual(&matrix, true) < 1e-14);
    }

    #[test]
    fn threads_do_not_matter() {
        let matrix = walk(120, 0.01, 0.999);
        assert!(Elimination::of(&matrix, usize::MAX).unwrap().operations > SHARED_OPERATIONS);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| factors(&matrix).values)
        };
        let (one, three) = (on(1), on(3));
        assert!(one.iter().zip(&three).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn large_factors_are_refused_before_they_are_computed() {
        let matrix = walk(70, 0.5, 0.9);
        assert!(Elimination::of(&matrix, 10_000).is_none());
    }
}
