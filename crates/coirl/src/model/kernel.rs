//! Sparse transition kernels by (state, action).
//!
//! Rows are stored in compressed form, and a row that occurs several times in one state is stored once: every pair
//! points at its row. Planning sweeps over distinct rows only, which on ICU-Sepsis means 2,920 rows instead of 17,900.

use super::pairs::Pairs;
use crate::error::{Error, Result, check_length};
use std::sync::{Arc, OnceLock};

/// How far from one a row of probabilities may sum; what is off is divided out.
pub(crate) const ROW_SUM_TOLERANCE: f64 = 1e-9;
/// How far from one a row of probabilities that were stored in single precision may sum.
pub(crate) const SINGLE_PRECISION_ROW_SUM_TOLERANCE: f64 = 1e-5;
/// Sums closer to one than this per entry are rounding, and the row is kept bit for bit. What certificates allow for the rounding of a
/// backup covers as much and no more.
const ROW_SUM_ROUNDING: f64 = f64::EPSILON;

/// Where the non-zero entries of a kernel are: everything but the probabilities, so that kernels over one pattern
/// (the mixtures of base kernels) share it.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) pairs: Arc<Pairs>,
    /// The distinct row of each pair.
    pub(crate) pair_row: Vec<u32>,
    /// The rows of state `s` are `state_rows[s]..state_rows[s + 1]`, in the order of their lowest action.
    pub(crate) state_rows: Vec<u32>,
    /// The entries of row `r` are `row_start[r]..row_start[r + 1]`.
    pub(crate) row_start: Vec<usize>,
    /// Successor state of each entry; ascending within a row.
    pub(crate) next: Vec<u32>,
}

impl Layout {
    /// A pattern from its parts, as a file holds them. Refuses parts that do not fit together.
    pub(crate) fn checked(
        pairs: Arc<Pairs>,
        pair_row: Vec<u32>,
        state_rows: Vec<u32>,
        row_start: Vec<usize>,
        next: Vec<u32>,
    ) -> Result<Self> {
        let n_states = pairs.n_states();
        check_length("pair_row", pairs.len(), pair_row.len())?;
        check_length("state_rows", n_states + 1, state_rows.len())?;
        let n_rows = row_start.len().saturating_sub(1);
        check_row_starts("row_start", &row_start, n_rows, next.len())?;
        if state_rows[0] != 0 || state_rows[n_states] as usize != n_rows {
            let found = format!("{} to {}", state_rows[0], state_rows[n_states]);
            return Err(Error::shape("state_rows", format!("0 to {n_rows}"), found));
        }
        for state in 0..n_states {
            // Rows are numbered in the order in which the actions first use them, and each is used.
            let mut unused = state_rows[state];
            for pair in pairs.of_state(state) {
                let row = pair_row[pair];
                if row < state_rows[state] || row > unused {
                    let expected = format!("a row from {} to {unused} for pair {pair}", state_rows[state]);
                    return Err(Error::shape("pair_row", expected, row));
                }
                unused += u32::from(row == unused);
            }
            if unused != state_rows[state + 1] {
                let expected = format!("{unused} after state {state}, the rows its actions use");
                return Err(Error::shape("state_rows", expected, state_rows[state + 1]));
            }
        }
        let layout = Self { pairs, pair_row, state_rows, row_start, next };
        for row in 0..n_rows {
            let successors = &layout.next[layout.row_start[row]..layout.row_start[row + 1]];
            if !successors.is_sorted_by(|a, b| a < b) {
                return Err(Error::shape(
                    "next",
                    "successors in ascending order",
                    format!("another order in row {row}"),
                ));
            }
            match successors.last() {
                Some(&last) if (last as usize) < n_states => {}
                Some(&last) => {
                    let (state, action) = layout.first_use(row);
                    return Err(Error::SuccessorOutOfRange { state, action, next: last.into(), n_states });
                }
                None => {
                    return Err(Error::shape("row_start", "at least one entry per row", format!("none in row {row}")));
                }
            }
        }
        Ok(layout)
    }

