//! What an exam says of an agent is what the agent believes, and of the rules what an independent count says.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::agent::Predictions;
use coirl::learn::{Choice, Problem, Watch};
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Context, StateId};
use coirl::resampling::Resampling;
use coirl_cohort::rules::{Rule, Rules};
use coirl_cohort::synthetic::Synthetic;
use coirl_cohort::{Cohort, Ends, Exam, ExamSettings, RecordedStay, Spec, Table, TestStays, admitted_share, build};
use std::ops::ControlFlow;

/// A small cohort of simulated patients.
fn cohort() -> Cohort {
    let mut spec = Spec::preset("ai-clinician").unwrap();
    spec.state.clusters = Some(25);
    let (names, wanted) = (Synthetic::columns(), spec.columns());
    let at: Vec<usize> = wanted.iter().map(|name| names.iter().position(|own| own == name).unwrap()).collect();
    let mut table = Table::new(&wanted, false);
    let settings = Synthetic { stays: 300, seed: 4, ..Synthetic::default() };
    settings
        .generate(|stay| {
            for row in &stay.rows {
                table.push(&stay.id.to_string(), None, row[0], at.iter().map(|&i| row[i])).unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    build(&table, &spec, 1, |_| ControlFlow::Continue(())).unwrap()
}

fn visits(stays: &[RecordedStay]) -> (Vec<Context>, Vec<&[StateId]>, Vec<u32>) {
    let states = |stay: &'_ RecordedStay| stay.trajectory.actions.len();
    (
        stays.iter().map(|stay| stay.context.clone()).collect(),
        stays.iter().map(|stay| &stay.trajectory.states[..states(stay)]).collect(),
        stays.iter().flat_map(|stay| stay.trajectory.actions.iter().map(|action| action.0)).collect(),
    )
}

#[test]
fn an_agent_of_the_choice_model_is_asked_for_its_own_probabilities() {
    let cohort = cohort();
    let (model, test) = (&cohort.model, cohort.test.stays());
    let train = cohort.train.demonstrations(model).unwrap();
    let problem = Problem::new(model, &train, None).unwrap();
    let choice = Choice { penalty: Some(1.0), mapping: coirl::learn::FormChoice::Linear, ..Choice::default() };
    let fitted = fit(&problem, &Settings::new(Method::Choice(choice)), Watch::default(), &mut ()).unwrap();
    let chooser = fitted.chooser().unwrap();

    let ends = Ends::of_spec(cohort.encoder.centroids.n_clusters(), &cohort.spec);
    let exam = Exam::new(model, &cohort.encoder, ends, &cohort.validation, &cohort.test).unwrap();
    let settings =
        ExamSettings { resampling: Resampling { resamples: 20, ..Resampling::default() }, ..ExamSettings::default() };
    let found = exam.agreement(&fitted, &settings).unwrap();
    let confidence = found.confidence.unwrap();
    assert_eq!(confidence.temperature, None, "no temperature is fitted again");

    let (contexts, states, taken) = visits(test);
    let believed = Predictions::of(model, &chooser, &contexts, &states).unwrap().with_confidence(confidence);
    let rows = believed.chunks_exact(model.n_actions()).zip(&taken);
    let expected = rows.map(|(row, &action)| -row[action as usize].max(1e-6).ln()).sum::<f64>() / taken.len() as f64;
    let log_loss = found.matching.overall.log_loss.value;
    assert!((log_loss - expected).abs() < 1e-9, "{log_loss} instead of {expected}");

    // What it does first is what it would take, as for the agent alone; only what it believes differs.
    let alone = exam.agreement(&fitted.agent, &settings).unwrap();
    assert_eq!(found.matching.overall.top_one, alone.matching.overall.top_one);
    assert!(alone.confidence.unwrap().temperature.is_some());
    assert!((log_loss - alone.matching.overall.log_loss.value).abs() > 1e-6);
}

#[test]
fn stays_of_another_table_are_examined_with_the_same_rules() {
    let cohort = cohort();
    let (model, ends) = (&cohort.model, Ends::of_spec(cohort.encoder.centroids.n_clusters(), &cohort.spec));
    let rules = Rules::fit(&cohort.train, &cohort.validation, ends.n_states(), model.n_actions()).unwrap();
    let rules = rules.with_logistic(&cohort.train, &cohort.validation, 1).unwrap();
    let fit_of_rule = rules.logistic().unwrap();
    assert!(fit_of_rule.converged && fit_of_rule.measurements, "{fit_of_rule:?}");
    // Any stays can be scored on: here some of those that were chosen by.
    let others = TestStays::new(cohort.validation.stays()[..20].to_vec());
    let exam = Exam::new(model, &cohort.encoder, ends, &cohort.validation, &others).unwrap().against(&rules).unwrap();
    let found = exam.agreement(&coirl::agent::Agent::Uniform, &ExamSettings::default()).unwrap();
    assert_eq!(found.comparisons.len(), 4);
    let (_, _, taken) = visits(others.stays());
    let previous = found.comparisons.iter().find(|own| own.rule == Rule::Previous).unwrap();
    assert!(previous.pairing.same_action.value <= 1.0 && found.matching.overall.steps == taken.len());
    let admitted = admitted_share(model, others.stays());
    assert!(found.matching.overall.top_one.value <= admitted && admitted < 1.0, "{admitted}");
}
