//! Stays as the model sees them. Those to learn from, to stop by and to score on are different types.

use crate::demos::{self, Demonstration, Trajectory};
use crate::error::Result;
use crate::model::{Cmdp, Context};

/// A stay in the numbers of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedStay {
    /// Id of the stay.
    pub stay: String,
    /// Id of the patient; of the stay where the table names none.
    pub patient: String,
    /// Fields of the context in the units of the table; NaN where nothing was recorded.
    pub fields: Vec<f64>,
    /// The context.
    pub context: Context,
    /// States and actions; the last state is the end, where that is known.
    pub trajectory: Trajectory,
    /// Whether it ended badly, where the end is known.
    pub bad_end: Option<bool>,
    /// The point of every step, row-major.
    pub points: Vec<f32>,
}

impl RecordedStay {
    /// As a demonstration in a model.
    pub fn demonstration(&self, model: &Cmdp) -> Result<Demonstration> {
        Demonstration::from_trajectories(model, self.context.clone(), vec![self.trajectory.clone()])
    }
}

macro_rules! part {
    ($name:ident, $purpose:literal, $demonstrations:ident) => {
        #[doc = $purpose]
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name(Vec<RecordedStay>);

        impl $name {
            /// Declares what these stays are for.
            pub fn new(stays: Vec<RecordedStay>) -> Self {
                Self(stays)
            }

            /// The stays.
            pub fn stays(&self) -> &[RecordedStay] {
                &self.0
            }

            /// As demonstrations for the same purpose.
            pub fn demonstrations(&self, model: &Cmdp) -> Result<demos::$demonstrations> {
                let all = self.0.iter().map(|stay| stay.demonstration(model));
                Ok(demos::$demonstrations::new(all.collect::<Result<_>>()?))
            }
        }
    };
}

part!(TrainStays, "Stays to learn from.", Train);
part!(ValidationStays, "Stays to stop and choose by.", Validation);
part!(TestStays, "Stays to score on.", Test);
