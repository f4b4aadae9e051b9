//! `coirl fit`: what scripts rely on, the files it reads and writes, and what it refuses.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use running::{Folder, json, numbers, text};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const OWN: &str = "fit --model demos/model.npz --contexts demos/contexts.csv";
const SHOWN: &str = "--feature-expectations demos/feature-expectations.csv";
const SEEN: &str = "--trajectories demos/trajectories.csv";
const SCORED: &str = "--true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";
const FILES: [&str; 4] = ["fit.svg", "fitted.safetensors", "history.jsonl", "mapping.csv"];

/// A small model with its demonstrations under `demos`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 25 --actions 3 --features 3 --kernels 3 --admissible 0.7 --seed 3";
    let expert = "--mapping truth.csv --contexts 24 --test-contexts 10 --transitions 12 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder
}

/// The rows of a table without the names of its columns.
fn below_header(folder: &Folder, file: &str) -> String {
    String::from_utf8(folder.read(file)).unwrap().lines().skip(1).collect::<Vec<_>>().join("\n")
}

fn files(folder: &Folder, out: &str) -> Vec<Vec<u8>> {
    FILES.map(|name| folder.read(&format!("{out}/{name}"))).into()
}

fn history(folder: &Folder, file: &str) -> Vec<Value> {
    let lines = String::from_utf8(folder.read(file)).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn without_arguments_it_learns_from_what_ships() {
    let folder = Folder::new();
    let table = text(folder.coirl("fit --quiet").success());
    for words in [
        "held-out loss",
        "value relative to the expert",
        "accuracy",
        "demonstrations used",
        "planner calls",
        "not for clinical use",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(folder.names(), ["coirl-fit"]);
    let svg = String::from_utf8(folder.read("coirl-fit/fit.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.len() < 100_000);
    let records = history(&folder, "coirl-fit/history.jsonl");
    let last = records.last().unwrap();
    assert!(last["relative_value"].as_f64().unwrap() > 0.97 && last["held_out_loss"].as_f64().unwrap() < 0.01);
    let info = json(folder.coirl("info coirl-fit/fitted.safetensors --json").success());
    assert_eq!(info["kind"], "fitted");
    assert_eq!(info["settings"]["method"]["name"], "choice");
    // The mapping serves wherever mappings do.
    let plan = "plan sepsis --context 0.2,0.1,0.1,0.2,0.1,0.2,0.1 --json --mapping";
    let of_csv = folder.coirl(&format!("{plan} coirl-fit/mapping.csv")).success();
    let of_artifact = folder.coirl(&format!("{plan} coirl-fit/fitted.safetensors")).success();
    assert_eq!(of_csv.get_output().stdout, of_artifact.get_output().stdout);
}

#[test]
fn what_ships_can_be_made_again() {
    let folder = Folder::new();
    for (domain, contexts) in
        [("driving", "--contexts 100 --test-contexts 80"), ("sepsis", "--contexts 300 --test-contexts 100")]
    {
        let made = format!("domain demonstrate {domain} {contexts} --transitions 40 --seed 1 --out {domain}");
        folder.coirl(&made).success();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(domain);
        for file in std::fs::read_dir(shipped).unwrap().map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(folder.read(&format!("{domain}/{name}")) == std::fs::read(&file).unwrap(), "{domain} {name}");
        }
    }
}

#[test]
fn the_object_that_programs_read() {
    let folder = folder();
    let command = format!(
        "{OWN} {SHOWN} {SCORED} --method psgd --set batch=full --set average=before_update --steps 40 --seed 4 --json --history h.jsonl"
    );
    let found = json(folder.coirl(&command).success());
    let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {}", found[key]));
    for key in ["loss", "bound", "value_ratio", "accuracy", "optimal_accuracy", "held_out_loss", "planner_calls"] {
        number(key);
    }
    assert_eq!((found["method"].as_str(), found["status"].as_str()), (Some("psgd"), Some("step_limit")));
    assert_eq!((number("steps"), number("demonstrations"), number("seed")), (40.0, 24.0, 4.0));
    assert!(number("unnormalised_loss") <= number("bound"));
    let mapping: Vec<f64> = (0..3).flat_map(|i| numbers(&found["mapping"][i])).collect();
    let fitted = coirl::artifact::read_fitted(&folder.path("coirl-fit/fitted.safetensors")).unwrap();
    assert_eq!(fitted.mapping().unwrap().values(), mapping);
    assert_eq!(folder.read("h.jsonl"), folder.read("coirl-fit/history.jsonl"));
    let records = history(&folder, "h.jsonl");
    assert_eq!(records.len(), 9);
    for record in &records {
        assert!(record["step"].is_u64() && record["loss"].is_f64());
        assert!(record["value_ratio"].is_f64() && record["accuracy"].is_f64(), "{record}");
    }
    assert_eq!(records.last().unwrap()["value_ratio"], found["value_ratio"]);
    for file in found["files"].as_object().unwrap().values() {
        assert!(folder.path(file.as_str().unwrap()).exists());
    }
    // Without a truth there is nothing to be scored against.
    let found = json(folder.coirl(&format!("{OWN} {SHOWN} --json --history --out other")).success());
    assert!(found.get("value_ratio").is_none() && found["loss"].is_f64());
    // With one, and nothing held out, the contexts of the demonstrations have to do.
    let found = json(folder.coirl(&format!("{OWN} {SHOWN} --true-mapping truth.csv --json")).success());
    assert_eq!(found["scored_on"], "on 24 contexts that were learned from");
}

#[test]
fn every_method_learns() {
    let folder = folder();
    let first = |method: &str| {
        let found = json(folder.coirl(&format!("{OWN} {SHOWN} {SCORED} --json {method}")).success());
        (
            found["loss"].as_f64().unwrap(),
            history(&folder, "coirl-fit/history.jsonl")[0]["loss"].as_f64().unwrap_or(f64::INFINITY),
        )
    };
    for method in [
        "",
        "--method psgd --set step_size.theory.multiplier=20",
        "--method psgd --set geometry=sphere --set step_size.schedule.initial=0.3 --set step_size.schedule.decay=0.95",
        "--method psgd --set step_size.constant.multiplier=100 --set batch=full --steps 60",
        "--method adaptive --set batch.without_replacement.size=6 --passes 5",
        "--method adaptive --set batch.with_replacement.size=6 --steps 20",
        "--method adaptive --set batch=full --steps 20",
        "--method adaptive --validation 0.25 --patience 2 --passes 4",
    ] {
        let (end, start) = first(method);
        assert!(end < 0.7 * start, "{method}: {end}, from {start}");
    }
    // The true mapping has signs, which exponential weights cannot; they still run.
    first("--method ew --set step_size.theory.multiplier=100");
}

#[test]
fn stop_rules_and_starts() {
    let folder = folder();
    let run =
        |options: &str| json(folder.coirl(&format!("{OWN} {SHOWN} --method adaptive --json {options}")).success());
    let found = run("--passes 30 --record-every 1 --stop-loss 0.05");
    assert_eq!(found["status"], "loss_reached");
    assert!(found["loss"].as_f64().unwrap() <= 0.05);
    let found = run("--steps 0 --initial truth.csv");
    let size = [0.5, 0.2, 0.1, 0.3, 0.6, 0.4, 0.2, 0.1, 0.7].iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
    assert!((numbers(&found["mapping"][0])[0] - 0.5 / size).abs() < 1e-12);
    assert!(found["loss"].as_f64().unwrap().abs() < 1e-9);
    assert_eq!(run("--validation 0.25 --patience 1 --passes 50")["status"], "validation_stalled");
}

/// The numbers of a CSV table below its header; empty cells are −1.
fn cells(folder: &Folder, file: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let table = String::from_utf8(folder.read(file)).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>()).peekable();
    let named = lines.peek().unwrap()[0].parse::<f64>().is_err();
    let width = lines.peek().unwrap().len();
    let header = if named { lines.next().unwrap() } else { (0..width).map(|i| format!("column {i}")).collect() };
    let number = |cell: &String| if cell.is_empty() { -1.0 } else { cell.parse().unwrap() };
    (header, lines.map(|row| row.iter().map(number).collect()).collect())
}

fn npy(descr: &str, shape: &str, data: Vec<u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (key, array) in arrays {
        archive.start_file(format!("{key}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(array).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn matrix(rows: &[Vec<f64>]) -> Vec<u8> {
    let data = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    npy("<f8", &format!("({}, {})", rows.len(), rows[0].len()), data)
}

fn write_parquet(folder: &Folder, name: &str, columns: Vec<(String, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_form_of_a_table_gives_the_same_mapping() {
    let folder = folder();
    let mut arrays = Vec::new();
    for (name, key) in [("contexts", "contexts"), ("feature-expectations", "feature_expectations")] {
        let (header, rows) = cells(&folder, &format!("demos/{name}.csv"));
        folder.write(&format!("{key}.npy"), matrix(&rows));
        arrays.push((key, matrix(&rows)));
        let column = |i: usize| Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row[i]))) as ArrayRef;
        let columns = header.iter().enumerate().map(|(i, name)| (name.clone(), column(i))).collect();
        write_parquet(&folder, &format!("{key}.parquet"), columns);
    }
    folder.write("both.npz", npz(&arrays));
    folder.coirl(&format!("{OWN} {SHOWN} --out csv")).success();
    for (out, contexts, shown) in [
        ("npy", "contexts.npy", "feature_expectations.npy"),
        ("npz", "both.npz", "both.npz"),
        ("parquet", "contexts.parquet", "feature_expectations.parquet"),
    ] {
        let model = "fit --model demos/model.npz";
        folder.coirl(&format!("{model} --contexts {contexts} --feature-expectations {shown} --out {out}")).success();
        assert!(files(&folder, out) == files(&folder, "csv"), "{out}");
    }
}

#[test]
fn damaged_parquet_is_refused() {
    let folder = folder();
    let values = Arc::new(Float64Array::from_iter_values((0..24).map(f64::from))) as ArrayRef;
    write_parquet(&folder, "whole.parquet", ["a", "b", "c"].map(|name| (name.to_owned(), values.clone())).into());
    let whole = folder.read("whole.parquet");
    let command = format!("{OWN} --feature-expectations damaged.parquet --steps 0 --quiet --out other");
    for i in (0..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        bytes[i] ^= [0xff, 0x01, 0x80][i % 3];
        for content in [&bytes[..], &whole[..i]] {
            folder.write("damaged.parquet", content);
            let run = folder.coirl(&command);
            let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
            let code = run.get_output().status.code();
            assert!(matches!(code, Some(0 | 1)) && !stderr.contains("panicked"), "{i}: {code:?} {stderr}");
        }
    }
}

#[test]
fn every_form_of_trajectories_gives_the_same_mapping() {
    let folder = folder();
    let (header, rows) = cells(&folder, "demos/trajectories.csv");
    assert_eq!(header, ["demonstration", "step", "state", "action"]);
    let column = |i: usize| rows.iter().map(|row| row[i] as i64).collect::<Vec<i64>>();
    let long: Vec<(&str, Vec<i64>)> = header.iter().enumerate().map(|(i, name)| (name.as_str(), column(i))).collect();
    let bytes = |values: &[i64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let vector = |values: &[i64]| npy("<i8", &format!("({},)", values.len()), bytes(values));
    let arrays: Vec<(&str, Vec<u8>)> = long.iter().map(|(name, values)| (*name, vector(values))).collect();
    folder.write("long.npz", npz(&arrays));
    let actions: Vec<i64> = long[3].1.iter().copied().filter(|&action| action >= 0).collect();
    let states = npy("<i8", "(24, 13)", bytes(&long[2].1));
    folder.write("wide.npz", npz(&[("states", states), ("actions", npy("<i8", "(24, 12)", bytes(&actions)))]));
    let nullable =
        |values: &[i64]| Arc::new(values.iter().map(|&x| (x >= 0).then_some(x)).collect::<Int64Array>()) as ArrayRef;
    write_parquet(
        &folder,
        "long.parquet",
        long.iter().map(|(name, values)| (name.to_string(), nullable(values))).collect(),
    );
    // Rows may come in any order, and there may be more columns.
    let table = String::from_utf8(folder.read("demos/trajectories.csv")).unwrap();
    let mut lines: Vec<String> = table.lines().skip(1).map(|line| format!("0,{line}")).collect();
    lines.reverse();
    folder.write("mixed.csv", format!("trajectory,{}\n{}\n", header.join(","), lines.join("\n")));
    folder.coirl(&format!("{OWN} {SEEN} --out csv")).success();
    for file in ["long.npz", "wide.npz", "long.parquet", "mixed.csv"] {
        folder.coirl(&format!("{OWN} --trajectories {file} --out {file}-out")).success();
        assert!(files(&folder, &format!("{file}-out")) == files(&folder, "csv"), "{file}");
    }
    // Estimators differ, and a horizon cuts.
    for options in
        ["--estimator truncated", "--estimator truncated --horizon 5", "--estimator geometric", "--horizon 3"]
    {
        folder.coirl(&format!("{OWN} {SEEN} {options} --out other")).success();
        assert_ne!(folder.read("other/mapping.csv"), folder.read("csv/mapping.csv"), "{options}");
    }
}

#[test]
fn starts_of_demonstrations() {
    let folder = folder();
    folder.write("starts.csv", "state\n".to_owned() + &"4\n".repeat(24));
    folder.coirl(&format!("{OWN} {SHOWN} --out plain")).success();
    folder.coirl(&format!("{OWN} {SHOWN} --starts starts.csv --out started")).success();
    assert_ne!(folder.read("plain/mapping.csv"), folder.read("started/mapping.csv"));
}

#[test]
fn the_bytes_do_not_depend_on_threads() {
    let folder = folder();
    for (name, options) in [
        ("shown", SHOWN),
        ("seen", SEEN),
        ("full", "--method adaptive --set batch=full --steps 12 --feature-expectations demos/feature-expectations.csv"),
    ] {
        let run = |threads: &str| {
            let command = format!("{OWN} {options} {SCORED} --json --threads {threads} --out {name}");
            let printed = text(folder.coirl(&command).success());
            (printed, files(&folder, name))
        };
        let reference = run("1");
        assert!(run("2") == reference && run("7") == reference, "{name}");
    }
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bytes() {
    for (method, first, second) in [
        ("adaptive --set batch.without_replacement.size=5 --passes 4", 7, 11),
        ("ew --set step_size.theory.multiplier=50 --passes 2", 7, 11),
        ("psgd --validation 0.25", 7, 11),
        // During the comparison on folds, and during the fit on all demonstrations.
        ("choice --set tolerance=1e-6", 3, 8),
    ] {
        let folder = folder();
        let run = format!("{OWN} {SHOWN} {SCORED} --seed 9 --method {method}");
        let whole = text(folder.coirl(&format!("{run} --json --out whole")).success());
        let stopped = folder.coirl(&format!("{run} --json --stop-after {first} --out parts")).code(130);
        let output = stopped.get_output();
        let told = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(
            output.stdout.is_empty() && told.contains("--resume") && told.contains(&format!("step {first}")),
            "{told}"
        );
        assert!(folder.path("parts/checkpoint.json").exists() && !folder.path("parts/fitted.safetensors").exists());
        folder.coirl(&format!("{run} --json --stop-after {second} --resume --out parts")).code(130);
        let resumed = text(folder.coirl(&format!("{run} --json --resume --out parts")).success());
        assert_eq!(resumed.replace("parts/", "whole/"), whole);
        assert!(files(&folder, "parts") == files(&folder, "whole"), "{method}");
        assert!(!folder.path("parts/checkpoint.json").exists());
        // Without a checkpoint there is nothing to go on from, and the beginning will do.
        folder.coirl(&format!("{run} --resume --out parts")).success();
        assert!(files(&folder, "parts") == files(&folder, "whole"), "{method}");
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves() {
    let folder = folder();
    let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin("coirl"));
    let arguments = format!("{OWN} {SHOWN} --method adaptive --passes 1000000 --record-every 1000000 --out long");
    program.current_dir(folder.path(".")).args(arguments.split_whitespace());
    let child = program.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // The folder appears when the run begins; the handler is set right after.
    while !folder.path("long").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("checkpoint.json") && told.contains("--resume"), "{told}");
    coirl::artifact::read_checkpoint(&folder.path("long/checkpoint.json")).unwrap();
}

/// Refused with one line that has all these words, and nothing written.
fn refused(folder: &Folder, arguments: &str, words: &[&str]) {
    let before = folder.names();
    let run = folder.coirl(arguments).code(1);
    let output = run.get_output();
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.stdout.is_empty() && line.lines().count() == 1, "{arguments}: {line}");
    assert!(line.starts_with("error: ") && !line.contains("panicked"), "{arguments}: {line}");
    for word in words {
        assert!(line.contains(word), "{arguments}: {line:?} does not name {word:?}");
    }
    assert_eq!(folder.names(), before, "{arguments}");
}

#[test]
fn tables_that_do_not_fit() {
    let folder = folder();
    let shown = below_header(&folder, "demos/feature-expectations.csv");
    let contexts = below_header(&folder, "demos/contexts.csv");
    let with_line = |table: &str, line: usize, row: &str| {
        let mut lines: Vec<&str> = table.lines().collect();
        lines[line] = row;
        lines.join("\n")
    };
    folder.write("off.csv", with_line(&contexts, 3, "0.5,0.5,0.5"));
    folder.write("negative.csv", with_line(&contexts, 3, "-0.5,1,0.5"));
    folder.write("nan.csv", with_line(&contexts, 3, "nan,0.5,0.5"));
    folder.write("empty.csv", "");
    folder.write("short.csv", shown.lines().take(20).collect::<Vec<_>>().join("\n"));
    folder.write("narrow.csv", "1,2\n".repeat(24));
    folder.write("infinite.csv", with_line(&shown, 5, "1,inf,0"));
    let own = "fit --model demos/model.npz";
    let with_contexts = |file: &str| format!("{own} --contexts {file} {SHOWN}");
    refused(&folder, &with_contexts("off.csv"), &["off.csv", "row 3", "line 4", "1.5", "simplex"]);
    refused(&folder, &with_contexts("negative.csv"), &["negative.csv", "row 3", "-0.5"]);
    refused(&folder, &with_contexts("nan.csv"), &["nan.csv", "row 3", "column 0", "nan"]);
    refused(&folder, &with_contexts("empty.csv"), &["empty.csv", "no rows"]);
    refused(&folder, &with_contexts("missing.csv"), &["missing.csv"]);
    let with_shown = |file: &str| format!("{OWN} --feature-expectations {file}");
    refused(&folder, &with_shown("short.csv"), &["short.csv", "20 rows", "24 contexts"]);
    refused(&folder, &with_shown("narrow.csv"), &["narrow.csv", "2 columns", "expected 3"]);
    refused(&folder, &with_shown("infinite.csv"), &["infinite.csv", "row 5", "column 1", "inf"]);
    refused(&folder, &with_shown("empty.csv"), &["empty.csv"]);
    folder.write("table.parquet", "PAR1 this is none");
    refused(&folder, &with_shown("table.parquet"), &["table.parquet"]);
    refused(&folder, &format!("{OWN} {SHOWN} --initial narrow.csv"), &["narrow.csv", "2 columns"]);
    folder.write("tall.csv", "1,2,3\n".repeat(5));
    refused(&folder, &format!("{OWN} {SHOWN} --true-mapping tall.csv"), &["tall.csv", "5 rows", "expected 3"]);
    folder.write("starts.csv", "0\n".repeat(23) + "25\n");
    refused(&folder, &format!("{OWN} {SHOWN} --starts starts.csv"), &["starts.csv", "row 23", "25", "0 to 24"]);
    folder.write("starts.csv", "0\n".repeat(7));
    refused(&folder, &format!("{OWN} {SHOWN} --starts starts.csv"), &["starts.csv", "7 rows", "24 start states"]);
}

#[test]
fn trajectories_that_do_not_fit() {
    let folder = folder();
    let table = String::from_utf8(folder.read("demos/trajectories.csv")).unwrap();
    let run = format!("{OWN} --trajectories t.csv");
    let with_line = |row: &str, words: &[&str]| {
        let mut lines: Vec<&str> = table.lines().collect();
        lines[4] = row;
        folder.write("t.csv", lines.join("\n"));
        refused(&folder, &run, &[&["t.csv", "row 3", "line 5"], words].concat());
    };
    with_line("0,3,99,0", &["column state", "99", "0 to 24"]);
    with_line("0,3,-2,0", &["column state", "-2"]);
    with_line("0,3,1,7", &["column action", "7", "0 to 2"]);
    with_line("0,3,1.5,0", &["column state", "1.5", "whole number"]);
    with_line("0,3,,0", &["column state", "nothing"]);
    with_line("0,3,x,0", &["column state", "'x'"]);
    with_line("0,3,nan,0", &["column state"]);
    with_line("24,3,1,0", &["column demonstration", "24", "0 to 23"]);
    with_line("0,3", &["2 columns", "expected 4"]);
    // Which action is not admissible where depends on the model.
    let model = coirl::artifact::read_model(&folder.path("demos/model.npz")).unwrap();
    let missing = (0..25).flat_map(|s| (0..3).map(move |a| (s, a))).find(|&(s, a)| model.pairs().find(s, a).is_none());
    let (state, action) = missing.unwrap();
    with_line(&format!("0,3,{state},{action}"), &["column action", "not admissible", &format!("state {state}")]);
    let mut lines: Vec<&str> = table.lines().collect();
    lines.remove(4);
    folder.write("t.csv", lines.join("\n"));
    refused(&folder, &run, &["column step", "4; expected 3"]);
    folder.write("t.csv", table.lines().take(14).collect::<Vec<_>>().join("\n"));
    refused(&folder, &run, &["demonstration 1 has no row", "24 contexts"]);
    folder.write("t.csv", table.lines().take(13).collect::<Vec<_>>().join("\n"));
    refused(&folder, &run, &["column action", "last step"]);
    folder.write("t.csv", table.replace("action", "act"));
    refused(&folder, &run, &["no column \"action\"", "act"]);
    folder.write("t.csv", "demonstration,step,state,action\n");
    refused(&folder, &run, &["t.csv", "no rows"]);
    folder.write("t.npz", npz(&[("states", matrix(&[vec![0.0, 1.0]])), ("actions", matrix(&[vec![0.0, 0.0]]))]));
    refused(&folder, &format!("{OWN} --trajectories t.npz"), &["t.npz", "[1, 2]", "[N, T]"]);
}

#[test]
fn options_that_do_not_fit() {
    let folder = folder();
    refused(&folder, &format!("{OWN} {SHOWN} {SEEN}"), &["--feature-expectations", "--trajectories", "both"]);
    refused(&folder, OWN, &["--feature-expectations or --trajectories"]);
    refused(&folder, &format!("fit --contexts demos/contexts.csv {SHOWN}"), &["--model"]);
    refused(&folder, &format!("fit --model demos/model.npz {SHOWN}"), &["--contexts"]);
    refused(&folder, "fit --true-mapping truth.csv", &["--true-mapping", "--model"]);
    refused(&folder, "fit --method adaptve", &["adaptve", "did you mean adaptive"]);
    refused(&folder, "fit --method psdg", &["did you mean psgd"]);
    refused(&folder, "fit --method adaptive --set step_size=2", &["step_size", "objective, batch"]);
    refused(
        &folder,
        &format!("{OWN} {SHOWN} --method psgd --set step_size.schedule.initial=-1"),
        &["initial step", "-1"],
    );
    refused(
        &folder,
        &format!("{OWN} {SHOWN} --method adaptive --set batch.without_replacement.size=0"),
        &["batch size"],
    );
    refused(&folder, &format!("{OWN} {SHOWN} --validation 1.5"), &["1.5"]);
    refused(&folder, &format!("{OWN} {SHOWN} --validation 0.001"), &["0.001"]);
    refused(&folder, &format!("{OWN} {SEEN} --estimator geometric --horizon 4"), &["--horizon", "geometric"]);
    folder.write("file", "in the way");
    refused(&folder, &format!("{OWN} {SHOWN} --out file"), &["file", "--out needs a folder"]);
    refused(&folder, &format!("{OWN} {SHOWN} --out file/below"), &["file", "--out needs a folder"]);
    refused(&folder, &format!("{OWN} {SHOWN} --history nowhere/h.jsonl"), &["nowhere/h.jsonl"]);
    refused(&folder, "domain demonstrate grid --out other", &["--mapping", "grid"]);
}

#[test]
fn checkpoints_that_do_not_belong() {
    let folder = folder();
    folder.coirl(&format!("{OWN} {SHOWN} --stop-after 3 --out parts")).code(130);
    let kept = folder.read("parts/checkpoint.json");
    let words = ["checkpoint.json", "other data"];
    refused(&folder, &format!("{OWN} {SEEN} --resume --out parts"), &words);
    refused(
        &folder,
        &format!("{OWN} {SHOWN} --seed 8 --resume --out parts"),
        &["checkpoint.json", "seed was 0 and is now 8"],
    );
    refused(&folder, &format!("{OWN} {SHOWN} --method psgd --resume --out parts"), &["checkpoint.json", "method was"]);
    folder.coirl("domain demonstrate garnet --states 25 --actions 3 --features 3 --kernels 3 --seed 5 --mapping truth.csv --contexts 24 --out others").success();
    let other = "fit --model others/model.npz --contexts demos/contexts.csv";
    refused(&folder, &format!("{other} {SHOWN} --resume --out parts"), &words);
    assert_eq!(folder.read("parts/checkpoint.json"), kept);
    for damaged in [&kept[..kept.len() / 2], b"", b"[]", b"{\"format\": \"x\", \"checkpoint\": 1}"] {
        folder.write("parts/checkpoint.json", damaged);
        refused(&folder, &format!("{OWN} {SHOWN} --resume --out parts"), &["parts/checkpoint.json"]);
    }
}

#[test]
fn contradictory_demonstrations_leave_a_loss() {
    let folder = folder();
    let shown = below_header(&folder, "demos/feature-expectations.csv");
    let contexts = below_header(&folder, "demos/contexts.csv");
    let rows: Vec<&str> = shown.lines().collect();
    // One context, shown in ways that no reward explains together.
    folder.write("same.csv", format!("{}\n", contexts.lines().nth(2).unwrap()).repeat(rows.len()));
    folder.write("many.csv", rows.join("\n"));
    let command = "fit --model demos/model.npz --contexts same.csv --feature-expectations many.csv";
    let table = text(folder.coirl(command).success());
    assert!(table.contains("on the demonstrations, unexplained"), "{table}");
    assert!(json(folder.coirl(&format!("{command} --json")).success())["loss"].as_f64().unwrap() > 1e-3);
}
