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
    for method in [
        "adaptive --steps 4 --set batch.without_replacement.size=16",
        "majority",
        "network --steps 3 --set hidden.layers=8",
    ] {
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
    // A hundred stays cannot say what a policy would have reached; whoever insists gets a number.
    let fitted_q = |scored: &Value| scored["off_policy"]["policies"][0][1]["fitted_q"]["status"].clone();
    assert_eq!(fitted_q(&scored), "refused");
    let insisted = json(
        folder.coirl("cohort score majority --fitted-q-alone --resamples 2 --off-policy-resamples 2 --true-patients 2 --json -q").success(),
    );
    assert_eq!(fitted_q(&insisted), "estimated");
    let shown = text(
        folder.coirl("cohort score majority --resamples 20 --off-policy-resamples 4 --true-patients 5 -q").success(),
    );
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "by visited state (paper)",
        "macro-F1",
        "effective stays",
        "the best trivial rule",
        "always the most frequent training action",
        "the training shares of actions",
        "what is not in the table is not seen",
        "one policy for everybody",
        "not for clinical use",
    ] {
        assert!(unwrapped.contains(part), "{part}: {shown}");
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
    assert!(said.contains("[learner]") && said.contains("metod"), "{said}");
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
    // No state, three alone, three subsets with two numbers of states, a weight for each of several that were chosen.
    assert!((2 + 3 + 6..=2 + 3 + 6 + 2).contains(&listed.lines().count()), "{listed}");
    assert!(String::from_utf8(folder.read("choice/selection.svg")).unwrap().contains("</svg>"));
    folder.coirl("cohort build choice/spec.toml --out c -q").success();
}

#[test]
fn presets_are_listed_printed_and_fitting() {
    let folder = Folder::new();
    let listed = text(folder.coirl("cohort spec").success());
    for name in [
        "ai-clinician",
        "ai-clinician-python",
        "ai-clinician-mimic-iv",
        "mimic-sepsis",
        "mimic-iv-derived",
        "eicu-derived",
        "coirl-paper",
        "observations",
        "long",
    ] {
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
    assert!(shown.contains("1 seed\n") && !shown.contains("± 0.0"), "{shown}");
}

/// What stands in the documentation between ```toml and ``` below a heading.
fn documented_spec() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cohorts.md")).unwrap();
    let (_, example) = page.split_once("## A table of your own").unwrap();
    let (_, spec) = example.split_once("```toml\n").unwrap();
    spec.split_once("```").unwrap().0.to_owned()
}

/// A clinic for diabetes: a visit about every 90 days, the dose by HbA1c.
fn clinic(patients: usize) -> String {
    let mut random = 7_u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % n
    };
    let mut table = String::from("patient,visit_date,age,sex,hba1c,weight,metformin,admitted\n");
    for patient in 0..patients {
        let (age, sex, mut hba1c) = (30 + next(50), ["F", "M"][next(2) as usize], 60.0 + next(400) as f64 / 10.0);
        let admitted = u64::from(next(5) == 0);
        for visit in 0..6 {
            let day = 90 * visit + next(4);
            let (month, weight) = (1 + day / 28 % 12, 60 + next(50));
            let (year, dose) = (
                2018 + day / 336,
                if hba1c < 65.0 {
                    0
                } else if hba1c < 80.0 {
                    500
                } else {
                    1000
                },
            );
            table += &format!(
                "p{patient},{year}/{month:02}/{:02},{age},{sex},{hba1c:.1},{weight},{dose},{admitted}\n",
                1 + day % 28
            );
            hba1c = (hba1c - dose as f64 / 100.0 + next(120) as f64 / 10.0).max(40.0);
        }
    }
    table
}

/// A folder with the clinic's table and the spec of the documentation.
fn with_clinic() -> Folder {
    let folder = Folder::new();
    folder.write("clinic.csv", clinic(150));
    folder.write("clinic.toml", documented_spec());
    folder
}

