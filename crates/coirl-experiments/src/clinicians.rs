//! A true mapping for the sepsis simulator, as the paper makes its own.

use coirl::Result;
use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::{Patient, Sepsis};
use coirl::learn::{Ellipsoid, Problem, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};

/// Transitions of a recorded path.
const TRANSITIONS: usize = 40;

/// A mapping made as the paper makes its W*: by the ellipsoid method on recorded trajectories, here of simulated clinicians with `n`
/// patients. It explains what they did as well as a linear mapping can that objects to every difference.
pub fn mapping_of_clinicians(n: usize, seed: u64) -> Result<LinearMapping> {
    let sepsis = Sepsis::default();
    let (model, clinicians) = (sepsis.build()?, sepsis.clinicians()?);
    let demonstration = |(i, patient): (usize, &Patient)| {
        let mdp = model.mdp(&patient.context)?.starting_in(patient.start)?;
        let path = Trajectory::sample(&mdp, &clinicians, TRANSITIONS, seed, i as u64)?;
        Demonstration::from_trajectories(&model, patient.context.clone(), vec![path])
    };
    let patients = Sepsis::patients(n, seed)?;
    let train = Train::new(patients.iter().enumerate().map(demonstration).collect::<Result<_>>()?);
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate)?;
    let settings = Settings {
        seed,
        record_every: Some(0),
        record_loss: Some(false),
        ..Settings::new(Method::Ellipsoid(Ellipsoid::default()))
    };
    Ok(fit(&problem, &settings, Watch::default(), &mut ())?.mapping()?.clone())
}
