//! The shape of a network, for people and for programs.

use crate::numbers::count;
use crate::text;
use coirl::methods::Fitted;
use coirl::network::{Architecture, Layer};
use serde::Serialize;
use std::io::{self, Write};

/// What there is to say about a network without its numbers.
#[derive(Debug, Serialize)]
pub(crate) struct NetworkReport {
    /// Units of every layer, inputs and outputs with them.
    layers: Vec<usize>,
    parameters: usize,
    batch_normalisation: bool,
    #[serde(flatten)]
    architecture: Architecture,
}

impl NetworkReport {
    /// Of what was learned, where that is a network.
    pub(crate) fn of(fitted: &Fitted) -> Option<Self> {
        let coirl::agent::Agent::Neural(mapping) = &fitted.agent else { return None };
        let architecture = mapping.network().architecture().clone();
        let hidden = architecture.hidden.iter().map(|layer| layer.width);
        Some(Self {
            layers: [architecture.inputs].into_iter().chain(hidden).chain([architecture.outputs]).collect(),
            parameters: architecture.n_parameters(),
            batch_normalisation: architecture.has_batch_normalisation(),
            architecture,
        })
    }

    /// "7 → 336 → 336 → 336 → 42".
    pub(crate) fn shape(&self) -> String {
        self.layers.iter().map(usize::to_string).collect::<Vec<_>>().join(" → ")
    }

    /// A few aligned lines.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text::pair(out, "network", &format!("{}, {} parameters", self.shape(), count(self.parameters)))?;
        let normalised = self.of_layers("batch normalisation", |layer| layer.batch_normalisation);
        let leaky = self.of_layers("leaky ReLU", |layer| layer.leaky);
        text::pair(out, "", &format!("{normalised}; {leaky}"))?;
        let scaled = if self.architecture.unit_output { "rewards have length 1" } else { "rewards of any length" };
        text::pair(out, "", scaled)
    }

    /// In which hidden layers something is.
    fn of_layers(&self, what: &str, has: impl Fn(&Layer) -> bool) -> String {
        let hidden = &self.architecture.hidden;
        let with: Vec<String> = (1..).zip(hidden).filter(|(_, layer)| has(layer)).map(|(i, _)| i.to_string()).collect();
        match with.len() {
            0 => format!("no {what}"),
            n if n == hidden.len() => format!("{what} in every hidden layer"),
            1 => format!("{what} in hidden layer {}", with.join("")),
            _ => format!("{what} in hidden layers {}", with.join(", ")),
        }
    }
}
