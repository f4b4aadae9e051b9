//! A cohort is built on training stays only, counts what it says it counts, and says what is suspicious.

use coirl::baselines::Majority;
use coirl::demos::Evidence;
use coirl::learn::{Problem, Watch};
use coirl::methods::{Method, Settings, fit};
use coirl::model::Features;
use coirl::resampling::Resampling;
use coirl::{Error, Result};
use coirl_cohort::off_policy::AssessmentSettings;
use coirl_cohort::synthetic::{Clinician, Synthetic};
use coirl_cohort::{
    Actions, BuildStage, Cohort, ContextScale, Ends, Exam, ExamSettings, Finding, Gaps, SameStep, Selection, Severity,
    Spec, Table, Unsupported, build, lint, select,
};
use std::ops::ControlFlow;

/// A row of a small table.
#[derive(Debug, Clone)]
struct Row {
    stay: String,
    patient: String,
    time: f64,
    /// sex, x, y, dose, died.
    cells: [f64; 5],
}

const COLUMNS: [&str; 5] = ["sex", "x", "y", "dose", "died"];

fn spec() -> Spec {
    let text = r#"
        discount = 0.9
        [table]
        stay = "stay"
        patient = "patient"
        time = "time"
        [context]
        fields = ["sex"]
        scale = "standardise"
        [state]
        measurements = ["x", "y"]
        clusters = 4
        [action]
        doses = ["dose"]
        levels = 3
        [outcome]
        column = "died"
        [dynamics]
        min_support = 1
        prior = 0.0
    "#;
    Spec::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

/// 60 stays of 40 patients that walk over four corners of a square; the dose is 0, 1 or 2 by where they are.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut random = 12345_u64;
    let mut next = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as f64 / 2f64.powi(31)
    };
    for stay in 0..60 {
        let died = f64::from(u8::from(next() < 0.3));
        let sex = f64::from(stay % 2);
        for t in 0..6 {
            let corner = (next() * 4.0) as usize % 4;
            let (x, y) = ((corner % 2) as f64 * 10.0 + next(), (corner / 2) as f64 * 10.0 + next());
            let dose = f64::from(u8::try_from(corner % 3).unwrap_or_default());
            rows.push(Row {
                stay: format!("s{stay}"),
                patient: format!("p{}", stay % 40),
                time: f64::from(t),
                cells: [sex, x, y, dose, died],
            });
        }
    }
    rows
}

fn table(spec: &Spec, rows: &[Row]) -> Result<Table> {
    let wanted = spec.columns();
    let mut table = Table::new(&wanted, spec.table.patient.is_some());
    for row in rows {
        let at = |name: &&str| COLUMNS.iter().position(|column| column == name).map_or(f64::NAN, |i| row.cells[i]);
        let patient = spec.table.patient.is_some().then_some(row.patient.as_str());
        table.push(&row.stay, patient, row.time, wanted.iter().map(at))?;
    }
    Ok(table)
}

fn built(spec: &Spec, rows: &[Row]) -> Result<Cohort> {
    build(&table(spec, rows)?, spec, 7, |_: BuildStage| ControlFlow::Continue(()))
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn a_patient_is_in_one_part_only_and_shares_are_kept() -> Result<()> {
    let cohort = built(&spec(), &rows())?;
    let patients = |stays: &[coirl_cohort::RecordedStay]| {
        let mut all: Vec<String> = stays.iter().map(|stay| stay.patient.clone()).collect();
        all.sort();
        all.dedup();
        all
    };
    let parts = [cohort.train.stays(), cohort.validation.stays(), cohort.test.stays()].map(patients);
    assert_eq!(parts.each_ref().map(Vec::len), [24, 8, 8]);
    let mut all = parts.concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 40);
    let stays = cohort.train.stays().len() + cohort.validation.stays().len() + cohort.test.stays().len();
    assert_eq!(stays, 60);
    Ok(())
}