    /// Refuses probabilities that are none or do not sum to one; `width` numbers per entry, each a kernel of its own.
    /// Unlike [`KernelBuilder`], which cleans what people write, this changes nothing.
    pub(crate) fn check_probabilities(&self, width: usize, probabilities: &[f64]) -> Result<()> {
        let expected = self.next.len().checked_mul(width).filter(|&n| n > 0);
        if expected != Some(probabilities.len()) {
            let expected = format!("[{}, {width}]", self.next.len());
            return Err(Error::shape("probabilities", expected, format!("{} numbers", probabilities.len())));
        }
        for row in 0..self.row_start.len() - 1 {
            let entries = self.row_start[row]..self.row_start[row + 1];
            for kernel in 0..width {
                let mut sum = 0.0;
                for entry in entries.clone() {
                    let value = probabilities[entry * width + kernel];
                    if !(0.0..=1.0 + ROW_SUM_TOLERANCE).contains(&value) {
                        let (state, action) = self.first_use(row);
                        let next = self.next[entry] as usize;
                        return Err(Error::InvalidProbability { state, action, next, value });
                    }
                    sum += value;
                }
                if (sum - 1.0).abs() > ROW_SUM_TOLERANCE {
                    let (state, action) = self.first_use(row);
                    return Err(Error::RowNotStochastic { state, action, sum });
                }
            }
        }
        Ok(())
    }

    /// State and lowest action of a row.
    fn first_use(&self, row: usize) -> (usize, usize) {
        let state = self.state_rows.partition_point(|&first| first as usize <= row) - 1;
        let pair = self.pairs.of_state(state).find(|&pair| self.pair_row[pair] as usize == row);
        (state, pair.map_or(0, |pair| self.pairs.action(pair).index()))
    }
}

/// P(s' | s, a), sparse and validated.
#[derive(Debug, Clone)]
pub struct Kernel {
    layout: Arc<Layout>,
    probabilities: Vec<f64>,
    /// The probabilities rounded to single precision, made when first asked for.
    single_precision: OnceLock<Vec<f32>>,
    /// The states that no action ever leaves, found when first asked for.
    absorbing: OnceLock<Vec<u32>>,
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.probabilities == other.probabilities
    }
}

impl Kernel {
    /// From a dense array `[s, a, s']` in row-major order; `admissible` (over `[s, a]`) defaults to every pair, and rows of
    /// inadmissible pairs are not looked at.
    pub fn from_dense(
        n_states: usize,
        n_actions: usize,
        transitions: &[f64],
        admissible: Option<&[bool]>,
    ) -> Result<Self> {
        let pairs = admissible_pairs(n_states, n_actions, admissible)?;
        if transitions.len() != n_states * n_actions * n_states {
            return Err(Error::shape(
                "transitions",
                format!("[{n_states}, {n_actions}, {n_states}]"),
                format!("{} entries", transitions.len()),
            ));
        }
        let mut builder = KernelBuilder::new(pairs.clone());
        for state in 0..n_states {
            for pair in pairs.of_state(state) {
                let start = (state * n_actions + pairs.action(pair).index()) * n_states;
                let row = &transitions[start..start + n_states];
                builder
                    .push_row(row.iter().enumerate().filter(|(_, p)| **p != 0.0).map(|(next, &p)| (next as i64, p)))?;
            }
        }
        builder.finish()
    }

    /// From compressed rows numbered `s * n_actions + a`, as SciPy's `csr_matrix` holds them. Entries of one row may come in
    /// any order; entries of one successor add up. Rows of inadmissible pairs are not looked at.
    pub fn from_csr(
        n_states: usize,
        n_actions: usize,
        row_start: &[usize],
        next: &[i64],
        probabilities: &[f64],
        admissible: Option<&[bool]>,
    ) -> Result<Self> {
        let pairs = admissible_pairs(n_states, n_actions, admissible)?;
        check_row_starts("indptr", row_start, n_states * n_actions, next.len())?;
        if probabilities.len() != next.len() {
            return Err(Error::shape("data", format!("[{}]", next.len()), format!("[{}]", probabilities.len())));
        }
        let mut builder = KernelBuilder::new(pairs.clone());
        for state in 0..n_states {
            for pair in pairs.of_state(state) {
                let row = state * n_actions + pairs.action(pair).index();
                let entries = row_start[row]..row_start[row + 1];
                builder.push_row(entries.map(|e| (next[e], probabilities[e])))?;
            }
        }
        builder.finish()
    }

