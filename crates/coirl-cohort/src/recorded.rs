//! Stays as the model sees them. Those to learn from, to stop by and to score on are different types.

use coirl::Result;
use coirl::demos::{self, Demonstration, Trajectory};
use coirl::model::{Cmdp, Context};

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
    /// As a demonstration in a model: the pieces of the stay between actions that the model does not admit. Nothing where no step is left.
    pub fn demonstration(&self, model: &Cmdp) -> Result<Option<Demonstration>> {
        let Trajectory { states, actions } = &self.trajectory;
        let admitted = |t: usize| model.pairs().find(states[t].index(), actions[t].index()).is_some();
        let steps: Vec<usize> = (0..actions.len()).collect();
        let pieces = steps.chunk_by(|&before, &t| admitted(before) == admitted(t)).filter(|piece| admitted(piece[0]));
        let piece = |steps: &[usize]| {
            let (first, last) = (steps[0], steps[steps.len() - 1]);
            Trajectory { states: states[first..=last + 1].to_vec(), actions: actions[first..=last].to_vec() }
        };
        let pieces: Vec<Trajectory> = pieces.map(piece).collect();
        if pieces.is_empty() {
            return Ok(None);
        }
        Demonstration::from_trajectories(model, self.context.clone(), pieces).map(Some)
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

            /// As demonstrations for the same purpose; stays without a step that the model admits are left out.
            pub fn demonstrations(&self, model: &Cmdp) -> Result<demos::$demonstrations> {
                let all = self.0.iter().filter_map(|stay| stay.demonstration(model).transpose());
                Ok(demos::$demonstrations::new(all.collect::<Result<_>>()?))
            }
        }
    };
}

part!(TrainStays, "Stays to learn from.", Train);
part!(ValidationStays, "Stays to stop and choose by.", Validation);
part!(TestStays, "Stays to score on.", Test);