#[test]
fn nothing_is_fitted_on_patients_to_validate_or_score_on() -> Result<()> {
    let (spec, rows) = (spec(), rows());
    let cohort = built(&spec, &rows)?;
    let held_out: Vec<&str> =
        cohort.validation.stays().iter().chain(cohort.test.stays()).map(|stay| stay.stay.as_str()).collect();
    let mut changed = rows.clone();
    for row in changed.iter_mut().filter(|row| held_out.contains(&row.stay.as_str())) {
        row.cells[1] = 1000.0 + 17.0 * row.cells[1];
        row.cells[2] = -row.cells[2];
        row.cells[3] = 50.0;
    }
    let other = built(&spec, &changed)?;
    assert_eq!(cohort.encoder, other.encoder);
    assert_eq!(cohort.model, other.model);
    assert_eq!(cohort.train, other.train);
    assert_ne!(cohort.test, other.test);
    // And training rows do matter.
    let mut changed = rows;
    changed.iter_mut().filter(|row| !held_out.contains(&row.stay.as_str())).for_each(|row| row.cells[1] += 1.0);
    assert_ne!(cohort.encoder, built(&spec, &changed)?.encoder);
    Ok(())
}

#[test]
fn transitions_are_the_counts_of_training_stays() -> Result<()> {
    let cohort = built(&spec(), &rows())?;
    let ends = Ends::of_spec(4, &cohort.spec);
    let mdp = cohort.model.shared_mdp()?;
    let mut pairs_seen = 0;
    for state in 0..4_u32 {
        for action in 0..3_u32 {
            let mut next = vec![0.0; ends.n_states()];
            for stay in cohort.train.stays() {
                for step in stay.trajectory.transitions() {
                    if step.state.0 == state && step.action.0 == action {
                        next[step.next.index()] += 1.0;
                    }
                }
            }
            let total: f64 = next.iter().sum();
            match mdp.pairs().find(state as usize, action as usize) {
                None => assert_eq!(total, 0.0, "({state}, {action}) was seen"),
                Some(pair) => {
                    pairs_seen += 1;
                    for (s, n) in next.iter().enumerate() {
                        assert!((mdp.kernel().probability(pair, s) - n / total).abs() < 1e-12);
                    }
                }
            }
        }
    }
    assert_eq!(cohort.support.pairs_supported, pairs_seen);
    let starts: Vec<f64> = (0..ends.n_states() as u32)
        .map(|s| {
            let here = cohort.train.stays().iter().filter(|stay| stay.trajectory.states[0].0 == s).count();
            here as f64 / cohort.train.stays().len() as f64
        })
        .collect();
    assert!(mdp.initial().iter().zip(&starts).all(|(a, b)| (a - b).abs() < 1e-12));
    // Stays end where the outcome says.
    for stay in cohort.train.stays() {
        assert_eq!(stay.trajectory.states.last(), Some(&ends.of(stay.bad_end)));
        assert_eq!(stay.trajectory.actions.len(), 6);
    }
    Ok(())
}

#[test]
fn the_prior_draws_to_the_successors_of_the_state() -> Result<()> {
    let mut spec = spec();
    spec.dynamics.prior = 2.0;
    let (plain, drawn) = (built(&self::spec(), &rows())?, built(&spec, &rows())?);
    let (a, b) = (plain.model.shared_mdp()?, drawn.model.shared_mdp()?);
    for pair in 0..a.pairs().len() {
        let state = a.pairs().state(pair).index();
        if state >= 4 {
            continue;
        }
        let steps: Vec<_> = plain
            .train
            .stays()
            .iter()
            .flat_map(|stay| stay.trajectory.transitions())
            .filter(|s| s.state.index() == state)
            .collect();
        let taken = steps.iter().filter(|step| step.action == a.pairs().action(pair)).count() as f64;
        for next in 0..a.n_states() {
            let any = steps.iter().filter(|step| step.next.index() == next).count() as f64 / steps.len() as f64;
            let expected = (taken * a.kernel().probability(pair, next) + 2.0 * any) / (taken + 2.0);
            assert!((b.kernel().probability(pair, next) - expected).abs() < 1e-12);
        }
    }
    Ok(())
}

