//! `coirl cohort`, from a table to a score, and what it says about tables that are not as they should be.
#![allow(clippy::unwrap_used)]

mod running;

use flate2::Compression;
use flate2::write::GzEncoder;
use running::{Folder, json, text};
use serde_json::Value;
use std::io::Write;

const TABLE: &str = "cohort synthesize --preset ai-clinician --stays 250 --seed 1 --out table.csv -q";

/// A folder with a synthetic table.
fn with_table() -> Folder {
    let folder = Folder::new();
    folder.coirl(TABLE).success();
    folder
}

fn table(folder: &Folder) -> String {
    String::from_utf8(folder.read("table.csv")).unwrap()
}

fn error(folder: &Folder, arguments: &str) -> String {
    let run = folder.coirl(arguments).failure().code(1);
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text
}

/// The files of a built cohort that do not name the table.
fn content(folder: &Folder, name: &str) -> Vec<Vec<u8>> {
    let files = ["model.safetensors", "states.csv", "train/trajectories.csv", "test/contexts.csv", "test/stays.csv"];
    files.map(|file| folder.read(&format!("{name}/{file}"))).to_vec()
}

/// The table with its cells changed.
fn edited(table: &str, row: usize, column: &str, cell: &str) -> String {
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let at = lines[0].split(',').position(|name| name == column).unwrap();
    let mut cells: Vec<&str> = lines[row].split(',').collect();
    cells[at] = cell;
    lines[row] = cells.join(",");
    lines.join("\n") + "\n"
}

