//! What states are made of besides measurements: numbers that a column gives, and the action of the step before.

use coirl::model::ActionId;
use coirl::random::stream;
use coirl::{Error, Result};
use coirl_cohort::synthetic::Synthetic;
use coirl_cohort::{
    Candidate, Cohort, RecordedStay, RewardFeatures, Selection, Severity, Spec, Table, build, lint, select,
};
use rand::RngExt;
use std::ops::ControlFlow;

/// Columns of the table of buses: how far the mileage has come, whether the engine is replaced, and the bus's group.
const COLUMNS: [&str; 3] = ["bin", "replace", "group"];

fn bus_spec(more: &str) -> Result<Spec> {
    Spec::from_toml(&format!(
        "discount = 0.95\n[table]\nstay = \"bus\"\ntime = \"month\"\n[context]\nfields = [\"group\"]\nscale = \"standardise\"\n\
         [action]\ncolumn = \"replace\"\n[dynamics]\nmin_support = 1\n{more}"
    ))
}

type Row = (String, f64, [f64; 3]);

/// Buses that run up one or two bins a month, and are replaced more often the further they have come.
fn buses(n: usize) -> Vec<Row> {
    let mut rng = stream(4, "buses", 0);
    let mut rows = Vec::new();
    for bus in 0..n {
        let mut bin = 0;
        for month in 0..24 {
            let replaced = rng.random::<f64>() < f64::from(bin) / 60.0;
            let cells = [f64::from(bin), f64::from(u8::from(replaced)), f64::from(u8::from(bus % 2 == 0))];
            rows.push((format!("b{bus}"), f64::from(month), cells));
            bin = if replaced { 0 } else { (bin + 1 + i32::from(rng.random::<f64>() < 0.3)).min(19) };
        }
    }
    rows
}

fn table(spec: &Spec, columns: &[&str], rows: &[Row]) -> Result<Table> {
    let wanted = spec.columns();
    let mut table = Table::new(&wanted, false);
    for (stay, time, cells) in rows {
        let at = |name: &&str| columns.iter().position(|column| column == name).map_or(f64::NAN, |i| cells[i]);
        table.push(stay, None, *time, wanted.iter().map(at))?;
    }
    Ok(table)
}

fn bus_cohort(spec: &Spec, rows: &[Row]) -> Result<Cohort> {
    build(&table(spec, &COLUMNS, rows)?, spec, 2, |_| ControlFlow::Continue(()))
}

fn all(cohort: &Cohort) -> impl Iterator<Item = &RecordedStay> {
    cohort.train.stays().iter().chain(cohort.validation.stays()).chain(cohort.test.stays())
}

#[test]
fn a_column_gives_the_states_as_they_are() -> Result<()> {
    let spec = bus_spec("[state]\ncolumn = \"bin\"\nnumber = 20\n")?;
    let rows = buses(60);
    let cohort = bus_cohort(&spec, &rows)?;
    assert_eq!(cohort.encoder.centroids.n_clusters(), 20);
    assert_eq!((cohort.inertia, cohort.model.n_features()), (0.0, 20 + 2));
    let mut steps = 0;
    for stay in all(&cohort) {
        let own: Vec<&Row> = rows.iter().filter(|row| row.0 == stay.stay).collect();
        for (t, row) in own.iter().enumerate() {
            assert_eq!(f64::from(stay.trajectory.states[t].0), row.2[0], "{} {t}", stay.stay);
            assert_eq!(f64::from(stay.trajectory.actions[t].0), row.2[1]);
            steps += 1;
        }
    }
    assert_eq!(steps, 60 * 24);
    // The number in the unit of the column, and a reward that can be linear in it.
    let own = cohort.encoder.measurements.iter().next().map(|own| own.name());
    assert_eq!(own.as_deref(), Some("bin"));
    for (state, centroid) in cohort.encoder.centroids.rows().enumerate() {
        let value = cohort.encoder.measurements.iter().map(|own| own.in_unit(centroid[0])).sum::<f64>();
        assert!((value - state as f64).abs() < 1e-9);
    }
    let mut linear = spec.clone();
    linear.reward.features = RewardFeatures::Centroids;
    let model = bus_cohort(&linear, &rows)?.model;
    let mdp = model.shared_mdp()?;
    let phi = |state: usize| mdp.reward(&[1.0]).map(|reward| reward.at(state, mdp.pairs().of_state(state).start));
    let step = phi(1)? - phi(0)?;
    for state in 1..20 {
        assert!((phi(state)? - phi(state - 1)? - step).abs() < 1e-9 && step > 0.0);
    }
    // Where nobody says how many there are, one more than the largest that was learned from.
    let unsaid = bus_cohort(&bus_spec("[state]\ncolumn = \"bin\"\n")?, &rows)?;
    let largest = unsaid.train.stays().iter().flat_map(|stay| &stay.trajectory.states[..24]).map(|state| state.0).max();
    assert_eq!(Some(unsaid.encoder.centroids.n_clusters() as u32 - 1), largest);
    Ok(())
}

