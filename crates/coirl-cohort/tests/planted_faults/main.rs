//! Faults that were put into synthetic tables on purpose, and what the linter says of them; and that it warns of nothing where there is none.
#![allow(clippy::print_stdout)]

mod faults;
mod sheet;

use coirl::Result;
use coirl_cohort::synthetic::{Clinician, Synthetic};
use coirl_cohort::{Severity, Spec};
use faults::{Fault, Found};
use sheet::Sheet;

/// Faults that the linter is known to miss. No table says which time comes first, and a value that was carried back looks like one that was carried
/// forward.
const MISSED: [&str; 2] = ["rows of every stay in reverse order of time", "gaps that were filled with what came later"];

fn preset(name: &str) -> Spec {
    Spec::preset(name).unwrap_or_else(|error| panic!("{error}"))
}

/// What becomes of each fault in a table of these settings.
fn table_of(settings: &Synthetic) -> Result<Vec<(Fault, Found)>> {
    let clean = Sheet::synthetic(settings)?;
    faults::all().into_iter().map(|fault| Ok((fault, fault.try_on(&clean, &preset("ai-clinician"))?))).collect()
}

/// A row of the table in docs/linter.md.
fn row((fault, found): &(Fault, Found)) -> String {
    let (yes, by) = match found {
        Found::Warned(code) => ("yes", format!("`{code}`")),
        Found::Noted(code) => ("as a note", format!("`{code}`")),
        Found::Refused => ("refused", String::new()),
        Found::Missed(_) => ("**no**", String::new()),
    };
    format!("| {} | {yes} | {by} |", fault.name)
}

#[test]
fn planted_faults_are_found() -> Result<()> {
    let given: Option<u64> = std::env::var("COIRL_FAULT_SEED").ok().and_then(|seed| seed.parse().ok());
    let results = table_of(&Synthetic { stays: 600, seed: given.unwrap_or(11), ..Synthetic::default() })?;
    let rows: Vec<String> = results.iter().map(row).collect();
    println!("{}", rows.join("\n"));
    let missed = results.iter().filter_map(|(fault, found)| match found {
        Found::Missed(others) => Some((fault.name, others)),
        _ => None,
    });
    let missed: Vec<(&str, &String)> = missed.collect();
    println!("{} of {} found; missed: {missed:?}", results.len() - missed.len(), results.len());
    assert!(results.len() >= 40, "{}", results.len());
    assert_eq!(missed.iter().map(|(name, _)| *name).collect::<Vec<_>>(), MISSED);
    if given.is_none() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/linter.md"));
        let page = page.unwrap_or_default();
        let absent: Vec<&String> = rows.iter().filter(|row| !page.contains(*row)).collect();
        assert!(absent.is_empty(), "docs/linter.md does not say {absent:#?}");
    }
    Ok(())
}

/// In tables of real patients totals, balances and SOFA contain the dose of their step, and weights change within a stay. The presets know that.
#[test]
fn the_preset_passes_its_own_linter_on_columns_that_contain_the_dose() -> Result<()> {
    let mut sheet = Sheet::synthetic(&Synthetic { stays: 500, seed: 21, ..Synthetic::default() })?;
    sheet.running("input_total", |sheet, row| sheet.get(row, "input_4hourly"));
    sheet.running("cumulated_balance", |sheet, row| {
        sheet.get(row, "input_4hourly") - sheet.get(row, "output_4hourly").min(600.0)
    });
    sheet.fill("SOFA", |sheet, row| {
        let dose = sheet.get(row, "max_dose_vaso");
        let points = if dose > 0.1 { 4.0 } else { 3.0 * f64::from(u8::from(dose > 0.0)) };
        (0.7 * sheet.get(row, "SOFA")).round() + points
    });
    sheet.fill("Weight_kg", |sheet, row| sheet.get(row, "Weight_kg") + (row % 3) as f64);
    let warnings = |spec: &Spec| -> Result<Vec<String>> {
        let findings = sheet.lint(spec)?.into_iter().filter(|finding| finding.severity == Severity::Warning);
        Ok(findings.map(|finding| format!("{}: {}", finding.code, finding.message)).collect())
    };
    let mut spec = preset("ai-clinician");
    assert_eq!(warnings(&spec)?, Vec::<String>::new());
    let late = ["SOFA", "cumulated_balance", "input_total"];
    for name in late {
        spec.state.columns.entry(name.into()).or_default().lag = 0;
    }
    let said = warnings(&spec)?;
    for name in late {
        let leaks = |message: &&String| message.starts_with("action-leaks") && message.contains(name);
        assert_eq!(said.iter().filter(leaks).count(), 1, "{name}: {said:?}");
    }
    spec.context.fields.push("Weight_kg".into());
    spec.context.at_start.retain(|name| name != "Weight_kg");
    assert!(warnings(&spec)?.iter().any(|message| message.starts_with("changing-person: Weight_kg")));
    Ok(())
}

/// Clean tables of several sizes, clinicians, noises and shares of empty cells, under every preset that reads them.
#[test]
fn clean_tables_raise_no_alarm() -> Result<()> {
    let first: u64 = std::env::var("COIRL_CLEAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(100);
    let mut alarms = Vec::new();
    for i in 0..20 {
        let settings = Synthetic {
            stays: [120, 250, 500, 1000, 2000][i % 5],
            seed: first + i as u64,
            clinician: if i % 2 == 0 { Clinician::Linear } else { Clinician::Threshold },
            noise: [0.1, 0.2, 0.3][i % 3],
            missing: [0.0, 0.1, 0.3, 0.6][i % 4],
            ..Synthetic::default()
        };
        let name = ["ai-clinician", "ai-clinician-python", "mimic-sepsis", "ai-clinician-mimic-iv"][i % 4];
        let mut sheet = Sheet::synthetic(&settings)?;
        if name == "ai-clinician-mimic-iv" {
            sheet.fill("age", |sheet, row| sheet.get(row, "age") / 365.25);
            for (from, to) in
                [("input_4hourly", "input_step"), ("output_4hourly", "output_step"), ("mortality_90d", "morta_90")]
            {
                sheet.rename(from, to);
            }
        }
        for finding in sheet.lint(&preset(name))? {
            if finding.severity == Severity::Warning {
                alarms.push(format!("{name}, {settings:?}: {}: {}", finding.code, finding.message));
            }
        }
    }
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
    Ok(())
}
