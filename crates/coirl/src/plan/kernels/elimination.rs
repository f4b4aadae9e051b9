//! What eliminating the states of a policy will cost, before any number is computed.
//!
//! The system (I − γP) x = b falls into the strongly connected components of the policy, solved one after the other. Within a component the
//! states are ordered by nested dissection. As γP has rows that sum to less than one, elimination needs no pivoting, so the pattern of the
//! factors follows from the pattern of P alone: the elimination tree (Liu 1990) gives the entries of each column, and columns of like pattern
//! become *fronts*, dense blocks that are eliminated together.

use crate::plan::kernels::dissection::{Graph, nested_dissection};
use crate::plan::kernels::order::Components;
use crate::plan::kernels::sweep::PolicyMatrix;

/// Components of at most this many states are one dense front.
const DENSE: usize = 24;
const NONE: u32 = u32::MAX;

/// Columns that are eliminated together, as a dense block of `width + rows.len()` rows and columns.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Front {
    /// The first of its columns; positions count states in the order of elimination.
    pub(in crate::plan) first: usize,
    pub(in crate::plan) width: usize,
    /// Its part of [`Elimination::rows`]: the later positions that its columns touch, ascending.
    pub(in crate::plan) rows: (usize, usize),
    /// The front that its Schur complement is added to.
    pub(in crate::plan) parent: Option<usize>,
    /// Where its factors start.
    pub(in crate::plan) values: usize,
}

impl Front {
    pub(in crate::plan) fn n_rows(&self) -> usize {
        self.rows.1 - self.rows.0
    }

    /// Rows and columns of the dense block.
    pub(in crate::plan) fn size(&self) -> usize {
        self.width + self.n_rows()
    }

    /// Numbers that its factors consist of.
    pub(in crate::plan) fn n_values(&self) -> usize {
        self.width * (self.width + 2 * self.n_rows())
    }

    /// Additions and multiplications of its elimination.
    pub(in crate::plan) fn operations(&self) -> f64 {
        let (w, r) = (self.width as f64, self.n_rows() as f64);
        2.0 * (w * w * w / 3.0 + w * w * r + w * r * r)
    }
}

/// The order of elimination and the pattern of the factors.
#[derive(Debug, Default)]
pub(in crate::plan) struct Elimination {
    /// The state at each position.
    pub(in crate::plan) order: Vec<u32>,
    /// The position of each state.
    pub(in crate::plan) place: Vec<u32>,
    /// Where each component starts among the positions, and where the last one ends.
    pub(in crate::plan) starts: Vec<usize>,
    /// Fronts by their first column; a component of one state has none.
    pub(in crate::plan) fronts: Vec<Front>,
    pub(in crate::plan) rows: Vec<u32>,
    /// Numbers in all factors.
    pub(in crate::plan) n_values: usize,
    /// Additions and multiplications of the factorisation.
    pub(in crate::plan) operations: f64,
}

impl Elimination {
    /// The analysis of a policy's system; nothing where its factors would have more than `max_values` numbers.
    pub(in crate::plan) fn of(matrix: &PolicyMatrix, max_values: usize) -> Option<Self> {
        let Components { states, starts } = Components::of_policy(matrix);
        let mut place = vec![0; states.len()];
        states.iter().enumerate().for_each(|(i, &s)| place[s as usize] = i as u32);
        let mut elimination = Self { order: states, place, starts, ..Self::default() };
        for component in 0..elimination.starts.len() - 1 {
            let (first, end) = (elimination.starts[component], elimination.starts[component + 1]);
            match end - first {
                1 => {}
                size if size <= DENSE => elimination.push(first, size, &[], None),
                _ => elimination.dissect(matrix, first, end, max_values)?,
            }
            if elimination.n_values > max_values {
                return None;
            }
        }
        Some(elimination)
    }

