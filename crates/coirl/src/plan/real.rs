//! The two precisions that the inner loops run in.

use std::ops::{Add, Mul, Sub};

/// Single or double precision.
pub(crate) trait Real:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Into<f64> + Send + Sync
{
    const ZERO: Self;
    const LOWEST: Self;
    const HIGHEST: Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
    const HIGHEST: f32 = f32::INFINITY;
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const LOWEST: f64 = f64::NEG_INFINITY;
    const HIGHEST: f64 = f64::INFINITY;
}
