//! Forwards through the layers and back again: outputs, and the gradient of (upstream · outputs) by every parameter.
//!
//! The gradient is tested against finite differences in double precision, with batch statistics as part of the function.

use super::architecture::{Architecture, Place};
use faer::linalg::matmul::matmul;
use faer::traits::RealField;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, Sub};

/// Slope of the leaky ReLU below zero.
pub(crate) const LEAK: f64 = 0.01;
/// Added to variances before they are divided by.
const VARIANCE_FLOOR: f64 = 1e-5;
/// Rows of a product that one thread computes: a fixed number, so that the sums do not depend on the threads.
const ROWS: usize = 256;

/// Single or double precision.
pub(crate) trait Number:
    RealField
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + DivAssign
    + Into<f64>
    + Send
    + Sync
    + 'static
{
    const ZERO: Self;
    const ONE: Self;

    /// The nearest number of this precision.
    fn nearest(x: f64) -> Self;
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    fn nearest(x: f64) -> f32 {
        x as f32
    }
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn nearest(x: f64) -> f64 {
        x
    }
}

/// Whose means and variances sums are normalised by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Normalise<'s, T> {
    /// Those of the batch.
    ByBatch,
    /// Running ones.
    By(&'s [T]),
}

/// A normalised layer on the way.
struct Normalised<T> {
    /// (sum − mean) / deviation, feature by feature.
    values: Vec<T>,
    /// 1 / deviation of every feature.
    inverse: Vec<T>,
    /// Mean and variance of every feature in this batch.
    statistics: Vec<(f64, f64)>,
}

/// What a forward pass leaves for the way back. Samples are columns.
pub(crate) struct Pass<T> {
    n: usize,
    /// What each layer was given.
    inputs: Vec<Vec<T>>,
    normalised: Vec<Option<Normalised<T>>>,
    by_batch: bool,
    /// What came out, and the length that it was divided by, per sample.
    outputs: Vec<T>,
    lengths: Option<Vec<T>>,
}

impl<T: Number> Pass<T> {
    /// Lets a batch through; `input` is feature-major, `inputs × n`.
    pub(super) fn forward(
        architecture: &Architecture,
        places: &[Place],
        parameters: &[T],
        normalise: Normalise<'_, T>,
        input: Vec<T>,
        n: usize,
    ) -> Self {
        let mut inputs = vec![input];
        let mut normalised = Vec::with_capacity(places.len());
        for place in places {
            let x = &inputs[inputs.len() - 1];
            let mut y = product(&parameters[place.weights.clone()], x, place, n);
            let own = place.scale.as_ref().map(|scale| {
                let own = Normalised::new(&y, n, normalise, place);
                for ((row, hat), g) in
                    y.chunks_exact_mut(n).zip(own.values.chunks_exact(n)).zip(&parameters[scale.clone()])
                {
                    row.iter_mut().zip(hat).for_each(|(y, x)| *y = *g * *x);
                }
                own
            });
            normalised.push(own);
            for (row, b) in y.chunks_exact_mut(n).zip(&parameters[place.shift.clone()]) {
                row.iter_mut().for_each(|y| *y += *b);
            }
            if place.leaky {
                let leak = T::nearest(LEAK);
                y.iter_mut().filter(|y| **y < T::ZERO).for_each(|y| *y = leak * *y);
            }
            inputs.push(y);
        }
        let mut outputs = inputs.pop().unwrap_or_default();
        let lengths = architecture.unit_output.then(|| to_unit_length(&mut outputs, n));
        let by_batch = matches!(normalise, Normalise::ByBatch);
        Self { n, inputs, normalised, by_batch, outputs, lengths }
    }

    /// What came out, feature-major.
    pub(super) fn outputs(&self) -> &[T] {
        &self.outputs
    }

    /// Mean and variance over the batch of every normalised sum, in the order of the statistics.
    pub(super) fn statistics(&self) -> impl Iterator<Item = &[(f64, f64)]> {
        self.normalised.iter().flatten().map(|own| own.statistics.as_slice())
    }

