//! The faults.

use super::sheet::Sheet;
use coirl::Result;
use coirl_cohort::{Severity, Spec};
use rand::RngExt;

/// A fault with what must be said of it.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// Codes of findings, any of which is right.
    codes: &'static [&'static str],
    /// What the message must speak of.
    about: &'static str,
    plant: fn(&mut Sheet, &mut Spec),
}

/// What was said of a fault.
pub(crate) enum Found {
    Warned(String),
    Noted(String),
    Refused,
    /// With the codes of what was said instead.
    Missed(String),
}

impl Fault {
    pub(crate) fn try_on(&self, clean: &Sheet, spec: &Spec) -> Result<Found> {
        let (mut sheet, mut spec) = (clean.clone(), spec.clone());
        (self.plant)(&mut sheet, &mut spec);
        let findings = match sheet.lint(&spec) {
            Ok(findings) => findings,
            Err(error) if error.to_string().contains(self.about) && self.codes.is_empty() => return Ok(Found::Refused),
            Err(error) => return Err(error),
        };
        let right = findings
            .iter()
            .filter(|finding| self.codes.contains(&finding.code.as_str()) && finding.message.contains(self.about))
            // What was expected first, of those that weigh as much.
            .max_by_key(|finding| {
                let place = self.codes.iter().position(|code| *code == finding.code);
                (finding.severity, std::cmp::Reverse(place))
            });
        Ok(match right {
            Some(finding) if finding.severity == Severity::Warning => Found::Warned(finding.code.clone()),
            Some(finding) => Found::Noted(finding.code.clone()),
            None => Found::Missed(findings.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>().join(" ")),
        })
    }
}

/// Makes a column a measurement, late by so many steps.
fn measure(spec: &mut Spec, name: &str, lag: usize) {
    if !spec.state.measurements.iter().any(|own| own == name) {
        spec.state.measurements.push(name.into());
    }
    spec.state.columns.entry(name.into()).or_default().lag = lag;
}

/// A spec that somebody writes who knows no outcome columns but one.
fn forget_outcomes(spec: &mut Spec) {
    if let Some(outcome) = &mut spec.outcome {
        outcome.others.clear();
    }
}

fn flag(x: bool) -> f64 {
    f64::from(u8::from(x))
}

pub(crate) fn all() -> Vec<Fault> {
    let leaks = leaks_of_doses().into_iter().chain(leaks_of_outcomes());
    leaks.chain(units()).chain(people()).chain(values()).chain(outcomes()).collect()
}

fn leaks_of_doses() -> Vec<Fault> {
    const CODES: &[&str] = &["action-leaks"];
    let leak = |name, about, plant| Fault { name, codes: CODES, about, plant };
    vec![
        leak("the dose of the step as a measurement", "input_4hourly", |_, spec| measure(spec, "input_4hourly", 0)),
        leak("the dose in another unit, with noise", "drip_rate", |sheet, spec| {
            let mut rng = sheet.random("drip");
            sheet.fill("drip_rate", |sheet, row| {
                sheet.get(row, "input_4hourly") / 240.0 * (1.0 + 0.2 * Sheet::normal(&mut rng))
                    + 0.02 * Sheet::normal(&mut rng)
            });
            measure(spec, "drip_rate", 0);
        }),
        leak("a flag that a vasopressor runs", "on_vasopressor", |sheet, spec| {
            sheet.fill("on_vasopressor", |sheet, row| flag(sheet.get(row, "max_dose_vaso") > 0.0));
            measure(spec, "on_vasopressor", 0);
        }),
        leak("the median dose of the step beside its maximum", "median_dose_vaso", |_, spec| {
            measure(spec, "median_dose_vaso", 0);
        }),
        leak("a total that contains the dose of the step", "input_total", |sheet, spec| {
            sheet.running("input_total", |sheet, row| sheet.get(row, "input_4hourly"));
            measure(spec, "input_total", 0);
        }),
        leak("a balance that contains the dose of the step", "cumulated_balance", |sheet, spec| {
            sheet.running("cumulated_balance", |sheet, row| {
                sheet.get(row, "input_4hourly") - sheet.get(row, "output_4hourly").min(600.0)
            });
            measure(spec, "cumulated_balance", 0);
        }),
        leak("SOFA with the points of the vasopressor of the step", "SOFA", |sheet, spec| {
            sheet.fill("SOFA", |sheet, row| {
                let dose = sheet.get(row, "max_dose_vaso");
                let points = if dose > 0.1 { 4.0 } else { 3.0 * flag(dose > 0.0) };
                (0.7 * sheet.get(row, "SOFA")).round() + points
            });
            measure(spec, "SOFA", 0);
        }),
        leak("a dose leak that goes both ways", "waveform", |sheet, spec| {
            let mut rng = sheet.random("waveform");
            sheet.fill("waveform", |sheet, row| {
                let side = if rng.random::<bool>() { 2.0 } else { -2.0 };
                side * flag(sheet.get(row, "max_dose_vaso") > 0.0) + 0.5 * Sheet::normal(&mut rng)
            });
            measure(spec, "waveform", 0);
        }),
    ]
}

