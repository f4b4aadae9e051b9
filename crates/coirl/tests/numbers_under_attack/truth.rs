//! What policies are worth, by other arithmetic than the library's: sums of two doubles (Dekker 1971), some 106 bits, and
//! Gaussian elimination, so that discounts a rounding error below one can be judged.
//!
//! Rewards are scaled by a power of two first, which loses nothing; what is told is in units of that.

use coirl::model::{ActionId, Criterion, Mdp, Reward};
use coirl::plan::Policy;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The unevaluated sum of two doubles, the second below half a unit of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Twofold(f64, f64);

impl Twofold {
    pub(crate) const ZERO: Self = Self(0.0, 0.0);

    pub(crate) fn new(x: f64) -> Self {
        Self(x, 0.0)
    }

    pub(crate) fn to_double(self) -> f64 {
        self.0 + self.1
    }

    fn abs(self) -> Self {
        if self.0 < 0.0 { -self } else { self }
    }

    fn larger(self, other: Self) -> Self {
        if (other - self).0 > 0.0 { other } else { self }
    }
}

fn exact_sum(a: f64, b: f64) -> Twofold {
    let s = a + b;
    let rest = s - a;
    Twofold(s, (a - (s - rest)) + (b - rest))
}

impl Add for Twofold {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let Twofold(s, error) = exact_sum(self.0, other.0);
        let Twofold(t, rest) = exact_sum(self.1, other.1);
        let Twofold(s, error) = exact_sum(s, error + t);
        exact_sum(s, error + rest)
    }
}

impl Neg for Twofold {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Sub for Twofold {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Twofold {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        exact_sum(product, error + (self.0 * other.1 + self.1 * other.0))
    }
}

impl Div for Twofold {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = Self::new(self.0 / other.0);
        let rest = self - first * other;
        let second = Self::new(rest.0 / other.0);
        let rest = rest - second * other;
        first + second + Self::new(rest.0 / other.0)
    }
}

/// A process with a reward, scaled so that the largest is about one.
pub(crate) struct Judge<'a> {
    mdp: &'a Mdp<'a>,
    reward: &'a Reward,
    gamma: Twofold,
    /// The reward is this times what is reckoned with; a power of two.
    pub(crate) scale: f64,
}

/// The power of two next below |x|; one for zero.
fn power_of_two(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { x.abs().log2().floor().clamp(-1074.0, 1023.0).exp2() }
}

impl<'a> Judge<'a> {
    pub(crate) fn new(mdp: &'a Mdp<'a>, reward: &'a Reward) -> Self {
        let gamma = Twofold::new(mdp.criterion().discount());
        Self { mdp, reward, gamma, scale: power_of_two(reward.max_abs()) }
    }

    fn at(&self, state: usize, pair: usize) -> Twofold {
        // In two steps: the inverse of a subnormal is no double.
        let half = power_of_two(self.scale.sqrt());
        Twofold::new(self.reward.at(state, pair) / half / (self.scale / half))
    }

    /// The row of a pair, which sums to one as doubles cannot.
    fn row(&self, pair: usize) -> Vec<(usize, Twofold)> {
        let row = || self.mdp.kernel().successors(pair).map(|(next, p)| (next, Twofold::new(p)));
        let sum = row().fold(Twofold::ZERO, |sum, (_, p)| sum + p);
        row().map(|(next, p)| (next, p / sum)).collect()
    }

    fn expected(&self, pair: usize, values: &[Twofold]) -> Twofold {
        self.row(pair).into_iter().fold(Twofold::ZERO, |sum, (next, p)| sum + p * values[next])
    }

    fn pairs_of(&self, actions: &[ActionId]) -> Vec<usize> {
        let find = |(s, action): (usize, &ActionId)| self.mdp.pairs().find(s, action.index()).unwrap();
        actions.iter().enumerate().map(find).collect()
    }

    fn all_policies(&self) -> Vec<Vec<usize>> {
        let extend = |policies: Vec<Vec<usize>>, s: usize| {
            let pairs = self.mdp.pairs().of_state(s);
            let longer = |policy: Vec<usize>| {
                pairs.clone().map(move |pair| policy.iter().copied().chain([pair]).collect::<Vec<usize>>())
            };
            policies.into_iter().flat_map(longer).collect()
        };
        (0..self.mdp.n_states()).fold(vec![Vec::new()], extend)
    }

