//! What the parameters of the choice model are measured in, so that no unit of a feature or of a context matters.
//!
//! The model is learned as f(c) = θᵀx(c) / σ, and handed out in the units of the data, which is the same function:
//!
//! | mapping | x(c) | handed out as |
//! |---|---|---|
//! | one reward for everybody | 1 | b |
//! | linear | 1, z = (c − m)/s | cᵀW + b |
//! | network | 1, z, ramps and bends of z | a network with one hidden layer |
//!
//! s is the standard deviation of a column of the contexts; on the simplex, whose coordinates share one unit, one number for all. σ_j is
//! the standard deviation of feature j over states, or over pairs of states and actions. A ramp rises from one value of a column to another
//! one: a step where these are neighbours, so that a threshold costs one weight. Bends lie along a few random directions. Which units a
//! network has is decided by the demonstrations (`bends.rs`); only their weights are learned, so that all three are one problem, each a
//! part of the next.

use crate::agent::Agent;
use crate::error::Result;
use crate::mapping::{LinearMapping, NeuralMapping};
use crate::model::{Cmdp, Context, ContextSpace, Features, Mdp};
use crate::network::{Architecture, LEAK, Layer, Network, Standardisation};
use crate::objective::Choices;
use crate::optim::{dot, normalise};
use crate::random::stream;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Columns that vary by less than this share of their size do not vary.
const CONSTANT: f64 = 1e-9;

/// Steps and wider ramps of a column that are looked at, and random directions at most.
const STEPS: usize = 32;
const RAMPS: usize = 6;
const MOST_RANDOM_UNITS: usize = 8;
/// The share of the contexts that are on either side of a step at least: of fewer people each would decide.
const LEAST_SHARE: f64 = 0.1;
/// The width of a step at least, in standard deviations: networks compute in single precision.
const STEP_WIDTH: f64 = 0.02;

/// Shifts and scales of contexts and features, and hidden units.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Design {
    shift: Vec<f64>,
    /// Zero for columns that do not vary, and are not used.
    scale: Vec<f64>,
    feature_scale: Vec<f64>,
    constant: Constant,
    seed: u64,
    /// Whether a network could be more than linear.
    bends: bool,
    /// The units of the network, once they were chosen.
    hidden: Vec<Unit>,
    /// Whether demonstrations ask for them.
    asked_for: bool,
}

/// A bend, leaky(u·z − from) / scale, or a ramp, (leaky(u·z − from) − leaky(u·z − to)) / scale.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unit {
    direction: Vec<f64>,
    from: f64,
    to: Option<f64>,
    scale: f64,
}

impl Unit {
    /// Nothing where it is the same for all of these values of u·z.
    fn over(values: &[f64], direction: Vec<f64>, from: f64, to: Option<f64>) -> Option<Self> {
        let plain = Self { direction, from, to, scale: 1.0 };
        let own: Vec<f64> = values.iter().map(|&x| plain.at(x)).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        let scale = (own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / own.len() as f64).sqrt();
        (scale > 0.0).then_some(Self { scale, ..plain })
    }

    /// Its value where u·z is x.
    fn at(&self, x: f64) -> f64 {
        self.thresholds().map(|(threshold, sign)| sign * leaky(x - threshold)).sum::<f64>() / self.scale
    }

    /// Its value where the inputs of the network are these: 1, z and others.
    pub(super) fn of_inputs(&self, inputs: &[f64]) -> f64 {
        self.at(dot(&self.direction, &inputs[1..=self.direction.len()]))
    }

    /// The rectified units that it is made of, with their signs.
    fn thresholds(&self) -> impl Iterator<Item = (f64, f64)> {
        std::iter::once((self.from, 1.0)).chain(self.to.map(|to| (to, -1.0)))
    }
}

/// What f may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// One reward for everybody.
    Constant,
    /// A linear function of the context.
    Linear,
    /// A network of one hidden layer.
    Network,
}

/// Leaky rectification, as networks have it.
fn leaky(x: f64) -> f64 {
    if x > 0.0 { x } else { LEAK * x }
}

/// Where the weights that everybody has go when the mapping is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Constant {
    /// Into every row: coordinates sum to one.
    Simplex,
    /// Into the row of a column that is the same for all.
    Column(usize),
    /// Into an intercept.
    Intercept,
}