    /// A kernel from a checked pattern and the probabilities of its entries, kept bit for bit.
    pub(crate) fn from_parts(layout: Layout, probabilities: Vec<f64>) -> Result<Self> {
        layout.check_probabilities(1, &probabilities)?;
        Ok(Self::from_layout(Arc::new(layout), probabilities))
    }

    pub(crate) fn from_layout(layout: Arc<Layout>, probabilities: Vec<f64>) -> Self {
        debug_assert_eq!(layout.next.len(), probabilities.len());
        Self { layout, probabilities, single_precision: OnceLock::new(), absorbing: OnceLock::new() }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// States that no action ever leaves.
    pub(crate) fn absorbing(&self) -> impl Iterator<Item = usize> + '_ {
        let found = self.absorbing.get_or_init(|| {
            let stays = |s: u32, row: u32| self.row(row as usize).0.iter().all(|&next| next == s);
            let rows = &self.layout.state_rows;
            let absorbs = |&s: &u32| (rows[s as usize]..rows[s as usize + 1]).all(|row| stays(s, row));
            (0..self.n_states() as u32).filter(absorbs).collect()
        });
        found.iter().map(|&s| s as usize)
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Arc<Pairs> {
        &self.layout.pairs
    }

    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.layout.pairs.n_states()
    }

    /// Number of actions.
    pub fn n_actions(&self) -> usize {
        self.layout.pairs.n_actions()
    }

    /// Number of distinct rows.
    pub fn n_rows(&self) -> usize {
        self.layout.row_start.len() - 1
    }

    /// Number of stored entries.
    pub fn n_entries(&self) -> usize {
        self.layout.next.len()
    }

    /// Successors of a pair with their probabilities, successors ascending.
    pub fn successors(&self, pair: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + '_ {
        let (next, probabilities) = self.row(self.layout.pair_row[pair] as usize);
        next.iter().zip(probabilities).map(|(&s, &p)| (s as usize, p))
    }

    /// P(next | pair); zero for states that do not follow, or do not exist.
    pub fn probability(&self, pair: usize, next: usize) -> f64 {
        let (successors, probabilities) = self.row(self.row_of(pair));
        let found = u32::try_from(next).ok().and_then(|next| successors.binary_search(&next).ok());
        found.map_or(0.0, |entry| probabilities[entry])
    }

    /// E[v(s') | pair], summed in the order of the successors.
    pub fn expect(&self, pair: usize, v: &[f64]) -> f64 {
        self.successors(pair).map(|(s, p)| p * v[s]).sum()
    }

    /// The distinct row of a pair.
    pub(crate) fn row_of(&self, pair: usize) -> usize {
        self.layout.pair_row[pair] as usize
    }

    /// The distinct rows of a state.
    pub(crate) fn rows_of_state(&self, state: usize) -> std::ops::Range<usize> {
        let rows = &self.layout().state_rows;
        rows[state] as usize..rows[state + 1] as usize
    }

    /// Where the entries of a row are.
    pub(crate) fn entries(&self, row: usize) -> std::ops::Range<usize> {
        self.layout.row_start[row]..self.layout.row_start[row + 1]
    }

    pub(crate) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.entries(row);
        (&self.layout.next[entries.clone()], &self.probabilities[entries])
    }

    pub(crate) fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    pub(crate) fn single_precision(&self) -> &[f32] {
        self.single_precision.get_or_init(|| self.probabilities.iter().map(|&p| p as f32).collect())
    }

    pub(crate) fn probabilities_mut(&mut self) -> &mut [f64] {
        self.single_precision.take();
        &mut self.probabilities
    }
}

/// Collects the rows of a kernel in pair order, so that a reader can stream them without holding the whole file.
#[derive(Debug)]
pub struct KernelBuilder {
    rows: RowStore,
    row_sum_tolerance: f64,
    scratch: Vec<(u32, f64)>,
}

impl KernelBuilder {
    /// Starts a kernel over these pairs.
    pub fn new(pairs: Arc<Pairs>) -> Self {
        Self { rows: RowStore::new(pairs, 1), row_sum_tolerance: ROW_SUM_TOLERANCE, scratch: Vec::new() }
    }

    /// Accepts rows as far off one as single precision leaves them.
    pub fn single_precision(mut self) -> Self {
        self.row_sum_tolerance = SINGLE_PRECISION_ROW_SUM_TOLERANCE;
        self
    }

