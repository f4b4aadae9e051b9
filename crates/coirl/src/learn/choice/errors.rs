//! Standard errors of the weights of a linear mapping.
//!
//! | kind | covariance of θ |
//! |---|---|
//! | information | (I + λ)⁻¹ with Fisher's information I of the decisions in the states they were made in |
//! | outer products | (Σ s sᵀ + λ)⁻¹ over the scores s of single decisions, as Rust (1987) has them (BHHH) |
//! | sandwich | (I + λ)⁻¹ (Σ g gᵀ) (I + λ)⁻¹ over the scores g of demonstrations: right also where decisions of one person hang together |
//!
//! θ is turned into the units of the data, which is linear. ε and λ count as known. Cost: one linear system per feature and demonstration.

use super::design::Form;
use super::fit::Likelihood;
use super::metric::eigen;
use crate::error::Result;
use crate::mapping::LinearMapping;
use crate::optim::dot;

/// Parameters beyond which no standard errors are computed.
const MOST_PARAMETERS: usize = 800;
/// Directions that are told less about than this share of the best one are not determined.
const DETERMINED: f64 = 1e-11;
/// Weights of which more than this share lies in directions that are not determined are not determined either.
const UNDETERMINED: f64 = 1e-6;

/// Which standard errors are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// None: they cost about as much as the fit.
    #[default]
    None,
    /// From Fisher's information.
    Information,
    /// From the outer products of the scores of single decisions.
    OuterProducts,
    /// From the scores of demonstrations, robust to decisions of one person that hang together.
    Sandwich,
}

/// Standard errors of a linear mapping, in the units of the data.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StandardErrors {
    /// Which ones.
    pub kind: ErrorKind,
    /// Of W, row by row; nothing where the data do not determine a weight.
    pub mapping: Vec<Option<f64>>,
    /// Of the intercept, where there is one.
    pub intercept: Option<Vec<Option<f64>>>,
}

impl Likelihood<'_> {
    /// The standard errors of a fit; nothing for networks, and where they would take too long.
    pub(super) fn standard_errors(&self, point: &[f64], kind: ErrorKind) -> Result<Option<StandardErrors>> {
        let n = self.rewards(point).len();
        if kind == ErrorKind::None || self.form == Form::Network || n > MOST_PARAMETERS {
            return Ok(None);
        }
        let outer = kind == ErrorKind::OuterProducts;
        let told = self.information(point, |own| if outer { &own.outer } else { &own.expected })?;
        let Some(mut told) = told else { return Ok(None) };
        (0..n).for_each(|at| told[at * n + at] += self.penalty_at(at));
        let (values, vectors) = eigen(&told)?;
        let least = DETERMINED * values.iter().fold(0.0, |most: f64, x| most.max(*x));
        let determined = |value: f64| value > least;
        let mut sums = Sums::new(&self.design.mapping(&vec![0.0; n])?);
        if kind == ErrorKind::Sandwich {
            for score in self.scores(point)? {
                let mut solved = vec![0.0; n];
                for (value, vector) in values.iter().zip(&vectors).filter(|own| determined(*own.0)) {
                    let share = dot(vector, &score) / value;
                    solved.iter_mut().zip(vector).for_each(|(sum, x)| *sum += share * x);
                }
                sums.add(&self.design.mapping(&solved)?, 1.0);
            }
        }
        for (value, vector) in values.iter().zip(&vectors) {
            let raw = self.design.mapping(vector)?;
            match (determined(*value), kind) {
                (false, _) => sums.leave_open(&raw),
                (true, ErrorKind::Sandwich) => sums.add(&raw, 0.0),
                (true, _) => sums.add(&raw, 1.0 / value),
            }
        }
        Ok(Some(sums.told(kind)))
    }

    /// The score of each demonstration.
    fn scores(&self, point: &[f64]) -> Result<Vec<Vec<f64>>> {
        let scale = self.design.feature_scale();
        let score = |(term, &i): (crate::objective::Term, &usize)| {
            let inputs = self.design.inputs(self.contexts[i], self.form);
            inputs.iter().flat_map(|x| term.gradient.iter().zip(scale).map(move |(g, s)| x * g / s)).collect()
        };
        Ok(self.terms(point, self.indices)?.into_iter().zip(self.indices).map(score).collect())
    }
}

/// Sums of squares of every weight, and how much of its direction is determined and not.
struct Sums {
    intercept: bool,
    k: usize,
    variance: Vec<f64>,
    known: Vec<f64>,
    open: Vec<f64>,
}

impl Sums {
    fn new(mapping: &LinearMapping) -> Self {
        let n = mapping.all_weights().len();
        let (intercept, k) = (mapping.intercept().is_some(), mapping.n_features());
        Self { intercept, k, variance: vec![0.0; n], known: vec![0.0; n], open: vec![0.0; n] }
    }

    fn add(&mut self, direction: &LinearMapping, variance: f64) {
        for (at, x) in direction.all_weights().iter().enumerate() {
            self.variance[at] += variance * x * x;
            self.known[at] += x * x;
        }
    }

    fn leave_open(&mut self, direction: &LinearMapping) {
        direction.all_weights().iter().zip(&mut self.open).for_each(|(x, open)| *open += x * x);
    }

    fn told(&self, kind: ErrorKind) -> StandardErrors {
        let of = |at: usize| {
            let determined = self.open[at] <= UNDETERMINED * (self.open[at] + self.known[at]);
            Some(self.variance[at].sqrt()).filter(|error| determined && error.is_finite())
        };
        let mut mapping: Vec<Option<f64>> = (0..self.variance.len()).map(of).collect();
        let intercept = self.intercept.then(|| mapping.split_off(mapping.len() - self.k));
        StandardErrors { kind, mapping, intercept }
    }
}
