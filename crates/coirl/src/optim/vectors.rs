//! Sums over lists of numbers, in a fixed order.

/// x·y, summed in order.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// ‖x‖₂.
pub fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// ‖x‖∞.
pub fn norm_inf(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |most, entry| most.max(entry.abs()))
}

/// Scales x to length one; zero stays zero.
pub fn normalise(x: &mut [f64]) {
    let size = norm(x);
    if size > 0.0 {
        x.iter_mut().for_each(|entry| *entry /= size);
    }
}
