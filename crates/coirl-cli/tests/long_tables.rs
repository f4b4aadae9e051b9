//! Long tables as people have them: dates that do not exist, names with commas and quotes, columns under other names, a row per observation.
#![allow(clippy::unwrap_used)]

mod running;

use running::{Folder, json, text};
use std::fmt::Write;

const TABLE: &str = "cohort synthesize --preset ai-clinician --stays 120 --seed 3 --out table.csv -q";

fn with_table() -> Folder {
    let folder = Folder::new();
    folder.coirl(TABLE).success();
    folder
}

fn lines(folder: &Folder, name: &str) -> Vec<Vec<String>> {
    let content = folder.read(name);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&content[..]);
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn error(folder: &Folder, arguments: &str) -> String {
    let run = folder.coirl(arguments).failure().code(1);
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

const CLINIC: &str = "preset = \"long\"\n[table]\npath = \"clinic.csv\"\nstay = \"who\"\ntime = \"when\"\n[cohort]\nstep = \"1 day\"\n\
                      [context]\nfields = [\"age\"]\n[state]\nmeasurements = [\"x\"]\n[action]\ndoses = [\"dose\"]\n";

#[test]
fn dates_that_do_not_exist_are_refused_with_row_and_column() {
    let folder = Folder::new();
    folder.write("clinic.toml", CLINIC);
    for date in [
        "2024-02-31",
        "2023-02-29",
        "2024-01-01 1.5:30",
        "2024-01-01T10:00+99:99",
        "2024-01-01 24:30",
        "2024-01-01 10:61",
    ] {
        folder.write("clinic.csv", format!("who,when,age,x,dose\na,2024-01-01,50,1,0\na,{date},50,2,1\n"));
        let said = error(&folder, "cohort lint clinic.toml -q");
        assert!(said.contains("row 2 (line 3), column when") && said.contains(date), "{said}");
    }
}

#[test]
fn columns_that_the_spec_uses_are_not_suggested_for_one_that_is_missing() {
    let folder = with_table();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    folder.write("renamed.csv", table.replacen(",HR,", ",heart_rate,", 1));
    let said = error(&folder, "cohort lint renamed.csv -q");
    assert!(said.contains("no column 'HR'") && said.contains("'heart_rate'") && !said.contains("'RR'"), "{said}");
    folder.write("renamed.csv", table.replacen(",Arterial_lactate,", ",lactate_arterial,", 1));
    let said = error(&folder, "cohort lint renamed.csv -q");
    assert!(said.contains("'lactate_arterial'") && !said.contains("'Arterial_pH'"), "{said}");
}

#[test]
fn names_with_commas_and_quotes_come_back_as_they_are() {
    let folder = with_table();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    folder.write("named.csv", table.replacen(",HR,", ",\"HR, \"\"beats\"\" a minute\",", 1));
    let name = "HR, \"beats\" a minute";
    folder.write(
        "spec.toml",
        format!(
            "preset = \"ai-clinician\"\n[table]\npath = \"named.csv\"\n[cohort.keep]\n'{name}' = [0, 500]\n[state]\nclusters = 8\n\
             measurements = ['{name}', \"MeanBP\"]\n[action]\nprevious = false\n[context]\nfields = [\"age\"]\nat_start = ['{name}']\n"
        ),
    );
    folder.coirl("cohort build spec.toml --out c -q").success();
    let states = lines(&folder, "c/states.csv");
    assert_eq!(states[0], ["state", "training_rows", name, "MeanBP"]);
    assert_eq!(states.len(), 9);
    let flow = lines(&folder, "c/flow.csv");
    assert!(flow.iter().any(|row| row[0] == format!("{name} outside 0 to 500")), "{flow:?}");
    assert_eq!(lines(&folder, "c/test/contexts.csv")[0], ["age", name]);
    assert!(lines(&folder, "c/train/stays.csv")[0].contains(&name.to_owned()));
    let columns = lines(&folder, "c/columns.csv");
    assert_eq!(columns[1][0], name);
    folder.coirl("cohort select spec.toml --clusters 4,8 --screening 4 --keep 2 --out choice -q").success();
    let selection = lines(&folder, "choice/selection.csv");
    assert!(selection.iter().all(|row| row.len() == selection[0].len()));
    assert!(selection.iter().any(|row| row[2].contains(name)), "{selection:?}");
    // The whole chain reads what it wrote.
    folder.coirl("fit c --method majority --out run -q").success();
    folder.coirl("cohort score run --resamples 3 --off-policy-resamples 2 --true-patients 2 -q").success();
}

#[test]
fn every_variable_says_where_it_comes_from() {
    let folder = with_table();
    folder.coirl("cohort build table.csv --states 10 --out c -q").success();
    let columns = lines(&folder, "c/columns.csv");
    let at = |name: &str| columns[0].iter().position(|own| own == name).unwrap();
    let row = |name: &str, role: &str| columns.iter().find(|row| row[0] == name && row[1] == role).unwrap();
    let sofa = row("SOFA", "measurement");
    assert_eq!((sofa[at("unit")].as_str(), sofa[at("lag")].as_str()), ("0-24", "1"));
    assert_eq!((sofa[at("plausible_from")].as_str(), sofa[at("plausible_to")].as_str()), ("0.0", "24.0"));
    let creatinine = row("Creatinine", "measurement");
    assert_eq!((creatinine[at("transform")].as_str(), creatinine[at("impute")].as_str()), ("log", "carry-forward"));
    let number = |row: &[String], name: &str| row[at(name)].parse::<f64>().unwrap();
    let [least, middle, most] =
        ["training_min", "training_median", "training_max"].map(|name| number(creatinine, name));
    assert!(least < middle && middle < most && number(creatinine, "fill") == middle);
    assert_eq!(row("Weight_kg", "at_start")[at("unit")], "kg");
    assert_eq!(row("input_4hourly", "dose")[at("plausible_from")], "");
    row("mortality_90d", "outcome");
}

#[test]
fn states_are_chosen_beside_no_state_and_below_the_warnings() {
    let folder = with_table();
    let leaking = r#"--set state.measurements=["SIRS","input_4hourly"] --set action.previous=false --clusters 10,50 --screening 50 --keep 1 --weights 2"#;
    let shown = text(folder.coirl(&format!("cohort select table.csv {leaking} --out choice -q")).success());
    let (warned, tried) = (shown.find("action-leaks").unwrap(), shown.find("States that were tried").unwrap());
    assert!(warned < tried && shown.contains("training shares of actions"), "{shown}");
    let said = json(folder.coirl(&format!("cohort select table.csv {leaking} --out choice --json -q")).success());
    assert_eq!(said["warnings"][0]["code"], "action-leaks");
    let without = said["without_state"]["negative_log_likelihood"].as_f64().unwrap();
    for candidate in said["candidates"].as_array().unwrap() {
        let number = |key: &str| candidate[key].as_f64().unwrap();
        assert!((number("gain") - (without - number("negative_log_likelihood"))).abs() < 1e-9, "{candidate}");
        // A score of five grades has five states, and five standard amounts are five.
        let alone = candidate["measurements"].as_array().unwrap().len() == 1;
        assert!(!alone || number("clusters") <= 5.0, "{candidate}");
    }
    assert_eq!(lines(&folder, "choice/selection.csv")[1][0], "without_state");
}

/// The same people, once with a row per step and once with a row per observation, are the same cohort.
#[test]
fn observations_make_the_cohort_of_their_steps() {
    let folder = with_table();
    let wide = lines(&folder, "table.csv");
    let at = |name: &str| wide[0].iter().position(|own| own == name).unwrap();
    let (stay, time) = (at("icustayid"), at("bloc"));
    let mut long = String::from("encounter,when,code,value,gender\n");
    for row in &wide[1..] {
        for (name, cell) in wide[0].iter().zip(row).filter(|(name, cell)| *name != "gender" && !cell.is_empty()) {
            let sex = if row[at("gender")] == "1" { "female" } else { "male" };
            writeln!(long, "{},{},{name},{cell},{sex}", row[stay], row[time]).unwrap();
        }
        // What nobody asked for may be anything.
        writeln!(long, "{},{},shoes,brown,male", row[stay], row[time]).unwrap();
    }
    folder.write("long.csv", long.replace("shoes,brown,male", "shoes,brown,"));
    let measured = "[state]\nclusters = 15\nmeasurements = [\"HR\", \"MeanBP\", \"Creatinine\"]\n";
    folder.write("wide.toml", format!("preset = \"ai-clinician\"\n[table]\npath = \"table.csv\"\n{measured}"));
    folder.write(
        "long.toml",
        format!(
            "preset = \"ai-clinician\"\n[table]\npath = \"long.csv\"\nstay = \"encounter\"\ntime = \"when\"\n[table.observations]\n\
             [table.codes.gender]\nmale = 0\nfemale = 1\n{measured}"
        ),
    );
    for name in ["wide", "long"] {
        folder.coirl(&format!("cohort build {name}.toml --out {name} -q")).success();
    }
    for file in [
        "states.csv",
        "columns.csv",
        "train/trajectories.csv",
        "test/contexts.csv",
        "test/stays.csv",
        "model.safetensors",
    ] {
        assert_eq!(folder.read(&format!("wide/{file}")), folder.read(&format!("long/{file}")), "{file}");
    }
    let bad = String::from_utf8(folder.read("long.csv")).unwrap().replacen(",HR,", ",HR,fast", 1);
    folder.write("long.csv", bad);
    let said = error(&folder, "cohort build long.toml --out again -q");
    assert!(said.contains("column HR: 'fast") && said.contains("expected a number"), "{said}");
    folder.write("long.csv", long.replace(",Creatinine,", ",Creatinin,"));
    let said = error(&folder, "cohort build long.toml --out again -q");
    assert!(said.contains("Creatinine") && said.contains("'Creatinin'"), "{said}");
}
