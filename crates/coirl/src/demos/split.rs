//! Splits whose parts are different types, so that nothing can be scored on what it was fitted on.

use super::Demonstration;
use crate::error::{Error, Result};
use crate::random::stream;
use rand::seq::SliceRandom;

macro_rules! part {
    ($name:ident, $purpose:literal) => {
        #[doc = $purpose]
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name(Vec<Demonstration>);

        impl $name {
            /// Declares what these demonstrations are for.
            pub fn new(demonstrations: Vec<Demonstration>) -> Self {
                Self(demonstrations)
            }

            /// The demonstrations.
            pub fn demonstrations(&self) -> &[Demonstration] {
                &self.0
            }
        }
    };
}

part!(Train, "Demonstrations to learn from.");
part!(Validation, "Demonstrations to stop by.");
part!(Test, "Demonstrations to score on.");

/// Demonstrations for three purposes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Split {
    /// To learn from.
    pub train: Train,
    /// To stop by.
    pub validation: Validation,
    /// To score on.
    pub test: Test,
}

impl Split {
    /// Cuts shuffled demonstrations by share; what validation and test leave is for training, and must not be nothing.
    pub fn random(mut all: Vec<Demonstration>, validation: f64, test: f64, seed: u64) -> Result<Self> {
        for (name, value) in [("validation share", validation), ("test share", test)] {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::InvalidSetting { name, value: value.to_string(), reason: "expected a share in [0, 1)" });
            }
        }
        all.shuffle(&mut stream(seed, "split", 0));
        let count = |share: f64| (share * all.len() as f64).round() as usize;
        let (n_validation, n_test) = (count(validation), count(test));
        if n_validation + n_test >= all.len() {
            let found = format!("{} demonstrations", all.len());
            return Err(Error::shape("split", "at least one demonstration to learn from", found));
        }
        let test = all.split_off(all.len() - n_test);
        let validation = all.split_off(all.len() - n_validation);
        Ok(Self { train: Train(all), validation: Validation(validation), test: Test(test) })
    }
}