fn leaks_of_outcomes() -> Vec<Fault> {
    const CODES: &[&str] = &["outcome-leak"];
    let leak = |name, about, plant| Fault { name, codes: CODES, about, plant };
    let refused = |name, about, plant| Fault { name, codes: &[], about, plant };
    vec![
        leak("SOFA + 20 × mortality", "SOFA", |sheet, _| {
            sheet.fill("SOFA", |sheet, row| sheet.get(row, "SOFA") + 20.0 * flag(sheet.died(row)));
        }),
        leak("a flag in the last step of those who die", "comfort_care", |sheet, spec| {
            sheet.fill("comfort_care", |_, _| 0.0);
            for block in sheet.blocks() {
                let last = block.end - 1;
                let died = sheet.died(last);
                sheet.set(last, "comfort_care", flag(died));
            }
            measure(spec, "comfort_care", 0);
        }),
        leak("a noisy copy of the outcome (area 0.95)", "risk", |sheet, spec| {
            let mut rng = sheet.random("risk");
            sheet.fill("risk", |sheet, row| 2.33 * flag(sheet.died(row)) + Sheet::normal(&mut rng));
            measure(spec, "risk", 0);
        }),
        leak("a noisy copy, the same throughout a stay", "prognosis", |sheet, spec| {
            let mut rng = sheet.random("prognosis");
            sheet.fill("prognosis", |_, _| 0.0);
            for block in sheet.blocks() {
                let x = 2.6 * flag(sheet.died(block.start)) + Sheet::normal(&mut rng);
                block.for_each(|row| sheet.set(row, "prognosis", x));
            }
            spec.context.fields.push("prognosis".into());
        }),
        leak("an outcome leak that goes both ways", "deviation", |sheet, spec| {
            let mut rng = sheet.random("deviation");
            sheet.fill("deviation", |sheet, row| {
                let side = if rng.random::<bool>() { 3.0 } else { -3.0 };
                side * flag(sheet.died(row)) + 0.8 * Sheet::normal(&mut rng)
            });
            measure(spec, "deviation", 0);
        }),
        leak("death in hospital as a measurement, unknown to the spec", "died_in_hosp", |_, spec| {
            forget_outcomes(spec);
            measure(spec, "died_in_hosp", 0);
        }),
        leak("death within 48 h as a field, unknown to the spec", "died_within_48h", |_, spec| {
            forget_outcomes(spec);
            spec.context.fields.push("died_within_48h_of_out_time".into());
        }),
        leak("survival as a field", "alive", |sheet, spec| {
            sheet.fill("alive", |sheet, row| flag(!sheet.died(row)));
            spec.context.fields.push("alive".into());
        }),
        refused("death in hospital as a measurement, known to the preset", "died_in_hosp", |_, spec| {
            measure(spec, "died_in_hosp", 0);
        }),
        refused("time to death as a field, known to the preset", "delay_end_of_record", |_, spec| {
            spec.context.fields.push("delay_end_of_record_and_discharge_or_death".into());
        }),
    ]
}

fn units() -> Vec<Fault> {
    const MIXED: &[&str] = &["mixed-units"];
    const WRONG: &[&str] = &["wrong-unit", "mixed-units", "implausible-column"];
    let mixed = |name, about, plant| Fault { name, codes: MIXED, about, plant };
    let wrong = |name, about, plant| Fault { name, codes: WRONG, about, plant };
    vec![
        mixed("temperature in °F in a fifth of the stays", "Temp_C", |sheet, _| {
            sheet.change("Temp_C", 0.2, |x| 1.8 * x + 32.0)
        }),
        wrong("temperature in °F", "Temp_C", |sheet, _| sheet.change("Temp_C", 1.1, |x| 1.8 * x + 32.0)),
        mixed("creatinine in µmol/L in a fifth of the stays", "Creatinine", |sheet, _| {
            sheet.change("Creatinine", 0.2, |x| 88.42 * x);
        }),
        mixed("weight in pounds in a fifth of the stays", "Weight_kg", |sheet, _| {
            sheet.change("Weight_kg", 0.2, |x| 2.20462 * x);
        }),
        wrong("weight in pounds", "Weight_kg", |sheet, _| sheet.change("Weight_kg", 1.1, |x| 2.20462 * x)),
        mixed("FiO₂ in % in a fifth of the stays", "FiO2_1", |sheet, _| sheet.change("FiO2_1", 0.2, |x| 100.0 * x)),
        wrong("FiO₂ in %", "FiO2_1", |sheet, _| sheet.change("FiO2_1", 1.1, |x| 100.0 * x)),
        mixed("fluids in L in a fifth of the stays", "input_4hourly", |sheet, _| {
            sheet.change("input_4hourly", 0.2, |x| 0.001 * x);
        }),
        wrong("fluids in L", "input_4hourly", |sheet, _| sheet.change("input_4hourly", 1.1, |x| 0.001 * x)),
        mixed("glucose in mmol/L in a tenth of the stays", "Glucose", |sheet, _| {
            sheet.change("Glucose", 0.1, |x| x / 18.016)
        }),
        mixed("haemoglobin in g/L in a tenth of the stays, without plausible ranges", "Hb", |sheet, spec| {
            spec.cohort.plausible.clear();
            sheet.change("Hb", 0.1, |x| 10.0 * x);
        }),
        mixed("bilirubin in µmol/L in a fifth of the stays", "Total_bili", |sheet, _| {
            sheet.change("Total_bili", 0.2, |x| 17.1 * x);
        }),
        Fault {
            name: "age in years in a column of days",
            codes: &["age-unit"],
            about: "age",
            plant: |sheet, _| sheet.change("age", 1.1, |x| x / 365.25),
        },
        mixed("age in years in a tenth of the stays", "age", |sheet, _| sheet.change("age", 0.1, |x| x / 365.25)),
    ]
}