fn codes(said: &Value) -> Vec<&str> {
    said["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[test]
fn a_table_of_ones_own_is_built_fitted_and_asked_in_its_own_units() {
    let folder = with_clinic();
    let linted = json(folder.coirl("cohort lint clinic.toml --json -q").success());
    assert!(!codes(&linted).contains(&"few-context-fields"), "{linted}");
    folder.coirl("cohort build clinic.toml --states 8 --out clinic -q --json").success();
    folder
        .coirl("fit clinic --method adaptive --steps 20 --set batch.without_replacement.size=16 --out run -q")
        .success();
    let named = json(folder.coirl("predict run --context age=70,sex=1 --json -q").success());
    let swapped = json(folder.coirl("predict run --context sex=1,age=70 --json -q").success());
    assert_eq!(named["context"], swapped["context"]);
    let cohort: Value = serde_json::from_slice(&folder.read("clinic/cohort.json")).unwrap();
    let range = |field: usize| {
        let range = &cohort["encoder"]["contexts"]["fields"][field]["range"];
        (range[0].as_f64().unwrap(), range[1].as_f64().unwrap())
    };
    // Less the mean, divided by the standard deviation, and a one at the end.
    let expected: Vec<f64> = [(70.0, range(0)), (1.0, range(1))]
        .iter()
        .map(|(x, (mean, above))| (x - mean) / (above - mean))
        .chain([1.0])
        .collect();
    let context = running::numbers(&named["context"]);
    assert!(context.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-9), "{context:?} {expected:?}");
    let said = error(&folder, "predict run --context age=70 -q");
    assert!(said.contains("'sex' is missing") && said.contains("units of the table"), "{said}");

    folder.coirl("report run --resamples 5 --no-off-policy -q").success();
    let page = String::from_utf8(folder.read("run/report.html")).unwrap();
    for words in [
        "state 0: ",
        " mmol/mol",
        "metformin 0: none</th>",
        "metformin 1: up to 500</th>",
        "metformin 2: above 500</th>",
        " years</td>",
    ] {
        assert!(page.contains(words), "{words}");
    }

    let few = json(folder.coirl("cohort lint clinic.toml --set context.scale=simplex --json -q").success());
    assert!(codes(&few).contains(&"few-context-fields"), "{few}");
    let said = error(&folder, "cohort lint clinic.toml --set table.codes={} -q");
    assert!(said.contains("column sex: 'F'") || said.contains("column sex: 'M'"), "{said}");
    assert!(said.contains("[table.codes.sex]"), "{said}");
}

#[test]
fn steps_have_units_and_rows_in_one_step_are_told_with_their_times() {
    let folder = with_clinic();
    let said = error(&folder, r#"cohort lint clinic.toml --set cohort.same_step=refuse --set cohort.step=52weeks -q"#);
    assert!(said.contains("at time 2018-") && said.contains("52weeks") && !said.contains("two people"), "{said}");
    let said = error(&folder, "cohort lint clinic.toml --set cohort.step=2fortnights -q");
    assert!(said.contains("unknown unit 'fortnights'") && said.contains("weeks"), "{said}");
    let short = json(folder.coirl("cohort lint clinic.toml --set cohort.step=90 --json -q").success());
    assert!(codes(&short).contains(&"short-step"), "{short}");
    let numbered = with_table();
    let said = error(&numbered, "cohort lint table.csv --set cohort.step=4hours -q");
    assert!(said.contains("cohort.step") && said.contains("numbers"), "{said}");
    folder.write("odd.csv", clinic(40).replace("2018/01/01", "01/05/2018"));
    let said = error(&folder, "cohort lint clinic.toml --set table.path=odd.csv -q");
    assert!(said.contains("'01/05/2018'") && said.contains("2018-07-05T14:30:00+02:00"), "{said}");
}

#[test]
fn a_path_that_is_typed_goes_before_that_of_the_spec() {
    let folder = with_clinic();
    folder.write("other.csv", clinic(60));
    let of = |arguments: &str| json(folder.coirl(&format!("cohort lint {arguments} --json -q")).success());
    assert_eq!(of("clinic.toml --set table.path=other.csv")["table"], "other.csv");
    assert_eq!(of("clinic.toml")["table"], "clinic.csv");
    let said = error(&folder, "cohort lint clinic.csv --preset long --set table.path=other.csv -q");
    assert!(said.contains("table.path"), "{said}");
}

#[test]
fn a_cohort_that_was_built_again_is_not_scored_as_if_it_were_the_same() {
    let folder = with_table();
    folder.coirl("cohort build table.csv --states 20 --seed 1 --out c -q").success();
    folder.coirl("fit c --method majority --out run -q").success();
    let said = error(&folder, "cohort score c -q");
    assert!(said.contains("is a cohort, not a run"), "{said}");
    let scored = "cohort score run --resamples 5 --no-off-policy --true-patients 2 -q";
    folder.coirl(scored).success();
    // Both may be moved together.
    std::fs::create_dir(folder.path("moved")).unwrap();
    for name in ["c", "run"] {
        std::fs::rename(folder.path(name), folder.path("moved").join(name)).unwrap();
    }
    folder.coirl("cohort score moved/run --resamples 5 --no-off-policy --true-patients 2 -q").success();
    folder.coirl("cohort build table.csv --states 20 --seed 2 --out moved/c -q").success();
    let said = error(&folder, "cohort score moved/run -q");
    assert!(said.contains("was learned from other data"), "{said}");
    std::fs::rename(folder.path("moved/c"), folder.path("elsewhere")).unwrap();
    let said = error(&folder, "cohort score moved/run -q");
    assert!(said.contains("is not there: put it back"), "{said}");
}

#[test]
fn outcomes_and_values_that_cannot_be_right_are_told() {
    let folder = with_table();
    let table = table(&folder);
    let found = |content: &str, more: &str| {
        folder.write("odd.csv", content);
        json(folder.coirl(&format!("cohort lint odd.csv {more} --json -q")).success())
    };
    let message = |said: &Value, code: &str| {
        let all = said["findings"].as_array().unwrap();
        let own = all.iter().find(|finding| finding["code"] == code);
        own.unwrap_or_else(|| panic!("no {code}: {said}"))["message"].as_str().unwrap().to_owned()
    };
    let usual = found(&table, "");
    for code in ["outcome-values", "outcome-contradicts", "outcome-leak", "sentinel-value"] {
        assert!(!codes(&usual).contains(&code), "{code}: {usual}");
    }
    assert!(message(&found(&table, "--set outcome.bad=7"), "outcome-values").contains("never is 7"));
    let at = table.lines().next().unwrap().split(',').position(|name| name == "mortality_90d").unwrap();
    let died = table.lines().nth(1).unwrap().split(',').nth(at) == Some("1");
    let turned = edited(&table, 1, "mortality_90d", if died { "0" } else { "1" });
    assert!(message(&found(&turned, ""), "outcome-contradicts").contains("the last row"));
    let said = error(&folder, r#"cohort lint table.csv --set context.at_start=["mortality_90d"] -q"#);
    assert!(said.contains("context.at_start") && said.contains("the outcome"), "{said}");
    let sentinel = edited(&edited(&table, 3, "HR", "-999"), 9, "HR", "-999");
    let said = found(&sentinel, "--set cohort.plausible.HR=[-2000.0,300.0]");
    assert!(message(&said, "sentinel-value").contains("HR has a value far from all others"));
    assert!(said.to_string().contains("\"example\":\"-999 in 2 rows\""), "{said}");
    let dropped = found(&sentinel, "");
    assert!(message(&dropped, "implausible-dropped").starts_with("2 of "), "{dropped}");
    assert!(!codes(&dropped).contains(&"sentinel-value"), "{dropped}");
    let few: String = table.lines().take(60).map(|line| format!("{line}\n")).collect();
    assert!(codes(&found(&few, "")).contains(&"few-patients"));
    let fewer: String = table.lines().take(4).map(|line| format!("{line}\n")).collect();
    folder.write("fewer.csv", fewer);
    folder
        .coirl("cohort build table.csv --states 10 --set split.validation=0 --set split.test=0.4 --out none -q")
        .success();
    folder.coirl("fit none --method adaptive --steps 2 --out run -q").success();
    let said = error(&folder, "cohort lint fewer.csv --set cohort.min_steps=1 -q");
    assert!(said.contains("too few") && said.contains("[split]"), "{said}");
}

#[test]
fn warnings_of_the_table_stand_above_the_scores() {
    let folder = with_table();
    let leaking = r#"table.csv --set state.measurements=["HR","input_4hourly"] --states 20"#;
    folder.coirl(&format!("cohort build {leaking} --out c -q")).success();
    folder.coirl("fit c --method majority --out run -q").success();
    let shown = text(folder.coirl("cohort score run --resamples 5 --no-off-policy --true-patients 2 -q").success());
    let (warned, scored) = (shown.find("action-leaks").unwrap(), shown.find("Action matching").unwrap());
    assert!(warned < scored, "{shown}");
    folder.coirl("report run --resamples 5 --no-off-policy --true-patients 2 -q").success();
    let page = String::from_utf8(folder.read("run/report.html")).unwrap();
    let at = |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    assert!(at("summary") < at("findings") && at("findings") < at("matching") && at("matching") < at("cohort"));
    assert!(page.contains("the best trivial rule") && page.contains("about the table, "));
    assert!(page.find("the best trivial rule").unwrap() < page.find("to score on").unwrap(), "the verdict comes first");
}

#[test]
fn tables_that_are_no_tables_are_told_apart() {
    let folder = with_table();
    let table = table(&folder);
    let refused = |content: &[u8]| {
        folder.write("odd.csv", content);
        error(&folder, "cohort lint odd.csv -q")
    };
    assert!(refused(b"PK\x03\x04rest").contains(".xlsx"));
    let wide: Vec<u8> = b"\xff\xfe".iter().copied().chain(table.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert!(refused(&wide).contains("UTF-16"));
    let commas = edited(&table, 2, "HR", "80").replace(',', ";");
    let mut lines: Vec<String> = commas.lines().map(str::to_owned).collect();
    let at = lines[0].split(';').position(|name| name == "HR").unwrap();
    let mut cells: Vec<&str> = lines[2].split(';').collect();
    cells[at] = "80,5";
    lines[2] = cells.join(";");
    let said = refused(lines.join("\n").as_bytes());
    assert!(said.contains("'80,5' has a decimal comma"), "{said}");
    folder.write("pipes.csv", table.replace(',', "|"));
    folder.coirl("cohort lint pipes.csv -q").success();
    let said = error(&folder, "cohort lint table.csv --set table.stay=ward -q");
    assert!(said.contains("does not use are 'icustayid'") && !said.contains("nearest"), "{said}");
}

#[test]
fn synthetic_tables_are_plain_or_compressed_and_know_their_truth() {
    let folder = with_table();
    let said = error(&folder, "cohort synthesize --stays 5 --out table.parquet -q");
    assert!(said.contains(".csv or .csv.gz"), "{said}");
    folder.coirl("cohort synthesize --stays 250 --seed 1 --out packed.csv.gz -q").success();
    assert!(folder.read("packed.csv.gz").starts_with(&[0x1f, 0x8b]));
    let build = |file: &str| {
        folder
            .coirl(&format!("cohort build {file} --states 10 --out {file}-cohort"))
            .success()
            .get_output()
            .stderr
            .clone()
    };
    let truth = |file: &str| {
        let cohort: Value = serde_json::from_slice(&folder.read(&format!("{file}-cohort/cohort.json"))).unwrap();
        cohort["truth"].is_object()
    };
    build("packed.csv.gz");
    assert!(truth("packed.csv.gz"));
    assert_eq!(folder.read("packed.truth.json"), folder.read("table.truth.json"));
    let said = String::from_utf8(build("table.csv")).unwrap();
    assert!(truth("table.csv") && said.contains("preset ai-clinician"), "{said}");
    // Another table under the same name.
    let other: Vec<u8> = {
        folder.coirl("cohort synthesize --stays 250 --seed 9 --out other.csv -q").success();
        folder.read("other.csv")
    };
    folder.write("table.csv", other);
    let said = String::from_utf8(build("table.csv")).unwrap();
    assert!(!truth("table.csv") && said.contains("table.truth.json") && said.contains("another table"), "{said}");
}

#[test]
fn folders_of_others_are_not_written_into() {
    let folder = with_table();
    std::fs::create_dir(folder.path("thesis")).unwrap();
    folder.write("thesis/chapter.txt", "years of work");
    let said = error(&folder, "cohort build table.csv --states 10 --out thesis -q");
    assert!(said.contains("holds chapter.txt"), "{said}");
    folder.coirl("cohort build table.csv --states 10 --out c -q").success();
    folder.coirl("cohort build table.csv --states 11 --out c -q").success();
    let said = error(&folder, "fit c --method majority --out thesis -q");
    assert!(said.contains("holds chapter.txt"), "{said}");
    folder.coirl("fit c --method majority --out run -q").success();
    folder.coirl("fit c --method majority --out run -q").success();
}

#[test]
fn accuracy_while_learning_counts_what_the_model_does_not_admit() {
    let folder = with_table();
    // Support that few pairs have.
    folder.coirl("cohort build table.csv --states 60 --set dynamics.min_support=8 --out c -q").success();
    let fitted = json(folder.coirl("fit c --method majority --out run --json -q").success());
    let left_out = fitted["validation_left_out"].as_f64().unwrap();
    assert!(left_out > 0.02 && left_out < 1.0, "{left_out}");
    assert!(fitted["validation_accuracy"].as_f64().unwrap() <= 1.0 - left_out);
    let shown = text(folder.coirl("fit c --method majority --out run -q").success());
    assert!(shown.contains("does not admit"), "{shown}");
}
