//! Whoever exports a table again gets its rows in another order. Nothing of a cohort follows from that order: not who is in which part, not
//! the states, not the order of the stays; and more patients hardly move those who were there.

mod effort;

use coirl::Result;
use coirl::random::stream;
use coirl_cohort::synthetic::Synthetic;
use coirl_cohort::{Cohort, RecordedStay, SameStep, Selection, Spec, Table, build, select};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use effort::{Tally, effort};

/// A row of a table: stay, patient, time and a cell per column.
#[derive(Debug, Clone)]
struct Row {
    stay: String,
    patient: String,
    time: f64,
    cells: Vec<f64>,
}

/// Rows of a synthetic table, every third patient with two stays, and what a spec needs of them.
fn rows(spec: &Spec, stays: usize) -> Result<Vec<Row>> {
    let names = Synthetic::columns();
    let at: Vec<usize> =
        spec.columns().iter().map(|name| names.iter().position(|own| own == name).unwrap_or_default()).collect();
    let mut rows = Vec::new();
    Synthetic { stays, seed: 3, ..Synthetic::default() }.generate(|stay| {
        // Ids of several lengths: text would put 10 before 9.
        let number = stay.id - 200_001;
        let patient = if number % 3 == 1 { number - 1 } else { number };
        for row in &stay.rows {
            rows.push(Row {
                stay: format!("s{number}"),
                patient: format!("p{patient}"),
                time: row[0],
                cells: at.iter().map(|&i| row[i]).collect(),
            });
        }
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

fn table(spec: &Spec, rows: &[Row]) -> Result<Table> {
    let mut table = Table::new(&spec.columns(), spec.table.patient.is_some());
    for row in rows {
        let patient = spec.table.patient.is_some().then_some(row.patient.as_str());
        table.push(&row.stay, patient, row.time, row.cells.iter().copied())?;
    }
    Ok(table)
}

fn spec() -> Result<Spec> {
    let mut spec = Spec::preset("ai-clinician")?;
    spec.table.patient = Some("subject".into());
    spec.state.clusters = Some(40);
    spec.dynamics.context_clusters = 2;
    Ok(spec)
}

fn cohort(spec: &Spec, rows: &[Row]) -> Result<Cohort> {
    build(&table(spec, rows)?, spec, 5, |_| ControlFlow::Continue(()))
}

/// Everything that a cohort holds. Examples of findings say where in the table to look.
fn content(mut cohort: Cohort) -> String {
    cohort.findings = cohort.findings.iter().map(|finding| finding.anonymous()).collect();
    format!("{cohort:?}")
}

/// Rows in random order; stays in random order, their rows together; both.
fn shuffled(rows: &[Row]) -> [Vec<Row>; 3] {
    shuffled_by(rows, &mut stream(9, "shuffle", 0))
}

fn shuffled_by(rows: &[Row], mut rng: &mut impl Rng) -> [Vec<Row>; 3] {
    let mut by_row = rows.to_vec();
    by_row.shuffle(&mut rng);
    let mut stays: Vec<Vec<Row>> = rows.chunk_by(|a, b| a.stay == b.stay).map(<[Row]>::to_vec).collect();
    stays.shuffle(&mut rng);
    let by_stay = stays.concat();
    stays.iter_mut().for_each(|stay| stay.shuffle(&mut rng));
    stays.shuffle(&mut rng);
    [by_row, by_stay, stays.concat()]
}

#[test]
fn shuffled_rows_and_stays_make_the_same_cohort() -> Result<()> {
    let mut tally = Tally::new("rows and stays in another order", "tables");
    for with_patients in [true, false] {
        let mut spec = spec()?;
        spec.table.patient = spec.table.patient.filter(|_| with_patients);
        let rows = rows(&spec, 240)?;
        let plain = content(cohort(&spec, &rows)?);
        for i in 0..effort(2) {
            for other in shuffled_by(&rows, &mut tally.random(i)) {
                assert!(content(cohort(&spec, &other)?) == plain, "attempt {i}, with patients: {with_patients}");
                tally.tried(1);
            }
        }
        spec.split.validation = 0.3;
        spec.split.test = 0.1;
        assert!(content(cohort(&spec, &rows)?) != plain);
    }
    Ok(())
}

#[test]
fn stays_are_listed_in_the_natural_order_of_their_ids() -> Result<()> {
    let spec = spec()?;
    let [rows, ..] = shuffled(&rows(&spec, 240)?);
    let built = cohort(&spec, &rows)?;
    let number = |stay: &RecordedStay| stay.stay[1..].parse::<u32>().unwrap_or_default();
    for part in [built.train.stays(), built.validation.stays(), built.test.stays()] {
        assert!(part.len() > 20 && part.windows(2).all(|two| number(&two[0]) < number(&two[1])));
    }
    Ok(())
}

#[test]
fn which_of_two_rows_of_one_time_counts_does_not_depend_on_their_places() -> Result<()> {
    let mut spec = spec()?;
    let mut rows = rows(&spec, 120)?;
    let again: Vec<Row> = rows
        .iter()
        .step_by(7)
        .cloned()
        .map(|mut row| {
            row.cells[12] += 3.0;
            row
        })
        .collect();
    rows.extend(again);
    for same_step in [SameStep::First, SameStep::Last] {
        spec.cohort.same_step = same_step;
        let built = cohort(&spec, &rows)?;
        assert!(built.findings.iter().any(|finding| finding.code == "same-time"));
        let plain = content(built);
        let [by_row, ..] = shuffled(&rows);
        assert!(content(cohort(&spec, &by_row)?) == plain, "{same_step:?}");
    }
    Ok(())
}

#[test]
fn selection_scores_are_the_same_to_the_last_digit() -> Result<()> {
    let mut spec = spec()?;
    spec.state.measurements = ["HR", "SOFA", "MeanBP"].map(str::to_owned).to_vec();
    spec.state.columns.clear();
    spec.cohort.plausible.clear();
    let rows = rows(&spec, 240)?;
    let tried = |rows: &[Row]| {
        let selection = Selection { clusters: vec![5, 20], screening_clusters: 8, keep: 2, weights: vec![2.0] };
        select(&table(&spec, rows)?, &spec, &selection, 5, |_, _| ControlFlow::Continue(()))
    };
    let plain = tried(&rows)?;
    for other in shuffled(&rows) {
        assert_eq!(tried(&other)?, plain);
    }
    Ok(())
}

type Parts = BTreeMap<String, usize>;

/// The part of every patient.
fn parts(cohort: &Cohort) -> Parts {
    let all = [cohort.train.stays(), cohort.validation.stays(), cohort.test.stays()];
    let of_part = |(part, stays): (usize, &[RecordedStay])| {
        stays.iter().map(|stay| (stay.patient.clone(), part)).collect::<Vec<_>>()
    };
    all.into_iter().enumerate().flat_map(of_part).collect()
}

/// A small table with `n` patients, some of whom died.
fn patients(n: usize, died: impl Fn(usize) -> bool) -> Vec<Row> {
    let mut rng = stream(1, "small table", 0);
    let mut rows = Vec::new();
    for patient in 0..n {
        for t in 0..3 {
            let cells = vec![(patient % 2) as f64, rng.random(), f64::from(t % 2), f64::from(u8::from(died(patient)))];
            rows.push(Row { stay: format!("s{patient}"), patient: format!("p{patient}"), time: f64::from(t), cells });
        }
    }
    rows
}

fn small() -> Result<Spec> {
    Spec::from_toml(
        "discount = 0.9\n[table]\nstay = \"stay\"\npatient = \"patient\"\ntime = \"time\"\n[context]\nfields = [\"sex\"]\n\
         scale = \"standardise\"\n[state]\nmeasurements = [\"x\"]\nclusters = 2\n[action]\ndoses = [\"dose\"]\nlevels = 2\n\
         [outcome]\ncolumn = \"died\"\n[dynamics]\nmin_support = 1\n",
    )
}

#[test]
fn a_new_patient_moves_at_most_one_other_across_each_cut() -> Result<()> {
    let spec = small()?;
    let died = |patient: usize| patient % 7 == 3;
    let mut before = parts(&cohort(&spec, &patients(60, died))?);
    let mut moved_in_all = 0;
    for n in 61..=120 {
        let now = parts(&cohort(&spec, &patients(n, died))?);
        let moved: Vec<(usize, bool)> = before
            .iter()
            .filter(|(patient, part)| now[*patient] != **part)
            .map(|(patient, part)| (part + now[patient], died(patient[1..].parse().unwrap_or_default())))
            .collect();
        // A cut is between two parts, in one of two groups.
        assert_eq!(moved.iter().collect::<BTreeSet<_>>().len(), moved.len(), "{n}: {moved:?}");
        moved_in_all += moved.len();
        before = now;
    }
    // Some must move so that shares stay exact; a shuffle would move more than half of the 60 to 120 each time.
    assert!(moved_in_all < 60, "{moved_in_all}");
    Ok(())
}

#[test]
fn more_rows_of_the_same_patients_move_nobody() -> Result<()> {
    let spec = small()?;
    let died = |patient: usize| patient.is_multiple_of(5);
    let rows = patients(80, died);
    let before = parts(&cohort(&spec, &rows)?);
    let later = rows.iter().cloned().map(|row| Row { time: row.time + 3.0, ..row });
    let more: Vec<Row> = rows.iter().cloned().chain(later).collect();
    assert_eq!(parts(&cohort(&spec, &more)?), before);
    Ok(())
}

#[test]
fn every_part_has_its_share_of_patients_and_of_bad_ends() -> Result<()> {
    let mut spec = small()?;
    for (n, shares) in [(50, [0.6, 0.2, 0.2]), (101, [0.7, 0.1, 0.2]), (33, [0.5, 0.25, 0.25])] {
        spec.split.train = shares[0];
        spec.split.validation = shares[1];
        spec.split.test = shares[2];
        for every in [2, 3, 9] {
            let built = cohort(&spec, &patients(n, |patient| patient % every == 0))?;
            let sizes = [built.train.stays(), built.validation.stays(), built.test.stays()];
            let bad = sizes.map(|stays| stays.iter().filter(|stay| stay.bad_end == Some(true)).count() as f64);
            let all: f64 = bad.iter().sum();
            for part in 0..3 {
                let expected = shares[part] * n as f64;
                assert!((sizes[part].len() as f64 - expected).abs() <= 1.0, "{n}: {:?}", sizes.map(<[_]>::len));
                assert!((bad[part] - shares[part] * all).abs() <= 1.0, "{n}, {every}: {bad:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn another_seed_is_another_split() -> Result<()> {
    let spec = small()?;
    let table = table(&spec, &patients(80, |patient| patient % 4 == 0))?;
    let with = |seed: u64| Ok(parts(&build(&table, &spec, seed, |_| ControlFlow::Continue(()))?));
    let (first, second): (Parts, Parts) = (with(0)?, with(1)?);
    let same = first.iter().filter(|(patient, part)| second[*patient] == **part).count();
    assert!((20..60).contains(&same), "{same} of 80 are in the part they were in");
    Ok(())
}
