//! A network with its numbers.

use super::architecture::{Architecture, Layer, Place};
use super::pass::{Normalise, Pass};
use super::standardisation::Standardisation;
use crate::error::{Error, Result, check_length};
use crate::model::digest::feed_numbers;
use crate::packed;
use crate::random::stream;
use rand::RngExt;
use rand_distr::StandardNormal;
use rayon::prelude::*;
use std::sync::Arc;

/// Samples that are let through at a time when acting: a fixed number, so that a sample's output does not depend on its company.
const TOGETHER: usize = 32;
/// How much of the batch goes into the running means and variances.
const MEMORY: f64 = 0.1;
/// How much of the random weights is left in an output near one.
const NEAR: f32 = 0.1;
/// Weights drawn from one stream.
const PER_STREAM: usize = 1 << 16;

/// A multi-layer network. Cloning shares the parameters until one of the two changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    architecture: Architecture,
    standard: Standardisation,
    parameters: Arc<Vec<f32>>,
    /// Running mean, then variance, of every normalised layer.
    statistics: Arc<Vec<f32>>,
}

impl Network {
    /// From its parts, as a file has them: parameters layer by layer (weights row by row, shifts, and scales where batches are
    /// normalised) and the running means and variances of normalised layers.
    pub fn new(
        architecture: Architecture,
        standard: Standardisation,
        parameters: Vec<f32>,
        statistics: Vec<f32>,
    ) -> Result<Self> {
        architecture.check()?;
        standard.check(architecture.inputs)?;
        check_length("parameters of a network", architecture.n_parameters(), parameters.len())?;
        check_length("statistics of a network", architecture.n_statistics(), statistics.len())?;
        if let Some(index) = parameters.iter().chain(&statistics).position(|x| !x.is_finite()) {
            return Err(Error::shape("parameters of a network", "finite numbers", format!("another at {index}")));
        }
        let network =
            Self { architecture, standard, parameters: Arc::new(parameters), statistics: Arc::new(statistics) };
        for place in network.places() {
            let variances =
                &network.statistics[place.statistics.start + place.statistics.len() / 2..place.statistics.end];
            if let Some(variance) = variances.iter().find(|x| **x < 0.0) {
                return Err(Error::shape("variances of a network", "numbers of at least 0", variance));
            }
        }
        Ok(network)
    }

    /// Before training: weights are normal with variance 2 / inputs (He et al. 2015), shifts zero, scales one.
    pub(crate) fn untrained(architecture: Architecture, standard: Standardisation, seed: u64) -> Result<Self> {
        architecture.check()?;
        let mut parameters = vec![0.0_f32; architecture.n_parameters()];
        let mut statistics = vec![0.0_f32; architecture.n_statistics()];
        for (l, place) in architecture.places().into_iter().enumerate() {
            let deviation = (2.0 / place.inputs as f64).sqrt();
            parameters[place.weights].par_chunks_mut(PER_STREAM).enumerate().for_each(|(i, weights)| {
                let mut rng = stream(seed, "weights of a network", ((l as u64) << 32) + i as u64);
                weights.iter_mut().for_each(|w| *w = (deviation * rng.sample::<f64, _>(StandardNormal)) as f32);
            });
            if let Some(scale) = place.scale {
                parameters[scale].fill(1.0);
                statistics[place.statistics.start + place.outputs..place.statistics.end].fill(1.0);
            }
        }
        Self::new(architecture, standard, parameters, statistics)
    }

    /// This network with outputs near one, whatever the input.
    pub(crate) fn near_ones(mut self) -> Self {
        if let Some(output) = self.places().pop() {
            let parameters = self.parameters_mut();
            parameters[output.weights].iter_mut().for_each(|w| *w *= NEAR);
            parameters[output.shift].fill(1.0);
        }
        self
    }

    /// Its shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// How inputs are standardised.
    pub fn standardisation(&self) -> &Standardisation {
        &self.standard
    }

    /// All parameters, layer by layer.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Running means and variances of normalised layers.
    pub fn statistics(&self) -> &[f32] {
        &self.statistics
    }