fn people() -> Vec<Fault> {
    let person = |name, codes, about, plant| Fault { name, codes, about, plant };
    vec![
        person("two people under one id", &["changing-person"], "gender", |sheet, _| {
            let blocks = sheet.blocks();
            for block in blocks.into_iter().step_by(10).filter(|block| block.len() > 3) {
                (block.start + 2..block.end).for_each(|row| sheet.set(row, "gender", 1.0 - sheet.get(row, "gender")));
            }
        }),
        person("rows of a stay in several places", &["torn-stay"], "stays", |sheet, _| {
            let blocks = sheet.blocks();
            let middle = blocks[5].start + 1;
            sheet.tear_off(middle);
        }),
        person("one stay with rows of two patients", &["patient-in-two-parts"], "two patients", |sheet, spec| {
            sheet.with_patients(2);
            spec.table.patient = Some("patient".into());
            let blocks = sheet.blocks();
            sheet.set_patient(blocks[8].end - 1, "somebody else");
        }),
        person(
            "patients with several stays and no column that says so",
            &["patient-in-two-parts"],
            "same people",
            |sheet, _| {
                let blocks = sheet.blocks();
                for pair in blocks.chunks(2).step_by(10).filter(|pair| pair.len() == 2) {
                    for name in ["gender", "age", "elixhauser", "re_admission"] {
                        let x = sheet.get(pair[0].start, name);
                        pair[1].clone().for_each(|row| sheet.set(row, name, x));
                    }
                }
            },
        ),
        person("stays that are in the table twice, under two ids", &["copied-stay"], "another", |sheet, _| {
            let blocks = sheet.blocks();
            for (i, block) in blocks.into_iter().enumerate().step_by(20) {
                sheet.copy(block, &format!("copy {i}"));
            }
        }),
        person("two stays under one id at the same times", &[], "same_step", |sheet, _| {
            let blocks = sheet.blocks();
            let like = blocks[3].start;
            sheet.rename_stay(blocks[4].clone(), like);
        }),
        person("steps of an hour where the table has one row in four hours", &["step-length"], "step", |sheet, _| {
            sheet.time(|t| 4.0 * t);
        }),
        person("records that were cut into parts of a step", &[], "step", |sheet, _| sheet.time(|t| 0.25 * t)),
    ]
}

