//! Nested dissection: an order of elimination that keeps the factors of a sparse matrix sparse.
//!
//! A graph is cut by a level of a breadth-first search from a node at its rim, the two sides are ordered first, each in the same way, and the
//! nodes of the cut last (George 1973; George and Liu 1978). On graphs that look like a plane of n nodes the factors have about n log n
//! entries and take n^1.5 operations. Nothing is random: the same graph has the same order.

/// Parts of at most this many nodes are not cut further.
const SMALLEST_PART: usize = 48;
/// Searches for a node at the rim.
const RIM_SEARCHES: usize = 4;
/// No side of a cut may hold more than this share of the nodes, where that can be helped.
const LARGEST_SIDE: f64 = 0.85;

const UNSEEN: u32 = u32::MAX;

/// An undirected graph: the neighbours of node `i` are `adjacent[start[i]..start[i + 1]]`, ascending, without `i`.
#[derive(Debug, Default)]
pub(in crate::plan) struct Graph {
    pub(in crate::plan) start: Vec<usize>,
    pub(in crate::plan) adjacent: Vec<u32>,
}

impl Graph {
    pub(in crate::plan) fn len(&self) -> usize {
        self.start.len() - 1
    }

    pub(in crate::plan) fn neighbours(&self, node: u32) -> &[u32] {
        &self.adjacent[self.start[node as usize]..self.start[node as usize + 1]]
    }

    /// The graph whose nodes are numbered anew: node `i` is what `order[i]` was.
    pub(in crate::plan) fn renumbered(&self, order: &[u32]) -> Self {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &node)| place[node as usize] = i as u32);
        let mut renumbered = Self { start: vec![0], adjacent: Vec::with_capacity(self.adjacent.len()) };
        for &node in order {
            let first = renumbered.adjacent.len();
            renumbered.adjacent.extend(self.neighbours(node).iter().map(|&other| place[other as usize]));
            renumbered.adjacent[first..].sort_unstable();
            renumbered.start.push(renumbered.adjacent.len());
        }
        renumbered
    }
}

/// The nodes in an order of elimination.
pub(in crate::plan) fn nested_dissection(graph: &Graph) -> Vec<u32> {
    let n = graph.len();
    let mut order = vec![0; n];
    let mut dissection = Dissection { graph, part: vec![0; n], n_parts: 1, level: vec![UNSEEN; n], front: Vec::new() };
    // Parts, with the place in the order where each ends.
    let mut open: Vec<(Vec<u32>, usize)> = vec![((0..n as u32).collect(), n)];
    while let Some((nodes, end)) = open.pop() {
        let Some([first, second, cut]) = dissection.cut(&nodes) else {
            order[end - nodes.len()..end].copy_from_slice(&nodes);
            continue;
        };
        let middle = end - cut.len();
        order[middle..end].copy_from_slice(&cut);
        let half = middle - second.len();
        open.extend([(second, middle), (first, half)].into_iter().filter(|part| !part.0.is_empty()));
    }
    order
}

struct Dissection<'a> {
    graph: &'a Graph,
    /// The part that each node belongs to.
    part: Vec<u32>,
    n_parts: u32,
    /// Steps from where the last search began.
    level: Vec<u32>,
    /// The nodes in the order of the last search.
    front: Vec<u32>,
}

