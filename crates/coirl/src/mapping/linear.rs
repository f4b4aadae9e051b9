//! f_W(c) = cᵀW, or cᵀW + b with an intercept b.

use super::{LearnedMapping, NeuralMapping, ParametricMapping, RewardMapping};
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::Context;
use crate::network::{Architecture, Network, Standardisation};
use crate::optim::norm;

/// A d × k matrix of reward weights: row i belongs to context coordinate i.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Kept")]
pub struct LinearMapping {
    n_features: usize,
    values: Vec<f64>,
    /// b: the weights of somebody whose context is zero. Without one they are zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intercept: Option<Vec<f64>>,
}

/// A mapping as a checkpoint has it, before it is checked.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    n_features: usize,
    values: Vec<f64>,
    #[serde(default)]
    intercept: Option<Vec<f64>>,
}

impl TryFrom<Kept> for LinearMapping {
    type Error = Error;

    fn try_from(kept: Kept) -> Result<Self> {
        let mapping = Self::new(kept.values.len() / kept.n_features.max(1), kept.n_features, kept.values)?;
        match kept.intercept {
            Some(intercept) => mapping.with_intercept(intercept),
            None => Ok(mapping),
        }
    }
}

impl LinearMapping {
    /// From row-major values.
    pub fn new(dimension: usize, n_features: usize, values: Vec<f64>) -> Result<Self> {
        if dimension == 0 || n_features == 0 {
            return Err(Error::shape("mapping", "[at least 1, at least 1]", format!("[{dimension}, {n_features}]")));
        }
        check_length("mapping", dimension * n_features, values.len())?;
        check_finite("mapping", &values)?;
        Ok(Self { n_features, values, intercept: None })
    }

    /// The mapping with weights that everybody has, whatever the context.
    pub fn with_intercept(mut self, intercept: Vec<f64>) -> Result<Self> {
        check_length("intercept of a mapping", self.n_features, intercept.len())?;
        check_finite("intercept of a mapping", &intercept)?;
        self.intercept = Some(intercept);
        Ok(self)
    }

    /// The mapping as later steps store it: with an intercept it is a network without hidden layers, whose rewards are not multiples of
    /// the context.
    pub(crate) fn learned(self) -> LearnedMapping {
        match self.as_network() {
            Ok(Some(network)) => LearnedMapping::Neural(NeuralMapping::new(network)),
            _ => LearnedMapping::Linear(self),
        }
    }

    fn as_network(&self) -> Result<Option<Network>> {
        let Some(intercept) = &self.intercept else { return Ok(None) };
        let (d, k) = (self.dimension(), self.n_features);
        let architecture = Architecture { inputs: d, hidden: Vec::new(), outputs: k, unit_output: false };
        let standard = Standardisation { shift: vec![0.0; d], scale: vec![1.0; d] };
        let by_output = (0..k).flat_map(|f| (0..d).map(move |i| self.values[i * k + f]));
        let parameters = by_output.chain(intercept.iter().copied()).map(|w| w as f32).collect();
        Network::new(architecture, standard, parameters, Vec::new()).map(Some)
    }

    /// This mapping for contexts followed by a constant one: its intercept becomes its last row.
    pub fn with_intercept_as_row(&self) -> Result<Self> {
        let mut values = self.all_weights();
        values.resize(self.values.len() + self.n_features, 0.0);
        Self::new(values.len() / self.n_features, self.n_features, values)
    }

    /// W row by row, then the intercept where there is one.
    pub fn all_weights(&self) -> Vec<f64> {
        [&self.values[..], self.intercept().unwrap_or_default()].concat()
    }

    /// The weights that everybody has, of mappings that were learned with them.
    pub fn intercept(&self) -> Option<&[f64]> {
        self.intercept.as_deref()
    }

    /// Length d of a context.
    pub fn dimension(&self) -> usize {
        self.values.len() / self.n_features
    }

    /// Number k of reward weights.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The matrix, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// From numbers known to be finite and to fill rows.
    pub(crate) fn from_checked(n_features: usize, values: Vec<f64>) -> Self {
        debug_assert!(values.len().is_multiple_of(n_features));
        Self { n_features, values, intercept: None }
    }

    /// A mapping of the same shape with other finite numbers.
    pub(crate) fn with_values(&self, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), self.values.len());
        Self { n_features: self.n_features, values, intercept: self.intercept.clone() }
    }

    /// cᵀW, and the intercept where there is one.
    pub fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        let c = context.values();
        if c.len() != self.dimension() {
            let reason = format!("it has {} numbers; the mapping has {} rows", c.len(), self.dimension());
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        let mut weights = self.intercept.clone().unwrap_or_else(|| vec![0.0; self.n_features]);
        for (x, row) in c.iter().zip(self.values.chunks_exact(self.n_features)) {
            weights.iter_mut().zip(row).for_each(|(sum, w)| *sum += x * w);
        }
        Ok(weights)
    }
}

impl RewardMapping for LinearMapping {
    fn dimension(&self) -> usize {
        self.dimension()
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        self.weights(context)
    }
}

impl ParametricMapping for LinearMapping {
    type Number = f64;
    type Pass = ();

    fn parameters(&self) -> &[f64] {
        &self.values
    }

    fn parameters_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    fn forward(&self, contexts: &[&Context]) -> Result<(Vec<f64>, ())> {
        let rows: Vec<Vec<f64>> = contexts.iter().map(|context| self.weights(context)).collect::<Result<_>>()?;
        Ok((rows.concat(), ()))
    }

    /// Σ c ⊗ g.
    fn pull_back(&self, contexts: &[&Context], _pass: &(), by_weights: &[f64], gradient: &mut Vec<f64>) -> Result<()> {
        gradient.clear();
        gradient.resize(self.values.len(), 0.0);
        for (context, g) in contexts.iter().zip(by_weights.chunks_exact(self.n_features)) {
            for (x, row) in context.values().iter().zip(gradient.chunks_exact_mut(self.n_features)) {
                row.iter_mut().zip(g).for_each(|(sum, g)| *sum += x * g);
            }
        }
        Ok(())
    }

    /// ‖W‖₂, the intercept as one more row.
    fn size(&self, _weights: &[f64]) -> f64 {
        self.intercept.as_ref().map_or(0.0, |own| norm(own)).hypot(norm(&self.values))
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn as_matrix(&self) -> Option<&[f64]> {
        Some(&self.values)
    }
}