    fn push(&mut self, first: usize, width: usize, rows: &[u32], parent: Option<usize>) {
        let start = self.rows.len();
        self.rows.extend_from_slice(rows);
        let front = Front { first, width, rows: (start, self.rows.len()), parent, values: self.n_values };
        self.n_values += front.n_values();
        self.operations += front.operations();
        self.fronts.push(front);
    }

    /// Orders a component and finds its fronts.
    fn dissect(&mut self, matrix: &PolicyMatrix, first: usize, end: usize, max_values: usize) -> Option<()> {
        let graph = self.graph(matrix, first, end);
        let mut order = nested_dissection(&graph);
        let graph = graph.renumbered(&order);
        // Children right before their parents, so that columns of like pattern are neighbours.
        let parent = elimination_tree(&graph);
        let by_tree = postorder(&parent);
        let graph = graph.renumbered(&by_tree);
        order = by_tree.iter().map(|&node| order[node as usize]).collect();
        let parent = elimination_tree(&graph);
        let counts = column_counts(&graph, &parent, max_values / 2)?;
        let states: Vec<u32> = order.iter().map(|&node| self.order[first + node as usize]).collect();
        for (i, &s) in states.iter().enumerate() {
            self.order[first + i] = s;
            self.place[s as usize] = (first + i) as u32;
        }
        self.add_fronts(first, &graph, &merged(&parent, &counts));
        Some(())
    }

    /// Which states of a component lead to each other, whatever the direction.
    fn graph(&self, matrix: &PolicyMatrix, first: usize, end: usize) -> Graph {
        let inside = |to: &u32| (first..end).contains(&(self.place[*to as usize] as usize));
        let edges = || {
            (first..end).flat_map(move |i| {
                let s = self.order[i];
                let others = matrix.row(s as usize).0.iter().filter(move |&&to| to != s).filter(move |to| inside(to));
                others.map(move |&to| (i - first, self.place[to as usize] as usize - first))
            })
        };
        let mut start = vec![0; end - first + 1];
        edges().for_each(|(i, j)| [i, j].into_iter().for_each(|node| start[node + 1] += 1));
        for node in 1..start.len() {
            start[node] += start[node - 1];
        }
        let mut at = start.clone();
        let mut both = vec![0; start[end - first]];
        edges().for_each(|(i, j)| {
            for (node, other) in [(i, j), (j, i)] {
                both[at[node]] = other as u32;
                at[node] += 1;
            }
        });
        let mut graph = Graph { start: vec![0], adjacent: Vec::with_capacity(both.len()) };
        for node in start.windows(2) {
            let others = &mut both[node[0]..node[1]];
            others.sort_unstable();
            let from = graph.adjacent.len();
            for &other in &*others {
                if graph.adjacent[from..].last() != Some(&other) {
                    graph.adjacent.push(other);
                }
            }
            graph.start.push(graph.adjacent.len());
        }
        graph
    }

    /// The patterns of fronts, given by their columns: what their columns are adjacent to, and what their children leave.
    fn add_fronts(&mut self, first: usize, graph: &Graph, columns: &[(usize, usize)]) {
        let mut owner = vec![0; graph.len()];
        for (front, &(column, width)) in columns.iter().enumerate() {
            owner[column..column + width].fill(front);
        }
        let base = self.fronts.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); columns.len()];
        let mut seen = vec![usize::MAX; graph.len()];
        for (front, &(column, width)) in columns.iter().enumerate() {
            let end = column + width;
            let mut rows: Vec<u32> = Vec::new();
            let own = (column..end).flat_map(|j| graph.neighbours(j as u32).iter().copied());
            let inherited = children[front].iter().flat_map(|&child| {
                let rows = self.fronts[base + child].rows;
                self.rows[rows.0..rows.1].iter().map(|&row| row - first as u32)
            });
            for row in own.chain(inherited) {
                if row as usize >= end && std::mem::replace(&mut seen[row as usize], front) != front {
                    rows.push(row);
                }
            }
            rows.sort_unstable();
            let parent = rows.first().map(|&row| owner[row as usize]);
            if let Some(parent) = parent {
                children[parent].push(front);
            }
            rows.iter_mut().for_each(|row| *row += first as u32);
            self.push(first + column, width, &rows, parent.map(|parent| base + parent));
        }
    }
}

