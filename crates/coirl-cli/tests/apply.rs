//! `coirl cohort apply`: a new table, or one person, in the numbers of a cohort; and what else depends on where a table comes from.
#![allow(clippy::unwrap_used)]

mod running;

use running::{Folder, json, numbers, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Few draws: the figures are compared with each other.
const EXAM: &str = "--resamples 10 --off-policy-resamples 4 --true-patients 3";

/// A synthetic table, a cohort of it and a run on that.
fn with_run() -> Folder {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --stays 250 --seed 1 --out table.csv -q").success();
    folder.coirl("cohort build table.csv --states 40 --seed 2 --out c -q").success();
    folder.coirl("fit c --method adaptive --steps 4 --set batch.without_replacement.size=16 --out run -q").success();
    folder
}

fn read(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

fn error(folder: &Folder, arguments: &str) -> String {
    let run = folder.coirl(arguments).failure().code(1);
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

/// A table as rows of cells by column, with its header.
fn rows(table: &str) -> (Vec<String>, Vec<BTreeMap<String, String>>) {
    let mut lines = table.lines();
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let row = |line: &str| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect();
    let rows = lines.map(row).collect();
    (header, rows)
}

/// The table with a column changed, or left out where nothing is given for it.
fn changed(table: &str, column: &str, change: impl Fn(f64) -> Option<f64>) -> String {
    let (header, rows) = rows(table);
    let keep: Vec<&String> = header.iter().filter(|name| *name != column || change(1.0).is_some()).collect();
    let mut lines = vec![keep.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",")];
    for row in rows {
        let cell = |name: &&String| match **name == column && !row[*name].is_empty() {
            true => change(row[*name].parse().unwrap()).unwrap().to_string(),
            false => row[*name].clone(),
        };
        lines.push(keep.iter().map(cell).collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

/// The rows of the cohort's own test stays.
fn test_rows(folder: &Folder) -> String {
    let (_, stays) = rows(&read(folder, "c/test/stays.csv"));
    let ids: Vec<&str> = stays.iter().map(|row| row["stay"].as_str()).collect();
    let table = read(folder, "table.csv");
    let mut lines = table.lines();
    let header = lines.next().unwrap();
    let own = lines.filter(|line| ids.contains(&line.split(',').nth(1).unwrap()));
    [header].into_iter().chain(own).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_test_stays_of_a_cohort_get_their_own_codes_and_scores_again() {
    let folder = with_run();
    let scored = json(folder.coirl(&format!("cohort score run {EXAM} --json -q")).success());
    folder.write("again.csv", test_rows(&folder));
    let applied = json(folder.coirl(&format!("cohort apply run again.csv {EXAM} --out coded --json -q")).success());
    assert_eq!(applied["runs"][0]["agreement"], scored["runs"][0]["agreement"]);
    assert_eq!(applied["off_policy"], scored["off_policy"]);
    assert!(applied["off_policy"]["recorded"]["value"].as_f64().is_some());
    for file in ["contexts.csv", "trajectories.csv", "stays.csv", "points.npy"] {
        assert!(folder.read(&format!("coded/{file}")) == folder.read(&format!("c/test/{file}")), "{file}");
    }
    assert_eq!((&applied["known"], &applied["outcome"]), (&Value::from(0), &Value::from(true)));
    assert!(
        applied["drift"]["columns"].as_array().unwrap().iter().all(|own| own["shift"] == "none"),
        "{}",
        applied["drift"]
    );
    // In any order of rows.
    let table = test_rows(&folder);
    let mut lines: Vec<&str> = table.lines().collect();
    lines[1..].reverse();
    folder.write("turned.csv", lines.join("\n"));
    let turned = json(folder.coirl(&format!("cohort apply run turned.csv {EXAM} --json -q")).success());
    assert_eq!(turned["runs"][0]["agreement"], scored["runs"][0]["agreement"]);
    // Whoever was learned from is told.
    let all = text(folder.coirl(&format!("cohort apply run table.csv {EXAM} -q")).success());
    assert!(all.contains("learned-from") && all.contains("no scores on new"), "{all}");
}

#[test]
fn a_table_without_an_outcome_is_scored_as_far_as_it_goes() {
    let folder = with_run();
    folder.write("test.csv", test_rows(&folder));
    folder.write("open.csv", changed(&test_rows(&folder), "mortality_90d", |_| None));
    let whole = json(folder.coirl(&format!("cohort apply run test.csv {EXAM} --json -q")).success());
    let open = json(folder.coirl(&format!("cohort apply run open.csv {EXAM} --out coded --json -q")).success());
    assert_eq!(open["runs"][0]["agreement"], whole["runs"][0]["agreement"]);
    assert_eq!((&open["off_policy"], &open["outcome"]), (&Value::Null, &Value::from(false)));
    assert!(open["drift"]["rows"]["bad_ends"].is_null());
    let shown = text(folder.coirl(&format!("cohort apply run open.csv {EXAM} -q")).success());
    assert!(shown.contains("the table has no mortality_90d"), "{shown}");
    // What the last step led to nobody knows; the others are coded.
    let (_, coded) = rows(&read(&folder, "coded/trajectories.csv"));
    let (_, own) = rows(&read(&folder, "c/test/trajectories.csv"));
    let stays = rows(&read(&folder, "coded/stays.csv")).1.len();
    assert_eq!(coded.len() + stays, own.len());
    let states = 40;
    assert!(coded.iter().all(|row| row["state"].parse::<u32>().unwrap() < states));
}

#[test]
fn columns_that_are_missing_are_all_named_with_the_nearest() {
    let folder = with_run();
    let table = test_rows(&folder).replacen("Creatinine", "creatinine", 1).replacen(",MeanBP", ",blood_pressure", 1);
    folder.write("other.csv", table);
    let said = error(&folder, "cohort apply run other.csv -q");
    assert!(said.contains("'Creatinine' (the nearest is 'creatinine')") && said.contains("'MeanBP'"), "{said}");
    folder.write("dose.csv", changed(&test_rows(&folder), "input_4hourly", |_| None));
    let said = error(&folder, "cohort apply run dose.csv -q");
    assert!(said.contains("'input_4hourly'"), "{said}");
    let said = error(&folder, "cohort apply c other.csv -q");
    assert!(said.contains("is a cohort, not a run"), "{said}");
    let both = folder.coirl("cohort apply run other.csv --measure HR=1 -q").failure().code(2);
    assert!(String::from_utf8(both.get_output().stderr.clone()).unwrap().contains("--measure"));
}

#[test]
fn drift_says_which_columns_have_shifted_and_which_have_not() {
    let folder = with_run();
    folder.coirl("cohort synthesize --stays 250 --seed 7 --out other.csv -q").success();
    let drift = |name: &str| {
        let said = json(folder.coirl(&format!("cohort apply run {name} {EXAM} --no-off-policy --json -q")).success());
        said["drift"].clone()
    };
    let shift = |drift: &Value, column: &str| {
        let own = drift["columns"].as_array().unwrap().iter().find(|own| own["column"] == column).unwrap().clone();
        (own["shift"].as_str().unwrap().to_owned(), own)
    };
    // Other people of the same hospital.
    let same = drift("other.csv");
    assert!(same["columns"].as_array().unwrap().iter().all(|own| own["shift"] != "large"), "{same}");
    let home = same["home"]["rare"].as_f64().unwrap();
    assert!((same["rows"]["rare"].as_f64().unwrap() - home).abs() < 0.1 && same["far"].as_f64().unwrap() < 0.05);
    // Another unit, and a measurement that is hardly taken.
    let table = read(&folder, "other.csv");
    folder.write("fahrenheit.csv", changed(&table, "Temp_C", |x| Some(1.8 * x + 32.0)));
    let fahrenheit = drift("fahrenheit.csv");
    let (size, temperature) = shift(&fahrenheit, "Temp_C");
    assert_eq!((size.as_str(), fahrenheit["columns"][0]["column"].as_str()), ("large", Some("Temp_C")));
    // No temperature is plausible, so that none is known.
    assert!(temperature["implausible"].as_f64().unwrap() > 0.99, "{temperature}");
    assert_eq!(temperature["missing"]["new"], 1.0);
    // A shift that stays plausible.
    folder.write("fast.csv", changed(&table, "HR", |x| Some(x + 60.0)));
    let fast = drift("fast.csv");
    assert_eq!(shift(&fast, "HR").0, "large");
    assert!(fast["rows"]["distance"].as_f64() > same["rows"]["distance"].as_f64());
    let at = table.lines().next().unwrap().split(',').position(|name| name == "SOFA").unwrap();
    let half = |(i, line): (usize, &str)| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if i > 0 && i % 2 == 0 {
            cells[at] = "";
        }
        cells.join(",")
    };
    let emptied: Vec<String> = table.lines().enumerate().map(half).collect();
    folder.write("sparse.csv", emptied.join("\n"));
    let (size, missing) = shift(&drift("sparse.csv"), "SOFA");
    assert_eq!(size, "large");
    assert!((missing["missing"]["new"].as_f64().unwrap() - 0.5).abs() < 0.01, "{missing}");
    let shown = text(folder.coirl(&format!("cohort apply run fahrenheit.csv {EXAM} --no-off-policy -q")).success());
    assert!(shown.contains("Temp_C, C") && shown.contains("large") && shown.contains("Action matching"), "{shown}");
}

/// `A=1,B=2` for these columns of a row.
fn typed(row: &BTreeMap<String, String>, columns: &[String]) -> String {
    columns
        .iter()
        .filter(|name| !row[*name].is_empty())
        .map(|name| format!("{name}={}", row[name]))
        .collect::<Vec<_>>()
        .join(",")
}

#[test]
fn a_person_is_recognised_as_their_rows_were() {
    let folder = with_run();
    let cohort: Value = serde_json::from_slice(&folder.read("c/cohort.json")).unwrap();
    let strings =
        |value: &Value| value.as_array().unwrap().iter().map(|x| x.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let spec = &cohort["spec"];
    let (measurements, doses) = (strings(&spec["state"]["measurements"]), strings(&spec["action"]["doses"]));
    let lagged = |name: &String| spec["state"]["columns"][name]["lag"].as_u64().is_some_and(|lag| lag > 0);
    let now: Vec<String> = measurements.iter().filter(|name| !lagged(name)).cloned().collect();
    assert!(now.len() < measurements.len());
    let fields = [strings(&spec["context"]["fields"]), strings(&spec["context"]["at_start"])].concat();
    let (_, stays) = rows(&read(&folder, "c/test/stays.csv"));
    let (_, steps) = rows(&read(&folder, "c/test/trajectories.csv"));
    let (_, table) = rows(&read(&folder, "table.csv"));
    for stay in stays.iter().step_by(7).take(5) {
        let own: Vec<_> = table.iter().filter(|row| row["icustayid"] == stay["stay"]).collect();
        let coded: Vec<_> = steps.iter().filter(|step| step["demonstration"] == stay["demonstration"]).collect();
        let context = typed(own[0], &fields);
        let before = typed(own[0], &[measurements.clone(), doses.clone()].concat());
        for (t, more) in [(0, String::new()), (1, format!("--before {before}"))] {
            let measured = typed(own[t], &now);
            let said = json(
                folder
                    .coirl(&format!("cohort apply run --measure {measured} --context {context} {more} --json -q"))
                    .success(),
            );
            assert_eq!(
                said["state"].as_u64().unwrap().to_string(),
                coded[t]["state"],
                "stay {}, step {t}",
                stay["stay"]
            );
            // Nothing is known of a step before the first.
            let filled = |own: &Value| lagged(&own["name"].as_str().unwrap().to_owned()) && t == 0;
            let each = said["measurements"].as_array().unwrap();
            assert!(each.iter().all(|own| own["given"] == !filled(own)), "{said}");
            // As predicted for the context and state.
            let predicted = json(
                folder
                    .coirl(&format!("predict run --context {context} --states {} --json -q", coded[t]["state"]))
                    .success(),
            );
            assert_eq!(said["agent"][0]["action"], predicted["states"][0]["action"]);
            assert_eq!(numbers(&said["context"]), numbers(&predicted["context"]));
        }
    }
}

#[test]
fn what_was_given_to_similar_patients_is_counted_in_training() {
    let folder = with_run();
    let said = json(
        folder
            .coirl("cohort apply run --measure HR=110,MeanBP=60 --context age=23000 --smallest-cell 0 --json -q")
            .success(),
    );
    let state = said["state"].as_u64().unwrap().to_string();
    let mut given: BTreeMap<u64, u64> = BTreeMap::new();
    let (_, steps) = rows(&read(&folder, "c/train/trajectories.csv"));
    for step in steps.iter().filter(|step| step["state"] == state && !step["action"].is_empty()) {
        *given.entry(step["action"].parse().unwrap()).or_default() += 1;
    }
    let all: u64 = given.values().sum();
    assert_eq!(said["steps"].as_u64(), Some(all));
    for own in said["given"].as_array().unwrap() {
        let n = given.get(&own["action"].as_u64().unwrap()).copied().unwrap_or_default();
        assert_eq!(own["steps"].as_u64(), Some(n));
        assert!((own["share"].as_f64().unwrap() - n as f64 / all as f64).abs() < 1e-12);
    }
    let listed = said["given"].as_array().unwrap().iter().filter(|own| own["steps"] != 0).count();
    assert_eq!(listed, given.len());
    // What was not given is filled in as in training, and said.
    let filled: Vec<&Value> =
        said["measurements"].as_array().unwrap().iter().filter(|own| own["given"] == false).collect();
    assert!(
        filled.len() > 30 && said["fields"].as_array().unwrap().iter().filter(|own| own["given"] == true).count() == 1
    );
    let shown = text(folder.coirl("cohort apply run --measure HR=110,MeanBP=60 --smallest-cell 1000 -q").success());
    for words in ["filled in", "as in training: SysBP", "too few to tell", "would do:", "not given, and filled in"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let said = error(&folder, "cohort apply run --measure MaenBP=60 -q");
    assert!(said.contains("--measure") && said.contains("the nearest is 'MeanBP'"), "{said}");
    let said = error(&folder, "cohort apply run --measure 60,70 -q");
    assert!(said.contains("expected names"), "{said}");
    let run = folder.coirl("cohort apply run --measure HR=1100,MeanBP=60 --context age=63").success();
    let warned = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(warned.contains("HR = 1100") && warned.contains("63 years would be"), "{warned}");
}

#[test]
fn predict_warns_of_fields_that_nobody_had() {
    let folder = with_run();
    let ask = |age: &str, weight: &str, scale: &str, ventilated: &str| {
        let context = format!(
            "gender=1,age={age},elixhauser=4,re_admission=0,Weight_kg={weight},GCS={scale},mechvent={ventilated}"
        );
        let run = folder.coirl(&format!("predict run --context {context} --json")).success();
        let output = run.get_output();
        (String::from_utf8(output.stderr.clone()).unwrap(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (told, usual) = ask("23000", "80", "13", "1");
    assert!(!told.contains("warning") && usual.get("warnings").is_none(), "{told}");
    let (told, odd) = ask("70", "-5", "99", "7");
    for words in
        ["age = 70 days is outside", "70 years would be 25570 days", "Weight_kg = -5 kg", "GCS = 99", "mechvent = 7"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    let warnings = odd["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 4);
    assert_eq!((warnings[0]["column"].as_str(), warnings[0]["value"].as_f64()), (Some("age"), Some(70.0)));
    assert!(numbers(&warnings[0]["seen"])[0] > 6000.0 && odd["policy"].is_array());
    folder.coirl("fit c --method majority --out habits -q").success();
    let run = folder.coirl(
        "predict habits --context gender=1,age=70,elixhauser=4,re_admission=0,Weight_kg=80,GCS=13,mechvent=1 --json",
    );
    let run = run.success();
    assert!(String::from_utf8(run.get_output().stderr.clone()).unwrap().contains("age = 70 days"));
    let said: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(said["warnings"].as_array().unwrap().len(), 1);
}

/// All files of a cohort but the manifest, without the name of the table.
fn files(folder: &Folder, cohort: &str, table: &str) -> BTreeMap<String, String> {
    let parts = ["train", "validation", "test"];
    let of_parts = parts
        .iter()
        .flat_map(|part| ["contexts.csv", "trajectories.csv", "stays.csv"].map(|file| format!("{part}/{file}")));
    let others = ["cohort.json", "spec.toml", "model.safetensors", "flow.csv", "states.csv", "test/points.npy"]
        .map(str::to_owned);
    let read = |file: String| {
        let bytes = folder.read(&format!("{cohort}/{file}"));
        (file, String::from_utf8_lossy(&bytes).replace(table, "TABLE"))
    };
    of_parts.chain(others).map(read).collect()
}

#[test]
fn a_shuffled_table_makes_the_same_folder() {
    let folder = with_run();
    let table = read(&folder, "table.csv");
    let mut lines: Vec<&str> = table.lines().collect();
    // A stride that is prime to the number of rows visits each once.
    let n = lines.len() - 1;
    let stride = (n / 3..).find(|stride| (2..=*stride).all(|d| stride % d != 0 || !n.is_multiple_of(d))).unwrap();
    let shuffled: Vec<&str> = (0..n).map(|i| lines[1 + i * stride % n]).collect();
    lines.splice(1.., shuffled);
    folder.write("shuffled.csv", lines.join("\n"));
    folder.coirl("cohort build shuffled.csv --states 40 --seed 2 --out s -q").success();
    let (plain, other) = (files(&folder, "c", "table.csv"), files(&folder, "s", "shuffled.csv"));
    let truth = |json: &str| {
        let mut file: Value = serde_json::from_str(json).unwrap();
        file.as_object_mut().unwrap().remove("truth");
        file
    };
    for (name, content) in &plain {
        match name.as_str() {
            // The truth lies beside the first table only.
            "cohort.json" => assert_eq!(truth(content), truth(&other[name])),
            _ => assert!(*content == other[name], "{name}"),
        }
    }
}

#[test]
fn a_column_of_the_patient_is_found_and_the_words_follow_it() {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --stays 250 --seed 1 --out table.csv -q").success();
    let table = read(&folder, "table.csv");
    // Two stays of each patient.
    let with_ids: Vec<String> = table
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            0 => format!("{line},subject_id"),
            _ => {
                let stay: u64 = line.split(',').nth(1).unwrap().parse().unwrap();
                format!("{line},{}", stay / 2)
            }
        })
        .collect();
    folder.write("people.csv", with_ids.join("\n"));
    folder.coirl("cohort build people.csv --states 20 --out people -q").success();
    let patients = |part: &str| -> Vec<String> {
        let (_, stays) = rows(&read(&folder, &format!("people/{part}/stays.csv")));
        stays.iter().map(|row| row["patient"].clone()).collect()
    };
    let parts = ["train", "validation", "test"].map(patients);
    assert!(parts[0].iter().all(|id| !parts[1].contains(id) && !parts[2].contains(id)));
    assert!(parts[1].iter().all(|id| !parts[2].contains(id)));
    assert!(read(&folder, "people/spec.toml").contains("patient = \"subject_id\""));
    folder.coirl("cohort build table.csv --states 20 --out stays -q").success();
    let score = |cohort: &str| {
        folder.coirl(&format!("fit {cohort} --method majority --out {cohort}-run -q")).success();
        text(folder.coirl(&format!("cohort score {cohort}-run {EXAM} --no-off-policy -q")).success())
    };
    let (people, stays) = (score("people"), score("stays"));
    assert!(people.contains("patients to score on") && !people.contains("no-patient-column"), "{people}");
    assert!(stays.contains(" stays to score on") && stays.contains("no-patient-column"), "{stays}");
    // A new table may do without a column that was only looked for.
    folder.coirl(&format!("cohort apply people-run table.csv {EXAM} --no-off-policy -q")).success();
}

#[test]
fn cohorts_of_an_earlier_version_are_to_be_built_again() {
    let folder = with_run();
    folder.write("c/cohort.json", "{\"version\": 1, \"table\": \"t.csv\"}");
    let said = error(&folder, "cohort apply run table.csv -q");
    assert!(said.contains("version 1") && said.contains("build the cohort again"), "{said}");
}

#[test]
fn states_of_a_column_go_all_the_way() {
    let folder = Folder::new();
    let mut random = 3_u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % n
    };
    let mut table = String::from("bus,month,bin,replace,group\n");
    for bus in 0..80 {
        let mut bin = 0;
        for month in 0..30 {
            let replace = u64::from(next(40) < bin);
            table += &format!("b{bus},{month},{bin},{replace},{}\n", bus % 2);
            bin = if replace == 1 { 0 } else { (bin + 1 + next(2)).min(24) };
        }
    }
    folder.write("buses.csv", &table);
    folder.write(
        "buses.toml",
        "preset = \"long\"\ndiscount = 0.95\n[table]\npath = \"buses.csv\"\nstay = \"bus\"\ntime = \"month\"\n[context]\nfields = [\"group\"]\n\
         [state]\ncolumn = \"bin\"\nnumber = 25\n[action]\ncolumn = \"replace\"\nnumber = 2\n",
    );
    let built = json(folder.coirl("cohort build buses.toml --out c --json -q").success());
    assert_eq!(
        (&built["states"], &built["actions"], &built["features"]),
        (&Value::from(25), &Value::from(2), &Value::from(27))
    );
    assert!(read(&folder, "c/states.csv").starts_with("state,training_rows,bin\n0,"));
    folder.coirl("fit c --method adaptive --steps 20 --out run -q").success();
    folder.coirl(&format!("cohort score run {EXAM} -q")).success();
    folder.coirl("predict run --context group=1 --states 3,20 -q").success();
    folder.coirl("explain run -q").success();
    folder.coirl("report run --resamples 5 --no-off-policy -q").success();
    folder.write("new.csv", table.replace('b', "n").replacen("nus,month,nin,replace", "bus,month,bin,replace", 1));
    let applied = json(folder.coirl(&format!("cohort apply run new.csv {EXAM} --json -q")).success());
    assert_eq!(applied["known"], 0);
    let person = json(folder.coirl("cohort apply run --measure bin=17 --context group=0 --json -q").success());
    assert_eq!(person["state"], 17);
    let said = error(&folder, "cohort apply run --measure bin=25 -q");
    assert!(said.contains("bin: 25; expected the number of a state, 0 to 24"), "{said}");
    // Built again from its own spec.
    folder.coirl("cohort build c/spec.toml --out again -q").success();
    assert!(folder.read("c/model.safetensors") == folder.read("again/model.safetensors"));
    folder.write("odd.csv", table.replacen("b3,4,", "b3,4,1000", 1));
    let said = error(&folder, "cohort build buses.toml --set table.path=odd.csv --out x -q");
    assert!(said.contains("row 95, column bin") && said.contains("0 to 24"), "{said}");
    let said = error(&folder, "cohort build buses.toml --states 5 --out x -q");
    assert!(said.contains("state.clusters") && said.contains("state.number"), "{said}");
}
