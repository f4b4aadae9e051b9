//! The shape of a network, and where its parameters lie.

use crate::error::{Error, Result, check_room};
use std::ops::Range;

/// A hidden layer. In settings a width may stand for one with a leaky ReLU, and "336n" for one that is normalised over the batch as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "LayerForm")]
pub struct Layer {
    /// Units.
    pub width: usize,
    /// Whether its sums are normalised over the batch.
    pub batch_normalisation: bool,
    /// Whether a leaky ReLU follows; without one the layer is linear.
    pub leaky: bool,
}

/// The forms in which a layer may be written.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum LayerForm {
    Width(usize),
    Word(String),
    Whole(WholeLayer),
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WholeLayer {
    width: usize,
    batch_normalisation: bool,
    leaky: bool,
}

impl TryFrom<LayerForm> for Layer {
    type Error = String;

    fn try_from(form: LayerForm) -> Result<Self, String> {
        match form {
            LayerForm::Width(width) => Ok(Layer::leaky(width)),
            LayerForm::Whole(WholeLayer { width, batch_normalisation, leaky }) => {
                Ok(Layer { width, batch_normalisation, leaky })
            }
            LayerForm::Word(word) => match word.strip_suffix('n').and_then(|digits| digits.trim().parse().ok()) {
                Some(width) => Ok(Layer::normalised(width)),
                None => Err(format!("layer {word}: expected a width such as 336 or 336n")),
            },
        }
    }
}

impl Layer {
    /// So many units with a leaky ReLU.
    pub fn leaky(width: usize) -> Self {
        Self { width, batch_normalisation: false, leaky: true }
    }

    /// A layer of leaky units with batch normalisation before it.
    pub fn normalised(width: usize) -> Self {
        Self { batch_normalisation: true, ..Self::leaky(width) }
    }

    /// Without either.
    pub fn linear(width: usize) -> Self {
        Self { leaky: false, ..Self::leaky(width) }
    }
}

/// A multi-layer network: inputs, hidden layers, outputs.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Numbers that go in.
    pub inputs: usize,
    /// Hidden layers, the first first.
    pub hidden: Vec<Layer>,
    /// Numbers that come out.
    pub outputs: usize,
    /// Whether the output is divided by its length.
    pub unit_output: bool,
}

/// Where the parameters of a layer lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) leaky: bool,
    /// A, row-major by output.
    pub(super) weights: Range<usize>,
    /// b, added last.
    pub(super) shift: Range<usize>,
    /// What a normalised sum is multiplied with; nothing without batch normalisation.
    pub(super) scale: Option<Range<usize>>,
    /// Its running means and variances among the statistics.
    pub(super) statistics: Range<usize>,
}

impl Architecture {
    /// The paper's network for the simulator: three hidden layers of 336 with batch normalisation, eight times its 42 features.
    pub fn simulator(inputs: usize, outputs: usize) -> Self {
        Self { inputs, hidden: vec![Layer::normalised(8 * outputs); 3], outputs, unit_output: true }
    }

    /// The paper's network for patients: 20K, 10K, 10K and 5K units for 5,005 features, hence 4, 2 and 2 times the features and the
    /// output; batch normalisation after the first layer, and no ReLU after the third. 350 million parameters at that size.
    pub fn real_life(inputs: usize, outputs: usize) -> Self {
        let hidden = vec![Layer::normalised(4 * outputs), Layer::leaky(2 * outputs), Layer::linear(2 * outputs)];
        Self { inputs, hidden, outputs, unit_output: true }
    }

    /// The paper's network for cloning in the simulator: 250, 125 and an output per action.
    pub fn cloning_simulator(inputs: usize, actions: usize) -> Self {
        let hidden = vec![Layer::leaky(250), Layer::linear(125)];
        Self { inputs, hidden, outputs: actions, unit_output: false }
    }

    /// The paper's network for cloning patients: 625, 125 and an output per action.
    pub fn cloning_real_life(inputs: usize, actions: usize) -> Self {
        Self { inputs, hidden: vec![Layer::leaky(625), Layer::leaky(125)], outputs: actions, unit_output: false }
    }

    /// Whether any layer is normalised over the batch.
    pub fn has_batch_normalisation(&self) -> bool {
        self.hidden.iter().any(|layer| layer.batch_normalisation)
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        let mut inputs = self.inputs;
        let mut n = 0_usize;
        for layer in &self.hidden {
            let own = inputs.saturating_add(1 + usize::from(layer.batch_normalisation));
            n = n.saturating_add(layer.width.saturating_mul(own));
            inputs = layer.width;
        }
        n.saturating_add(self.outputs.saturating_mul(inputs.saturating_add(1)))
    }

    /// Running means and variances.
    pub(crate) fn n_statistics(&self) -> usize {
        self.hidden.iter().filter(|layer| layer.batch_normalisation).map(|layer| layer.width.saturating_mul(2)).sum()
    }

    /// Refuses layers of nothing, and networks too large to be meant.
    pub fn check(&self) -> Result<()> {
        let widths = self.hidden.iter().map(|layer| layer.width).chain([self.inputs, self.outputs]);
        if widths.min() == Some(0) {
            let shape = format!("{} → {:?} → {}", self.inputs, self.hidden, self.outputs);
            return Err(Error::shape("layers of a network", "at least 1 unit each", shape));
        }
        check_room("parameters of a network", &[self.n_parameters()])
    }

    /// Where the parameters of each layer lie, the output last.
    pub(super) fn places(&self) -> Vec<Place> {
        let output = Layer::linear(self.outputs);
        let (mut inputs, mut at, mut statistic) = (self.inputs, 0, 0);
        let mut take = |n: usize| {
            at += n;
            at - n..at
        };
        let mut places = Vec::with_capacity(self.hidden.len() + 1);
        for layer in self.hidden.iter().chain([&output]) {
            let statistics = statistic..statistic + 2 * layer.width * usize::from(layer.batch_normalisation);
            statistic = statistics.end;
            places.push(Place {
                inputs,
                outputs: layer.width,
                leaky: layer.leaky,
                weights: take(layer.width * inputs),
                shift: take(layer.width),
                scale: layer.batch_normalisation.then(|| take(layer.width)),
                statistics,
            });
            inputs = layer.width;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_networks_have_the_papers_sizes() {
        let simulator = Architecture::simulator(7, 42);
        assert!(simulator.hidden.iter().all(|layer| layer.width == 336 && layer.batch_normalisation));
        let patients = Architecture::real_life(7, 5005);
        let weights: usize = patients.places().iter().map(|place| place.weights.len()).sum();
        assert_eq!(weights, 7 * 20_020 + 20_020 * 10_010 + 10_010 * 10_010 + 10_010 * 5_005);
        assert_eq!(patients.n_parameters(), patients.places().last().map_or(0, |place| place.shift.end));
        assert!((350e6..352e6).contains(&(patients.n_parameters() as f64)));
    }
}