    /// Outputs of rows of inputs, row by row. What comes out for a row does not depend on the others.
    pub fn outputs<'r>(&self, rows: impl ExactSizeIterator<Item = &'r [f64]>) -> Vec<f64> {
        let (places, rows) = (self.places(), rows.collect::<Vec<_>>());
        let mut outputs = Vec::with_capacity(rows.len() * self.architecture.outputs);
        for together in rows.chunks(TOGETHER) {
            let input = self.feature_major(together, TOGETHER);
            let normalise = Normalise::By(self.statistics.as_slice());
            let pass = Pass::forward(&self.architecture, &places, &self.parameters, normalise, input, TOGETHER);
            sample_major(pass.outputs(), TOGETHER, together.len(), &mut outputs);
        }
        outputs
    }

    /// A pass to learn from, normalised by the batch where that has two samples or more, and its outputs row by row.
    pub(crate) fn learn(&self, rows: &[&[f64]]) -> (Pass<f32>, Vec<f64>) {
        let n = rows.len();
        let normalise = if n > 1 { Normalise::ByBatch } else { Normalise::By(self.statistics.as_slice()) };
        let input = self.feature_major(rows, n);
        let pass = Pass::forward(&self.architecture, &self.places(), &self.parameters, normalise, input, n);
        let mut outputs = Vec::with_capacity(n * self.architecture.outputs);
        sample_major(pass.outputs(), n, n, &mut outputs);
        (pass, outputs)
    }

    /// The gradient of Σ upstream·outputs of a pass by every parameter, written over `gradient`; `upstream` is row by row.
    pub(crate) fn gradient(&self, pass: &Pass<f32>, upstream: &[f64], gradient: &mut [f32]) {
        let k = self.architecture.outputs;
        let n = upstream.len() / k;
        let columns: Vec<f32> = (0..k).flat_map(|j| (0..n).map(move |i| upstream[i * k + j] as f32)).collect();
        pass.backward(&self.places(), &self.parameters, &columns, gradient);
    }

    /// Takes the means and variances of a batch of `n` into the running ones.
    pub(crate) fn take_statistics(&mut self, pass: &Pass<f32>, n: usize) {
        if n < 2 {
            return;
        }
        // The running variance is of the population, the batch's of itself.
        let correction = n as f64 / (n as f64 - 1.0);
        let statistics = Arc::make_mut(&mut self.statistics);
        let mut at = 0;
        for layer in pass.statistics() {
            let width = layer.len();
            for (i, (mean, variance)) in layer.iter().enumerate() {
                for (running, new) in [(at + i, *mean), (at + width + i, correction * variance)] {
                    let old = f64::from(statistics[running]);
                    statistics[running] = (old + MEMORY * (new - old)) as f32;
                }
            }
            at += 2 * width;
        }
    }

    /// Refuses what is left of a network after steps that were too long.
    pub(crate) fn check_after_steps_from(&self, step_size: f64) -> Result<()> {
        if self.parameters.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(diverged(step_size)) }
    }

    /// Hands shape and numbers to `sink`, in a fixed order and form.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        let Architecture { inputs, hidden, outputs, unit_output } = &self.architecture;
        let layer = |layer: &Layer| [layer.width, layer.batch_normalisation.into(), layer.leaky.into()];
        let shape = [*inputs, hidden.len(), *outputs, usize::from(*unit_output)];
        sink(b"network");
        shape.into_iter().chain(hidden.iter().flat_map(layer)).for_each(|n| sink(&(n as u64).to_le_bytes()));
        feed_numbers(&self.standard.shift, sink);
        feed_numbers(&self.standard.scale, sink);
        // How many there are follows from the shape.
        self.parameters.iter().chain(self.statistics.iter()).for_each(|x| sink(&x.to_le_bytes()));
    }

    /// The parameters, to be changed.
    pub(crate) fn parameters_mut(&mut self) -> &mut [f32] {
        Arc::<Vec<f32>>::make_mut(&mut self.parameters)
    }

    fn places(&self) -> Vec<Place> {
        self.architecture.places()
    }

    /// Standardised rows as columns, filled up with zeros to `width` samples.
    fn feature_major(&self, rows: &[&[f64]], width: usize) -> Vec<f32> {
        let mut columns = vec![0.0; self.architecture.inputs * width];
        for (i, row) in rows.iter().enumerate() {
            for (j, x) in self.standard.of(row).into_iter().enumerate() {
                columns[j * width + i] = x as f32;
            }
        }
        columns
    }
}

fn diverged(step_size: f64) -> Error {
    let reason = "the network diverged; choose shorter steps or a largest gradient";
    Error::InvalidSetting { name: "step size", value: step_size.to_string(), reason }
}

/// The first `n` of `width` columns as rows.
fn sample_major(columns: &[f32], width: usize, n: usize, rows: &mut Vec<f64>) {
    let k = columns.len() / width;
    rows.extend((0..n).flat_map(|i| (0..k).map(move |j| f64::from(columns[j * width + i]))));
}

/// A network inside JSON, its numbers packed.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    architecture: Architecture,
    standard: Standardisation,
    #[serde(with = "packed")]
    parameters: Vec<f32>,
    #[serde(with = "packed")]
    statistics: Vec<f32>,
}

impl serde::Serialize for Network {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { architecture, standard, parameters, statistics } = self.clone();
        let (parameters, statistics) = (parameters.to_vec(), statistics.to_vec());
        Kept { architecture, standard, parameters, statistics }.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Network {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Kept { architecture, standard, parameters, statistics } = Kept::deserialize(deserializer)?;
        Self::new(architecture, standard, parameters, statistics).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_same_output_in_any_company() -> Result<()> {
        let standard = Standardisation { shift: vec![0.1; 7], scale: vec![0.5; 7] };
        let network = Network::untrained(Architecture::simulator(7, 42), standard, 5)?;
        let rows: Vec<Vec<f64>> = (0..70).map(|i| (0..7).map(|j| f64::from(i * j % 11) / 11.0).collect()).collect();
        let together = network.outputs(rows.iter().map(Vec::as_slice));
        for (row, output) in rows.iter().zip(together.chunks_exact(42)) {
            assert_eq!(network.outputs([row.as_slice()].into_iter()), output);
            assert!((output.iter().map(|y| y * y).sum::<f64>() - 1.0).abs() < 1e-5);
        }
        Ok(())
    }
}
