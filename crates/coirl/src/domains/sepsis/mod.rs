//! Treatment of sepsis in intensive care, simulated: a contextual process on the aggregates that ICU-Sepsis publishes (Choudhary, Gupta
//! & Thomas 2024, version 2.0.1, MIT licence). Research software, not for clinical use.
//!
//! States 0–712 are clusters of patients' conditions in steps of four hours, 713 death, 714 survival, both absorbing, and 715 *unknown*:
//! clinicians took few of the 25 actions (five levels of fluids × five of vasopressors, `5·fluid + vaso`) in each cluster, and what the others do nobody knows.
//! They lead there, where every feature is −1 for ever. A context (gender, age, Elixhauser score, re-admission, weight, coma scale,
//! ventilation) is drawn together with the state in which the stay begins: see [`Patient`].

mod data;
mod kernels;
mod patients;
mod published;
mod reward;
mod survival;

pub use data::{DEATH, N_ACTIONS, N_CLUSTERS, SURVIVAL};
pub use patients::{COMA_SCALE, CONTEXTS, Patient};

use crate::dynamics::centres;
use crate::error::{Result, check_room};
use crate::mapping::{LinearMapping, ThresholdMapping};
use crate::model::{ActionId, Clusters, Cmdp, Context, Criterion, Dynamics, Features, Mixture, Names, Pairs};
use crate::plan::Policy;
use data::{Data, N_STATES};
use patients::Population;
use rayon::prelude::*;

/// Patients whose mean context centres the contextual kernels, and their seed.
const REFERENCE_PATIENTS: usize = 20_000;
const REFERENCE_SEED: u64 = 0;
/// Clusters of contexts with a kernel each.
const N_KERNELS: usize = 5;

/// What happens to actions that clinicians hardly ever took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inadmissible {
    /// They can be taken and lead to *unknown*; the model says which pairs are known.
    #[default]
    Unknown,
    /// They cannot be taken.
    Masked,
}

/// How the dynamics depend on the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SepsisDynamics {
    /// Not at all: the published kernel.
    #[default]
    Shared,
    /// P_c = Σ cᵢ Pᵢ.
    Mixture,
    /// Five clusters of contexts with a kernel each.
    Clusters,
}

/// Settings of the sepsis simulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sepsis {
    /// What happens to inadmissible actions.
    pub inadmissible: Inadmissible,
    /// How the dynamics depend on the context.
    pub dynamics: SepsisDynamics,
    /// γ.
    pub discount: f64,
}

impl Default for Sepsis {
    fn default() -> Self {
        Self { inadmissible: Inadmissible::Unknown, dynamics: SepsisDynamics::Shared, discount: 0.9 }
    }
}

impl Sepsis {
    /// The model: 716 states, 25 actions, 42 features, contexts on a simplex of 7 fields.
    pub fn build(self) -> Result<Cmdp> {
        let data = Data::shipped()?;
        let pairs = kernels::pairs(data, self.inadmissible)?;
        let dynamics = match self.dynamics {
            SepsisDynamics::Shared => Dynamics::Shared(kernels::published(data, &pairs)?),
            SepsisDynamics::Mixture => {
                Dynamics::Mixture(Mixture::new(&kernels::tilted(data, &pairs, &mean_context()?)?)?)
            }
            SepsisDynamics::Clusters => {
                let mixture = Mixture::new(&kernels::tilted(data, &pairs, &mean_context()?)?)?;
                let centroids = centres(&reference_contexts()?, N_KERNELS, REFERENCE_SEED)?;
                let space = patients::space();
                let kernel = |centroid: &Vec<f64>| mixture.kernel(&space.context(centroid.clone())?);
                Dynamics::Clusters(Clusters::new(centroids.iter().map(kernel).collect::<Result<_>>()?, centroids)?)
            }
        };
        let mut initial = data.start.clone();
        initial.resize(N_STATES, 0.0);
        let features = Features::per_state(N_STATES, reward::N_FEATURES, reward::features(data)?)?;
        let model = Cmdp::new(dynamics, features, initial, Criterion::discounted(self.discount)?)?
            .with_context_space(patients::space())?
            .with_names(Names {
                model: "sepsis".into(),
                actions: action_names(),
                features: reward::names(),
                contexts: CONTEXTS.map(str::to_owned).into(),
            })?;
        match self.inadmissible {
            Inadmissible::Unknown => model.with_known_pairs(kernels::known(data)),
            Inadmissible::Masked => Ok(model),
        }
    }