    /// Adds the row of the next pair: successors in any order, repeated ones add up, zeros are dropped.
    pub fn push_row(&mut self, entries: impl Iterator<Item = (i64, f64)>) -> Result<()> {
        let pair = self.rows.next_pair()?;
        let n_states = self.rows.pairs.n_states();
        clean_row(&mut self.scratch, entries, pair, n_states, self.row_sum_tolerance)?;
        self.rows.push(self.scratch.iter().map(|entry| entry.0), self.scratch.iter().map(|entry| entry.1));
        Ok(())
    }

    /// The kernel, once every pair has its row.
    pub fn finish(self) -> Result<Kernel> {
        let (layout, probabilities) = self.rows.finish()?;
        Ok(Kernel::from_layout(Arc::new(layout), probabilities))
    }
}

/// The row of a pair as it is kept: successors ascending and distinct, no zeros, summing to one.
pub(super) fn clean_row(
    row: &mut Vec<(u32, f64)>,
    entries: impl Iterator<Item = (i64, f64)>,
    (state, action): (usize, usize),
    n_states: usize,
    row_sum_tolerance: f64,
) -> Result<()> {
    row.clear();
    for (next, value) in entries {
        if next < 0 || next >= n_states as i64 {
            return Err(Error::SuccessorOutOfRange { state, action, next, n_states });
        }
        if !(0.0..=1.0 + row_sum_tolerance).contains(&value) {
            return Err(Error::InvalidProbability { state, action, next: next as usize, value });
        }
        if value > 0.0 {
            row.push((next as u32, value));
        }
    }
    if !row.is_sorted_by(|a, b| a.0 < b.0) {
        row.sort_by_key(|entry| entry.0);
        row.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 += later.1;
            }
            same
        });
    }
    // From zero, for the sum of nothing is minus zero otherwise.
    let sum = row.iter().fold(0.0, |sum, entry| sum + entry.1);
    if (sum - 1.0).abs() > row_sum_tolerance {
        return Err(Error::RowNotStochastic { state, action, sum });
    }
    if (sum - 1.0).abs() > row.len() as f64 * ROW_SUM_ROUNDING {
        row.iter_mut().for_each(|entry| entry.1 /= sum);
    }
    Ok(())
}

/// Rows under construction over pairs that are known, with `width` numbers per entry (one for a kernel, one per base kernel for a
/// mixture).
#[derive(Debug)]
pub(super) struct RowStore {
    pub(super) pairs: Arc<Pairs>,
    state: usize,
    rows: StateRows,
}

impl RowStore {
    pub(super) fn new(pairs: Arc<Pairs>, width: usize) -> Self {
        let mut rows = StateRows::new(width);
        rows.pair_row.reserve(pairs.len());
        rows.state_rows.reserve(pairs.n_states() + 1);
        Self { rows, state: 0, pairs }
    }

    /// State and action whose row comes next.
    fn next_pair(&self) -> Result<(usize, usize)> {
        let pair = self.rows.pair_row.len();
        if pair >= self.pairs.len() {
            return Err(Error::shape("transition rows", self.pairs.len(), pair + 1));
        }
        let state = if self.pairs.of_state(self.state).contains(&pair) { self.state } else { self.state + 1 };
        Ok((state, self.pairs.action(pair).index()))
    }

    /// Adds a row with sorted, distinct successors; `values` holds `width` numbers per successor.
    pub(super) fn push(&mut self, next: impl Iterator<Item = u32>, values: impl Iterator<Item = f64>) {
        let pair = self.rows.pair_row.len();
        if pair == self.pairs.of_state(self.state).end {
            self.state += 1;
        }
        if pair == self.pairs.of_state(self.state).start {
            self.rows.begin_state();
        }
        self.rows.push(next, values);
    }

    pub(super) fn finish(self) -> Result<(Layout, Vec<f64>)> {
        if self.rows.pair_row.len() != self.pairs.len() {
            return Err(Error::shape("transition rows", self.pairs.len(), self.rows.pair_row.len()));
        }
        Ok(self.rows.over(self.pairs))
    }
}