impl Design {
    /// From the contexts of demonstrations and their choices.
    pub(super) fn new(model: &Cmdp, contexts: &[&Context], choices: &Choices, seed: u64) -> Result<Self> {
        let (n, d) = (contexts.len() as f64, contexts[0].values().len());
        let shift: Vec<f64> = (0..d).map(|j| contexts.iter().map(|c| c.values()[j]).sum::<f64>() / n).collect();
        let deviation =
            |j: usize| (contexts.iter().map(|c| (c.values()[j] - shift[j]).powi(2)).sum::<f64>() / n).sqrt();
        let mut scale: Vec<f64> = (0..d).map(deviation).collect();
        let largest = |j: usize| contexts.iter().map(|c| c.values()[j].abs()).fold(0.0, f64::max);
        let varies: Vec<bool> = (0..d).map(|j| scale[j] > CONSTANT * largest(j)).collect();
        let constant = match model.context_space() {
            ContextSpace::Simplex { .. } => Constant::Simplex,
            _ => match (0..d).find(|&j| !varies[j] && shift[j] != 0.0) {
                Some(j) => Constant::Column(j),
                None => Constant::Intercept,
            },
        };
        if constant == Constant::Simplex {
            let common = (scale.iter().map(|s| s * s).sum::<f64>() / d as f64).sqrt();
            scale.fill(common);
        }
        scale.iter_mut().zip(&varies).filter(|(_, varies)| !**varies).for_each(|(s, _)| *s = 0.0);
        let feature_scale = deviations(&choices.first_mdp()?);
        let mut design =
            Self { shift, scale, feature_scale, constant, seed, bends: false, hidden: Vec::new(), asked_for: false };
        design.bends = !design.pool(contexts).is_empty();
        Ok(design)
    }

    /// What the units of a network are chosen from: steps and ramps of each column with more than two values, and bends along random
    /// directions.
    pub(super) fn pool(&self, contexts: &[&Context]) -> Vec<Unit> {
        let rows: Vec<Vec<f64>> = contexts.iter().map(|context| self.standard(context)).collect();
        let columns = self.columns().count();
        let sorted = |direction: &[f64]| {
            let mut values: Vec<f64> = rows.iter().map(|row| dot(direction, row)).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let rank = |n: usize, share: f64| ((n - 1) as f64 * share).round() as usize;
        let mut units = Vec::new();
        for j in 0..columns {
            let own: Vec<f64> = (0..columns).map(|i| f64::from(u8::from(i == j))).collect();
            let values = sorted(&own);
            let ramp = |from: f64, to: f64| Unit::over(&values, own.clone(), from, Some(to));
            let mut knots: Vec<f64> =
                (0..=RAMPS).map(|i| values[rank(values.len(), i as f64 / RAMPS as f64)]).collect();
            knots.dedup();
            let mut distinct = values.clone();
            distinct.dedup();
            // Of two values all is linear.
            if distinct.len() < 3 {
                continue;
            }
            let share = |i: usize| LEAST_SHARE + (1.0 - 2.0 * LEAST_SHARE) * i as f64 / STEPS as f64;
            let mut below: Vec<f64> = (0..=STEPS).map(|i| values[rank(values.len(), share(i))]).collect();
            below.dedup();
            for from in below {
                let Some(&to) = distinct.iter().find(|x| **x > from) else { continue };
                let (middle, half) = (0.5 * (from + to), 0.5 * (to - from).max(STEP_WIDTH));
                units.extend(ramp(middle - half, middle + half));
            }
            // A single ramp is what a linear function has.
            if knots.len() > 2 {
                units.extend(knots.windows(2).filter_map(|ends| ramp(ends[0], ends[1])));
            }
        }
        let mut rng = stream(self.seed, "hidden units", 0);
        for _ in 0..columns.min(MOST_RANDOM_UNITS) {
            let mut direction: Vec<f64> = (0..columns).map(|_| rng.sample(StandardNormal)).collect();
            normalise(&mut direction);
            let values = sorted(&direction);
            let bend = values[rank(values.len(), rng.random_range(0.2..0.8))];
            // At the end of a range nothing is bent.
            if bend > values[0] && bend < values[values.len() - 1] {
                units.extend(Unit::over(&values, direction, bend, None));
            }
        }
        units
    }

    /// One unit more, that demonstrations ask for or not.
    pub(super) fn add(&mut self, unit: Unit, asked_for: bool) {
        self.hidden.push(unit);
        self.asked_for |= asked_for;
    }

    /// Whether the units of the network were chosen.
    pub(super) fn has_grown(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether demonstrations ask for a network.
    pub(super) fn asked_for(&self) -> bool {
        self.asked_for
    }

    fn standard(&self, context: &Context) -> Vec<f64> {
        let c = context.values();
        self.columns().map(|j| (c[j] - self.shift[j]) / self.scale[j]).collect()
    }

    /// Whether it is for contexts and features of these lengths.
    pub(super) fn fits(&self, dimension: usize, n_features: usize) -> bool {
        let columns = self.columns().count();
        [self.shift.len(), self.scale.len()] == [dimension; 2]
            && self.feature_scale.len() == n_features
            && self.hidden.iter().all(|unit| unit.direction.len() == columns)
            && !matches!(self.constant, Constant::Column(j) if j >= dimension)
    }

    /// Whether contexts differ at all.
    pub(super) fn contexts_differ(&self) -> bool {
        self.columns().next().is_some()
    }

    /// The columns of the contexts that are the same for all.
    pub(super) fn constant_columns(&self) -> usize {
        self.scale.iter().filter(|scale| **scale == 0.0).count()
    }

    /// Whether contexts differ in more ways than a linear function can use.
    pub(super) fn bends(&self) -> bool {
        self.bends
    }

    /// The columns that vary.
    fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.scale.len()).filter(|&j| self.scale[j] > 0.0)
    }

