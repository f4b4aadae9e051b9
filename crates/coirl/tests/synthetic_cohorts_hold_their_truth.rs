//! Synthetic cohorts look like the tables they stand for, and what they were made with can be found in them and scored against.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::Error;
use coirl::contextual::plan_mapping;
use coirl::domains::{Inadmissible, Patient, Sepsis};
use coirl::model::{ActionId, Context, StateId};
use coirl::plan::{ManyOptions, Policy, evaluate};
use coirl_cohort::synthetic::{
    Assignment, Clinician, Draws, FittedPolicy, N_COLUMNS, Row, Synthetic, SyntheticStay, Truth,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

const N_CLUSTERS: usize = 713;
const DEATH: usize = 713;
const UNKNOWN: usize = 715;

fn stays(settings: Synthetic) -> Vec<SyntheticStay> {
    let mut all = Vec::new();
    settings
        .generate(|stay| {
            all.push(stay.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

/// Two plans serve everybody: what does not depend on the clinician is tested with these.
fn threshold(n: usize) -> Synthetic {
    Synthetic { stays: n, seed: 11, clinician: Clinician::Threshold, ..Synthetic::default() }
}

fn at(name: &str) -> usize {
    Synthetic::columns().iter().position(|column| *column == name).unwrap()
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not within {tolerance} of {expected}");
}

fn rows(stays: &[SyntheticStay]) -> impl Iterator<Item = &Row> + '_ {
    stays.iter().flat_map(|stay| &stay.rows)
}

#[test]
fn the_table_has_the_schema_of_the_ai_clinician() {
    let header = "bloc,icustayid,charttime,gender,age,elixhauser,re_admission,died_in_hosp,died_within_48h_of_out_time,\
        mortality_90d,delay_end_of_record_and_discharge_or_death,Weight_kg,GCS,HR,SysBP,MeanBP,DiaBP,RR,SpO2,Temp_C,FiO2_1,\
        Potassium,Sodium,Chloride,Glucose,BUN,Creatinine,Magnesium,Calcium,Ionised_Ca,CO2_mEqL,SGOT,SGPT,Total_bili,Albumin,\
        Hb,WBC_count,Platelets_count,PTT,PT,INR,Arterial_pH,paO2,paCO2,Arterial_BE,Arterial_lactate,HCO3,mechvent,Shock_Index,\
        PaO2_FiO2,median_dose_vaso,max_dose_vaso,input_total,input_4hourly,output_total,output_4hourly,cumulated_balance,SOFA,SIRS";
    assert_eq!(Synthetic::columns().join(","), header);
    let all = stays(threshold(400));
    assert_eq!(all.len(), 400);
    assert!(all.iter().any(|stay| stay.actions.len() > 20 && stay.rows.len() == 20));
    for (number, stay) in all.iter().enumerate() {
        assert_eq!(stay.id, 200_001 + number as u64);
        assert_eq!(stay.states.len(), stay.actions.len() + 1);
        assert_eq!(stay.rows.len(), stay.actions.len().min(20));
        assert!(stay.states[stay.actions.len()].index() >= N_CLUSTERS, "the stay is followed to its end");
        assert_eq!(stay.died, stay.states[stay.actions.len()].index() == DEATH);
        let [gender, age, elixhauser, readmission, weight, coma_scale, ventilated] = stay.patient.fields;
        for (t, row) in stay.rows.iter().enumerate() {
            assert_eq!((row[at("bloc")], row[at("icustayid")]), ((t + 1) as f64, stay.id as f64));
            assert_eq!(row[at("charttime")], stay.rows[0][at("charttime")] + 4.0 * 3600.0 * t as f64);
            assert_eq!(
                [row[at("gender")], row[at("elixhauser")], row[at("re_admission")], row[at("Weight_kg")]],
                [gender, elixhauser, readmission, weight]
            );
            near(row[at("age")] / 365.25, age, 1e-9);
            assert!(row.iter().all(|x| x.is_finite()));
            let [early, in_hospital, ever] =
                ["died_within_48h_of_out_time", "died_in_hosp", "mortality_90d"].map(|name| row[at(name)]);
            assert!(early <= in_hospital && in_hospital <= ever && ever == f64::from(u8::from(stay.died)));
            let delay = row[at("delay_end_of_record_and_discharge_or_death")];
            assert!(delay >= 4.0 * (stay.actions.len() - stay.rows.len()) as f64);
            for score in ["GCS", "SOFA", "SIRS", "elixhauser", "mechvent"] {
                assert_eq!(row[at(score)], row[at(score)].round());
            }
        }
        assert_eq!((stay.rows[0][at("GCS")], stay.rows[0][at("mechvent")]), (coma_scale, ventilated));
    }
    assert!(
        all.iter().any(|stay| rows(std::slice::from_ref(stay)).any(|row| row[at("GCS")] != stay.rows[0][at("GCS")]))
    );
}

/// Mean and standard deviation of the demonstration set, and the sign that makes higher healthier, of columns that are hardly ever clipped.
const UNITS: [(&str, f64, f64, f64); 8] = [
    ("HR", 86.587, 16.954, -1.0),
    ("MeanBP", 77.055, 13.333, 1.0),
    ("Sodium", 139.623, 5.3895, -1.0),
    ("Hb", 9.985, 1.4636, 1.0),
    ("paCO2", 42.626, 12.367, -1.0),
    ("Arterial_pH", 7.38468, 0.069077, 1.0),
    ("Shock_Index", 0.748595, 0.199033, -1.0),
    ("cumulated_balance", 867.6, 4885.0, -1.0),
];

#[test]
fn measurements_are_those_of_the_state_with_noise() {
    // The features of the model are the same z-scores by another way: clipped to three, divided by three, turned.
    let model = Sepsis::default().build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let z_scores = |name: &str, sign: f64| -> Vec<Option<f64>> {
        let features = &model.names().features;
        let one: Vec<f64> = features.iter().map(|feature| f64::from(u8::from(feature == name))).collect();
        let phi = mdp.reward(&one).unwrap();
        let z = |s: usize| (phi.at(s, 25 * s).abs() < 1.0).then(|| 3.0 * sign * phi.at(s, 25 * s));
        (0..N_CLUSTERS).map(z).collect()
    };
    let all = stays(threshold(300));
    let seen: Vec<(usize, &Row)> =
        all.iter().flat_map(|stay| stay.states.iter().map(|s| s.index()).zip(&stay.rows)).collect();
    let moments = |errors: &[f64]| {
        let n = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / n;
        (mean, (errors.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt(), n)
    };
    for (name, mean, spread, sign) in UNITS {
        let z = z_scores(name, sign);
        let error = |(s, row): &(usize, &Row)| Some((row[at(name)] - mean) / spread - z[*s]?);
        let (bias, noise, n) = moments(&seen.iter().filter_map(error).collect::<Vec<_>>());
        assert!(n > 2000.0, "{name}: {n}");
        // Four standard errors, and what the means were rounded by.
        near(bias, 0.0, 4.0 * 0.1 / n.sqrt() + 1e-3);
        near(noise, 0.1, 0.005);
    }
    let z = z_scores("BUN", -1.0);
    let error = |(s, row): &(usize, &Row)| Some(((row[at("BUN")] + 0.1).ln() - 24.1_f64.ln()) / 0.7655 - z[*s]?);
    let (bias, noise, n) = moments(&seen.iter().filter_map(error).collect::<Vec<_>>());
    near(bias, 0.0, 4.0 * 0.1 / n.sqrt() + 1e-3);
    near(noise, 0.1, 0.005);
    let carbon_dioxide = |row: &Row| row[at("CO2_mEqL")] - row[at("HCO3")] - 0.03 * row[at("paCO2")];
    assert!(
        rows(&all)
            .all(|row| carbon_dioxide(row).abs() < 1e-9 && row[at("median_dose_vaso")] == row[at("max_dose_vaso")])
    );
    assert!(rows(&all).all(|row| row[at("DiaBP")] < row[at("MeanBP")] && row[at("MeanBP")] < row[at("SysBP")]));
}

#[test]
fn columns_have_the_size_of_a_real_table() {
    // Mean and standard deviation of the MIMIC-III demonstration set (ODbL 1.0). Log columns and totals have medians rather than means.
    let real = [
        ("age", 25827.6, 5565.7),
        ("elixhauser", 4.232, 2.139),
        ("Weight_kg", 77.68, 25.78),
        ("GCS", 11.68, 4.02),
        ("SysBP", 119.29, 21.55),
        ("DiaBP", 54.59, 8.65),
        ("RR", 20.09, 5.79),
        ("SpO2", 96.67, 3.46),
        ("Temp_C", 36.66, 0.788),
        ("FiO2_1", 0.3699, 0.2034),
        ("Potassium", 4.051, 0.632),
        ("Glucose", 146.6, 59.3),
        ("Creatinine", 1.381, 1.272),
        ("Ionised_Ca", 1.124, 0.0615),
        ("CO2_mEqL", 25.43, 5.58),
        ("Albumin", 2.964, 0.497),
        ("WBC_count", 11.79, 7.52),
        ("INR", 1.736, 1.041),
        ("Arterial_lactate", 2.071, 2.237),
        ("mechvent", 0.3132, 0.4639),
        ("PaO2_FiO2", 380.5, 197.3),
        ("input_total", 3355.3, 4475.1),
        ("input_4hourly", 316.2, 590.3),
        ("output_total", 2487.7, 3424.5),
        ("output_4hourly", 293.6, 492.4),
        ("SOFA", 5.811, 4.150),
        ("SIRS", 1.529, 0.991),
    ];
    let all = stays(threshold(600));
    let n = rows(&all).count() as f64;
    for (name, mean, spread) in real {
        let found = rows(&all).map(|row| row[at(name)]).sum::<f64>() / n;
        assert!((found - mean).abs() < 0.6 * spread, "{name}: {found} instead of {mean} ± {spread}");
    }
}

#[test]
fn doses_give_the_actions_back() {
    let all = stays(threshold(600));
    let amounts = |name: &str| {
        let mut amounts: Vec<f64> = rows(&all).map(|row| row[at(name)]).collect();
        amounts.sort_by(f64::total_cmp);
        amounts.dedup();
        amounts
    };
    let (fluids, vasopressors) = (amounts("input_4hourly"), amounts("max_dose_vaso"));
    assert_eq!((fluids.len(), vasopressors.len(), fluids[0], vasopressors[0]), (5, 5, 0.0, 0.0));
    for stay in &all {
        for (row, action) in stay.rows.iter().zip(&stay.actions) {
            let level = |amounts: &[f64], name: &str| amounts.iter().position(|x| *x == row[at(name)]).unwrap();
            let (fluid, vaso) = (level(&fluids, "input_4hourly"), level(&vasopressors, "max_dose_vaso"));
            assert_eq!(action.index(), 5 * fluid + vaso);
            assert_eq!(Synthetic::action_of(row), Some(*action));
        }
    }
    let mut odd = all[0].rows[0];
    odd[at("input_4hourly")] = 31.0;
    assert_eq!(Synthetic::action_of(&odd), None);
}

/// Share of rows whose nearest centroid is that of their state.
fn recognised(settings: Synthetic) -> f64 {
    let truth = Truth::of(&settings).unwrap();
    let all = stays(settings);
    let right = all.iter().flat_map(|stay| stay.rows.iter().zip(&stay.states));
    right.filter(|(row, state)| truth.nearest_state(row) == **state).count() as f64 / rows(&all).count() as f64
}

#[test]
fn states_can_be_recognised() {
    let usual = recognised(threshold(200));
    assert!(usual > 0.999, "{usual}");
    let blurred = recognised(Synthetic { noise: 0.5, ..threshold(200) });
    assert!((0.90..0.98).contains(&blurred), "{blurred}");
    let incomplete = recognised(Synthetic { missing: 0.4, ..threshold(200) });
    assert!(incomplete > 0.95, "{incomplete}");
}

#[test]
fn transitions_follow_the_kernel() {
    let settings = Sepsis { inadmissible: Inadmissible::Masked, ..Sepsis::default() };
    let model = settings.build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let mut counts: HashMap<usize, HashMap<usize, f64>> = HashMap::new();
    for stay in stays(threshold(4000)) {
        for (t, action) in stay.actions.iter().enumerate() {
            let pair = model.pairs().find(stay.states[t].index(), action.index()).expect("an admissible action");
            *counts.entry(pair).or_default().entry(stay.states[t + 1].index()).or_default() += 1.0;
        }
    }
    // Pearson's statistic over the successors that are expected five times, the others as one.
    let (mut statistic, mut freedom) = (0.0, 0.0);
    for (pair, seen) in &counts {
        let n: f64 = seen.values().sum();
        let (mut rest, mut seen_rest, mut cells) = (0.0, n, 0.0);
        for (next, p) in mdp.kernel().successors(*pair) {
            if n * p >= 5.0 {
                let found = seen.get(&next).copied().unwrap_or(0.0);
                statistic += (found - n * p).powi(2) / (n * p);
                seen_rest -= found;
                cells += 1.0;
            } else {
                rest += n * p;
            }
        }
        if rest >= 5.0 {
            statistic += (seen_rest - rest).powi(2) / rest;
            cells += 1.0;
        } else if cells > 0.0 && rest > 1e-9 {
            // A cell too small to count leaves the others without their constraint.
            cells += 1.0;
        }
        freedom += (cells - 1.0_f64).max(0.0);
    }
    assert!(freedom > 1000.0, "{freedom}");
    near((statistic - freedom) / (2.0 * freedom).sqrt(), 0.0, 4.0);
}

#[test]
fn clinicians_are_optimal_but_for_their_lapses() {
    let settings = Synthetic { stays: 150, seed: 4, ..Synthetic::default() };
    let all = stays(settings);
    let model = Sepsis::default().build().unwrap();
    let contexts: Vec<Context> = all.iter().map(|stay| stay.patient.context.clone()).collect();
    let options = ManyOptions { feature_expectations: false, values: false };
    let plans = plan_mapping(&model, &Sepsis::linear_mapping(), &contexts, options).unwrap();
    let masked = Sepsis { inadmissible: Inadmissible::Masked, ..Sepsis::default() };
    let usual = masked.clinicians().unwrap();
    let Policy::Stochastic(usual) = usual else { panic!("a distribution") };
    let pairs = masked.build().unwrap().pairs().clone();
    for (stay, plan) in all.iter().zip(&plans) {
        for ((state, action), lapsed) in stay.states.iter().zip(&stay.actions).zip(&stay.lapsed) {
            assert!(*lapsed || plan.policy.actions().unwrap()[state.index()] == *action);
            assert!(!*lapsed || usual[pairs.find(state.index(), action.index()).unwrap()] > 0.0);
        }
    }
    for lapses in [0.05, 0.3, 1.0] {
        let all = stays(Synthetic { lapses, ..threshold(1000) });
        let n: usize = all.iter().map(|stay| stay.lapsed.len()).sum();
        let lapsed = all.iter().flat_map(|stay| &stay.lapsed).filter(|lapsed| **lapsed).count();
        near(lapsed as f64 / n as f64, lapses, 4.0 * (lapses * (1.0 - lapses) / n as f64).sqrt() + 1e-12);
    }
    assert!(stays(Synthetic { lapses: 0.0, ..threshold(50) }).iter().all(|stay| stay.lapsed.iter().all(|x| !x)));
}

fn bits(stays: &[SyntheticStay]) -> Vec<u64> {
    rows(stays).flatten().map(|x| x.to_bits()).collect()
}

#[test]
fn same_seed_same_bytes() {
    let settings = Synthetic { stays: 60, seed: 5, missing: 0.1, ..Synthetic::default() };
    let with_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| stays(settings))
    };
    let alone = with_threads(1);
    assert!(bits(&alone) == bits(&with_threads(7)));
    assert!(bits(&alone[..20]) == bits(&stays(Synthetic { stays: 20, ..settings })));
    assert!(bits(&alone) != bits(&stays(Synthetic { seed: 6, ..settings })));
    // A wave's end is no stay's business.
    let across: Vec<SyntheticStay> = stays(threshold(1030)).split_off(1020);
    assert!(bits(&across[..5]) == bits(&stays(threshold(1025))[1020..]));
}

#[test]
fn only_measurements_are_missing() {
    let settings = Synthetic { missing: 0.3, ..threshold(200) };
    let (complete, gappy) = (stays(Synthetic { missing: 0.0, ..settings }), stays(settings));
    let kept = "bloc,icustayid,charttime,gender,age,elixhauser,re_admission,died_in_hosp,died_within_48h_of_out_time,mortality_90d,\
        delay_end_of_record_and_discharge_or_death,Weight_kg,GCS,mechvent,median_dose_vaso,max_dose_vaso,input_4hourly";
    let kept: Vec<usize> = kept.split(',').map(at).collect();
    let mut empty = 0;
    for (whole, row) in rows(&complete).zip(rows(&gappy)) {
        assert!(kept.iter().all(|&column| !row[column].is_nan()));
        assert!(row.iter().zip(whole).all(|(x, y)| x.is_nan() || x.to_bits() == y.to_bits()));
        empty += row.iter().filter(|x| x.is_nan()).count();
    }
    let cells = rows(&gappy).count() * (N_COLUMNS - kept.len());
    near(empty as f64 / cells as f64, 0.3, 0.01);
}

/// The optimal policies of patients, in the states where somebody acts.
fn optimal(truth: &Truth, patients: &[Patient]) -> Vec<FittedPolicy> {
    let contexts: Vec<Context> = patients.iter().map(|patient| patient.context.clone()).collect();
    let options = ManyOptions { feature_expectations: false, values: false };
    let plans = plan_mapping(truth.simulator(), truth.mapping(), &contexts, options).unwrap();
    let actions = |policy: &Policy| policy.actions().unwrap()[..N_CLUSTERS].to_vec();
    plans.iter().map(|plan| FittedPolicy::Actions(actions(&plan.policy))).collect()
}

#[test]
fn what_is_recognised_is_carried_back_whole() {
    for clinician in [Clinician::Linear, Clinician::Threshold] {
        let settings = Synthetic { stays: 40, clinician, ..Synthetic::default() };
        let truth = Truth::of(&settings).unwrap();
        let ids: Vec<u64> = (200_001..200_041).collect();
        let test = truth.test_patients(settings.patients(&ids).unwrap()).unwrap();
        assert!(stays(settings).iter().zip(test.patients()).all(|(stay, patient)| stay.patient == *patient));
        let latent = Assignment::latent(test.patients());
        let plans = optimal(&truth, test.patients());
        let carried = test.carried_back(&latent, |i| Ok(plans[i].clone())).unwrap();
        assert_eq!(carried.relative_value(), 1.0);
        assert_eq!((carried.policy.unknown, carried.policy), (0.0, carried.yardsticks.optimal));
        // Rows of the default noise give every state away; the fitted states may have other numbers.
        let draws = Draws { per_state: 4, seed: 1 };
        let assign = |rows: &[Row]| Ok(rows.iter().map(|row| N_CLUSTERS - truth.nearest_state(row).index()).collect());
        let assignment = test.assignment(draws, assign).unwrap();
        let renumbered = |policy: &FittedPolicy| match policy {
            FittedPolicy::Actions(actions) => {
                let turned = actions.iter().rev().copied();
                FittedPolicy::Actions([ActionId(0)].into_iter().chain(turned).collect())
            }
            FittedPolicy::Probabilities(_) => panic!("actions"),
        };
        let recognised = test.carried_back(&assignment, |i| Ok(renumbered(&plans[i]))).unwrap();
        assert!(recognised.relative_value() > 0.999, "{recognised:?}");

        let Policy::Stochastic(shares) = truth.simulator().random_policy() else { panic!("a distribution") };
        let random = FittedPolicy::Probabilities(shares[..N_CLUSTERS * 25].to_vec());
        let carried = test.carried_back(&latent, |_| Ok(random.clone())).unwrap();
        near(carried.relative_value(), 0.0, 1e-9);
        near(carried.policy.survival, carried.yardsticks.random.survival, 1e-12);
        let yardsticks = carried.yardsticks;
        let one = yardsticks.relative(yardsticks.one_policy);
        assert!(match clinician {
            Clinician::Linear => (0.88..0.96).contains(&one),
            Clinician::Threshold => (0.2..0.8).contains(&one),
        });
        let clinicians = yardsticks.relative(yardsticks.clinicians);
        assert!(clinicians > 0.9 && clinicians < 1.0, "{clinicians}");
    }
}

#[test]
fn carried_policies_have_their_exact_worth() {
    let settings = threshold(30);
    let truth = Truth::of(&settings).unwrap();
    let patients = settings.patients(&(200_001..200_031).collect::<Vec<_>>()).unwrap();
    let test = truth.test_patients(patients.clone()).unwrap();
    let n = patients.len() as f64;
    // ICU-Sepsis as published lets an inadmissible action do what an admissible one does on average: acting at random there is acting at
    // random by admissible actions here.
    let published = Sepsis::published().unwrap();
    let mdp = published.shared_mdp().unwrap();
    let survival = mdp.reward(&[1.0]).unwrap();
    let values = evaluate::values(&mdp, &survival, &Policy::uniform(published.pairs())).unwrap();
    let expected = patients.iter().map(|patient| values[patient.start.index()]).sum::<f64>() / n;
    near(test.yardsticks().random.survival, expected, 1e-9);

    // One fitted state, one dose for all: by feature expectations from each start.
    let assignment = test.assignment(Draws { per_state: 2, seed: 0 }, |rows| Ok(vec![0; rows.len()])).unwrap();
    let carried = test.carried_back(&assignment, |_| Ok(FittedPolicy::Actions(vec![ActionId(5)]))).unwrap();
    let simulator = truth.simulator();
    let constant = Policy::stationary(simulator.pairs(), vec![ActionId(5); simulator.n_states()]).unwrap();
    let value = |patient: &Patient| {
        let mdp = simulator.mdp(&patient.context).unwrap().starting_in(patient.start).unwrap();
        let mu = evaluate::feature_expectations(&mdp, &constant).unwrap();
        mu.iter().zip(truth.mapping().weights(&patient.context).unwrap()).map(|(x, w)| x * w).sum::<f64>()
    };
    near(carried.policy.value, patients.iter().map(value).sum::<f64>() / n, 1e-9);
    assert!(carried.policy.unknown > 0.5 && carried.policy.survival + carried.policy.unknown < 1.0, "{carried:?}");

    // An inadmissible action at once: R(s₀) and then the unknown for ever.
    let latent = Assignment::latent(&patients);
    let inadmissible = |i: usize| {
        let start = patients[i].start.index();
        let known = |action: usize| simulator.is_known(start * 25 + action);
        ActionId((0..25).find(|&action| !known(action)).unwrap() as u32)
    };
    let carried = test.carried_back(&latent, |i| Ok(FittedPolicy::Actions(vec![inadmissible(i); N_CLUSTERS]))).unwrap();
    let mdp = simulator.shared_mdp().unwrap();
    let value = |patient: &Patient| {
        let reward = mdp.reward(&truth.mapping().weights(&patient.context).unwrap()).unwrap();
        reward.at(patient.start.index(), 0) + 0.9 / (1.0 - 0.9) * reward.at(UNKNOWN, 0)
    };
    near(carried.policy.value, patients.iter().map(value).sum::<f64>() / n, 1e-9);
    assert_eq!((carried.policy.survival, carried.policy.unknown), (0.0, 1.0));

    // The row of admission shows the patient's own coma scale, and what is done on it is done once.
    let admission = |rows: &[Row]| Ok(rows.iter().map(|row| usize::from(row[at("GCS")] == 15.0)).collect::<Vec<_>>());
    let split = test.assignment(Draws { per_state: 8, seed: 3 }, admission).unwrap();
    for (i, patient) in patients.iter().enumerate() {
        assert_eq!(split.of_admission(i), [(usize::from(patient.fields[5] == 15.0), 1.0)]);
    }
    let mut shares = vec![0.0; simulator.pairs().len()];
    for (s, row) in shares.chunks_exact_mut(25).enumerate() {
        let of_state = split.of_state(StateId(s as u32));
        of_state.iter().for_each(|&(k, share)| row[5 * k] = share);
        row[0] += if s < N_CLUSTERS { 0.0 } else { 1.0 };
    }
    let later = Policy::stochastic(simulator.pairs(), shares).unwrap();
    let value = |(i, patient): (usize, &Patient)| {
        let reward = mdp.reward(&truth.mapping().weights(&patient.context).unwrap()).unwrap();
        let q = evaluate::q_values(&mdp, &reward, &evaluate::values(&mdp, &reward, &later).unwrap()).unwrap();
        q[25 * patient.start.index() + 5 * split.of_admission(i)[0].0]
    };
    let carried = test.carried_back(&split, |_| Ok(FittedPolicy::Actions(vec![ActionId(0), ActionId(5)]))).unwrap();
    near(carried.policy.value, patients.iter().enumerate().map(value).sum::<f64>() / n, 1e-9);
}

#[test]
fn nonsense_is_refused() {
    let usual = Synthetic::default();
    for (settings, place) in [
        (Synthetic { stays: 0, ..usual }, "stays"),
        (Synthetic { noise: -0.1, ..usual }, "noise"),
        (Synthetic { noise: f64::NAN, ..usual }, "noise"),
        (Synthetic { noise: f64::INFINITY, ..usual }, "noise"),
        (Synthetic { lapses: 1.1, ..usual }, "lapses"),
        (Synthetic { missing: 1.0, ..usual }, "missing"),
        (Synthetic { discount: 1.0, ..usual }, "discount"),
    ] {
        let refused = |result: Result<(), Error>| match result {
            Err(Error::InvalidSetting { name, .. }) => assert_eq!(name, place),
            other => panic!("{place}: {other:?}"),
        };
        refused(settings.generate(|_| ControlFlow::Continue(())));
        refused(Truth::of(&settings).map(drop));
    }
    let refused = |ids: &[u64]| matches!(usual.patients(ids), Err(Error::InvalidSetting { name: "icustayid", .. }));
    assert!(refused(&[200_000]) && refused(&[200_001, 201_001]) && !refused(&[201_000]));
    let stopped = threshold(5).generate(|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Interrupted { done: 1, total: 5 })), "{stopped:?}");

    let settings = threshold(2);
    let truth = Truth::of(&settings).unwrap();
    assert!(truth.test_patients(Vec::new()).is_err());
    let test = truth.test_patients(settings.patients(&[200_001, 200_002]).unwrap()).unwrap();
    let all_zero = |rows: &[Row]| Ok(vec![0; rows.len()]);
    assert!(test.assignment(Draws { per_state: 0, seed: 0 }, all_zero).is_err());
    assert!(test.assignment(Draws { per_state: 1, seed: 0 }, |_| Ok(vec![0])).is_err());
    let assignment = test.assignment(Draws { per_state: 1, seed: 0 }, all_zero).unwrap();
    let carried = |policy: FittedPolicy| test.carried_back(&assignment, |_| Ok(policy.clone()));
    assert!(carried(FittedPolicy::Actions(vec![ActionId(0)])).is_ok());
    assert!(carried(FittedPolicy::Actions(Vec::new())).is_err());
    assert!(carried(FittedPolicy::Actions(vec![ActionId(25)])).is_err());
    assert!(carried(FittedPolicy::Probabilities(vec![0.04; 24])).is_err());
    assert!(carried(FittedPolicy::Probabilities(vec![0.05; 25])).is_err());
    assert!(carried(FittedPolicy::Probabilities(vec![f64::NAN; 25])).is_err());
    let fewer = Assignment::latent(&test.patients()[..1]);
    assert!(test.carried_back(&fewer, |_| Ok(FittedPolicy::Actions(vec![ActionId(0); N_CLUSTERS]))).is_err());
}

#[test]
fn settings_are_read_strictly() {
    let read: Synthetic = serde_json::from_str(r#"{"stays": 7, "clinician": "threshold"}"#).unwrap();
    assert_eq!(read, Synthetic { stays: 7, clinician: Clinician::Threshold, ..Synthetic::default() });
    assert!(serde_json::from_str::<Synthetic>(r#"{"stay": 7}"#).is_err());
    assert!(serde_json::from_str::<Synthetic>(r#"{"clinician": "optimal"}"#).is_err());
}

#[test]
fn policies_that_know_the_action_before_have_their_worth() {
    let settings = threshold(12);
    let truth = Truth::of(&settings).unwrap();
    let patients = settings.patients(&(200_001..200_013).collect::<Vec<_>>()).unwrap();
    let test = truth.test_patients(patients.clone()).unwrap();
    let draws = Draws { per_state: 3, seed: 2 };
    // Whoever makes nothing of the action before gets what everybody gets.
    let by_scale =
        |rows: &[Row]| -> Vec<usize> { rows.iter().map(|row| usize::from(row[at("GCS")] >= 12.0)).collect() };
    let usual = test.assignment(draws, |rows| Ok(by_scale(rows))).unwrap();
    let after = test.assignment_after(draws, |rows, _| Ok(by_scale(rows))).unwrap();
    let policy = |_: usize| Ok(FittedPolicy::Actions(vec![ActionId(0), ActionId(6)]));
    let (usual, knowing) =
        (test.carried_back(&usual, policy).unwrap(), test.carried_back_after(&after, policy).unwrap());
    near(knowing.policy.value, usual.policy.value, 1e-8);
    near(knowing.policy.survival, usual.policy.survival, 1e-8);
    near(knowing.policy.unknown, usual.policy.unknown, 1e-8);

    // Two actions in turn: by the expectation after an even and after an odd number of steps.
    let turns = |rows: &[Row], given: Option<&Row>| {
        let fluids = given.is_some_and(|given| given[at("input_4hourly")] > 0.0);
        Ok(vec![usize::from(fluids); rows.len()])
    };
    let assignment = test.assignment_after(draws, turns).unwrap();
    let alternating = |_: usize| Ok(FittedPolicy::Actions(vec![ActionId(5), ActionId(0)]));
    let carried = test.carried_back_after(&assignment, alternating).unwrap();
    let simulator = truth.simulator();
    let mdp = simulator.shared_mdp().unwrap();
    let expected = patients.iter().map(|patient| {
        let reward = mdp.reward(&truth.mapping().weights(&patient.context).unwrap()).unwrap();
        let mut values = vec![0.0; simulator.n_states()];
        // Backwards from a horizon beyond which nothing counts, so that the first action is that of an even step.
        for t in (0..400).rev() {
            let action = if t % 2 == 0 { 5 } else { 0 };
            let of_state =
                |s: usize| reward.at(s, 25 * s + action) + 0.9 * mdp.kernel().expect(25 * s + action, &values);
            values = (0..simulator.n_states()).map(of_state).collect();
        }
        values[patient.start.index()]
    });
    near(carried.policy.value, expected.sum::<f64>() / patients.len() as f64, 1e-8);
    assert!(test.assignment_after(Draws { per_state: 0, seed: 0 }, turns).is_err());
}