#[test]
fn numbers_that_are_no_states_are_refused_with_row_and_column() -> Result<()> {
    let spec = bus_spec("[state]\ncolumn = \"bin\"\nnumber = 20\n")?;
    for (cell, shown) in [(20.0, "20"), (3.5, "3.5"), (-1.0, "-1")] {
        let mut rows = buses(30);
        rows[100].2[0] = cell;
        match bus_cohort(&spec, &rows) {
            Err(Error::Cell { row: 101, column, reason }) => {
                assert_eq!(column, "bin");
                assert!(reason.starts_with(shown) && reason.contains("0 to 19"), "{reason}");
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
    let mut rows = buses(30);
    rows.iter_mut().for_each(|row| row.2[0] += 70_000.0);
    let refused = bus_cohort(&bus_spec("[state]\ncolumn = \"bin\"\n")?, &rows);
    assert!(matches!(refused, Err(Error::Cell { column, .. }) if column == "bin"));
    // A stay with a step of which nobody knows the state is left out.
    let mut rows = buses(30);
    rows[30].2[0] = f64::NAN;
    let flow = bus_cohort(&spec, &rows)?.flow;
    assert!(flow.0.iter().any(|step| step.rule == "a step without bin" && step.stays_out == 1), "{flow:?}");
    Ok(())
}

#[test]
fn states_of_a_column_go_without_what_makes_states_of_measurements() -> Result<()> {
    let refused = |more: &str| match bus_spec(more).and_then(|spec| spec.check()) {
        Err(error) => error.to_string(),
        Ok(()) => panic!("accepted: {more}"),
    };
    assert!(refused("[state]\ncolumn = \"bin\"\nmeasurements = [\"group\"]\n").contains("expected one"));
    assert!(refused("[state]\ncolumn = \"bin\"\nclusters = 5\n").contains("state.number"));
    assert!(refused("[state]\nmeasurements = [\"bin\"]\nnumber = 5\n").contains("state.column"));
    assert!(refused("[state]\ncolumn = \"bin\"\nnumber = 0\n").contains("at least 1"));
    assert!(refused("[state]\ncolumn = \"replace\"\n").contains("the action"));
    assert!(refused("[state]\n").contains("numbers of states"));
    let mut spec = bus_spec("[state]\ncolumn = \"bin\"\n")?;
    spec.action.previous = true;
    assert!(spec.check().is_err());
    spec.action.previous = false;
    let table = table(&spec, &COLUMNS, &buses(30))?;
    let selected = select(&table, &spec, &Selection::default(), 0, |_, _| ControlFlow::Continue(()));
    assert!(matches!(selected, Err(Error::Spec { place, .. }) if place == "state.column"));
    let found = lint(&table, &spec, 2)?;
    assert!(found.iter().all(|finding| finding.code != "action-leaks"), "{found:?}");
    Ok(())
}

/// People whose measurement says nothing, and who are given what they were given before in nine of ten steps.
fn creatures_of_habit(n_actions: u32) -> Vec<Row> {
    let mut rng = stream(8, "habit", 0);
    let mut rows = Vec::new();
    for person in 0..200 {
        let mut action = rng.random_range(0..n_actions);
        let field = rng.random();
        for t in 0..10 {
            if t > 0 && rng.random::<f64>() < 0.1 {
                action = rng.random_range(0..n_actions);
            }
            let cells = [rng.random(), f64::from(action), field];
            rows.push((format!("p{person}"), f64::from(t), cells));
        }
    }
    rows
}

fn habit_spec(action: &str) -> Result<Spec> {
    let spec = Spec::from_toml(&format!(
        "discount = 0.9\n[table]\nstay = \"stay\"\ntime = \"time\"\n[context]\nfields = [\"y\"]\nscale = \"standardise\"\n[state]\n\
         measurements = [\"x\"]\nclusters = 24\n[dynamics]\nmin_support = 1\n[action]\n{action}\n"
    ))?;
    spec.check()?;
    Ok(spec)
}

const HABIT: [&str; 3] = ["x", "dose", "y"];

/// Share of the test steps that take the commonest training action of their state.
fn foreseen(spec: &Spec, rows: &[Row]) -> Result<f64> {
    let cohort = build(&table(spec, &HABIT, rows)?, spec, 3, |_| ControlFlow::Continue(()))?;
    let n_actions = cohort.encoder.actions.len();
    let mut times = vec![0_u32; cohort.model.n_states() * n_actions];
    for step in cohort.train.stays().iter().flat_map(|stay| stay.trajectory.transitions()) {
        times[step.state.index() * n_actions + step.action.index()] += 1;
    }
    let usual = |state: usize| (0..n_actions).max_by_key(|action| times[state * n_actions + action]);
    let steps: Vec<bool> = cohort
        .test
        .stays()
        .iter()
        .flat_map(|stay| stay.trajectory.transitions())
        .map(|step| usual(step.state.index()) == Some(step.action.index()))
        .collect();
    Ok(steps.iter().filter(|same| **same).count() as f64 / steps.len() as f64)
}

#[test]
fn the_action_before_foresees_people_who_go_on_with_what_they_began() -> Result<()> {
    for (action, n) in
        [("doses = [\"dose\"]\nlevels = 5", 5), ("column = \"dose\"\nnumber = 5", 5), ("column = \"dose\"", 12)]
    {
        let rows = creatures_of_habit(n);
        let without = foreseen(&habit_spec(action)?, &rows)?;
        let with = foreseen(&habit_spec(&format!("{action}\nprevious = true"))?, &rows)?;
        // Nine of ten steps but the first can be foreseen.
        assert!(without < 0.4 && with > 0.75, "{action}: {without} without, {with} with the action before");
    }
    Ok(())
}

#[test]
fn coordinates_are_the_levels_before_and_none_at_first() -> Result<()> {
    let rows = creatures_of_habit(5);
    let spec = habit_spec("doses = [\"dose\"]\nlevels = 5\nprevious = true\nprevious_weight = 2.0")?;
    let cohort = build(&table(&spec, &HABIT, &rows)?, &spec, 3, |_| ControlFlow::Continue(()))?;
    let names: Vec<String> = cohort.encoder.measurements.iter().map(|own| own.name()).collect();
    assert_eq!(names, ["x", "previous level of dose", "first step"]);
    let own: Vec<_> = cohort.encoder.measurements.iter().collect();
    for stay in all(&cohort) {
        for (t, point) in stay.points.chunks_exact(3).enumerate() {
            let before = t.checked_sub(1).map_or(ActionId(0), |before| stay.trajectory.actions[before]);
            assert!((own[1].in_unit(f64::from(point[1])) - f64::from(before.0)).abs() < 1e-6);
            assert_eq!(own[2].in_unit(f64::from(point[2])), f64::from(u8::from(t == 0)));
            // From none to the highest level it is as far as said.
            assert!((f64::from(point[1]) - 2.0 * f64::from(before.0) / 4.0).abs() < 1e-6);
        }
    }
    let numbered = habit_spec("column = \"dose\"\nnumber = 101\nprevious = true")?;
    let refused = build(&table(&numbered, &HABIT, &rows)?, &numbered, 3, |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::Spec { place, .. }) if place == "action.previous"));
    Ok(())
}

#[test]
fn the_action_before_is_in_the_clinical_presets_and_no_leak() -> Result<()> {
    for name in coirl_cohort::presets::NAMES {
        // Those for any table, and the model of the paper, which has its own idea of what was given before.
        let others = ["long", "observations", "coirl-paper"];
        assert_eq!(Spec::preset(name)?.action.previous, !others.contains(name), "{name}");
    }
    let spec = habit_spec("doses = [\"dose\"]\nlevels = 5\nprevious = true")?;
    let found = lint(&table(&spec, &HABIT, &creatures_of_habit(5))?, &spec, 3)?;
    assert!(found.iter().all(|finding| finding.severity == Severity::Note), "{found:?}");
    Ok(())
}

#[test]
fn states_are_chosen_with_the_action_before_among_them() -> Result<()> {
    let mut spec = habit_spec("doses = [\"dose\"]\nlevels = 5\nprevious = true")?;
    spec.state.measurements.push("y".into());
    let selection = Selection { clusters: vec![24], screening_clusters: 24, keep: 1, weights: vec![] };
    let likelihood = |spec: &Spec| -> Result<Vec<(Candidate, f64)>> {
        let scores = select(&table(spec, &HABIT, &creatures_of_habit(5))?, spec, &selection, 3, |_, _| {
            ControlFlow::Continue(())
        })?;
        Ok(scores.candidates.into_iter().map(|score| (score.candidate, score.negative_log_likelihood)).collect())
    };
    let with = likelihood(&spec)?;
    spec.action.previous = false;
    for ((candidate, with), (_, without)) in with.iter().zip(likelihood(&spec)?) {
        assert!(*with < 1.1 && without > 1.5, "{candidate:?}: {with} and {without}");
    }
    Ok(())
}

#[test]
fn synthetic_columns_can_be_given_as_states() -> Result<()> {
    // SIRS counts four signs: 0 to 4.
    let mut spec = Spec::preset("ai-clinician")?;
    spec.state.measurements.clear();
    spec.state.columns.clear();
    spec.cohort.plausible.clear();
    spec.action.previous = false;
    spec.state.column = Some("SIRS".into());
    spec.state.number = Some(5);
    let names = Synthetic::columns();
    let at: Vec<usize> =
        spec.columns().iter().map(|name| names.iter().position(|own| own == name).unwrap_or_default()).collect();
    let mut table = Table::new(&spec.columns(), false);
    let mut failed = Ok(());
    Synthetic { stays: 60, ..Synthetic::default() }.generate(|stay| {
        for row in &stay.rows {
            let pushed = table.push(&stay.id.to_string(), None, row[0], at.iter().map(|&i| row[i]));
            if pushed.is_err() {
                failed = pushed;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed?;
    let cohort = build(&table, &spec, 0, |_| ControlFlow::Continue(()))?;
    assert_eq!(cohort.encoder.centroids.n_clusters(), 5);
    Ok(())
}