#[test]
fn what_was_seen_too_rarely_is_masked_or_unknown() -> Result<()> {
    let mut spec = spec();
    spec.dynamics.min_support = 12;
    // Three odd decisions in one corner: too few to know where they lead.
    let mut rows = rows();
    for i in [0, 60, 120] {
        rows[i].cells = [rows[i].cells[0], 0.5, 0.5, 2.0, rows[i].cells[4]];
    }
    let masked = built(&spec, &rows)?;
    spec.dynamics.unsupported = Unsupported::Unknown;
    let unknown = built(&spec, &rows)?;
    assert_eq!(masked.support, unknown.support);
    assert!(masked.support.pairs_supported < masked.support.pairs_seen);
    let (a, b) = (masked.model.shared_mdp()?, unknown.model.shared_mdp()?);
    assert_eq!(b.n_states(), a.n_states() + 1);
    assert!(b.pairs().is_full());
    let lost = b.n_states() - 1;
    for pair in (0..b.pairs().len()).filter(|&pair| b.pairs().state(pair).index() < 4) {
        let (state, action) = (b.pairs().state(pair).index(), b.pairs().action(pair).index());
        let admitted = a.pairs().find(state, action).is_some();
        assert_eq!(unknown.model.is_known(pair), admitted);
        assert_eq!(b.kernel().probability(pair, lost), f64::from(u8::from(!admitted)));
    }
    // Demonstrations go on after a step that the model does not admit; nothing else is lost.
    let demonstrations = masked.train.demonstrations(&masked.model)?;
    let mut kept = 0;
    for demonstration in demonstrations.demonstrations() {
        let Evidence::Trajectories(paths) = demonstration.evidence() else { panic!("no trajectories") };
        kept += paths.iter().map(|path| path.actions.len()).sum::<usize>();
    }
    let all: usize = masked.train.stays().iter().map(|stay| stay.trajectory.actions.len()).sum();
    assert_eq!(kept as f64, (1.0 - masked.support.steps_unsupported) * all as f64);
    assert!(kept < all);
    Ok(())
}

#[test]
fn features_are_an_indicator_of_state_and_action_kept_sparse() -> Result<()> {
    let cohort = built(&spec(), &rows())?;
    assert_eq!(cohort.model.n_features(), 4 + 3);
    let Features::StateAction(rows) = cohort.model.features() else { panic!("not sparse") };
    let pairs = cohort.model.pairs();
    for pair in 0..pairs.len() {
        let entries: Vec<(usize, f64)> = rows.row(pair).collect();
        let state = pairs.state(pair).index();
        match state < 4 {
            true => assert_eq!(entries, [(state, 1.0), (4 + pairs.action(pair).index(), 1.0)]),
            false => assert!(entries.is_empty()),
        }
    }
    Ok(())
}

#[test]
fn filling_in_and_lags_never_look_ahead() -> Result<()> {
    let mut spec = spec();
    spec.state.columns.entry("y".into()).or_default().lag = 1;
    let mut rows = rows();
    rows[2].cells[1] = f64::NAN;
    rows[3].cells[1] = f64::NAN;
    let cohort = built(&spec, &rows)?;
    let all = || cohort.train.stays().iter().chain(cohort.validation.stays()).chain(cohort.test.stays());
    let first = all().find(|stay| stay.stay == "s0").unwrap_or_else(|| panic!("stay s0"));
    let measurements: Vec<_> = cohort.encoder.measurements.iter().collect();
    let value = |t: usize, j: usize| measurements[j].in_unit(f64::from(first.points[2 * t + j]));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} instead of {b}");
    near(value(2, 0), rows[1].cells[1]);
    near(value(3, 0), rows[1].cells[1]);
    near(value(4, 0), rows[4].cells[1]);
    near(value(0, 1), measurements[1].fill);
    near(value(1, 1), rows[0].cells[2]);
    near(value(5, 1), rows[4].cells[2]);
    Ok(())
}

