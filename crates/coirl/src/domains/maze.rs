//! A square maze with walls in random places, out of which one exit leads: a model that mixes slowly.
//!
//! State `row·side + column`. The actions up, right, down and left do what they say with probability 1 − slip and go to the left
//! or to the right of it with slip/2 each; against a wall or the rim one stays. The last cell is the exit, which nothing leaves and
//! which has no features. A step from any other cell has the feature *step*; *mud* and *danger* tell its kind of ground, so that
//! contexts take different ways around. Cells of walls are states that one can leave and not enter, and the start is any cell.
//! Cells that walls shut in pay for ever. Walls are drawn from this library's random streams, a number per cell in order, and
//! are not those of another library with the same seed. It is the kind of maze that solvers such as madupite are shown on,
//! with a cost of one per step: news of the exit travel cell by cell.

use crate::error::{Error, Result, check_room};
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, Names};
use crate::random::stream;
use rand::RngExt;

/// Settings of the maze.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Maze {
    /// Cells from one side to the other.
    pub side: usize,
    /// Probability of going to the left or to the right of where one wants to.
    pub slip: f64,
    /// Share of the cells that are walls.
    pub walls: f64,
    /// Share of the other cells with mud.
    pub mud: f64,
    /// Share of the other cells with danger.
    pub danger: f64,
    /// γ.
    pub discount: f64,
    /// Seed of walls, mud and danger.
    pub seed: u64,
}

impl Default for Maze {
    fn default() -> Self {
        Self { side: 100, slip: 0.1, walls: 0.3, mud: 0.2, danger: 0.05, discount: 0.99, seed: 0 }
    }
}

impl Maze {
    /// The context whose reward under [`standard_mapping`](Self::standard_mapping) is −1 per step and nothing else.
    pub const STANDARD_CONTEXT: [f64; 3] = [1.0, 0.0, 0.0];

    /// A step costs the hurried 1, mud the clean 2 and danger the careful 10.
    pub fn standard_mapping() -> LinearMapping {
        LinearMapping::from_checked(3, vec![-1.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, -10.0])
    }

    /// The model.
    pub fn build(self) -> Result<Cmdp> {
        self.check()?;
        let (n, exit) = (self.side, self.side * self.side - 1);
        let walls = self.wall_cells();
        // Where a step in a direction leads: up, right, down, left.
        let ahead = |cell: usize, direction: usize| {
            let (row, column) = (cell / n, cell % n);
            let next = match direction {
                0 if row > 0 => cell - n,
                1 if column + 1 < n => cell + 1,
                2 if row + 1 < n => cell + n,
                3 if column > 0 => cell - 1,
                _ => cell,
            };
            if walls[next] { cell } else { next }
        };
        let transition = |cell: usize, action: usize| {
            [(0, 1.0 - self.slip), (1, self.slip / 2.0), (3, self.slip / 2.0)]
                .map(|(turn, p)| (if cell == exit { exit } else { ahead(cell, (action + turn) % 4) }, p))
        };
        let kernel = Kernel::from_fn(n * n, 4, transition)?;
        let (mud, danger) = (self.cells("maze mud", self.mud), self.cells("maze danger", self.danger));
        let mut features = Vec::with_capacity(3 * n * n);
        for (cell, (mud, danger)) in mud.zip(danger).enumerate() {
            let ground = |is: bool| f64::from(u8::from(is && !walls[cell] && cell != exit));
            features.extend([f64::from(u8::from(cell != exit)), ground(mud), ground(danger)]);
        }
        let features = Features::per_state(n * n, 3, features)?;
        let initial = vec![1.0 / (n * n) as f64; n * n];
        let strings = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Cmdp::new(Dynamics::Shared(kernel), features, initial, Criterion::discounted(self.discount)?)?
            .with_context_space(ContextSpace::Simplex { dimension: 3 })?
            .with_names(Names {
                model: format!("maze {n} × {n} (seed {})", self.seed),
                actions: strings(&["up", "right", "down", "left"]),
                features: strings(&["step", "mud", "danger"]),
                contexts: strings(&["hurry", "cleanliness", "care"]),
            })
    }

    /// Which cells are walls, row by row.
    pub fn wall_cells(self) -> Vec<bool> {
        let mut walls: Vec<bool> = self.cells("maze walls", self.walls).collect();
        if let Some(exit) = walls.last_mut() {
            *exit = false;
        }
        walls
    }

    fn cells(self, name: &str, share: f64) -> impl Iterator<Item = bool> {
        let mut rng = stream(self.seed, name, 0);
        (0..self.side * self.side).map(move |_| rng.random::<f64>() < share)
    }

    fn check(self) -> Result<()> {
        if self.side == 0 {
            let reason = "expected at least 1 cell";
            return Err(Error::InvalidSetting { name: "side", value: "0".into(), reason });
        }
        check_room("transitions of a maze", &[self.side, self.side, 4, 3])?;
        let shares = [("slip", self.slip), ("walls", self.walls), ("mud", self.mud), ("danger", self.danger)];
        match shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((name, share)) => {
                Err(Error::InvalidSetting { name, value: share.to_string(), reason: "expected a share in [0, 1]" })
            }
            None => Ok(()),
        }
    }
}