fn values() -> Vec<Fault> {
    let value = |name, codes, about, plant| Fault { name, codes, about, plant };
    vec![
        value(
            "−999 for what was not measured, without plausible ranges",
            &["sentinel-value"],
            "HR",
            |sheet, spec| {
                spec.cohort.plausible.clear();
                let mut rng = sheet.random("gaps");
                sheet.fill("HR", |sheet, row| if rng.random::<f64>() < 0.02 { -999.0 } else { sheet.get(row, "HR") });
            },
        ),
        value("0 for what was not measured, without plausible ranges", &["sentinel-value"], "MeanBP", |sheet, spec| {
            spec.cohort.plausible.clear();
            let mut rng = sheet.random("gaps");
            sheet.fill("MeanBP", |sheet, row| if rng.random::<f64>() < 0.02 { 0.0 } else { sheet.get(row, "MeanBP") });
        }),
        value("a column that is nearly empty", &["mostly-missing"], "Arterial_lactate", |sheet, _| {
            let mut rng = sheet.random("gaps");
            sheet.fill("Arterial_lactate", |sheet, row| {
                if rng.random::<f64>() < 0.95 { f64::NAN } else { sheet.get(row, "Arterial_lactate") }
            });
        }),
        value("a column without any value", &["never-measured"], "PTT", |sheet, _| sheet.fill("PTT", |_, _| f64::NAN)),
        value("a column that never changes", &["constant-column"], "SIRS", |sheet, _| sheet.fill("SIRS", |_, _| 2.0)),
        value(
            "lactate that was written down only where it is high",
            &["missing-means-normal", "missing-tells"],
            "Arterial_lactate",
            |sheet, _| {
                sheet.fill("Arterial_lactate", |sheet, row| {
                    let x = sheet.get(row, "Arterial_lactate");
                    if x < 2.0 { f64::NAN } else { x }
                });
            },
        ),
        value("blood gases that survivors mostly do not have", &["missing-tells"], "Arterial_pH", |sheet, _| {
            let mut rng = sheet.random("gaps");
            sheet.fill("Arterial_pH", |sheet, row| {
                let share = if sheet.died(row) { 0.1 } else { 0.8 };
                if rng.random::<f64>() < share { f64::NAN } else { sheet.get(row, "Arterial_pH") }
            });
        }),
        value("a probe that is read only while vasopressors run", &["missing-tells"], "SpO2", |sheet, _| {
            sheet.fill(
                "SpO2",
                |sheet, row| if sheet.get(row, "max_dose_vaso") > 0.0 { sheet.get(row, "SpO2") } else { f64::NAN },
            );
        }),
        value(
            "measurements that were standardised over all rows",
            &["fitted-on-all-rows"],
            "variance 1",
            |sheet, spec| {
                spec.cohort.plausible.clear();
                for name in ["HR", "SysBP", "MeanBP", "RR", "Sodium"] {
                    let n = sheet.len() as f64;
                    let mean = (0..sheet.len()).map(|row| sheet.get(row, name)).sum::<f64>() / n;
                    let variance = (0..sheet.len()).map(|row| (sheet.get(row, name) - mean).powi(2)).sum::<f64>() / n;
                    sheet.fill(name, |sheet, row| (sheet.get(row, name) - mean) / variance.sqrt());
                }
            },
        ),
        value("doses that were not recorded", &["dose-not-recorded"], "input_4hourly", |sheet, _| {
            let mut rng = sheet.random("gaps");
            sheet.fill("input_4hourly", |sheet, row| {
                if rng.random::<f64>() < 0.05 { f64::NAN } else { sheet.get(row, "input_4hourly") }
            });
        }),
        value("one action nearly always", &["majority-action"], "one action", |sheet, _| {
            let mut rng = sheet.random("treated");
            let treated: Vec<bool> = (0..sheet.len()).map(|_| rng.random::<f64>() < 0.05).collect();
            for name in ["input_4hourly", "max_dose_vaso"] {
                sheet.fill(name, |sheet, row| if treated[row] { sheet.get(row, name) } else { 0.0 });
            }
        }),
    ]
}

fn outcomes() -> Vec<Fault> {
    let outcome = |name, codes, about, plant| Fault { name, codes, about, plant };
    vec![
        outcome("an outcome that contradicts itself", &["outcome-contradicts"], "mortality_90d", |sheet, _| {
            let blocks = sheet.blocks();
            for block in blocks.into_iter().step_by(12).filter(|block| block.len() > 2) {
                let died = sheet.died(block.start);
                sheet.set(block.start, "mortality_90d", flag(!died));
            }
        }),
        outcome("the wrong value for a bad end", &["outcome-values"], "never is 2", |_, spec| {
            if let Some(outcome) = &mut spec.outcome {
                outcome.bad = 2.0;
            }
        }),
        outcome("an outcome that is always bad", &["outcome-values"], "in every stay", |sheet, _| {
            sheet.fill("mortality_90d", |_, _| 1.0);
        }),
        outcome("an outcome of three values", &["outcome-values"], "different values", |sheet, _| {
            let blocks = sheet.blocks();
            for block in blocks.into_iter().step_by(9) {
                block.for_each(|row| sheet.set(row, "mortality_90d", 2.0));
            }
        }),
        outcome("an outcome that is inverted", &["mostly-bad"], "inverted", |sheet, _| {
            sheet.fill("mortality_90d", |sheet, row| flag(!sheet.died(row)));
        }),
        outcome("rows of every stay in reverse order of time", &["time"], "time", |sheet, _| sheet.time(|t| 100.0 - t)),
        outcome("gaps that were filled with what came later", &["look-ahead"], "HR", |sheet, _| {
            let mut rng = sheet.random("gaps");
            for block in sheet.blocks() {
                for row in block.clone().rev().skip(1) {
                    if rng.random::<f64>() < 0.4 {
                        let next = sheet.get(row + 1, "HR");
                        sheet.set(row, "HR", next);
                    }
                }
            }
        }),
    ]
}
