//! The cyclic grid world: move left, up, right or down, and leave on one side to enter on the other.
//!
//! State `y·width + x`; every state has its own feature (φ(s) = e_s), contexts are rewards of the cells, and the start is
//! uniform. The paper's grid is 3 wide and 4 tall.

use crate::error::{Error, Result};
use crate::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, KernelBuilder, Names, Pairs};
use std::sync::Arc;

/// Every cell has its own feature, so the features grow with the square of the cells.
const MAX_CELLS: usize = 10_000;

/// Settings of the grid world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Cells from left to right.
    pub width: usize,
    /// Cells from top to bottom.
    pub height: usize,
    /// γ.
    pub discount: f64,
}

impl Default for Grid {
    fn default() -> Self {
        Self { width: 3, height: 4, discount: 0.9 }
    }
}

impl Grid {
    /// The model.
    pub fn build(self) -> Result<Cmdp> {
        let n_states = self.width.saturating_mul(self.height);
        if n_states > MAX_CELLS {
            return Err(Error::TooLarge { what: "cells", count: n_states, limit: MAX_CELLS });
        }
        let kernel = self.kernel(n_states)?;
        let mut identity = vec![0.0; n_states * n_states];
        (0..n_states).for_each(|s| identity[s * n_states + s] = 1.0);
        let features = Features::per_state(n_states, n_states, identity)?;
        let initial = vec![1.0 / n_states as f64; n_states];
        let cell = |s: usize| format!("cell ({}, {})", s % self.width, s / self.width);
        Cmdp::new(Dynamics::Shared(kernel), features, initial, Criterion::discounted(self.discount)?)?
            .with_context_space(ContextSpace::Simplex { dimension: n_states })?
            .with_names(Names {
                model: format!("cyclic grid {} × {}", self.width, self.height),
                actions: ["left", "up", "right", "down"].map(String::from).to_vec(),
                features: (0..n_states).map(cell).collect(),
                contexts: (0..n_states).map(cell).collect(),
            })
    }

    fn kernel(self, n_states: usize) -> Result<Kernel> {
        let mut builder = KernelBuilder::new(Arc::new(Pairs::all(n_states, 4)?));
        for s in 0..n_states {
            let (x, y) = (s % self.width, s / self.width);
            let (w, h) = (self.width, self.height);
            for (x, y) in [((x + w - 1) % w, y), (x, (y + h - 1) % h), ((x + 1) % w, y), (x, (y + 1) % h)] {
                builder.push_row(std::iter::once(((y * w + x) as i64, 1.0)))?;
            }
        }
        builder.finish()
    }
}