impl Dissection<'_> {
    /// Two sides without a connection, and the cut between them; nothing where a part is not worth cutting.
    fn cut(&mut self, nodes: &[u32]) -> Option<[Vec<u32>; 3]> {
        if nodes.len() <= SMALLEST_PART {
            return None;
        }
        let depth = self.search_from_the_rim(nodes);
        if self.front.len() < nodes.len() {
            // Not connected: what was reached is one side, the rest the other.
            let reached = self.front.clone();
            let rest = nodes.iter().copied().filter(|&node| self.level[node as usize] == UNSEEN).collect();
            self.rename(&reached);
            return Some([reached, rest, Vec::new()]);
        }
        if depth < 2 {
            return None;
        }
        let at = self.best_level(depth);
        let part = self.part[nodes[0] as usize];
        let (mut first, mut second, mut cut) = (Vec::new(), Vec::new(), Vec::new());
        for &node in &self.front {
            let beyond = |&other: &u32| self.part[other as usize] == part && self.level[other as usize] == at + 1;
            match self.level[node as usize].cmp(&at) {
                std::cmp::Ordering::Less => first.push(node),
                std::cmp::Ordering::Greater => second.push(node),
                std::cmp::Ordering::Equal if self.graph.neighbours(node).iter().any(beyond) => cut.push(node),
                std::cmp::Ordering::Equal => first.push(node),
            }
        }
        for side in [&first, &second, &cut] {
            self.rename(side);
        }
        Some([first, second, cut])
    }

    fn rename(&mut self, nodes: &[u32]) {
        nodes.iter().for_each(|&node| self.part[node as usize] = self.n_parts);
        self.n_parts += 1;
    }

    /// Breadth-first searches, each from the far end of the one before. Returns the number of the last level.
    fn search_from_the_rim(&mut self, nodes: &[u32]) -> u32 {
        let mut from = nodes[0];
        let mut depth = 0;
        for search in 0..RIM_SEARCHES {
            let reached = self.search(nodes, from);
            if search > 0 && reached <= depth {
                break;
            }
            depth = reached;
            let last = self.front.iter().rev().take_while(|&&node| self.level[node as usize] == depth);
            from = last.copied().min_by_key(|&node| self.graph.neighbours(node).len()).unwrap_or(from);
        }
        self.front.last().map_or(0, |&node| self.level[node as usize])
    }

    fn search(&mut self, nodes: &[u32], from: u32) -> u32 {
        let part = self.part[from as usize];
        nodes.iter().for_each(|&node| self.level[node as usize] = UNSEEN);
        self.front.clear();
        self.front.push(from);
        self.level[from as usize] = 0;
        let mut done = 0;
        while done < self.front.len() {
            let node = self.front[done];
            done += 1;
            for &other in self.graph.neighbours(node) {
                if self.part[other as usize] == part && self.level[other as usize] == UNSEEN {
                    self.level[other as usize] = self.level[node as usize] + 1;
                    self.front.push(other);
                }
            }
        }
        self.level[self.front[done - 1] as usize]
    }

    /// The level to cut at: small, and near the middle.
    fn best_level(&self, depth: u32) -> u32 {
        let mut sizes = vec![0_usize; depth as usize + 1];
        self.front.iter().for_each(|&node| sizes[self.level[node as usize] as usize] += 1);
        let total = self.front.len() as f64;
        let mut below = sizes[0];
        let mut middle = 1;
        let mut best: Option<(f64, u32)> = None;
        for level in 1..depth {
            let size = sizes[level as usize];
            let above = self.front.len() - below - size;
            if below as f64 <= 0.5 * total {
                middle = level;
            }
            let larger = below.max(above) as f64 / total;
            let score = size as f64 * (1.0 + 32.0 * (larger - 0.5).max(0.0).powi(2));
            if larger < LARGEST_SIDE && best.is_none_or(|(least, _)| score < least) {
                best = Some((score, level));
            }
            below += size;
        }
        best.map_or(middle, |(_, level)| level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(side: u32) -> Graph {
        let mut graph = Graph { start: vec![0], adjacent: Vec::new() };
        for node in 0..side * side {
            let (i, j) = (node / side, node % side);
            let above = (i > 0).then(|| node - side);
            let left = (j > 0).then(|| node - 1);
            let right = (j + 1 < side).then_some(node + 1);
            let below = (i + 1 < side).then_some(node + side);
            graph.adjacent.extend([above, left, right, below].into_iter().flatten());
            graph.start.push(graph.adjacent.len());
        }
        graph
    }

    #[test]
    fn every_node_has_its_place() {
        for graph in [grid(1), grid(7), grid(40), Graph { start: vec![0; 101], adjacent: Vec::new() }] {
            let mut order = nested_dissection(&graph);
            order.sort_unstable();
            assert!(order.iter().enumerate().all(|(i, &node)| i as u32 == node));
        }
    }

    #[test]
    fn the_last_nodes_cut_a_grid_in_two() {
        let (graph, side) = (grid(60), 60);
        let order = nested_dissection(&graph);
        // Without the cut of the top level the rest falls apart.
        let mut removed = vec![false; graph.len()];
        order[graph.len() - 2 * side..].iter().for_each(|&node| removed[node as usize] = true);
        let from = order[0];
        let mut seen = removed.clone();
        let mut front = vec![from];
        seen[from as usize] = true;
        let mut reached = 0;
        while let Some(node) = front.pop() {
            reached += 1;
            for &other in graph.neighbours(node) {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    front.push(other);
                }
            }
        }
        assert!(reached < 3 * graph.len() / 4, "{reached} of {} nodes on one side", graph.len());
    }
}
