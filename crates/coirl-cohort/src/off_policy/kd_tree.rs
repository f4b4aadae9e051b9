//! A k-d tree (Bentley 1975): points halved again and again at the median of their widest coordinate. A search goes to the nearer half
//! first and to the other only if its box is not farther than the worst point kept, so that what is found is exact.

use std::collections::BinaryHeap;

/// Points in a leaf, at most.
const LEAF: usize = 24;
/// Boxes are measured step by step on the way down; what rounding adds must not exclude them.
const ROUNDING: f64 = 1.0 - 1e-9;

#[derive(Debug)]
enum Node {
    Leaf { start: usize, end: usize },
    Split { axis: usize, threshold: f64, left: usize, right: usize },
}

/// Points for repeated searches.
#[derive(Debug)]
pub(super) struct KdTree {
    width: usize,
    /// Row-major, in the order of the leaves.
    points: Vec<f64>,
    /// Number of each point as it was given.
    numbers: Vec<usize>,
    nodes: Vec<Node>,
    root: usize,
}

/// A squared distance and whose it is; the farther one is the greater, of equally far ones the later.
#[derive(Debug, PartialEq, Clone, Copy)]
struct Near(f64, usize);

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl KdTree {
    /// Of points of this width, row-major; at least one.
    pub(super) fn new(width: usize, points: &[f64]) -> Self {
        let mut numbers: Vec<usize> = (0..points.len() / width).collect();
        let mut nodes = Vec::new();
        let root = grow(width, points, &mut numbers, 0, &mut nodes);
        let moved = numbers.iter().flat_map(|&i| &points[i * width..(i + 1) * width]).copied().collect();
        Self { width, points: moved, numbers, nodes, root }
    }

    /// Numbers of the k nearest points among those that are wanted, in no particular order.
    pub(super) fn nearest(&self, point: &[f64], k: usize, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut search = Search { point, k, wanted, offsets: vec![0.0; self.width], kept: BinaryHeap::new() };
        search.visit(self, self.root, 0.0);
        search.kept.into_iter().map(|near| near.1).collect()
    }
}

/// Halves the points from `start` on and returns the node that holds them.
fn grow(width: usize, points: &[f64], numbers: &mut [usize], start: usize, nodes: &mut Vec<Node>) -> usize {
    let node = if numbers.len() <= LEAF {
        Node::Leaf { start, end: start + numbers.len() }
    } else {
        let axis = widest(width, points, numbers);
        let middle = numbers.len() / 2;
        let at = |i: usize| points[i * width + axis];
        numbers.select_nth_unstable_by(middle, |&a, &b| at(a).total_cmp(&at(b)).then(a.cmp(&b)));
        let threshold = at(numbers[middle]);
        let (below, above) = numbers.split_at_mut(middle);
        let left = grow(width, points, below, start, nodes);
        let right = grow(width, points, above, start + middle, nodes);
        Node::Split { axis, threshold, left, right }
    };
    nodes.push(node);
    nodes.len() - 1
}

/// The coordinate that these points differ most in.
fn widest(width: usize, points: &[f64], numbers: &[usize]) -> usize {
    let spread = |axis: usize| {
        let ends = numbers.iter().map(|&i| points[i * width + axis]);
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        high - low
    };
    let spreads: Vec<f64> = (0..width).map(spread).collect();
    (1..width).fold(0, |best, axis| if spreads[axis] > spreads[best] { axis } else { best })
}

struct Search<'a, W> {
    point: &'a [f64],
    k: usize,
    wanted: W,
    /// How far the point is outside the box at hand, by coordinate.
    offsets: Vec<f64>,
    kept: BinaryHeap<Near>,
}

impl<W: Fn(usize) -> bool> Search<'_, W> {
    /// Searches a node whose box is at this squared distance. The depth is the logarithm of the number of points.
    fn visit(&mut self, tree: &KdTree, node: usize, distance: f64) {
        match tree.nodes[node] {
            Node::Leaf { start, end } => (start..end).for_each(|place| self.meet(tree, place)),
            Node::Split { axis, threshold, left, right } => {
                let offset = self.point[axis] - threshold;
                let (near, far) = if offset < 0.0 { (left, right) } else { (right, left) };
                self.visit(tree, near, distance);
                let before = self.offsets[axis];
                let farther = distance - before * before + offset * offset;
                if self.kept.len() < self.k || self.kept.peek().is_some_and(|worst| farther * ROUNDING <= worst.0) {
                    self.offsets[axis] = offset;
                    self.visit(tree, far, farther);
                    self.offsets[axis] = before;
                }
            }
        }
    }

    fn meet(&mut self, tree: &KdTree, place: usize) {
        let other = &tree.points[place * tree.width..(place + 1) * tree.width];
        let distance: f64 = self.point.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum();
        let met = Near(distance, tree.numbers[place]);
        let full = self.kept.len() >= self.k;
        if full && self.kept.peek().is_some_and(|worst| met > *worst) || !(self.wanted)(met.1) {
            return;
        }
        if full {
            self.kept.pop();
        }
        self.kept.push(met);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coirl::random::stream;
    use rand::RngExt;

    /// Against all distances sorted, with many points at the same place.
    #[test]
    fn what_is_found_is_what_a_full_search_finds() {
        for (number, (n, width, k)) in [(500, 3, 7), (400, 1, 30), (300, 9, 5), (20, 2, 50)].into_iter().enumerate() {
            let mut random = stream(11, "points", number as u64);
            let points: Vec<f64> = (0..n * width).map(|_| f64::from(random.random_range(0..12_u8)) / 4.0).collect();
            let tree = KdTree::new(width, &points);
            for query in 0..n {
                let row = |i: usize| &points[i * width..(i + 1) * width];
                let wanted = |i: usize| i % 5 != query % 5;
                let distance = |i: usize| row(i).iter().zip(row(query)).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
                let mut expected: Vec<usize> = (0..n).filter(|&i| wanted(i)).collect();
                expected.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
                expected.truncate(k);
                expected.sort_unstable();
                let mut found = tree.nearest(row(query), k, wanted);
                found.sort_unstable();
                assert_eq!(found, expected, "query {query} of {n} in {width} dimensions");
            }
        }
    }
}
