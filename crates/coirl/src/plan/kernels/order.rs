//! Orders of the states of a policy: its strongly connected components, and an order against the flow of its transitions.
//!
//! Values flow backwards along transitions. Where states are taken after those they lead to, one pass carries news along whole paths;
//! where the components come successors first, the system of a policy is block triangular. Both take time linear in the transitions.

use crate::plan::kernels::sweep::PolicyMatrix;

const UNSEEN: u32 = u32::MAX;

/// Transitions less likely than this share of the likeliest of their state are not followed: interpolation and slips would close cycles
/// that hardly matter.
const STRONG: f64 = 0.3;

/// The strongly connected components of states that lead to others, each after those it leads to (Tarjan 1972).
#[derive(Debug, Default)]
pub(in crate::plan) struct Components {
    /// The states, component after component.
    pub(in crate::plan) states: Vec<u32>,
    /// Where each component starts among `states`, and where the last one ends.
    pub(in crate::plan) starts: Vec<usize>,
}

impl Components {
    /// Of a policy.
    pub(in crate::plan) fn of_policy(matrix: &PolicyMatrix) -> Self {
        Self::of(matrix.len(), |s| matrix.row(s).0)
    }

    /// Of `n` states, each with those it leads to.
    pub(in crate::plan) fn of<'a>(n: usize, successors: impl Fn(usize) -> &'a [u32]) -> Self {
        let mut search = Search { found: vec![UNSEEN; n], lowest: vec![UNSEEN; n], n_found: 0, open: Vec::new() };
        let mut closed = vec![false; n];
        let mut path: Vec<(u32, usize)> = Vec::new();
        let mut components = Self { states: Vec::with_capacity(n), starts: vec![0] };
        for root in 0..n as u32 {
            if search.found[root as usize] != UNSEEN {
                continue;
            }
            search.enter(root);
            path.push((root, 0));
            while let Some((state, at)) = path.last_mut() {
                let s = *state as usize;
                if let Some(&to) = successors(s).get(*at) {
                    *at += 1;
                    let t = to as usize;
                    if search.found[t] == UNSEEN {
                        search.enter(to);
                        path.push((to, 0));
                    } else if !closed[t] {
                        search.lowest[s] = search.lowest[s].min(search.found[t]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let parent = *parent as usize;
                    search.lowest[parent] = search.lowest[parent].min(search.lowest[s]);
                }
                if search.lowest[s] == search.found[s] {
                    while let Some(t) = search.open.pop() {
                        closed[t as usize] = true;
                        components.states.push(t);
                        if t as usize == s {
                            break;
                        }
                    }
                    components.starts.push(components.states.len());
                }
            }
        }
        components
    }
}

/// How far a search for components has got.
struct Search {
    /// When each state was found.
    found: Vec<u32>,
    /// The earliest state of an open component that each is known to lead to.
    lowest: Vec<u32>,
    n_found: u32,
    open: Vec<u32>,
}

impl Search {
    fn enter(&mut self, state: u32) {
        self.found[state as usize] = self.n_found;
        self.lowest[state as usize] = self.n_found;
        self.n_found += 1;
        self.open.push(state);
    }
}

/// The states in the order in which a depth-first search along likely transitions leaves them: each after the states it likely leads to, but
/// where a cycle closes.
pub(in crate::plan) fn against_the_flow(matrix: &PolicyMatrix) -> Vec<u32> {
    let n = matrix.len();
    let mut seen = vec![false; n];
    let mut order = Vec::with_capacity(n);
    let mut path: Vec<(u32, u32, f64)> = Vec::new();
    let likely = |s: usize| STRONG * matrix.row(s).1.iter().fold(0.0, |most: f64, &p| most.max(p));
    for root in 0..n {
        if seen[root] {
            continue;
        }
        seen[root] = true;
        path.push((root as u32, 0, likely(root)));
        while let Some((state, at, bar)) = path.last_mut() {
            let (next, p) = matrix.row(*state as usize);
            let Some(&to) = next.get(*at as usize) else {
                order.push(*state);
                path.pop();
                continue;
            };
            let follow = p[*at as usize] >= *bar && !seen[to as usize];
            *at += 1;
            if follow {
                seen[to as usize] = true;
                path.push((to, 0, likely(to as usize)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[(u32, f64)]]) -> PolicyMatrix {
        PolicyMatrix::from_rows(0.9, vec![0.0; rows.len()], rows.iter().map(|row| row.to_vec()))
    }

    #[test]
    fn components_come_after_those_they_lead_to() {
        // 0 → {1 ↔ 2} → 3, and 4 alone.
        let matrix = matrix(&[&[(1, 1.0)], &[(2, 0.5), (3, 0.5)], &[(1, 1.0)], &[(3, 1.0)], &[(0, 0.5), (4, 0.5)]]);
        let Components { states, starts } = Components::of_policy(&matrix);
        let parts: Vec<Vec<u32>> = starts
            .windows(2)
            .map(|w| {
                let mut part = states[w[0]..w[1]].to_vec();
                part.sort_unstable();
                part
            })
            .collect();
        assert_eq!(parts, [vec![3], vec![1, 2], vec![0], vec![4]]);
    }

    #[test]
    fn a_long_chain_needs_no_stack_of_its_length() {
        let n = 300_000_u32;
        let rows = (0..n).map(|s| vec![((s + 1).min(n - 1), 1.0)]);
        let matrix = PolicyMatrix::from_rows(0.9, vec![0.0; n as usize], rows);
        assert_eq!(Components::of_policy(&matrix).starts.len(), n as usize + 1);
        let order = against_the_flow(&matrix);
        assert!(order.iter().rev().enumerate().all(|(i, &s)| i as u32 == s));
    }

    #[test]
    fn weak_transitions_are_not_followed() {
        // A slip of a tenth back along a chain does not turn the order round.
        let matrix = matrix(&[&[(1, 1.0)], &[(0, 0.1), (2, 0.9)], &[(1, 0.1), (2, 0.9)]]);
        assert_eq!(against_the_flow(&matrix), [2, 1, 0]);
    }
}