    /// Length of x(c).
    pub(super) fn n_inputs(&self, form: Form) -> usize {
        match form {
            Form::Constant => 1,
            Form::Linear => 1 + self.columns().count(),
            Form::Network => 1 + self.columns().count() + self.hidden.len(),
        }
    }

    /// x(c).
    pub(super) fn inputs(&self, context: &Context, form: Form) -> Vec<f64> {
        let mut inputs = vec![1.0];
        if form > Form::Constant {
            inputs.extend(self.standard(context));
        }
        if form > Form::Linear {
            let units: Vec<f64> = self.hidden.iter().map(|unit| unit.of_inputs(&inputs)).collect();
            inputs.extend(units);
        }
        inputs
    }

    /// σ.
    pub(super) fn feature_scale(&self) -> &[f64] {
        &self.feature_scale
    }

    /// How to act on parameters θ, one row of features for each input.
    pub(super) fn agent(&self, form: Form, parameters: &[f64]) -> Result<Agent> {
        match form {
            Form::Constant | Form::Linear => Ok(Agent::Planned(self.mapping(parameters)?)),
            Form::Network => Ok(Agent::Neural(NeuralMapping::new(self.network(parameters)?))),
        }
    }

    /// The network with these weights: two units make a linear term, for x = (leaky(x) − leaky(−x)) / (1 + leak).
    fn network(&self, parameters: &[f64]) -> Result<Network> {
        let (d, k, columns) = (self.scale.len(), self.feature_scale.len(), self.columns().collect::<Vec<_>>());
        let rectified: Vec<(&Unit, f64)> =
            self.hidden.iter().flat_map(|own| own.thresholds().map(move |(threshold, _)| (own, threshold))).collect();
        let width = 2 * columns.len() + rectified.len();
        let architecture =
            Architecture { inputs: d, hidden: vec![Layer::leaky(width)], outputs: k, unit_output: false };
        let unit = |at: usize| -> (Vec<f64>, f64) {
            let pair = 2 * columns.len();
            if at < pair {
                let sign = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
                return ((0..columns.len()).map(|i| if i == at / 2 { sign } else { 0.0 }).collect(), 0.0);
            }
            let (own, threshold) = rectified[at - pair];
            (own.direction.clone(), -threshold)
        };
        let mut numbers: Vec<f64> = Vec::with_capacity(architecture.n_parameters());
        for at in 0..width {
            let (direction, _) = unit(at);
            let mut row = vec![0.0; d];
            columns.iter().zip(direction).for_each(|(&j, u)| row[j] = u);
            numbers.extend(row);
        }
        numbers.extend((0..width).map(|at| unit(at).1));
        for f in 0..k {
            let of = |input: usize| parameters[input * k + f] / self.feature_scale[f];
            for i in 0..columns.len() {
                let slope = of(1 + i) / (1.0 + LEAK);
                numbers.extend([slope, -slope]);
            }
            for (h, own) in self.hidden.iter().enumerate() {
                let weight = of(1 + columns.len() + h) / own.scale;
                numbers.extend(own.thresholds().map(|(_, sign)| sign * weight));
            }
        }
        numbers.extend((0..k).map(|f| parameters[f] / self.feature_scale[f]));
        let scale = self.scale.iter().map(|s| if *s > 0.0 { *s } else { 1.0 }).collect();
        let standard = Standardisation { shift: self.shift.clone(), scale };
        Network::new(architecture, standard, numbers.into_iter().map(|x| x as f32).collect(), Vec::new())
    }