/// The parent of each column: the first later column that its elimination changes.
fn elimination_tree(graph: &Graph) -> Vec<u32> {
    let n = graph.len();
    let (mut parent, mut ancestor) = (vec![NONE; n], vec![NONE; n]);
    for i in 0..n as u32 {
        for &earlier in graph.neighbours(i).iter().take_while(|&&j| j < i) {
            // Paths are shortened on the way, so that the next search is quick.
            let mut node = earlier;
            loop {
                let next = std::mem::replace(&mut ancestor[node as usize], i);
                if next == i {
                    break;
                }
                if next == NONE {
                    parent[node as usize] = i;
                    break;
                }
                node = next;
            }
        }
    }
    parent
}

/// The columns of a forest, children before their parents and subtrees together.
fn postorder(parent: &[u32]) -> Vec<u32> {
    let n = parent.len();
    let (mut child, mut sibling) = (vec![NONE; n], vec![NONE; n]);
    for j in (0..n).rev().filter(|&j| parent[j] != NONE) {
        sibling[j] = std::mem::replace(&mut child[parent[j] as usize], j as u32);
    }
    let mut order = Vec::with_capacity(n);
    let mut path = Vec::new();
    for root in (0..n as u32).filter(|&j| parent[j as usize] == NONE) {
        path.push(root);
        while let Some(&node) = path.last() {
            let next = child[node as usize];
            if next == NONE {
                order.push(node);
                path.pop();
            } else {
                child[node as usize] = sibling[next as usize];
                path.push(next);
            }
        }
    }
    order
}

/// Entries on and below the diagonal of each column of the factor; nothing where there are more than `max` in all.
fn column_counts(graph: &Graph, parent: &[u32], max: usize) -> Option<Vec<u32>> {
    let n = graph.len();
    let (mut counts, mut seen) = (vec![1; n], vec![NONE; n]);
    let mut total = n;
    for i in 0..n as u32 {
        seen[i as usize] = i;
        for &earlier in graph.neighbours(i).iter().take_while(|&&j| j < i) {
            let mut node = earlier as usize;
            while seen[node] != i {
                seen[node] = i;
                counts[node] += 1;
                total += 1;
                node = parent[node] as usize;
            }
        }
        if total > max {
            return None;
        }
    }
    Some(counts)
}

/// The columns of the fronts: first column and width. Neighbouring columns go together where their patterns are the same, or nearly so:
/// larger blocks are worth some zeros.
fn merged(parent: &[u32], counts: &[u32]) -> Vec<(usize, usize)> {
    struct Group {
        first: usize,
        width: usize,
        n_rows: usize,
        zeros: f64,
    }
    let mut groups: Vec<Group> = Vec::new();
    for j in 0..parent.len() {
        let mut group = Group { first: j, width: 1, n_rows: counts[j] as usize - 1, zeros: 0.0 };
        while let Some(before) = groups.last() {
            let leads_to = parent[group.first - 1];
            if leads_to == NONE || leads_to as usize >= group.first + group.width {
                break;
            }
            let width = before.width + group.width;
            let added = (group.width + group.n_rows - before.n_rows.min(group.width + group.n_rows)) * before.width;
            let zeros = before.zeros + group.zeros + added as f64;
            let share = match width {
                0..=4 => 0.8,
                5..=16 => 0.4,
                17..=48 => 0.15,
                _ => 0.05,
            };
            if zeros > share * width as f64 * (0.5 * width as f64 + group.n_rows as f64) {
                break;
            }
            group = Group { first: before.first, width, n_rows: group.n_rows, zeros };
            groups.pop();
        }
        groups.push(group);
    }
    groups.into_iter().map(|group| (group.first, group.width)).collect()
}