#[test]
fn rows_of_one_step_are_one_or_refused_with_both_rows() -> Result<()> {
    let (spec, mut rows) = (spec(), rows());
    let again = rows[10].clone();
    rows.push(again);
    let cohort = built(&spec, &rows)?;
    assert_eq!(cohort.flow.0[1].rows_out, 1);
    let last = rows.len() - 1;
    rows[last].cells[1] = 3.25;
    match built(&spec, &rows) {
        Err(Error::Cell { row, column, reason }) => {
            assert_eq!((row, column.as_str()), (last as u64 + 1, "x"));
            assert!(reason.contains("row 11") && reason.contains("3.25"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    for same_step in [SameStep::First, SameStep::Last] {
        let mut spec = spec.clone();
        spec.cohort.same_step = same_step;
        built(&spec, &rows)?;
    }
    Ok(())
}

#[test]
fn skipped_steps_are_joined_or_end_the_record() -> Result<()> {
    let (mut spec, mut rows) = (spec(), rows());
    rows.iter_mut().filter(|row| row.time >= 3.0).for_each(|row| row.time += 2.0);
    let joined = built(&spec, &rows)?;
    assert!(codes(&joined.findings).contains(&"skipped-steps"));
    assert!(joined.train.stays().iter().all(|stay| stay.trajectory.actions.len() == 6));
    spec.cohort.gaps = Gaps::Cut;
    let cut = built(&spec, &rows)?;
    for stay in cut.train.stays() {
        assert_eq!((stay.trajectory.states.len(), stay.trajectory.actions.len(), stay.bad_end), (3, 2, None));
    }
    Ok(())
}

#[test]
fn stays_are_left_out_by_rule_and_counted() -> Result<()> {
    let (mut spec, mut rows) = (spec(), rows());
    // Stay 3 is too short, stay 5 has no outcome, stay 8 is out of range.
    rows.retain(|row| row.stay != "s3" || row.time < 2.0);
    rows.iter_mut().filter(|row| row.stay == "s5").for_each(|row| row.cells[4] = f64::NAN);
    rows.iter_mut().filter(|row| row.stay == "s8").for_each(|row| row.cells[2] = -500.0);
    spec.cohort.min_steps = 3;
    spec.cohort.keep.insert("y".into(), [-100.0, 100.0]);
    let flow = built(&spec, &rows)?.flow;
    let out: Vec<(&str, usize, usize)> = flow
        .0
        .iter()
        .filter(|step| step.stays_out > 0)
        .map(|step| (step.rule.as_str(), step.stays_out, step.rows_out))
        .collect();
    assert_eq!(out, [("y outside -100 to 100", 1, 6), ("no died", 1, 6), ("fewer than 3 steps", 1, 2)]);
    assert_eq!(flow.0.last().map(|step| step.stays), Some(57));
    spec.cohort.min_steps = 100;
    assert!(matches!(built(&spec, &rows), Err(Error::EmptyCohort { stays: 60, .. })));
    Ok(())
}

#[test]
fn the_linter_sees_leaks_mixed_people_and_columns_that_say_nothing() -> Result<()> {
    let findings = |spec: &Spec, rows: &[Row]| -> Result<Vec<Finding>> { lint(&table(spec, rows)?, spec, 7) };
    let clean = findings(&spec(), &rows())?;
    assert!(clean.iter().all(|finding| finding.severity == Severity::Note), "{clean:?}");

    let mut leaking = spec();
    leaking.state.measurements.push("dose".into());
    assert!(codes(&findings(&leaking, &rows())?).contains(&"action-leaks"));
    leaking.state.columns.entry("dose".into()).or_default().lag = 1;
    assert!(!codes(&findings(&leaking, &rows())?).contains(&"action-leaks"));

    // A running total of the dose gives it away by its change.
    let mut total = rows();
    for stay in total.chunks_mut(6) {
        let mut sum = 0.0;
        for row in stay {
            sum += row.cells[3];
            row.cells[2] = sum;
        }
    }
    let found = findings(&spec(), &total)?;
    let leak = found.iter().find(|finding| finding.code == "action-leaks").map(|finding| finding.message.clone());
    assert!(leak.is_some_and(|message| message.contains("the change of y")), "{found:?}");

    // The rows of one patient under the id of another.
    let mut mixed = rows();
    let moved: Vec<Row> = mixed.iter().filter(|row| row.stay == "s9").cloned().collect();
    mixed.extend(moved.into_iter().map(|row| Row { stay: "s2".into(), time: row.time + 6.0, ..row }));
    let found = findings(&spec(), &mixed)?;
    for code in ["changing-person", "torn-stay", "patient-in-two-parts"] {
        assert!(codes(&found).contains(&code), "{code}: {found:?}");
    }
    // Where to look is in the example only, which is not passed on.
    assert!(found.iter().any(|finding| finding.example.as_ref().is_some_and(|place| place.contains("s2"))));
    assert!(found.iter().all(|finding| !finding.message.contains("s2") && finding.anonymous().example.is_none()));

    let mut constant = rows();
    constant.iter_mut().for_each(|row| row.cells[2] = 4.0);
    assert!(codes(&findings(&spec(), &constant)?).contains(&"constant-column"));

    let mut majority = rows();
    majority.iter_mut().enumerate().for_each(|(i, row)| row.cells[3] = f64::from(u8::from(i % 20 == 0)));
    assert!(codes(&findings(&spec(), &majority)?).contains(&"majority-action"));

    let mut undosed = rows();
    undosed[4].cells[3] = f64::NAN;
    let found = findings(&spec(), &undosed)?;
    assert!(
        found.iter().any(|finding| finding.code == "dose-not-recorded" && finding.example.as_deref() == Some("row 5"))
    );
    Ok(())
}

#[test]
fn ages_in_days_and_years_are_told_apart() -> Result<()> {
    let spec = |unit: &str| {
        let mut spec = spec();
        spec.context.fields = vec!["age".into()];
        spec.context.scale = ContextScale::Standardise;
        spec.units.insert("age".into(), unit.into());
        spec
    };
    let found = |spec: &Spec, age: f64| -> Result<bool> {
        let wanted = spec.columns();
        let mut table = Table::new(&wanted, true);
        for (i, row) in rows().iter().enumerate() {
            let at = |name: &&str| match *name {
                "age" => age + (i / 6) as f64,
                other => COLUMNS.iter().position(|column| *column == other).map_or(f64::NAN, |i| row.cells[i]),
            };
            table.push(&row.stay, Some(&row.patient), row.time, wanted.iter().map(at))?;
        }
        Ok(codes(&lint(&table, spec, 7)?).contains(&"age-unit"))
    };
    assert_eq!([found(&spec("years"), 60.0)?, found(&spec("years"), 24_000.0)?], [false, true]);
    assert_eq!([found(&spec("days"), 24_000.0)?, found(&spec("days"), 60.0)?], [false, true]);
    Ok(())
}

#[test]
fn measurements_that_were_standardised_with_the_test_stays_are_noticed() -> Result<()> {
    let mut spec = spec();
    spec.state.measurements = vec!["x".into(), "y".into(), "died".into()];
    spec.outcome = None;
    let mut rows = rows();
    for j in [1, 2, 4] {
        let n = rows.len() as f64;
        let mean = rows.iter().map(|row| row.cells[j]).sum::<f64>() / n;
        let size = (rows.iter().map(|row| (row.cells[j] - mean).powi(2)).sum::<f64>() / n).sqrt();
        rows.iter_mut().for_each(|row| row.cells[j] = (row.cells[j] - mean) / size);
    }
    assert!(codes(&lint(&table(&spec, &rows)?, &spec, 7)?).contains(&"fitted-on-all-rows"));
    Ok(())
}

/// A synthetic table in memory.
fn synthetic(settings: &Synthetic, spec: &Spec) -> Result<Table> {
    let names = Synthetic::columns();
    let wanted = spec.columns();
    let at: Vec<usize> =
        wanted.iter().map(|name| names.iter().position(|column| column == name).unwrap_or_default()).collect();
    let mut table = Table::new(&wanted, false);
    let mut failed = None;
    settings.generate(|stay| {
        for row in &stay.rows {
            if let Err(error) = table.push(&stay.id.to_string(), None, row[0], at.iter().map(|&i| row[i])) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed.map_or(Ok(table), Err)
}

#[test]
fn binning_gives_the_actions_of_a_synthetic_table_back() -> Result<()> {
    for clinician in [Clinician::Linear, Clinician::Threshold] {
        let settings = Synthetic { stays: 1500, seed: 3, clinician, ..Synthetic::default() };
        let spec = Spec {
            state: coirl_cohort::StateSpec { clusters: Some(30), ..Spec::preset("ai-clinician")?.state },
            ..Spec::preset("ai-clinician")?
        };
        let table = synthetic(&settings, &spec)?;
        let cohort = build(&table, &spec, 0, |_| ControlFlow::Continue(()))?;
        let Actions::Doses(doses) = &cohort.encoder.actions else { panic!("no doses") };
        assert_eq!(doses.iter().map(|dose| dose.n_levels()).collect::<Vec<_>>(), [5, 5]);
        let recorded: std::collections::HashMap<&str, &coirl_cohort::RecordedStay> =
            cohort.train.stays().iter().chain(cohort.test.stays()).map(|stay| (stay.stay.as_str(), stay)).collect();
        let (mut same, mut all) = (0, 0);
        settings.generate(|stay| {
            if let Some(own) = recorded.get(stay.id.to_string().as_str()) {
                same += own.trajectory.actions.iter().zip(&stay.actions).filter(|(a, b)| a == b).count();
                all += own.trajectory.actions.len();
                assert_eq!(own.bad_end, Some(stay.died));
            }
            ControlFlow::Continue(())
        })?;
        assert!(all > 5000);
        assert_eq!(same, all, "{clinician:?}");
    }
    Ok(())
}

#[test]
fn an_exam_agrees_with_counting_by_hand_and_with_the_truth() -> Result<()> {
    let settings = Synthetic { stays: 1200, seed: 5, clinician: Clinician::Threshold, ..Synthetic::default() };
    let mut spec = Spec::preset("ai-clinician")?;
    spec.state.clusters = Some(400);
    let table = synthetic(&settings, &spec)?;
    let cohort = build(&table, &spec, 1, |_| ControlFlow::Continue(()))?;
    let train = cohort.train.demonstrations(&cohort.model)?;
    let problem = Problem::new(&cohort.model, &train, &coirl::demos::Estimator::Truncated { horizon: None })?;
    let fitted = fit(&problem, &Settings::new(Method::Majority(Majority {})), Watch::default(), &mut ())?;
    let ends = Ends::of_spec(cohort.encoder.centroids.n_clusters(), &cohort.spec);
    let exam = Exam::new(&cohort.model, &cohort.encoder, ends, &cohort.validation, &cohort.test)?;
    let exam_settings = ExamSettings {
        resampling: Resampling { resamples: 20, ..Resampling::default() },
        true_patients: 40,
        assessment: AssessmentSettings {
            resampling: Resampling { resamples: 4, ..Resampling::default() },
            ..ExamSettings::default().assessment
        },
        ..ExamSettings::default()
    };
    let agreement = exam.agreement(&fitted.agent, &exam_settings)?;
    // The most frequent training action of each state, counted here.
    let n_actions = cohort.encoder.actions.len();
    let mut times = vec![0_u32; ends.n_states() * n_actions];
    for step in cohort.train.stays().iter().flat_map(|stay| stay.trajectory.transitions()) {
        times[step.state.index() * n_actions + step.action.index()] += 1;
    }
    let habit = |state: usize| {
        let own = &times[state * n_actions..(state + 1) * n_actions];
        (0..n_actions).rev().max_by_key(|&action| own[action]).unwrap_or_default()
    };
    let (mut same, mut all) = (0, 0);
    for step in cohort.test.stays().iter().flat_map(|stay| stay.trajectory.transitions()) {
        same += usize::from(habit(step.state.index()) == step.action.index());
        all += 1;
    }
    assert_eq!(agreement.matching.overall.steps, all);
    assert!((agreement.matching.overall.top_one.value - same as f64 / all as f64).abs() < 1e-12);
    assert_eq!(agreement.matching.groupings.len(), 7);
    let carried = exam.true_values(&[&fitted.agent], &settings, &exam_settings)?;
    let carried = carried.unwrap_or_else(|| panic!("both treatments are known"));
    assert!(carried[0].policy.value < carried[0].yardsticks.optimal.value);
    let off_policy = exam.off_policy(&[("majority".into(), &fitted.agent)], &exam_settings)?;
    let off_policy = off_policy.unwrap_or_else(|| panic!("there is an outcome"));
    let survived = cohort.test.stays().iter().filter(|stay| stay.bad_end == Some(false)).count();
    assert!((off_policy.recorded.value - survived as f64 / cohort.test.stays().len() as f64).abs() < 1e-12);
    assert_eq!(off_policy.policies.len(), 4);
    // Fitted states: where weights are refused, nothing is given.
    for (name, assessment) in &off_policy.policies {
        let weights = assessment.weighted_doubly_robust.value().is_some();
        assert!(weights || assessment.fitted_q.value().is_none(), "{name}");
    }
    Ok(())
}

#[test]
fn selection_finds_the_measurement_that_tells_actions_apart() -> Result<()> {
    // y is noise here, and the dose follows x alone.
    let mut rows = rows();
    for (i, row) in rows.iter_mut().enumerate() {
        row.cells[1] = (i * 7 % 3) as f64 * 10.0 + (i % 5) as f64 * 0.1;
        row.cells[3] = (i * 7 % 3) as f64;
    }
    let spec = spec();
    let selection = Selection { clusters: vec![2, 3, 6, 12], screening_clusters: 3, keep: 1, weights: vec![] };
    let mut told = 0;
    let selected = select(&table(&spec, &rows)?, &spec, &selection, 7, |_, total| {
        assert_eq!(total, 2 + 2 * 4);
        told += 1;
        ControlFlow::Continue(())
    })?;
    assert_eq!(told, 10);
    let chosen = selected.chosen().unwrap_or_else(|| panic!("nothing chosen"));
    assert_eq!((chosen.candidate.clusters, chosen.candidate.measurements[0].0.as_str()), (3, "x"));
    assert!(chosen.unseen < 1e-12 && chosen.actions_per_state == 1.0);
    // Three actions of equal shares: nothing is known without a state.
    let without = selected.without_state.negative_log_likelihood;
    assert!((without - 3.0_f64.ln()).abs() < 0.01, "{without}");
    assert!(
        (chosen.gain - (without - chosen.negative_log_likelihood)).abs() < 1e-12
            && chosen.gain > 5.0 * chosen.gain_error
    );
    let stopped = select(&table(&spec, &rows)?, &spec, &selection, 7, |_, _| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Interrupted { .. })));
    Ok(())
}

#[test]
fn more_states_than_values_are_neither_claimed_nor_tried_twice() -> Result<()> {
    let mut rows = rows();
    rows.iter_mut().enumerate().for_each(|(i, row)| row.cells[1] = (i * 7 % 4) as f64);
    let mut spec = spec();
    spec.state.measurements = vec!["x".into()];
    let selection = Selection { clusters: vec![2, 50, 4, 100], screening_clusters: 50, keep: 1, weights: vec![2.0] };
    let selected = select(&table(&spec, &rows)?, &spec, &selection, 7, |_, _| ControlFlow::Continue(()))?;
    let tried: Vec<usize> = selected.candidates.iter().map(|score| score.candidate.clusters).collect();
    // One alone, then two states and four; asked for fifty, four again and a hundred there are four.
    assert_eq!(tried, [4, 2, 4]);
    Ok(())
}

#[test]
fn support_counts_what_the_model_admits() -> Result<()> {
    let mut spec = spec();
    // No action is seen so often: the commonest of every state are admitted.
    spec.dynamics.min_support = 1000;
    let cohort = built(&spec, &rows())?;
    let support = &cohort.support;
    assert_eq!(support.states_rare, cohort.encoder.centroids.n_clusters());
    assert!(support.pairs_rare == support.pairs_supported && support.pairs_supported >= support.states_rare);
    assert_eq!(support.steps_rare, 1.0);
    assert!(support.steps_unsupported < 1.0);
    let thin = cohort.findings.iter().find(|finding| finding.code == "thin-support");
    let said = thin.map(|finding| finding.message.clone()).unwrap_or_default();
    assert!(said.contains("100.0 % of the training steps") && said.contains("whatever their number"), "{said}");
    spec.dynamics.min_support = 1;
    let all = built(&spec, &rows())?.support;
    assert_eq!((all.pairs_rare, all.states_rare, all.steps_rare), (0, 0, 0.0));
    Ok(())
}

#[test]
fn the_same_seed_gives_the_same_cohort_whatever_the_threads() -> Result<()> {
    let settings = Synthetic { stays: 400, seed: 2, ..Synthetic::default() };
    let mut spec = Spec::preset("ai-clinician")?;
    spec.state.clusters = Some(50);
    spec.dynamics.context_clusters = 3;
    let table = synthetic(&settings, &spec)?;
    let with = |threads: usize| -> Result<String> {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap_or_else(|error| panic!("{error}"));
        let cohort = pool.install(|| build(&table, &spec, 4, |_| ControlFlow::Continue(())))?;
        Ok(format!("{:?} {:?} {:?}", cohort.encoder, cohort.model, cohort.test))
    };
    let one = with(1)?;
    assert_eq!(one, with(2)?);
    assert_eq!(one, with(7)?);
    Ok(())
}
