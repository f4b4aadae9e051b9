//! An inverted pendulum that is to stand upright, on a grid of angles and speeds: a model that mixes slowly.
//!
//! State `i·grid + j` is angle 2π·i/(grid − 1), measured from hanging down, and angular speed −10 + 20·j/(grid − 1). The nine actions
//! are torques from −3 to 3. One step is 0.01 s of Euler's method, x′ = x + v·Δ (around the circle) and
//! v′ = v + (u − 9.81·sin x)·Δ, cut to ±10; the point it leads to is shared among the four grid points around it by linear
//! interpolation. Features are what control engineers penalise: (x − π)², v² and u². Mass and length are one, and gravity is
//! 9.81. A step is so short that policies differ only after hundreds of them, which is what makes the model hard at discounts near
//! one; solvers such as madupite are shown on models of this kind.

use crate::error::{Error, Result, check_room};
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, ContextSpace, Criterion, Names};
use std::f64::consts::PI;

const GRAVITY: f64 = 9.81;
const TIME_STEP: f64 = 0.01;
const FASTEST: f64 = 10.0;
const STRONGEST: f64 = 3.0;
const N_TORQUES: usize = 9;

/// Settings of the pendulum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pendulum {
    /// Grid points of the angle, and of the speed.
    pub grid: usize,
    /// γ.
    pub discount: f64,
}

impl Default for Pendulum {
    fn default() -> Self {
        Self { grid: 101, discount: 0.99 }
    }
}

impl Pendulum {
    /// The context whose reward under [`standard_mapping`](Self::standard_mapping) is −2·((x − π)² + v²) − u².
    pub const STANDARD_CONTEXT: [f64; 3] = [0.4, 0.4, 0.2];

    /// Every priority is a penalty of its feature, five times as large.
    pub fn standard_mapping() -> LinearMapping {
        LinearMapping::from_checked(3, vec![-5.0, 0.0, 0.0, 0.0, -5.0, 0.0, 0.0, 0.0, -5.0])
    }

    /// The model, started in any state with equal probability.
    pub fn build(self) -> Result<Cmdp> {
        let n = self.grid;
        if n < 2 {
            let reason = "expected at least 2 points per axis";
            return Err(Error::InvalidSetting { name: "grid", value: n.to_string(), reason });
        }
        check_room("transitions of a pendulum", &[n, n, N_TORQUES, 4])?;
        let angles = points(n, 0.0, 2.0 * PI);
        let speeds = points(n, -FASTEST, FASTEST);
        let torques = points(N_TORQUES, -STRONGEST, STRONGEST);
        let transition = |state: usize, action: usize| {
            let (x, v, u) = (angles[state / n], speeds[state % n], torques[action]);
            let (i, a) = between(&angles, (x + v * TIME_STEP).rem_euclid(2.0 * PI));
            let (j, b) = between(&speeds, (v + (u - GRAVITY * x.sin()) * TIME_STEP).clamp(-FASTEST, FASTEST));
            let corner = i * n + j;
            let shares = [
                (corner, (1.0 - a) * (1.0 - b)),
                (corner + 1, (1.0 - a) * b),
                (corner + n, a * (1.0 - b)),
                (corner + n + 1, a * b),
            ];
            // Rounding may leave a point the least bit outside its cell.
            let shares = shares.map(|(next, p)| (next, p.max(0.0)));
            let sum: f64 = shares.iter().map(|share| share.1).sum();
            shares.map(|(next, p)| (next, p / sum))
        };
        let features = |state: usize, action: usize| {
            [(angles[state / n] - PI).powi(2), speeds[state % n].powi(2), torques[action].powi(2)]
        };
        let criterion = Criterion::discounted(self.discount)?;
        let strings = |names: [&str; 3]| names.map(String::from).to_vec();
        Cmdp::from_fn(n * n, N_TORQUES, transition, features, criterion)?
            .with_context_space(ContextSpace::Simplex { dimension: 3 })?
            .with_names(Names {
                model: format!("inverted pendulum {n} × {n}"),
                actions: torques.iter().map(|u| format!("torque {u}")).collect(),
                features: strings(["squared angle from upright", "squared speed", "squared torque"]),
                contexts: strings(["angle priority", "speed priority", "torque priority"]),
            })
    }
}

/// `n` points at equal distances, both ends among them.
fn points(n: usize, first: f64, last: f64) -> Vec<f64> {
    let step = (last - first) / (n - 1) as f64;
    (0..n).map(|i| if i == n - 1 { last } else { first + step * i as f64 }).collect()
}

/// The point below and how much of the way to the next one it is.
fn between(points: &[f64], at: f64) -> (usize, f64) {
    let upper = points.partition_point(|&point| point <= at).clamp(1, points.len() - 1);
    (upper - 1, (at - points[upper - 1]) / (points[upper] - points[upper - 1]))
}
