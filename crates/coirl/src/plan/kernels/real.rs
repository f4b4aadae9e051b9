//! The two precisions that the inner loops run in.

use crate::model::Kernel;
use std::ops::{Add, Mul, Sub};

/// Single or double precision.
pub(crate) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Into<f64>
    + Default
    + Send
    + Sync
    + 'static
{
    const ZERO: Self;
    const HALF: Self;
    const LOWEST: Self;
    const HIGHEST: Self;

    fn abs(self) -> Self;

    /// The nearest number of this precision.
    fn nearest(x: f64) -> Self;

    /// The probabilities of a kernel in this precision.
    fn probabilities(kernel: &Kernel) -> &[Self];
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const HALF: f32 = 0.5;
    const LOWEST: f32 = f32::NEG_INFINITY;
    const HIGHEST: f32 = f32::INFINITY;

    fn abs(self) -> f32 {
        f32::abs(self)
    }

    fn nearest(x: f64) -> f32 {
        x as f32
    }

    fn probabilities(kernel: &Kernel) -> &[f32] {
        kernel.single_precision()
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const HALF: f64 = 0.5;
    const LOWEST: f64 = f64::NEG_INFINITY;
    const HIGHEST: f64 = f64::INFINITY;

    fn abs(self) -> f64 {
        f64::abs(self)
    }

    fn nearest(x: f64) -> f64 {
        x
    }

    fn probabilities(kernel: &Kernel) -> &[f64] {
        kernel.probabilities()
    }
}
