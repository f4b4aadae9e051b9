//! Single and double precision.

/// A number that parameters are kept as.
pub trait Number: Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// As it is.
    fn to_f64(self) -> f64;

    /// The nearest one.
    fn from_f64(x: f64) -> Self;
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(x: f64) -> Self {
        x
    }
}

impl Number for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(x: f64) -> Self {
        x as f32
    }
}
