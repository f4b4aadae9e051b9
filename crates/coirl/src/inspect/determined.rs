//! Which entries of W the demonstrations determine at all.
//!
//! The mappings that explain the demonstrations as well as any do are
//!
//! ```text
//! { W :  Loss(W) ≤ slack,  ⟨W, Ḡ⟩ = ⟨Ŵ, Ḡ⟩,  ‖W‖₂ ≤ radius },     Ŵ the fitted mapping with ‖Ŵ‖₂ = 1.
//! ```
//!
//! Scale is fixed by what the experts gain over chance, as much as under Ŵ, and not by a norm: with a norm, every entry would
//! shrink as an undetermined one grows. The set is convex. Its least and greatest W_ij are approached from outside: maximise
//! ±W_ij over the cuts known so far, plan for the demonstrations at the maximiser, add the cuts that it violates, repeat.
//! Every plan gives a cut that holds for all W of the set,
//!
//! ```text
//! mean of (c ⊙ (μ^π − μ*))·W ≤ slack,     and for exact demonstrations also  (c_i ⊙ (μ^π − μ*_i))·W ≤ N·slack,
//! ```
//!
//! for exact losses are not negative one by one. So an interval can only be too wide, and never by more than was left when the
//! rounds ran out; `converged` says so. From exact demonstrations of an optimal expert the interval holds the expert's own
//! entry, as long as the expert's mapping is within `radius`.
//!
//! Paths end, and what lies beyond their ends may change losses and gains. The slack grows by as much as that can be worth under the fitted
//! mapping; where it can be worth more than half of what the experts are seen to gain, the paths are too short for the discount, and no entry
//! is determined.
//!
//! Some of W is out of sight however many demonstrations there are: the loss does not change along directions that no policy
//! changes, or that the contexts do not span. Their number is `null_dimension`.
//!
//! Cost: a round solves two cone programmes and makes 2N plans per entry that has not converged.

use super::feasible::{Cut, Extent, FeasibleSet};
use super::least_loss::LeastLoss;
use super::progress::{Listener, tell};
use super::span::Span;
use super::support::never_shown;
use super::tail::{SHORT, unseen_share};
use crate::error::{Error, Result, check_length};
use crate::learn::{Advantage, Problem};
use crate::mapping::LinearMapping;
use crate::optim::{dot, norm};
use crate::resampling::Interval;
use rayon::prelude::*;

/// Settings of the search.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeterminationSettings {
    /// Largest ‖W‖₂ looked at, in units of the fitted mapping's at equal gain over chance.
    pub radius: f64,
    /// Loss that counts as explained, as a share of what the experts gain over chance; by default the least that
    /// any mapping reaches and, for estimated demonstrations, two standard errors of the mean loss at least.
    pub slack: Option<f64>,
    /// A bound has converged when the mapping that reaches it has no more loss than the slack and this share.
    pub tolerance: f64,
    /// Rounds of cuts.
    pub max_rounds: usize,
    /// Plans in all rounds together; the first round is made whatever it takes.
    pub max_plans: usize,
    /// Entries looked at; beyond that those with the largest fitted weights.
    pub max_entries: usize,
    /// Steps towards the least loss, where no slack is given.
    pub max_steps: u64,
    /// Kernels with starts whose policies are looked at for directions out of sight; fewer leave their number an upper bound.
    pub max_processes: usize,
}

impl Default for DeterminationSettings {
    fn default() -> Self {
        Self {
            radius: 10.0,
            slack: None,
            tolerance: 1e-3,
            max_rounds: 40,
            max_plans: 100_000,
            max_entries: 300,
            max_steps: 200,
            max_processes: 64,
        }
    }
}

/// An interval as wide as this, in units of ‖Ŵ‖₂, does not determine an entry.
const WIDE: f64 = 1.0;
/// An entry that adds less than this share of what the largest fitted one adds is determined to be nothing much.
const NEGLIGIBLE: f64 = 0.1;
/// Least slack, as a share: rounding of plans and solvers.
const ROUNDING: f64 = 1e-7;
/// Expectations below this share of the largest possible one are zero.
const SAME: f64 = 1e-9;
/// Share of an entry outside the span above which W can move along it freely.
const FREE: f64 = 1e-6;
/// Single demonstrations whose cuts are added per point, the worst first.
const SINGLE_CUTS: usize = 2;

