//! The stays of a cohort, one after the other.
//!
//! Patients are planned for and treated a wave at a time, side by side, and handed over in order: memory does not grow with the number of
//! stays, and no number depends on the threads. The cost is one plan per patient, or per distinct reward where there are fewer.

use super::emission::Emission;
use super::practice::Practice;
use super::settings::Synthetic;
use super::stay::SyntheticStay;
use coirl::domains::Sepsis;
use coirl::{Error, Result};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Stays held at a time.
const WAVE: usize = 1024;

impl Synthetic {
    /// Hands every stay to `sink`, in order. `sink` may stop the work.
    pub fn generate(&self, mut sink: impl FnMut(&SyntheticStay) -> ControlFlow<()>) -> Result<()> {
        self.check()?;
        let practice = Practice::new(self)?;
        let emission = Emission::new(self)?;
        let mut done = 0;
        while done < self.stays {
            let numbers: Vec<u64> = (done..self.stays.min(done + WAVE)).map(|number| number as u64).collect();
            let patients = Sepsis::patients_numbered(&numbers, self.seed)?;
            let policies = practice.plans(&practice.wishes(&patients)?)?;
            let stays: Vec<SyntheticStay> = numbers
                .into_par_iter()
                .zip(patients)
                .zip(policies)
                .map(|((number, patient), policy)| {
                    SyntheticStay::draw(number, self.seed, patient, &practice, &policy, &emission)
                })
                .collect::<Result<_>>()?;
            for stay in &stays {
                done += 1;
                if sink(stay).is_break() {
                    return Err(Error::Interrupted { done, total: self.stays });
                }
            }
        }
        Ok(())
    }
}
