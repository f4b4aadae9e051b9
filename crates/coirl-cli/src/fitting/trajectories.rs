//! Trajectories from a table: a row per state visited, or matrices of states and actions.

use crate::failure::Failure;
use crate::tables::Cells;
use coirl::artifact;
use coirl::demos::Trajectory;
use coirl::model::{ActionId, Cmdp, StateId};
use std::collections::BTreeMap;
use std::path::Path;

/// Actions listed in a message before the rest is left out.
const MOST_ACTIONS: usize = 12;

/// A state visited, with the action taken there.
#[derive(Debug, Clone, Copy)]
struct Visit {
    step: i64,
    state: StateId,
    action: Option<ActionId>,
    row: usize,
}

/// Which actions a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Those that are admissible in their state.
    Admissible,
    /// Any action of the model: what was recorded, whatever the model came to admit.
    Any,
}

/// The trajectories of every demonstration, in the order of the contexts.
pub(super) fn read(path: &Path, model: &Cmdp, n_demonstrations: usize) -> Result<Vec<Vec<Trajectory>>, Failure> {
    if has_matrices(path) {
        return Matrices::read(path)?.trajectories(model, n_demonstrations);
    }
    of_cells(&Cells::read(path)?, model, n_demonstrations, Allowed::Admissible)
}

/// The same of what was recorded.
pub(super) fn read_recorded(
    path: &Path,
    model: &Cmdp,
    n_demonstrations: usize,
) -> Result<Vec<Vec<Trajectory>>, Failure> {
    of_cells(&Cells::read(path)?, model, n_demonstrations, Allowed::Any)
}

/// Those of a table, a row per state visited.
pub(super) fn of_cells(
    cells: &Cells,
    model: &Cmdp,
    n_demonstrations: usize,
    allowed: Allowed,
) -> Result<Vec<Vec<Trajectory>>, Failure> {
    let mut paths: BTreeMap<(usize, i64), Vec<Visit>> = BTreeMap::new();
    let trajectory = cells.find("trajectory");
    let (demonstration, step) = (cells.column("demonstration")?, cells.column("step")?);
    let (state, action) = (cells.column("state")?, cells.column("action")?);
    for row in 0..cells.n_rows() {
        let whole = |name: &str, cell: Option<f64>| match cell {
            Some(x) if x.fract() == 0.0 && x.abs() < 2f64.powi(53) => Ok(x as i64),
            Some(x) => Err(cells.refuse(row, name, format!("{x}; expected a whole number"))),
            None => Err(cells.refuse(row, name, "nothing is there; expected a whole number")),
        };
        let number = whole("demonstration", demonstration.cells[row])?;
        let number = usize::try_from(number).ok().filter(|&i| i < n_demonstrations).ok_or_else(|| {
            let expected = format!("expected 0 to {}, the rows of the contexts", n_demonstrations - 1);
            cells.refuse(row, "demonstration", format!("{number}; {expected}"))
        })?;
        let of = trajectory.map_or(Ok(0), |column| whole("trajectory", column.cells[row]))?;
        let state = checked_state(model, whole("state", state.cells[row])?)
            .map_err(|reason| cells.refuse(row, "state", reason))?;
        let action = match action.cells[row] {
            None => None,
            Some(_) => match whole("action", action.cells[row])? {
                -1 => None,
                action => {
                    let checked = checked_action(model, state, action, allowed);
                    Some(checked.map_err(|reason| cells.refuse(row, "action", reason))?)
                }
            },
        };
        let step = whole("step", step.cells[row])?;
        paths.entry((number, of)).or_default().push(Visit { step, state, action, row });
    }
    let mut found: Vec<Vec<Trajectory>> = vec![Vec::new(); n_demonstrations];
    for ((number, _), mut visits) in paths {
        visits.sort_by_key(|visit| (visit.step, visit.row));
        let last = visits.len() - 1;
        for (t, visit) in visits.iter().enumerate() {
            if visit.step != t as i64 {
                let reason = format!("{}; expected {t}: the steps of a trajectory are 0, 1, 2, …", visit.step);
                return Err(cells.refuse(visit.row, "step", reason));
            }
            match visit.action {
                None if t < last => {
                    return Err(cells.refuse(visit.row, "action", "nothing is there, but the trajectory goes on"));
                }
                Some(action) if t == last => {
                    let reason = format!("{}; expected none at the last step: nobody knows where it led", action.0);
                    return Err(cells.refuse(visit.row, "action", reason));
                }
                _ => {}
            }
        }
        found[number].push(Trajectory {
            states: visits.iter().map(|visit| visit.state).collect(),
            actions: visits.iter().filter_map(|visit| visit.action).collect(),
        });
    }
    match found.iter().position(Vec::is_empty) {
        Some(missing) => {
            let reason = format!("demonstration {missing} has no row; there are {n_demonstrations} contexts");
            Err(cells.refuse_file(reason))
        }
        None => Ok(found),
    }
}