    /// The gradient of Σ upstream·outputs by every parameter, written over `gradient`; `upstream` is feature-major.
    pub(super) fn backward(&self, places: &[Place], parameters: &[T], upstream: &[T], gradient: &mut [T]) {
        let n = self.n;
        let mut back = upstream.to_vec();
        if let Some(lengths) = &self.lengths {
            self.through_unit_length(lengths, &mut back);
        }
        for (l, place) in places.iter().enumerate().rev() {
            if place.leaky {
                // The layer after this one was given what the ReLU let through, which has the sign of what it was given.
                let leak = T::nearest(LEAK);
                let after = self.inputs.get(l + 1).map_or(&self.outputs, |next| next);
                back.iter_mut().zip(after).filter(|(_, y)| **y < T::ZERO).for_each(|(g, _)| *g = leak * *g);
            }
            for (sum, row) in gradient[place.shift.clone()].iter_mut().zip(back.chunks_exact(n)) {
                *sum = row_sum(row);
            }
            if let (Some(scale), Some(own)) = (&place.scale, &self.normalised[l]) {
                for ((sum, row), hat) in
                    gradient[scale.clone()].iter_mut().zip(back.chunks_exact(n)).zip(own.values.chunks_exact(n))
                {
                    *sum = T::nearest(row.iter().zip(hat).map(|(g, x)| (*g).into() * (*x).into()).sum::<f64>());
                }
                own.through(&parameters[scale.clone()], n, self.by_batch, &mut back);
            }
            let (x, width) = (&self.inputs[l], place.inputs);
            gradient[place.weights.clone()].par_chunks_mut(ROWS * width).zip(back.par_chunks(ROWS * n)).for_each(
                |(own, back)| {
                    let rows = back.len() / n;
                    matmul(
                        MatMut::from_row_major_slice_mut(own, rows, width),
                        Accum::Replace,
                        MatRef::from_row_major_slice(back, rows, n),
                        MatRef::from_row_major_slice(x, width, n).transpose(),
                        T::ONE,
                        Par::Seq,
                    );
                },
            );
            if l > 0 {
                let weights = MatRef::from_row_major_slice(&parameters[place.weights.clone()], place.outputs, width);
                let upper = MatRef::from_row_major_slice(&back, place.outputs, n);
                let mut lower = vec![T::ZERO; width * n];
                lower.par_chunks_mut(ROWS * n).enumerate().for_each(|(i, own)| {
                    let rows = own.len() / n;
                    matmul(
                        MatMut::from_row_major_slice_mut(own, rows, n),
                        Accum::Replace,
                        weights.subcols(i * ROWS, rows).transpose(),
                        upper,
                        T::ONE,
                        Par::Seq,
                    );
                });
                back = lower;
            }
        }
    }

    /// d(y/‖y‖) = (I − uuᵀ) dy / ‖y‖ with u = y/‖y‖, per sample.
    fn through_unit_length(&self, lengths: &[T], back: &mut [T]) {
        let n = self.n;
        for (i, length) in lengths.iter().enumerate() {
            let along: f64 = back
                .iter()
                .skip(i)
                .step_by(n)
                .zip(self.outputs.iter().skip(i).step_by(n))
                .map(|(g, u)| (*g).into() * (*u).into())
                .sum();
            let along = T::nearest(along);
            for (g, u) in back.iter_mut().skip(i).step_by(n).zip(self.outputs.iter().skip(i).step_by(n)) {
                *g = (*g - along * *u) / *length;
            }
        }
    }
}

/// A·x, its rows shared among threads.
fn product<T: Number>(weights: &[T], x: &[T], place: &Place, n: usize) -> Vec<T> {
    let width = place.inputs;
    let mut y = vec![T::ZERO; place.outputs * n];
    y.par_chunks_mut(ROWS * n).zip(weights.par_chunks(ROWS * width)).for_each(|(y, own)| {
        let rows = y.len() / n;
        matmul(
            MatMut::from_row_major_slice_mut(y, rows, n),
            Accum::Replace,
            MatRef::from_row_major_slice(own, rows, width),
            MatRef::from_row_major_slice(x, width, n),
            T::ONE,
            Par::Seq,
        );
    });
    y
}

impl<T: Number> Normalised<T> {
    fn new(sums: &[T], n: usize, normalise: Normalise<'_, T>, place: &Place) -> Self {
        let mut values = sums.to_vec();
        let (mut inverse, mut statistics) = (Vec::with_capacity(place.outputs), Vec::with_capacity(place.outputs));
        for (i, row) in values.chunks_exact_mut(n).enumerate() {
            let (mean, variance) = match normalise {
                Normalise::ByBatch => {
                    let mean = row.iter().map(|x| (*x).into()).sum::<f64>() / n as f64;
                    (mean, row.iter().map(|x| ((*x).into() - mean).powi(2)).sum::<f64>() / n as f64)
                }
                Normalise::By(running) => {
                    let own = &running[place.statistics.clone()];
                    (own[i].into(), own[place.outputs + i].into())
                }
            };
            let by = 1.0 / (variance + VARIANCE_FLOOR).sqrt();
            let (centre, by) = (T::nearest(mean), T::nearest(by));
            row.iter_mut().for_each(|x| *x = (*x - centre) * by);
            inverse.push(by);
            statistics.push((mean, variance));
        }
        Self { values, inverse, statistics }
    }