    /// V of the policy that takes these pairs, for the criteria with a sum for ever; absorbing states end a total reward.
    fn sum_values(&self, chosen: &[usize]) -> Vec<Twofold> {
        let n = self.mdp.n_states();
        let total = matches!(self.mdp.criterion(), Criterion::TotalReward);
        let mut system = vec![vec![Twofold::ZERO; n + 1]; n];
        for s in 0..n {
            system[s][s] = Twofold::new(1.0);
            if total && self.mdp.is_absorbing(coirl::model::StateId(s as u32)) {
                continue;
            }
            for (next, p) in self.row(chosen[s]) {
                system[s][next] = system[s][next] - self.gamma * p;
            }
            system[s][n] = self.at(s, chosen[s]);
        }
        solve(system)
    }

    /// The gain of a unichain policy: r·d with d = dP, Σ d = 1.
    fn gain(&self, chosen: &[usize]) -> Twofold {
        let n = self.mdp.n_states();
        let mut system = vec![vec![Twofold::ZERO; n + 1]; n];
        for s in 0..n {
            system[s][s] = system[s][s] + Twofold::new(1.0);
            for (next, p) in self.row(chosen[s]) {
                system[next][s] = system[next][s] - p;
            }
        }
        system[n - 1] = vec![Twofold::new(1.0); n + 1];
        let shares = solve(system);
        (0..n).fold(Twofold::ZERO, |sum, s| sum + shares[s] * self.at(s, chosen[s]))
    }

    fn stage(&self, values: &[Twofold], state: usize, pair: usize) -> Twofold {
        self.at(state, pair) + self.gamma * self.expected(pair, values)
    }

    /// By how much the best policy beats this one in the state where that is most, and the size of the best values, both in
    /// units of the scale.
    pub(crate) fn shortfall(&self, policy: &Policy) -> (f64, f64) {
        let n = self.mdp.n_states();
        let states = 0..n;
        let (best, own): (Vec<Twofold>, Vec<Twofold>) = match (self.mdp.criterion(), policy) {
            (Criterion::FiniteHorizon { steps, .. }, Policy::Staged(stages)) => {
                assert_eq!(stages.len(), steps);
                let (mut best, mut own) = (vec![Twofold::ZERO; n], vec![Twofold::ZERO; n]);
                for stage in stages.iter().rev() {
                    let chosen = self.pairs_of(stage);
                    own = states.clone().map(|s| self.stage(&own, s, chosen[s])).collect();
                    let most = |s: usize| {
                        let each = self.mdp.pairs().of_state(s).map(|pair| self.stage(&best, s, pair));
                        each.reduce(Twofold::larger).unwrap()
                    };
                    best = states.clone().map(most).collect();
                }
                (best, own)
            }
            (Criterion::Average, Policy::Stationary(actions)) => {
                let best = self.all_policies().iter().map(|policy| self.gain(policy)).reduce(Twofold::larger).unwrap();
                (vec![best], vec![self.gain(&self.pairs_of(actions))])
            }
            (_, Policy::Stationary(actions)) => {
                let each = self.all_policies().into_iter().map(|policy| self.sum_values(&policy));
                let larger = |a: Vec<Twofold>, b: Vec<Twofold>| {
                    a.into_iter().zip(b).map(|(x, y)| x.larger(y)).collect::<Vec<_>>()
                };
                (each.reduce(larger).unwrap(), self.sum_values(&self.pairs_of(actions)))
            }
            (criterion, policy) => panic!("{criterion:?} with {policy:?}"),
        };
        let short = best.iter().zip(&own).fold(0.0, |most: f64, (b, v)| most.max((*b - *v).to_double()));
        (short, best.iter().fold(0.0, |most: f64, b| most.max(b.abs().to_double())))
    }
}

/// Solves an augmented system by elimination with row pivoting.
fn solve(mut system: Vec<Vec<Twofold>>) -> Vec<Twofold> {
    let n = system.len();
    for column in 0..n {
        let size = |row: usize| system[row][column].0.abs();
        let pivot = (column..n).max_by(|&a, &b| size(a).total_cmp(&size(b))).unwrap();
        system.swap(column, pivot);
        for row in (0..n).filter(|&row| row != column) {
            let factor = system[row][column] / system[column][column];
            for k in column..=n {
                let above = system[column][k];
                system[row][k] = system[row][k] - factor * above;
            }
        }
    }
    (0..n).map(|s| system[s][n] / system[s][s]).collect()
}

#[test]
fn twofold_numbers_keep_what_doubles_lose() {
    let third = Twofold::new(1.0) / Twofold::new(3.0);
    let rest = third * Twofold::new(3.0) - Twofold::new(1.0);
    assert!(rest.to_double().abs() < 1e-31, "{rest:?}");
    let small = (Twofold::new(1.0) + Twofold::new(1e-25)) - Twofold::new(1.0);
    assert!((small.to_double() / 1e-25 - 1.0).abs() < 1e-6, "{small:?}");
}
