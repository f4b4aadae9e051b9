//! How a domain's expert acts, in numbers: how much contexts matter, and what simpler policies are worth.

use crate::failure::Failure;
use crate::numbers::short;
use crate::text;
use coirl::domains::Sepsis;
use coirl::model::{Cmdp, Context};
use coirl::plan::Policy;
use coirl::score::{ContextEffect, Examination};
use serde::Serialize;
use std::io::Write;

/// Patients over whom values are averaged, and their seed.
const PATIENTS: usize = 200;
const SEED: u64 = 0;

#[derive(Debug, Serialize)]
pub(crate) struct ExpertInNumbers {
    contexts: usize,
    #[serde(flatten)]
    effect: ContextEffect,
    /// What the clinicians' policy is worth to this expert.
    clinicians_value: f64,
    /// What treating nobody is worth.
    no_treatment_value: f64,
}

impl ExpertInNumbers {
    pub(super) fn of_sepsis(settings: Sepsis, model: &Cmdp) -> Result<Self, Failure> {
        let truth = Sepsis::linear_mapping();
        let contexts: Vec<Context> =
            Sepsis::patients(PATIENTS, SEED)?.into_iter().map(|patient| patient.context).collect();
        let examination = Examination::new(model, &truth, contexts)?;
        let mean_value = |policy: Policy| examination.score_policies(&[policy]).map(|score| score.value);
        Ok(Self {
            contexts: examination.n_contexts(),
            effect: examination.context_effect()?,
            clinicians_value: mean_value(settings.clinicians()?)?,
            no_treatment_value: mean_value(settings.no_treatment()?)?,
        })
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let ContextEffect { disagreement, expert_value, one_policy_value, random_value, one_policy_relative } =
            self.effect;
        let relative = |value: f64| format!("{:.1} %", 100.0 * (value - random_value) / (expert_value - random_value));
        writeln!(out)?;
        text::title(out, &format!("An expert for the linear mapping, over {} patients", self.contexts))?;
        let row = |who: &str, value: f64| vec![who.to_owned(), short(value), relative(value)];
        let rows = vec![
            row("expert: optimal in every context", expert_value),
            row("one policy for the mean context", one_policy_value),
            row("clinicians, admissible actions", self.clinicians_value),
            row("no treatment where admissible", self.no_treatment_value),
            row("random admissible actions", random_value),
        ];
        text::table(out, &["policy", "value", "of the gap"], &[1, 2], rows)?;
        let differ = format!("{:.1} % of the states with a choice", 100.0 * disagreement);
        writeln!(out, "\nOptimal policies of two patients differ in {differ}.")?;
        let below = format!("{:.1} %", 100.0 * one_policy_relative);
        writeln!(out, "An agent below {below} of the gap would do better to ignore the context.")?;
        Ok(writeln!(out, "Research software, not for clinical use.")?)
    }
}
