//! Garnet-style random models (Archibald, McKinnon & Thomas 1995): random sparse kernels with a given number of successors
//! per pair. For tests and benchmarks.

use crate::error::{Error, Result, check_room};
use crate::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, KernelBuilder, Mixture, Names, Pairs};
use crate::random::stream;
use rand::RngExt;
use std::sync::Arc;

/// Settings of a random model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Garnet {
    /// Number of states.
    pub n_states: usize,
    /// Number of actions.
    pub n_actions: usize,
    /// Successors of each pair, with probabilities cut from the unit interval at random.
    pub n_successors: usize,
    /// Features per state, uniform in [0, 1].
    pub n_features: usize,
    /// Base kernels: one gives shared dynamics, more give a mixture over contexts.
    pub n_kernels: usize,
    /// Share of the actions that is admissible in a state (at least one always is).
    pub admissible: f64,
    /// γ.
    pub discount: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Garnet {
    fn default() -> Self {
        Self {
            n_states: 100,
            n_actions: 4,
            n_successors: 5,
            n_features: 5,
            n_kernels: 1,
            admissible: 1.0,
            discount: 0.9,
            seed: 0,
        }
    }
}

impl Garnet {
    /// The model, started in a uniformly random state.
    pub fn build(self) -> Result<Cmdp> {
        self.check()?;
        let pairs = Arc::new(self.pairs()?);
        let kernels = (0..self.n_kernels).map(|i| self.kernel(&pairs, i as u64)).collect::<Result<Vec<_>>>()?;
        let dynamics = match <[Kernel; 1]>::try_from(kernels) {
            Ok([kernel]) => Dynamics::Shared(kernel),
            Err(kernels) => Dynamics::Mixture(Mixture::new(&kernels)?),
        };
        let mut rng = stream(self.seed, "garnet features", 0);
        let values = (0..self.n_states * self.n_features).map(|_| rng.random::<f64>()).collect();
        let features = Features::per_state(self.n_states, self.n_features, values)?;
        let initial = vec![1.0 / self.n_states as f64; self.n_states];
        let space = match self.n_kernels {
            1 => ContextSpace::Any,
            dimension => ContextSpace::Simplex { dimension },
        };
        Cmdp::new(dynamics, features, initial, Criterion::discounted(self.discount)?)?
            .with_context_space(space)?
            .with_names(Names { model: format!("garnet (seed {})", self.seed), ..Names::default() })
    }

    fn check(self) -> Result<()> {
        let bad = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
        if self.n_successors == 0 || self.n_successors > self.n_states {
            return bad("n_successors", self.n_successors.to_string(), "expected at least 1 and at most n_states");
        }
        let pairs = self.n_states.saturating_mul(self.n_actions);
        check_room("transitions of a garnet", &[pairs, self.n_successors, self.n_kernels])?;
        check_room("features of a garnet", &[self.n_states, self.n_features])?;
        if self.n_features == 0 {
            return bad("n_features", "0".into(), "expected at least 1");
        }
        if self.n_kernels == 0 {
            return bad("n_kernels", "0".into(), "expected at least 1");
        }
        if !(0.0..=1.0).contains(&self.admissible) {
            return bad("admissible", self.admissible.to_string(), "expected a share in [0, 1]");
        }
        Ok(())
    }

    fn pairs(self) -> Result<Pairs> {
        if self.admissible == 1.0 {
            return Pairs::all(self.n_states, self.n_actions);
        }
        let mut rng = stream(self.seed, "garnet admissible", 0);
        let mut mask: Vec<bool> =
            (0..self.n_states * self.n_actions).map(|_| rng.random::<f64>() < self.admissible).collect();
        for row in mask.chunks_exact_mut(self.n_actions.max(1)) {
            if !row.contains(&true) {
                let action = rng.random_range(0..row.len());
                row[action] = true;
            }
        }
        Pairs::from_mask(self.n_states, self.n_actions, &mask)
    }

    fn kernel(self, pairs: &Arc<Pairs>, number: u64) -> Result<Kernel> {
        let mut rng = stream(self.seed, "garnet kernel", number);
        let mut builder = KernelBuilder::new(pairs.clone());
        let mut successors: Vec<usize> = Vec::with_capacity(self.n_successors);
        let mut cuts: Vec<f64> = Vec::with_capacity(self.n_successors + 1);
        for _ in 0..pairs.len() {
            // Floyd's sampling of distinct successors.
            successors.clear();
            for top in self.n_states - self.n_successors..self.n_states {
                let draw = rng.random_range(0..=top);
                successors.push(if successors.contains(&draw) { top } else { draw });
            }
            cuts.clear();
            cuts.extend((1..self.n_successors).map(|_| rng.random::<f64>()));
            cuts.push(0.0);
            cuts.push(1.0);
            cuts.sort_by(f64::total_cmp);
            builder.push_row(successors.iter().zip(cuts.windows(2)).map(|(&s, cut)| (s as i64, cut[1] - cut[0])))?;
        }
        builder.finish()
    }
}