    /// W and b of parameters θ, one row of features for each of the first inputs; what is missing is zero.
    pub(super) fn mapping(&self, parameters: &[f64]) -> Result<LinearMapping> {
        let (d, k) = (self.scale.len(), self.feature_scale.len());
        let row = |input: usize| parameters.get(input * k..(input + 1) * k);
        let mut values = vec![0.0; d * k];
        let mut common: Vec<f64> = (0..k).map(|f| parameters[f] / self.feature_scale[f]).collect();
        for (input, j) in self.columns().enumerate() {
            let Some(own) = row(input + 1) else { continue };
            for f in 0..k {
                let slope = own[f] / (self.scale[j] * self.feature_scale[f]);
                values[j * k + f] = slope;
                common[f] -= self.shift[j] * slope;
            }
        }
        match self.constant {
            Constant::Simplex => values.chunks_exact_mut(k).for_each(|row| {
                row.iter_mut().zip(&common).for_each(|(w, b)| *w += b);
            }),
            Constant::Column(j) => {
                values[j * k..(j + 1) * k].iter_mut().zip(&common).for_each(|(w, b)| *w += b / self.shift[j]);
            }
            Constant::Intercept => return LinearMapping::new(d, k, values)?.with_intercept(common),
        }
        LinearMapping::new(d, k, values)
    }
}

/// The standard deviation of each feature over states or pairs, its size where it does not vary, and one where it is zero.
fn deviations(mdp: &Mdp<'_>) -> Vec<f64> {
    let (features, pairs) = (mdp.features(), mdp.pairs());
    let k = features.n_features();
    let per_state = matches!(features, Features::State { .. });
    let (mut n, mut sum, mut squares) = (0.0, vec![0.0; k], vec![0.0; k]);
    for s in 0..mdp.n_states() {
        for pair in pairs.of_state(s).take(if per_state { 1 } else { usize::MAX }) {
            let mut row = vec![0.0; k];
            features.add_scaled(s, pair, 1.0, &mut row);
            n += 1.0;
            for f in 0..k {
                sum[f] += row[f];
                squares[f] += row[f] * row[f];
            }
        }
    }
    let of = |f: usize| {
        let (mean, square): (f64, f64) = (sum[f] / n, squares[f] / n);
        let deviation = (square - mean * mean).max(0.0).sqrt();
        match (deviation > 1e-6 * mean.abs(), mean != 0.0) {
            (true, _) => deviation,
            (false, true) => mean.abs(),
            (false, false) => 1.0,
        }
    };
    (0..k).map(of).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    /// The network that is handed out is the function that was learned; its ramps rise where a threshold may lie.
    #[test]
    fn networks_are_what_was_learned() {
        let mut random = stream(1, "contexts and parameters", 0);
        let mut number = || -> f64 { random.sample(StandardNormal) };
        let contexts: Vec<Context> =
            (0..40).map(|i| ContextSpace::Any.context([50.0 + 15.0 * number(), f64::from(i % 2)]).unwrap()).collect();
        let seen: Vec<&Context> = contexts.iter().collect();
        let mut design = Design {
            shift: vec![50.0, 0.5],
            scale: vec![15.0, 0.5],
            feature_scale: vec![0.1, 1.0, 20.0],
            constant: Constant::Intercept,
            seed: 1,
            bends: true,
            hidden: Vec::new(),
            asked_for: true,
        };
        design.hidden = design.pool(&seen);
        // A column of two values has no ramps of its own; there are steps between its 32 middle values.
        let ramps: Vec<&Unit> = design.hidden.iter().filter(|unit| unit.to.is_some()).collect();
        assert_eq!(ramps.len(), 32 + RAMPS);
        assert!(ramps.iter().all(|unit| unit.direction == [1.0, 0.0]));
        let n = design.n_inputs(Form::Network);
        let parameters: Vec<f64> = (0..n * 3).map(|_| number()).collect();
        let agent = design.agent(Form::Network, &parameters).unwrap();
        for context in &contexts {
            let found = agent.reward_mapping().unwrap().weights(context).unwrap();
            let x = design.inputs(context, Form::Network);
            for (f, found) in found.iter().enumerate() {
                let wanted: f64 = x.iter().enumerate().map(|(i, x)| x * parameters[i * 3 + f]).sum();
                let wanted = wanted / design.feature_scale[f];
                assert!(
                    (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0 / design.feature_scale[f]),
                    "{found} {wanted}"
                );
            }
        }
    }
}