/// Rows state by state, those that occur several times in one state stored once.
#[derive(Debug)]
pub(super) struct StateRows {
    width: usize,
    /// The distinct row of each pair.
    pub(super) pair_row: Vec<u32>,
    /// The first row of each state.
    state_rows: Vec<u32>,
    row_start: Vec<usize>,
    next: Vec<u32>,
    values: Vec<f64>,
    /// Digests of the current state's rows.
    digests: Vec<u64>,
}

impl StateRows {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            pair_row: Vec::new(),
            state_rows: Vec::new(),
            row_start: vec![0],
            next: Vec::new(),
            values: Vec::new(),
            digests: Vec::new(),
        }
    }

    /// The rows that follow are those of the next state.
    pub(super) fn begin_state(&mut self) {
        self.state_rows.push(self.row_start.len() as u32 - 1);
        self.digests.clear();
    }

    /// Adds the row of a pair of the current state.
    pub(super) fn push(&mut self, next: impl Iterator<Item = u32>, values: impl Iterator<Item = f64>) {
        let start = self.next.len();
        self.next.extend(next);
        self.values.extend(values);
        let digest = self.digest(start);
        let first_row = self.row_start.len() - 1 - self.digests.len();
        let twin = (0..self.digests.len()).find(|&i| self.digests[i] == digest && self.same_row(first_row + i, start));
        match twin {
            Some(i) => {
                self.next.truncate(start);
                self.values.truncate(start * self.width);
                self.pair_row.push((first_row + i) as u32);
            }
            None => {
                self.pair_row.push(self.row_start.len() as u32 - 1);
                self.row_start.push(self.next.len());
                self.digests.push(digest);
            }
        }
    }

    /// Adds the rows of the states that come after these.
    pub(super) fn append(&mut self, later: &Self) {
        let (rows, entries) = (self.row_start.len() as u32 - 1, self.next.len());
        self.pair_row.extend(later.pair_row.iter().map(|row| rows + row));
        self.state_rows.extend(later.state_rows.iter().map(|row| rows + row));
        self.row_start.extend(later.row_start[1..].iter().map(|start| entries + start));
        self.next.extend_from_slice(&later.next);
        self.values.extend_from_slice(&later.values);
        self.digests.clear();
    }

    fn digest(&self, start: usize) -> u64 {
        let mix = |h: u64, x: u64| (h.rotate_left(5) ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let h = self.next[start..].iter().fold(0, |h, &s| mix(h, s as u64));
        self.values[start * self.width..].iter().fold(h, |h, p| mix(h, p.to_bits()))
    }

    fn same_row(&self, row: usize, start: usize) -> bool {
        let (from, to) = (self.row_start[row], self.row_start[row + 1]);
        self.next[from..to] == self.next[start..]
            && self.values[from * self.width..to * self.width] == self.values[start * self.width..]
    }

    /// The finished pattern over these pairs, and the numbers of its entries.
    pub(super) fn over(mut self, pairs: Arc<Pairs>) -> (Layout, Vec<f64>) {
        self.state_rows.push(self.row_start.len() as u32 - 1);
        self.pair_row.shrink_to_fit();
        self.row_start.shrink_to_fit();
        self.next.shrink_to_fit();
        self.values.shrink_to_fit();
        let layout = Layout {
            pairs,
            pair_row: self.pair_row,
            state_rows: self.state_rows,
            row_start: self.row_start,
            next: self.next,
        };
        (layout, self.values)
    }
}

fn admissible_pairs(n_states: usize, n_actions: usize, admissible: Option<&[bool]>) -> Result<Arc<Pairs>> {
    Ok(Arc::new(match admissible {
        Some(mask) => Pairs::from_mask(n_states, n_actions, mask)?,
        None => Pairs::all(n_states, n_actions)?,
    }))
}

/// Refuses row starts that do not walk through the entries.
pub(crate) fn check_row_starts(what: &'static str, starts: &[usize], n_rows: usize, n_entries: usize) -> Result<()> {
    if starts.len() != n_rows + 1 {
        return Err(Error::shape(what, format!("[{}]", n_rows + 1), format!("[{}]", starts.len())));
    }
    if starts[0] != 0 || starts[n_rows] != n_entries || !starts.is_sorted() {
        return Err(Error::shape(what, format!("row starts ascending from 0 to {n_entries}"), "other row starts"));
    }
    Ok(())
}