/// What is known about all entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Determination {
    /// Field by field; all of them, or those with the largest fitted weights.
    pub entries: Vec<Entry>,
    /// Whether entries were left out.
    pub complete: bool,
    /// Number dk of parameters.
    pub n_parameters: usize,
    /// Dimension of the directions along which the loss does not change; nothing where there are too many features.
    pub null_dimension: Option<usize>,
    /// Whether every start and kernel was looked at for that; otherwise the dimension is at most so much.
    pub null_dimension_exact: bool,
    /// Loss that counted as explained, as a share of what the experts gain over chance; `unseen` is part of it.
    pub slack: f64,
    /// The most that what lies beyond the ends of the paths can be worth under the fitted mapping, as a share of what the experts are seen to gain
    /// over chance; zero where demonstrations are exact, or nothing follows them.
    pub unseen: f64,
    /// The fitted mapping's own loss, in the same unit: above `slack` it lies outside the set.
    pub fitted_loss: f64,
    /// Whether every interval is as narrow as the set.
    pub converged: bool,
    /// Plans made.
    pub plans: usize,
    /// Rounds made.
    pub rounds: usize,
}

/// What is known about one entry.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Entry {
    /// Context field i.
    pub field: usize,
    /// Feature j.
    pub feature: usize,
    /// Ŵ_ij with ‖Ŵ‖₂ = 1.
    pub fitted: f64,
    /// Least and greatest W_ij of the set, or further out where `converged` is false.
    pub interval: Interval,
    /// Least and greatest W_ij of the set without any demonstration.
    pub allowed: Interval,
    /// Whether the interval is as narrow as the set.
    pub converged: bool,
    /// Whether the demonstrations determine it: its sign and roughly its size, or that it is next to nothing.
    pub determined: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Entry {
    /// 1 or −1 where every mapping of the set has that sign, 0 where there are both.
    pub fn sign(&self) -> i8 {
        i8::from(self.interval.lower > 0.0) - i8::from(self.interval.upper < 0.0)
    }
}

/// Why an entry is not determined.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The context field is zero in every demonstration.
    FieldAlwaysZero,
    /// The field is a linear function of the others in every demonstration; a constant one beside another constant, say.
    FieldsDependent,
    /// No policy changes the feature.
    FeatureFixed,
    /// Under every policy a combination of the feature with these others is the same.
    FeaturesDependent(Vec<usize>),
    /// No expert ever meets the feature, though others could: only one side is known.
    FeatureNeverShown,
    /// The paths are short for the discount: what lies beyond their ends can outweigh what they show.
    PathsTooShort,
    /// The demonstrations leave too much room.
    Loose,
    /// Actions that were taken are no less likely without the feature than luck would explain.
    NotNeeded,
}

/// One end of an interval on its way in.
struct End {
    entry: usize,
    sign: f64,
    bound: f64,
    converged: bool,
}