#[test]
fn a_table_becomes_a_model_a_mapping_and_a_score() {
    let folder = with_table();
    let built = json(
        folder.coirl("cohort build --preset ai-clinician table.csv --states 40 --seed 2 --out c --json -q").success(),
    );
    assert_eq!(built["states"], 40);
    assert_eq!(built["actions"], 25);
    assert_eq!(built["features"], 65);
    let stays: u64 = ["train", "validation", "test"].iter().map(|part| built["stays"][part].as_u64().unwrap()).sum();
    assert_eq!(stays, built["flow"].as_array().unwrap().last().unwrap()["stays"].as_u64().unwrap());
    for method in ["adaptive --steps 4 --batch-size 16", "majority", "network --steps 3 --layers 8"] {
        let name = method.split(' ').next().unwrap();
        folder.coirl(&format!("fit c --method {method} --out {name} -q")).success();
    }
    let scored = json(
        folder.coirl("cohort score adaptive majority network --resamples 20 --off-policy-resamples 4 --true-patients 5 --json -q").success(),
    );
    let runs = scored["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for run in runs {
        let overall = &run["agreement"]["overall"];
        let share = |key: &str| overall[key]["value"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share("top_one")));
        assert!(share("top_three") >= share("top_one") && share("within_one") >= share("top_one"));
        assert!(run["agreement"]["published_accuracy"]["value"].as_f64().is_some());
        assert!(run["truth"]["policy"]["value"].as_f64().is_some());
    }
    assert!(scored["off_policy"]["recorded"]["value"].as_f64().unwrap() > 0.5);
    let shown = text(
        folder.coirl("cohort score majority --resamples 20 --off-policy-resamples 4 --true-patients 5 -q").success(),
    );
    for part in
        ["by visited state (paper)", "macro-F1", "effective stays", "one policy for everybody", "not for clinical use"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_spec_builds_and_fits_in_one_go_and_its_learner_is_heard() {
    let folder = with_table();
    folder.write(
        "spec.toml",
        "preset = \"ai-clinician\"\n[table]\npath = \"table.csv\"\n[state]\nclusters = 30\n[learner]\nmethod = \"majority\"\n",
    );
    let said = text(folder.coirl("fit spec.toml --out run --json -q").success());
    let fitted: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(fitted["method"], "majority");
    let typed = json(folder.coirl("fit run/cohort --method nearest --out other --json -q").success());
    assert_eq!(typed["method"], "nearest");
    folder.write("bad.toml", "preset = \"ai-clinician\"\n[table]\npath = \"table.csv\"\n[state]\nclusters = 30\n[learner]\nmetod = \"majority\"\n");
    let said = error(&folder, "fit bad.toml --out run2 -q");
    assert!(said.contains("[learner]") && said.contains("--metod"), "{said}");
    let said = error(&folder, "fit table.csv --out run3 -q");
    assert!(said.contains("coirl cohort build"), "{said}");
}

#[test]
fn the_order_of_columns_line_ends_and_compression_do_not_matter() {
    let folder = with_table();
    let table = table(&folder);
    let build = |name: &str, file: &str| {
        folder.coirl(&format!("cohort build {file} --states 30 --out {name} -q --json")).success();
        content(&folder, name)
    };
    let plain = build("plain", "table.csv");
    let reversed: Vec<String> = table.lines().map(|line| line.split(',').rev().collect::<Vec<_>>().join(",")).collect();
    folder.write("reversed.csv", reversed.join("\n"));
    assert_eq!(build("a", "reversed.csv"), plain);
    folder.write("windows.csv", table.replace('\n', "\r\n"));
    assert_eq!(build("b", "windows.csv"), plain);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(format!("\u{feff}{table}").as_bytes()).unwrap();
    let compressed = encoder.finish().unwrap();
    folder.write("table.csv.gz", &compressed);
    assert_eq!(build("c", "table.csv.gz"), plain);
    folder.write("tabs.tsv", table.replace(',', "\t"));
    assert_eq!(build("d", "tabs.tsv"), plain);
    let ids = edited(&table, 1, "icustayid", "200001.0");
    folder.write("ids.csv", ids);
    assert_eq!(build("e", "ids.csv"), plain);

    folder.write("half.csv.gz", &compressed[..compressed.len() / 2]);
    let said = error(&folder, "cohort build half.csv.gz --out f -q");
    assert!(said.contains("half.csv.gz") && said.contains("cut off after row"), "{said}");
    assert!(!folder.names().contains(&"f".to_owned()));
}

#[test]
fn cells_that_are_no_numbers_are_refused_with_row_and_column() {
    let folder = with_table();
    let table = table(&folder);
    let refused = |content: String| {
        folder.write("bad.csv", content);
        error(&folder, "cohort build bad.csv --out x -q")
    };
    let said = refused(edited(&table, 7, "HR", "fast"));
    assert!(said.contains("row 7 (line 8), column HR: 'fast'; expected a number"), "{said}");
    let said = refused(edited(&table, 3, "bloc", ""));
    assert!(said.contains("row 3 (line 4), column bloc"), "{said}");
    let said = refused(edited(&table, 3, "MeanBP", "inf"));
    assert!(said.contains("row 3") && said.contains("MeanBP"), "{said}");
    let said = refused(table.replace("mortality_90d", "morta_90"));
    assert!(said.contains("no column 'mortality_90d' (the outcome); the nearest is 'morta_90'"), "{said}");
    let mut lines: Vec<&str> = table.lines().collect();
    lines[5] = "1,2,3";
    let said = refused(lines.join("\n"));
    assert!(said.contains("row 5 (line 6)") && said.contains("3 cells; expected 59"), "{said}");
    let said = refused(lines[0].to_owned());
    assert!(said.contains("no rows"), "{said}");
    let said = refused(String::new());
    assert!(said.contains("is empty"), "{said}");
    // The same stay and bloc with other values.
    let lines: Vec<&str> = table.lines().collect();
    let again = edited(&format!("{}\n{}\n", lines[0], lines[1]), 1, "HR", "50");
    let said = refused(format!("{table}{}\n", again.lines().nth(1).unwrap()));
    assert!(said.contains("column HR") && said.contains("as row 1") && said.contains("same_step"), "{said}");
}

#[test]
fn gaps_missing_cells_and_repeated_rows_are_handled_and_told() {
    let folder = with_table();
    let table = table(&folder);
    let lines: Vec<&str> = table.lines().collect();
    let long = lines.iter().position(|line| line.starts_with("4,")).unwrap();
    // One bloc is gone, one row is there twice, some cells are empty or NaN.
    let mut changed: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    changed.push(lines[2].to_owned());
    changed.remove(long - 1);
    let text = edited(&edited(&(changed.join("\n") + "\n"), 9, "HR", "NaN"), 12, "Glucose", "");
    folder.write("holes.csv", text);
    let built = json(folder.coirl("cohort build holes.csv --states 30 --out c --json -q").success());
    assert_eq!(built["flow"][1]["rows_out"], 1);
    let missing = folder.coirl("cohort synthesize --stays 200 --missing 0.4 --seed 3 --out missing.csv -q");
    missing.success();
    let built = json(folder.coirl("cohort build missing.csv --states 30 --out d --json -q").success());
    let codes: Vec<&str> = built["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"mostly-imputed"), "{codes:?}");
}

#[test]
fn the_linter_is_heard_before_anything_is_built() {
    let folder = with_table();
    let found = |arguments: &str| -> Vec<String> {
        let said = json(folder.coirl(&format!("cohort lint {arguments} --json -q")).success());
        let codes =
            said["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap().to_owned());
        codes.collect()
    };
    assert!(!found("table.csv").contains(&"action-leaks".to_owned()));
    let leaking = r#"table.csv --set state.measurements=["HR","input_4hourly"]"#;
    let only = found(leaking);
    assert!(only.contains(&"action-leaks".to_owned()), "{only:?}");
    // The vasopressor's median dose is the action in disguise.
    let disguised = found(r#"table.csv --set state.measurements=["HR","median_dose_vaso"]"#);
    assert!(disguised.contains(&"action-leaks".to_owned()), "{disguised:?}");
    let years = found("table.csv --set units.age=years");
    assert!(years.contains(&"age-unit".to_owned()), "{years:?}");
    // Rows of one stay under the id of another.
    let table = table(&folder);
    let mixed = table.replace(",200009,", ",200004,");
    let first: Vec<&str> = mixed.lines().filter(|line| !line.contains(",200004,")).collect();
    assert!(first.len() < mixed.lines().count());
    folder.write("mixed.csv", &mixed);
    let run = folder.coirl("cohort lint mixed.csv --set cohort.same_step=first --json -q").success();
    let said: Value = json(run);
    let codes: Vec<&str> = said["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"torn-stay") || codes.contains(&"changing-person"), "{codes:?}");
}

#[test]
fn states_are_chosen_with_a_table_a_picture_and_a_spec() {
    let folder = with_table();
    let arguments =
        r#"--set state.measurements=["HR","MeanBP","SOFA"] --clusters 5,20 --screening 10 --keep 2 --weights 2"#;
    let shown = text(folder.coirl(&format!("cohort select table.csv {arguments} --out choice -q")).success());
    assert!(shown.contains("→") && shown.contains("T1 (shuffled)"), "{shown}");
    let listed = String::from_utf8(folder.read("choice/selection.csv")).unwrap();
    // Three alone, three subsets with two numbers of states, a weight for each of those that were chosen.
    assert!((1 + 3 + 6 + 1..=1 + 3 + 6 + 2).contains(&listed.lines().count()), "{listed}");
    assert!(String::from_utf8(folder.read("choice/selection.svg")).unwrap().contains("</svg>"));
    folder.coirl("cohort build choice/spec.toml --out c -q").success();
}

#[test]
fn presets_are_listed_printed_and_fitting() {
    let folder = Folder::new();
    let listed = text(folder.coirl("cohort spec").success());
    for name in ["ai-clinician", "ai-clinician-python", "ai-clinician-mimic-iv", "mimic-sepsis", "coirl-paper", "long"]
    {
        assert!(listed.contains(name), "{name}");
        assert!(text(folder.coirl(&format!("cohort spec {name}")).success()).contains("[table]"));
    }
    let said = error(&folder, "cohort spec ai-clinican");
    assert!(said.contains("did you mean 'ai-clinician'"), "{said}");
    folder.write("spec.toml", "preset = \"ai-clinician\"\n[stat]\nclusters = 5\n");
    let said = error(&folder, "cohort build spec.toml --out x");
    assert!(
        said.contains("spec.toml") && said.contains("line 2") && said.contains("'stat'; did you mean 'state'"),
        "{said}"
    );
}

#[test]
fn the_table_of_the_paper_is_made_of_seeds() {
    let folder = with_table();
    let said = json(folder.coirl("cohort compare table.csv --states 20 --seeds 2 --only frequent --json -q").success());
    let runs = said.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0]["by_step"], runs[1]["by_step"]);
    let shown = text(folder.coirl("cohort compare table.csv --states 20 --seeds 1 --only frequent -q").success());
    assert!(shown.contains("most frequent action of the state") && shown.contains("DSFN 79 ± 5"), "{shown}");
}