/// Whether a file holds trajectories, rather than a plain table of numbers.
pub(super) fn are_in(path: &Path) -> bool {
    has_matrices(path) || Cells::read(path).is_ok_and(|cells| cells.find("demonstration").is_some())
}

fn has_matrices(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
        && artifact::array_keys(path).is_ok_and(|keys| keys.iter().any(|key| key == "states"))
}

fn checked_state(model: &Cmdp, state: i64) -> Result<StateId, String> {
    let exists = u32::try_from(state).ok().filter(|&state| (state as usize) < model.n_states());
    exists.map(StateId).ok_or_else(|| format!("{state}; the model has states 0 to {}", model.n_states() - 1))
}

fn checked_action(model: &Cmdp, state: StateId, action: i64, allowed: Allowed) -> Result<ActionId, String> {
    if !(0..model.n_actions() as i64).contains(&action) {
        return Err(format!("{action}; the model has actions 0 to {}", model.n_actions() - 1));
    }
    let pairs = model.pairs();
    if allowed == Allowed::Any || pairs.find(state.index(), action as usize).is_some() {
        return Ok(ActionId(action as u32));
    }
    let all: Vec<String> =
        pairs.of_state(state.index()).map(|pair| pairs.action(pair).0.to_string()).take(MOST_ACTIONS).collect();
    Err(format!("{action} is not admissible in state {}; expected one of {}", state.0, all.join(", ")))
}

/// `states` `[N, T + 1]` and `actions` `[N, T]`; a path ends before its first −1.
struct Matrices<'a> {
    path: &'a Path,
    length: usize,
    states: Vec<f64>,
    actions: Vec<f64>,
}

impl<'a> Matrices<'a> {
    fn read(path: &'a Path) -> Result<Self, Failure> {
        let (states_shape, states) = artifact::read_numbers(path, "states")?;
        let (actions_shape, actions) = artifact::read_numbers(path, "actions")?;
        match (&states_shape[..], &actions_shape[..]) {
            (&[n, length], &[m, steps]) if n == m && length == steps + 1 && n > 0 => {
                Ok(Self { path, length, states, actions })
            }
            _ => {
                let found = format!("\"states\" has shape {states_shape:?} and \"actions\" {actions_shape:?}");
                Err(Failure::in_file(path, format!("{found}; expected [N, T + 1] and [N, T]")))
            }
        }
    }

    fn trajectories(&self, model: &Cmdp, n_demonstrations: usize) -> Result<Vec<Vec<Trajectory>>, Failure> {
        let n = self.states.len() / self.length;
        if n != n_demonstrations {
            let reason = format!("has {n} trajectories, but there are {n_demonstrations} contexts");
            return Err(Failure::in_file(self.path, reason));
        }
        (0..n).map(|i| self.trajectory(model, i).map(|trajectory| vec![trajectory])).collect()
    }

    fn trajectory(&self, model: &Cmdp, i: usize) -> Result<Trajectory, Failure> {
        let refuse =
            |key: &str, t: usize, reason: String| Failure::in_file(self.path, format!("{key}[{i}, {t}]: {reason}"));
        let whole = |x: f64| if x.fract() == 0.0 { Ok(x as i64) } else { Err(format!("{x}; expected a whole number")) };
        let mut found = Trajectory { states: Vec::new(), actions: Vec::new() };
        for (t, &x) in self.states[i * self.length..(i + 1) * self.length].iter().enumerate() {
            if x == -1.0 && t > 0 {
                break;
            }
            let state =
                whole(x).and_then(|state| checked_state(model, state)).map_err(|why| refuse("states", t, why))?;
            if let Some(&before) = found.states.last() {
                let x = self.actions[i * (self.length - 1) + t - 1];
                let action = whole(x).and_then(|action| checked_action(model, before, action, Allowed::Admissible));
                found.actions.push(action.map_err(|why| refuse("actions", t - 1, why))?);
            }
            found.states.push(state);
        }
        Ok(found)
    }
}