/// Finds which entries the demonstrations determine. Weights that everybody has are those of one field more, which is one for all.
pub fn determine(
    problem: &Problem<'_>,
    fitted: &LinearMapping,
    settings: &DeterminationSettings,
    listener: Listener<'_>,
) -> Result<Determination> {
    if fitted.intercept().is_some() {
        let longer = problem.select(&problem.data().all())?.with_constant()?;
        return determine(&longer, &fitted.with_intercept_as_row()?, settings, listener);
    }
    let n = problem.n_parameters();
    check_length("fitted mapping", n, fitted.values().len())?;
    let size = norm(fitted.values());
    let unit: Vec<f64> = fitted.values().iter().map(|w| w / size).collect();
    let advantage = Advantage::of(problem)?;
    let gained = dot(&unit, &advantage.mean);
    if !(gained > 0.0) {
        return Err(Error::InvalidSetting {
            name: "fitted mapping",
            value: format!("gains {gained} over chance"),
            reason: "under it the experts do no better than chance, so that it explains nothing; fit again",
        });
    }
    if !(settings.radius > 1.0 && settings.radius.is_finite()) {
        let reason = "expected a number above 1, the length of the fitted mapping";
        return Err(Error::InvalidSetting { name: "radius", value: settings.radius.to_string(), reason });
    }
    let unseen = unseen_share(problem, &unit, gained)?;
    let too_short = unseen > SHORT;
    let slack = match settings.slack {
        Some(share) => share,
        // What is not looked for needs no slack.
        None if too_short => 0.0,
        None => slack_of(problem, settings, listener)?,
    };
    let slack = slack + unseen * (1.0 + slack);
    let span = Span::of(problem, settings.max_processes)?;
    let mut set = FeasibleSet::new(&advantage.mean, gained, settings.radius);
    let mut search = Search { problem, limit: slack * gained, tolerance: settings.tolerance * gained, plans: 0 };
    let ends =
        |&entry: &usize| [1.0, -1.0].map(|sign| End { entry, sign, bound: set.allowed(entry, sign), converged: false });
    let mut ends: Vec<End> = chosen_entries(&unit, settings.max_entries).iter().flat_map(ends).collect();
    let rounds = if too_short {
        0
    } else {
        search.add_cuts(&[unit.clone(), advantage.mean.clone()], &mut set)?;
        search.bring_in(&mut ends, &mut set, settings, listener)?
    };
    let rounding = SAME * problem.model().features().max_abs() * problem.horizon()?;
    let never_shown = never_shown(problem, rounding)?;
    let reach = reach(problem);
    let judge = Judge { problem, span: span.as_ref(), unit: &unit, reach, never_shown, too_short };
    let mut entries: Vec<Entry> = ends.chunks_exact(2).filter_map(|pair| judge.entry(pair, &set)).collect();
    entries.sort_by_key(|entry| (entry.field, entry.feature));
    Ok(Determination {
        complete: entries.len() == n,
        n_parameters: n,
        null_dimension: judge.span.map(|span| n - span.parameters.len()),
        null_dimension_exact: judge.span.is_some_and(|span| span.complete),
        slack,
        unseen,
        fitted_loss: problem.loss(&unit, &problem.data().all())?.value / gained,
        converged: entries.iter().all(|entry| entry.converged),
        plans: search.plans,
        rounds,
        entries,
    })
}

/// What the entries of a mapping are judged by, once their intervals are known.
struct Judge<'a, 'p> {
    problem: &'a Problem<'p>,
    span: Option<&'a Span>,
    /// The fitted mapping, of length one.
    unit: &'a [f64],
    /// What a weight of one adds to a reward at most, entry by entry.
    reach: Vec<f64>,
    never_shown: Vec<bool>,
    /// Whether paths are too short for the discount to determine anything.
    too_short: bool,
}

/// What a weight of one adds to a reward at most, entry by entry: weights of columns in other units are compared by it.
fn reach(problem: &Problem<'_>) -> Vec<f64> {
    let data = problem.data();
    let of_field =
        |field: usize| (0..data.len()).fold(0.0, |most: f64, i| most.max(data.input(i).values()[field].abs()));
    let of_features = problem.model().features().largest();
    (0..data.dimension()).map(of_field).flat_map(|x| of_features.iter().map(move |phi| x * phi)).collect()
}

