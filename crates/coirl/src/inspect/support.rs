//! Where the demonstrations are: which of the states, pairs and features that can be reached they show.

use crate::demos::{Demonstration, Evidence, Origin, Trajectory};
use crate::error::Result;
use crate::learn::Problem;
use crate::model::{ActionId, Cmdp, Dynamics, Features, Kernel, StateId};

/// What is shown of what could be. Feature expectations show features only; states and pairs are counted along trajectories.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Support {
    /// Demonstrations with trajectories.
    pub trajectories: usize,
    /// States that some policy reaches from the model's start or a demonstration's, in some context.
    pub states_reachable: usize,
    /// Those of them that a trajectory visits.
    pub states_seen: usize,
    /// Admissible pairs of reachable states.
    pub pairs_reachable: usize,
    /// Those of them that a trajectory takes.
    pub pairs_seen: usize,
    /// Reachable states that no trajectory visits; empty without trajectories.
    pub states_never_seen: Vec<StateId>,
    /// Actions that are admissible in a state visited and never taken; empty without trajectories.
    pub actions_never_taken: Vec<ActionId>,
}

impl Support {
    /// Of demonstrations in a model.
    pub fn new(model: &Cmdp, demonstrations: &[Demonstration]) -> Self {
        Self::of(model, demonstrations, &reach(model, starts(model, demonstrations)))
    }

    pub(super) fn of(model: &Cmdp, demonstrations: &[Demonstration], reachable: &[bool]) -> Self {
        let pairs = model.pairs();
        let (mut state_seen, mut pair_seen) = (vec![false; model.n_states()], vec![false; pairs.len()]);
        let mut trajectories = 0;
        for paths in demonstrations.iter().filter_map(|demonstration| paths(demonstration)) {
            trajectories += 1;
            for path in paths {
                for (t, state) in path.states.iter().enumerate().filter(|(_, s)| s.index() < model.n_states()) {
                    state_seen[state.index()] = true;
                    let taken = path.actions.get(t).and_then(|action| pairs.find(state.index(), action.index()));
                    taken.into_iter().for_each(|pair| pair_seen[pair] = true);
                }
            }
        }
        let states: Vec<usize> = (0..model.n_states()).filter(|&s| reachable[s]).collect();
        let seen = states.iter().filter(|&&s| state_seen[s]).count();
        let mut taken = vec![false; model.n_actions()];
        let mut offered = vec![false; model.n_actions()];
        for pair in (0..model.n_states()).filter(|&s| state_seen[s]).flat_map(|s| pairs.of_state(s)) {
            let action = pairs.action(pair).index();
            offered[action] = true;
            taken[action] |= pair_seen[pair];
        }
        Self {
            trajectories,
            states_reachable: states.len(),
            states_seen: seen,
            pairs_reachable: states.iter().map(|&s| pairs.of_state(s).len()).sum(),
            pairs_seen: states.iter().flat_map(|&s| pairs.of_state(s)).filter(|&pair| pair_seen[pair]).count(),
            states_never_seen: states
                .iter()
                .filter(|&&s| trajectories > 0 && !state_seen[s])
                .map(|&s| StateId(s as u32))
                .collect(),
            actions_never_taken: (0..model.n_actions())
                .filter(|&a| offered[a] && !taken[a])
                .map(|a| ActionId(a as u32))
                .collect(),
        }
    }
}

/// Whether no demonstration ever meets a feature: μ*_j is zero, and φ_j has one sign, so that nothing can have cancelled.
pub(super) fn never_shown(problem: &Problem<'_>, tolerance: f64) -> Result<Vec<bool>> {
    let mut signs = vec![(false, false); problem.n_features()];
    let mut meet = |j: usize, x: f64| {
        signs[j].0 |= x < 0.0;
        signs[j].1 |= x > 0.0;
    };
    match problem.model().features() {
        Features::State { n_features, values } => {
            values.iter().enumerate().for_each(|(at, &x)| meet(at % n_features, x))
        }
        Features::StateAction(rows) => {
            (0..rows.n_rows()).for_each(|pair| rows.row(pair).for_each(|(j, x)| meet(j, x)));
        }
    }
    let mut never: Vec<bool> = signs.iter().map(|signs| !(signs.0 && signs.1)).collect();
    for i in 0..problem.len() {
        never.iter_mut().zip(problem.data().expectations(i)?).for_each(|(never, mu)| *never &= mu.abs() <= tolerance);
    }
    Ok(never)
}

/// The trajectories of a demonstration, where it has them.
pub(super) fn paths(demonstration: &Demonstration) -> Option<&[Trajectory]> {
    match demonstration.evidence() {
        Evidence::Trajectories(paths) => Some(paths),
        Evidence::FeatureExpectations(_) => None,
    }
}

/// Where the model or a demonstration starts.
pub(super) fn starts(model: &Cmdp, demonstrations: &[Demonstration]) -> Vec<bool> {
    let mut starts: Vec<bool> = model.initial().iter().map(|&p| p > 0.0).collect();
    for demonstration in demonstrations {
        if let Origin::States(states) = demonstration.origin() {
            states.iter().filter(|s| s.index() < model.n_states()).for_each(|s| starts[s.index()] = true);
        }
    }
    starts
}

/// The states that some policy reaches from the states marked, those included, under the kernels of all contexts.
pub(super) fn reach(model: &Cmdp, mut reached: Vec<bool>) -> Vec<bool> {
    let mut frontier: Vec<usize> = (0..reached.len()).filter(|&s| reached[s]).collect();
    while let Some(state) = frontier.pop() {
        let mut arrive = |next: usize| {
            if !reached[next] {
                reached[next] = true;
                frontier.push(next);
            }
        };
        let follow = |kernel: &Kernel, arrive: &mut dyn FnMut(usize)| {
            for pair in kernel.pairs().of_state(state) {
                kernel.successors(pair).filter(|entry| entry.1 > 0.0).for_each(|(next, _)| arrive(next));
            }
        };
        match model.dynamics() {
            Dynamics::Shared(kernel) => follow(kernel, &mut arrive),
            Dynamics::Clusters(clusters) => clusters.kernels().iter().for_each(|kernel| follow(kernel, &mut arrive)),
            Dynamics::Mixture(mixture) => {
                // The pattern is the union of those of the base kernels: all that some context makes possible.
                let layout = mixture.layout();
                for pair in layout.pairs.of_state(state) {
                    let row = layout.pair_row[pair] as usize;
                    layout.next[layout.row_start[row]..layout.row_start[row + 1]]
                        .iter()
                        .for_each(|&n| arrive(n as usize));
                }
            }
        }
    }
    reached
}