    /// Back through the normalisation: mean and variance are functions of the batch where they were its own.
    fn through(&self, scale: &[T], n: usize, by_batch: bool, back: &mut [T]) {
        for (((row, hat), g), by) in
            back.chunks_exact_mut(n).zip(self.values.chunks_exact(n)).zip(scale).zip(&self.inverse)
        {
            let factor = *g * *by;
            if by_batch {
                let mean = T::nearest(row.iter().map(|d| (*d).into()).sum::<f64>() / n as f64);
                let along = row.iter().zip(hat).map(|(d, x)| (*d).into() * (*x).into()).sum::<f64>() / n as f64;
                let along = T::nearest(along);
                row.iter_mut().zip(hat).for_each(|(d, x)| *d = factor * (*d - mean - along * *x));
            } else {
                row.iter_mut().for_each(|d| *d = factor * *d);
            }
        }
    }
}

fn row_sum<T: Number>(row: &[T]) -> T {
    T::nearest(row.iter().map(|x| (*x).into()).sum::<f64>())
}

/// Divides every sample by its length, and gives the lengths; a sample of zeros stays as it is.
fn to_unit_length<T: Number>(outputs: &mut [T], n: usize) -> Vec<T> {
    (0..n)
        .map(|i| {
            let squares: f64 = outputs.iter().skip(i).step_by(n).map(|y| (*y).into().powi(2)).sum();
            let length = if squares > 0.0 { T::nearest(squares.sqrt()) } else { T::ONE };
            outputs.iter_mut().skip(i).step_by(n).for_each(|y| *y /= length);
            length
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Layer;
    use crate::random::stream;
    use rand::RngExt;
    use rand_distr::StandardNormal;

    fn normal(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = stream(seed, "test", 0);
        (0..n).map(|_| rng.sample(StandardNormal)).collect()
    }

    fn agrees_with_differences(architecture: &Architecture, normalise: Normalise<'_, f64>) {
        let (n, places) = (9, architecture.places());
        let parameters: Vec<f64> = normal(architecture.n_parameters(), 1).iter().map(|x| 0.5 * x).collect();
        let (input, upstream) = (normal(architecture.inputs * n, 2), normal(architecture.outputs * n, 3));
        let value = |parameters: &[f64]| -> f64 {
            let pass = Pass::forward(architecture, &places, parameters, normalise, input.clone(), n);
            pass.outputs().iter().zip(&upstream).map(|(y, g)| y * g).sum()
        };
        let mut gradient = vec![f64::NAN; parameters.len()];
        Pass::forward(architecture, &places, &parameters, normalise, input.clone(), n).backward(
            &places,
            &parameters,
            &upstream,
            &mut gradient,
        );
        let h = 1e-6;
        for i in 0..parameters.len() {
            let at = |by: f64| {
                let mut moved = parameters.clone();
                moved[i] += by;
                value(&moved)
            };
            let difference = (at(h) - at(-h)) / (2.0 * h);
            let scale = 1.0 + difference.abs();
            assert!((gradient[i] - difference).abs() < 1e-6 * scale, "parameter {i}: {} and {difference}", gradient[i]);
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for unit_output in [false, true] {
            for hidden in [
                vec![],
                vec![Layer::leaky(5)],
                vec![Layer::normalised(6), Layer::linear(4)],
                vec![Layer::leaky(5), Layer::normalised(4), Layer::normalised(3)],
            ] {
                let architecture = Architecture { inputs: 3, hidden, outputs: 4, unit_output };
                agrees_with_differences(&architecture, Normalise::ByBatch);
                let running: Vec<f64> = (0..architecture.n_statistics()).map(|i| 0.3 + 0.1 * i as f64).collect();
                agrees_with_differences(&architecture, Normalise::By(&running));
            }
        }
    }

    #[test]
    fn a_layer_wider_than_one_share_is_the_plain_product() {
        let architecture = Architecture { inputs: 2, hidden: vec![Layer::linear(600)], outputs: 1, unit_output: false };
        let places = architecture.places();
        let parameters = normal(architecture.n_parameters(), 4);
        let pass = Pass::forward(&architecture, &places, &parameters, Normalise::ByBatch, vec![0.5, -2.0], 1);
        let hidden = |i: usize| parameters[2 * i] * 0.5 - parameters[2 * i + 1] * 2.0 + parameters[1200 + i];
        let expected: f64 = (0..600).map(|i| hidden(i) * parameters[1800 + i]).sum::<f64>() + parameters[2400];
        assert!((pass.outputs()[0] - expected).abs() < 1e-9 * expected.abs().max(1.0));
    }
}