impl Judge<'_, '_> {
    /// The entry between two ends, and whether it is determined.
    fn entry(&self, pair: &[End], set: &FeasibleSet) -> Option<Entry> {
        let [above, below] = pair else { return None };
        let (index, k) = (above.entry, self.problem.n_features());
        let interval = Interval { lower: -below.bound, upper: above.bound };
        let allowed = Interval { lower: -set.allowed(index, -1.0), upper: set.allowed(index, 1.0) };
        let (field, feature) = (index / k, index % k);
        let free = self.span.is_some_and(|span| span.complete && span.parameters.share_outside(index) > FREE);
        let one_sign = interval.lower > 0.0 || interval.upper < 0.0;
        let most = interval.lower.abs().max(interval.upper.abs()) * self.reach[index];
        let largest = self.unit.iter().zip(&self.reach).fold(0.0, |most: f64, (w, reach)| most.max(w.abs() * reach));
        let negligible = self.reach[index] > 0.0 && most <= NEGLIGIBLE * largest;
        let determined = !free && !self.too_short && (negligible || (one_sign && interval.width() <= WIDE));
        Some(Entry {
            field,
            feature,
            fitted: self.unit[index],
            interval,
            allowed,
            converged: above.converged && below.converged,
            determined,
            reason: (!determined).then(|| self.reason(field, feature)),
        })
    }

    /// Why an entry is not determined: what no demonstration could change before what longer paths would.
    fn reason(&self, field: usize, feature: usize) -> Reason {
        match reason(self.problem, self.span, field, feature, &self.never_shown) {
            Reason::FeatureNeverShown | Reason::Loose if self.too_short => Reason::PathsTooShort,
            other => other,
        }
    }
}

/// The least loss that any mapping reaches, and for estimates two standard errors of the mean loss at least.
fn slack_of(problem: &Problem<'_>, settings: &DeterminationSettings, listener: Listener<'_>) -> Result<f64> {
    let least = LeastLoss::of(problem, settings.max_steps, listener)?;
    let noise = if problem.data().is_exact() { 0.0 } else { 2.0 * standard_error(problem, &least)? };
    Ok(least.reached.max(noise).max(ROUNDING))
}

/// The standard error of the mean loss of the best mapping, as a share of its gain.
fn standard_error(problem: &Problem<'_>, least: &LeastLoss) -> Result<f64> {
    let w = least.mapping.values();
    let agents = problem.best_responses(w, &problem.data().all())?;
    let mut losses = Vec::with_capacity(agents.len());
    for (i, agent) in agents.iter().enumerate() {
        let mut difference = vec![0.0; w.len()];
        problem.data().add_difference(
            i,
            &agent.feature_expectations,
            problem.data().expectations(i)?,
            1.0,
            &mut difference,
        );
        losses.push(dot(w, &difference));
    }
    let count = losses.len() as f64;
    let mean = losses.iter().sum::<f64>() / count;
    let squares: f64 = losses.iter().map(|loss| (loss - mean).powi(2)).sum();
    Ok(if count > 1.0 { (squares / (count * (count - 1.0))).sqrt() / least.gained } else { 0.0 })
}

/// The entries with the largest weights, in order; the earlier of equals.
fn chosen_entries(unit: &[f64], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..unit.len()).collect();
    order.sort_by(|&a, &b| unit[b].abs().total_cmp(&unit[a].abs()).then(a.cmp(&b)));
    order.truncate(most);
    order
}

/// Planning at points and keeping what they violate.
struct Search<'p, 'a> {
    problem: &'p Problem<'a>,
    /// The slack in the unit of the loss.
    limit: f64,
    tolerance: f64,
    plans: usize,
}

impl Search<'_, '_> {
    /// Brings the ends of intervals in, round by round, until their farthest points belong to the set; the number of rounds.
    fn bring_in(
        &mut self,
        ends: &mut [End],
        set: &mut FeasibleSet,
        settings: &DeterminationSettings,
        listener: Listener<'_>,
    ) -> Result<usize> {
        for round in 1..=settings.max_rounds {
            let open: Vec<usize> = (0..ends.len()).filter(|&e| !ends[e].converged).collect();
            if open.is_empty() {
                return Ok(round - 1);
            }
            let extents: Vec<Extent> =
                open.par_iter().map(|&e| set.extent(ends[e].entry, ends[e].sign)).collect::<Result<_>>()?;
            let mut useful = vec![false; set.cuts.len()];
            for (&e, extent) in open.iter().zip(&extents) {
                ends[e].bound = ends[e].bound.min(extent.bound);
                extent.active.iter().for_each(|&cut| useful[cut] = true);
            }
            // What the last plans were worth is counted before there are too many; the first round is never too much.
            if round > 1 && self.plans + open.len() * self.problem.len() > settings.max_plans {
                return Ok(round);
            }
            // A cut that holds no bound back is found again should it be missed.
            let mut keep = useful.into_iter();
            set.cuts.retain(|_| keep.next().unwrap_or(true));
            let points: Vec<Vec<f64>> = extents.into_iter().map(|extent| extent.point).collect();
            let inside = self.add_cuts(&points, set)?;
            open.iter().zip(inside).for_each(|(&e, inside)| ends[e].converged = inside);
            tell(listener, round, settings.max_rounds)?;
        }
        Ok(settings.max_rounds)
    }