    /// Patients, contexts and starts drawn together; the same seed gives the same ones, and a longer list begins with the shorter.
    pub fn patients(n: usize, seed: u64) -> Result<Vec<Patient>> {
        check_room("patients", &[n])?;
        Self::patients_numbered(&(0..n as u64).collect::<Vec<_>>(), seed)
    }

    /// The patients of these numbers, counted from 0, of the list that [`Sepsis::patients`] begins.
    pub fn patients_numbered(numbers: &[u64], seed: u64) -> Result<Vec<Patient>> {
        let population = Population::new(Data::shipped()?)?;
        numbers.par_iter().map(|&number| population.draw(seed, number)).collect()
    }

    /// A column of the published centroids, by cluster and as published.
    pub fn centroid_column(name: &str) -> Result<Vec<f64>> {
        Data::shipped()?.column(name)
    }

    /// The process in which survival earns one and nothing else counts, at discount one: values are probabilities to survive.
    pub fn survival() -> Result<Cmdp> {
        survival::model(Data::shipped()?)
    }

    /// W* of the linear experiments: 7 × 42.
    pub fn linear_mapping() -> LinearMapping {
        reward::truth()
    }

    /// f* of the non-linear experiments: what W* says of age for those whose share of age in the context is above the
    /// median, what it says of weight for the others.
    pub fn threshold_mapping() -> Result<ThresholdMapping> {
        let truth = reward::truth();
        let row = |name: &str| {
            let at = CONTEXTS.iter().position(|field| *field == name).unwrap_or_default();
            truth.values()[at * reward::N_FEATURES..(at + 1) * reward::N_FEATURES].to_vec()
        };
        let mut ages: Vec<f64> = reference_contexts()?.iter().map(|context| context.values()[1]).collect();
        ages.sort_by(f64::total_cmp);
        ThresholdMapping::new(CONTEXTS.len(), 1, ages[ages.len() / 2], row("age"), row("Weight_kg"))
    }

    /// How clinicians act, kept to what is admissible: a probability per pair of the model.
    pub fn clinicians(self) -> Result<Policy> {
        let data = Data::shipped()?;
        let pairs = kernels::pairs(data, self.inadmissible)?;
        let admissible = |s: usize, a: usize| s >= N_CLUSTERS || data.admissible[s * N_ACTIONS + a];
        published::clinicians(data, &pairs, admissible)
    }

    /// No fluids and no vasopressors wherever that is admissible; the least treatment elsewhere.
    pub fn no_treatment(self) -> Result<Policy> {
        let data = Data::shipped()?;
        let pairs = kernels::pairs(data, self.inadmissible)?;
        let least = |s: usize| {
            let known = |a: &usize| s >= N_CLUSTERS || data.admissible[s * N_ACTIONS + a];
            (0..N_ACTIONS).find(known).unwrap_or_default()
        };
        Policy::stationary(&pairs, (0..N_STATES).map(|s| ActionId(least(s) as u32)).collect())
    }

    /// ICU-Sepsis as published: episodes end in death or survival, and survival earns one.
    pub fn published() -> Result<Cmdp> {
        published::model(Data::shipped()?)
    }

    /// The published policy of the clinicians for [`Sepsis::published`].
    pub fn published_clinicians() -> Result<Policy> {
        published::clinicians(Data::shipped()?, &Pairs::all(N_STATES, N_ACTIONS)?, |_, _| true)
    }
}

fn reference_contexts() -> Result<Vec<Context>> {
    let patients = Sepsis::patients(REFERENCE_PATIENTS, REFERENCE_SEED)?;
    Ok(patients.into_iter().map(|patient| patient.context).collect())
}

fn mean_context() -> Result<Vec<f64>> {
    let contexts = reference_contexts()?;
    let mut mean = vec![0.0; CONTEXTS.len()];
    for context in &contexts {
        mean.iter_mut().zip(context.values()).for_each(|(sum, x)| *sum += x / contexts.len() as f64);
    }
    Ok(mean)
}

fn action_names() -> Vec<String> {
    (0..N_ACTIONS).map(|a| format!("fluid {} vaso {}", a / 5, a % 5)).collect()
}