    /// Adds the cuts that the points violate, and says which points belong to the set.
    fn add_cuts(&mut self, points: &[Vec<f64>], set: &mut FeasibleSet) -> Result<Vec<bool>> {
        let (problem, count) = (self.problem, self.problem.len());
        let n = problem.n_parameters();
        let mut inside = Vec::with_capacity(points.len());
        // A block of points at a time, so that memory does not grow with their number.
        for block in points.chunks(POINTS_AT_ONCE) {
            let queries: Vec<(&[f64], usize)> =
                block.iter().flat_map(|w| (0..count).map(move |i| (w.as_slice(), i))).collect();
            let agents = problem.best_responses_of_each(&queries)?;
            self.plans += queries.len();
            for (w, agents) in block.iter().zip(agents.chunks_exact(count)) {
                let mut mean = vec![0.0; n];
                let mut single: Vec<(f64, Vec<f64>)> = Vec::new();
                for (i, agent) in agents.iter().enumerate() {
                    let mut difference = vec![0.0; n];
                    problem.data().add_difference(
                        i,
                        &agent.feature_expectations,
                        problem.data().expectations(i)?,
                        1.0,
                        &mut difference,
                    );
                    mean.iter_mut().zip(&difference).for_each(|(sum, x)| *sum += x / count as f64);
                    if problem.data().is_exact() {
                        single.push((dot(w, &difference), difference));
                    }
                }
                let loss = dot(w, &mean);
                inside.push(loss <= self.limit + self.tolerance);
                if loss <= self.limit {
                    continue;
                }
                let whole = Cut::new(mean, self.limit);
                single.sort_by(|a, b| b.0.total_cmp(&a.0));
                let worst = single.into_iter().take(SINGLE_CUTS);
                let worst = worst.filter_map(|(_, difference)| Cut::new(difference, self.limit * count as f64));
                for cut in whole.into_iter().chain(worst) {
                    if dot(&cut.normal, w) > cut.limit && !set.cuts.contains(&cut) {
                        set.cuts.push(cut);
                    }
                }
            }
        }
        Ok(inside)
    }
}

/// Points planned for together.
const POINTS_AT_ONCE: usize = 64;

/// Why an entry is not determined: what is true of all demonstrations first.
fn reason(problem: &Problem<'_>, span: Option<&Span>, field: usize, feature: usize, never_shown: &[bool]) -> Reason {
    if (0..problem.len()).all(|i| problem.data().input(i).values()[field] == 0.0) {
        return Reason::FieldAlwaysZero;
    }
    if let Some(span) = span {
        if span.contexts.share_outside(field) > FREE {
            return Reason::FieldsDependent;
        }
        // Features that policies change in processes not looked at would be called fixed.
        let outside = span.features.share_outside(feature);
        if span.complete && outside > 1.0 - FREE {
            return Reason::FeatureFixed;
        }
        if span.complete && outside > FREE {
            let unit: Vec<f64> = (0..problem.n_features()).map(|j| f64::from(u8::from(j == feature))).collect();
            let moved = span.features.remainder(&unit);
            let others = (0..moved.len()).filter(|&j| j != feature && moved[j].abs() > FREE);
            return Reason::FeaturesDependent(others.collect());
        }
    }
    if never_shown[feature] { Reason::FeatureNeverShown } else { Reason::Loose }
}
