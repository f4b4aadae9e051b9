//! Whatever the bytes of a file are, the command line ends by itself with a code that it documents: done, or refused in one line with nothing
//! left behind. It does not panic, hang, or need more memory than a multiple of the file and a constant.
#![allow(missing_docs, clippy::unwrap_used)]
#![cfg(unix)]

mod besieged;
#[path = "../../coirl/tests/effort/mod.rs"]
mod effort;
#[path = "../../coirl/tests/mutations/mod.rs"]
mod mutations;
mod running;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use besieged::{Ended, run, run_words};
use effort::{Tally, effort, seed};
use flate2::Compression;
use flate2::write::GzEncoder;
use mutations::{nested, of_format};
use parquet::arrow::ArrowWriter;
use running::Folder;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A file, in which form it is spoilt, and a command that reads it.
type Target<'a> = (&'a str, &'a str, &'a str);

/// Spoils files again and again and runs the program on them.
fn attack(name: &'static str, folder: &Folder, attempts: u64, targets: &[Target<'_>]) {
    let mut tally = Tally::new(name, "runs");
    let sound: Vec<Vec<u8>> = targets.iter().map(|(file, ..)| folder.read(file)).collect();
    for (file, _, command) in targets {
        let ended = run(folder, &format!("{name}: {file} as it was"), command);
        assert!([0, 3].contains(&ended.code), "{name}: {file} as it was: {command}: {}", ended.line);
    }
    let (mut refused, mut named) = (0_u64, 0_u64);
    for i in 0..effort(attempts) {
        let mut random = tally.random(i);
        let at = i as usize % targets.len();
        let (file, format, command) = targets[at];
        let spoilt = match format {
            "gz" => gzipped(&of_format(&mut random, "csv", &gunzipped(&sound[at]), b"")),
            _ => of_format(&mut random, format, &sound[at], &sound[(at + 1) % sound.len()]),
        };
        folder.write(file, &spoilt);
        let what = format!("{name}: seed {}, attempt {i}, {file}", seed());
        let Ended { code, line, resident } = run(folder, &what, command);
        folder.write(file, &sound[at]);
        refused += u64::from(code == 1);
        let own = Path::new(file).file_name().unwrap().to_str().unwrap();
        named += u64::from(code == 1 && line.contains(own));
        tally.tried(1);
        tally.largest("MB resident", resident as f64 / 1e6);
    }
    assert!(refused > 0, "{name}: nothing was refused");
    tally.largest("share refused", refused as f64 / effort(attempts) as f64);
    tally.largest("share of these that names the file", named as f64 / refused as f64);
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut text).unwrap();
    text
}

fn parquet_of(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// The numbers of a .csv file as Parquet, by its header. Empty cells stay empty.
fn as_parquet(csv: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(csv.to_vec()).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let column = |i: usize| -> ArrayRef {
        let whole: Option<Vec<Option<i64>>> =
            rows.iter().map(|row| if row[i].is_empty() { Some(None) } else { row[i].parse().ok().map(Some) }).collect();
        match whole {
            Some(whole) => Arc::new(Int64Array::from(whole)),
            None => {
                Arc::new(Float64Array::from(rows.iter().map(|row| row[i].parse().ok()).collect::<Vec<Option<f64>>>()))
            }
        }
    };
    parquet_of(header.iter().enumerate().map(|(i, name)| (*name, column(i))).collect())
}

/// A small model with its demonstrations under `demos`, and a run on them.
fn demonstrated() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 12 --actions 3 --features 3 --kernels 3 --seed 3";
    let expert = "--mapping truth.csv --contexts 8 --test-contexts 4 --transitions 6 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder.coirl(&format!("domain export {domain} --out other.safetensors")).success();
    folder
}

const MODEL: &str = "demos/model.npz";
const CONTEXTS: &str = "demos/contexts.csv";
const PATHS: &str = "demos/trajectories.csv";

#[test]
fn spoilt_contexts_and_mappings() {
    let folder = demonstrated();
    folder.write("contexts.csv", folder.read(CONTEXTS));
    folder.write("contexts.parquet", as_parquet(&folder.read(CONTEXTS)));
    let numbers: Vec<u8> = (0..9).flat_map(|i| [0.25_f64, 0.25, 0.5][i % 3].to_le_bytes()).collect();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }\n";
    let length = (header.len() as u16).to_le_bytes();
    let array = [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), &numbers].concat();
    folder.write("contexts.npy", &array);
    let archive = mutations::write_archive(&[("contexts.npy".into(), array)], zip::CompressionMethod::Deflated);
    folder.write("contexts.npz", archive);
    let plan = format!("plan {MODEL} --mapping truth.csv --out plans.csv --contexts");
    attack(
        "contexts and mappings",
        &folder,
        150,
        &[
            ("contexts.csv", "csv", &format!("{plan} contexts.csv")),
            ("contexts.parquet", "parquet", &format!("{plan} contexts.parquet")),
            ("contexts.npy", "npy", &format!("{plan} contexts.npy")),
            ("contexts.npz", "npz", &format!("{plan} contexts.npz")),
            ("truth.csv", "csv", &format!("{plan} contexts.csv")),
        ],
    );
}

#[test]
fn spoilt_demonstrations() {
    let folder = demonstrated();
    folder.write("paths.csv", folder.read(PATHS));
    folder.write("paths.parquet", as_parquet(&folder.read(PATHS)));
    let fit = format!("fit --model {MODEL} --contexts {CONTEXTS} --steps 1 --out run --trajectories");
    let check = format!("check --model {MODEL} --contexts {CONTEXTS} --trajectories");
    attack(
        "demonstrations",
        &folder,
        120,
        &[
            ("paths.csv", "csv", &format!("{fit} paths.csv")),
            ("paths.parquet", "parquet", &format!("{fit} paths.parquet")),
            ("paths.csv", "csv", &format!("{check} paths.csv")),
        ],
    );
}

#[test]
fn spoilt_models() {
    let folder = demonstrated();
    folder.write("model.npz", folder.read(MODEL));
    folder.write("model.safetensors", folder.read("other.safetensors"));
    attack(
        "models",
        &folder,
        150,
        &[
            ("model.npz", "npz", "info model.npz"),
            ("model.safetensors", "safetensors", "info model.safetensors"),
            ("model.npz", "npz", &format!("plan model.npz --mapping truth.csv --contexts {CONTEXTS} --max-sweeps 50")),
            ("model.safetensors", "safetensors", "plan model.safetensors --weights 1,0,0 --context 0.2,0.3,0.5"),
        ],
    );
}

#[test]
fn spoilt_runs() {
    let folder = demonstrated();
    let data = format!("--model {MODEL} --contexts {CONTEXTS} --trajectories {PATHS}");
    folder.coirl(&format!("fit {data} --steps 3 --out run -q")).success();
    folder.coirl(&format!("fit {data} --method network --set hidden.layers=4 --steps 2 --out network -q")).success();
    folder.coirl("predict run --context 0.2,0.3,0.5 --save-library library.safetensors -q").success();
    folder.coirl(&format!("fit {data} --steps 6 --stop-after 2 --out stopped -q")).code(130);
    let resume = format!("fit {data} --steps 6 --stop-after 3 --resume --out stopped");
    attack(
        "runs",
        &folder,
        160,
        &[
            ("run/fitted.safetensors", "safetensors", "info run/fitted.safetensors"),
            ("run/fitted.safetensors", "safetensors", "predict run --context 0.2,0.3,0.5"),
            ("network/fitted.safetensors", "safetensors", "predict network --context 0.2,0.3,0.5"),
            ("run/source.json", "json", "predict run --context 0.2,0.3,0.5"),
            ("run/source.json", "json", "explain run --context 0.2,0.3,0.5"),
            ("library.safetensors", "safetensors", "predict run --context 0.1,0.4,0.5 --library library.safetensors"),
        ],
    );
    // A run that goes on ends with 130 where it is stopped again, and writes into its own folder.
    let mut tally = Tally::new("checkpoints of the command line", "runs");
    let sound = folder.read("stopped/checkpoint.json");
    let mut refused = 0;
    for i in 0..effort(30) {
        let mut checkpoint: serde_json::Value = serde_json::from_slice(&sound).unwrap();
        mutations::tree(&mut tally.random(i), &mut checkpoint["checkpoint"]["state"]);
        folder.write("stopped/checkpoint.json", checkpoint.to_string());
        let output = folder.coirl(&resume).get_output().clone();
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        let what = format!("checkpoints: seed {}, attempt {i}: {line}", seed());
        assert!(output.status.code().is_some_and(|code| [1, 130].contains(&code)), "{what}");
        assert!(!line.contains("panicked"), "{what}");
        refused += u64::from(output.status.code() == Some(1));
        tally.tried(1);
    }
    assert!(refused > 0, "no checkpoint was refused");
}

/// Few stays, few columns: a spec of its own.
fn clinic() -> Folder {
    let folder = Folder::new();
    let mut table = String::from("person,day,age,sugar,weight,dose,ill\n");
    for person in 0..40_u32 {
        for visit in 0..5_u32 {
            let sugar = 60 + (person * 7 + visit * 11) % 40;
            let (weight, dose) = (60.5 + f64::from((person * 3 + visit) % 30), (person + visit) % 3);
            let (day, age, ill) = (visit * 90, 30 + person % 50, u32::from(person % 5 == 0));
            table += &format!("p{person},{day},{age},{sugar},{weight},{dose},{ill}\n");
        }
    }
    folder.write("table.csv", &table);
    folder.write("table.csv.gz", gzipped(table.as_bytes()));
    folder.write("table.parquet", as_parquet(table.replace('p', "").replace("erson", "person").as_bytes()));
    let spec = "[table]\npath = \"table.csv\"\nstay = \"person\"\ntime = \"day\"\n[cohort]\nstep = 90.0\nmin_steps = 2\n\
        [context]\nfields = [\"age\"]\nat_start = [\"weight\"]\n[state]\nmeasurements = [\"sugar\", \"weight\"]\nclusters = 4\n\
        [action]\ncolumn = \"dose\"\n[outcome]\ncolumn = \"ill\"\nbad = 1\n[dynamics]\nmin_support = 1\n";
    folder.write("spec.toml", spec);
    folder
}

#[test]
fn spoilt_tables_and_specs() {
    let folder = clinic();
    let at = |path: &str| format!("cohort lint spec.toml --set table.path={path}");
    attack(
        "tables and specs",
        &folder,
        200,
        &[
            ("table.csv", "csv", &at("table.csv")),
            ("table.csv.gz", "gz", &at("table.csv.gz")),
            ("table.parquet", "parquet", &at("table.parquet")),
            ("spec.toml", "toml", "cohort lint spec.toml"),
            ("table.csv", "csv", "cohort build spec.toml --out cohort"),
        ],
    );
}

#[test]
fn spoilt_cohorts() {
    let folder = clinic();
    folder.coirl("cohort build spec.toml --out c -q").success();
    folder.coirl("fit c --steps 2 --out run -q").success();
    let fit = "fit c --method majority --out other";
    let score = "cohort score run --resamples 2 --no-off-policy";
    attack(
        "cohorts",
        &folder,
        160,
        &[
            ("c/cohort.json", "json", fit),
            ("c/cohort.json", "json", score),
            ("c/train/contexts.csv", "csv", fit),
            ("c/train/trajectories.csv", "csv", fit),
            ("c/train/stays.csv", "csv", fit),
            ("c/test/stays.csv", "csv", score),
            ("c/test/points.npy", "npy", score),
            ("c/model.safetensors", "safetensors", fit),
        ],
    );
}

#[test]
fn spoilt_results_of_experiments() {
    let folder = Folder::new();
    let tiny = "--quick --set study.contexts=4 --set study.every=2 --set study.test_contexts=2 --seeds 1";
    let again = format!("experiment run driving-online {tiny} --out out");
    folder.coirl(&format!("{again} -q")).success();
    std::fs::create_dir(folder.path("out/another")).unwrap();
    folder.write("out/another/results.json", folder.read("out/driving-online/results.json"));
    attack(
        "experiments",
        &folder,
        15,
        &[
            ("out/another/results.json", "json", &again),
            ("out/another/results.json", "json", &again),
            ("out/another/results.json", "json", &again),
            ("out/driving-online/seeds/0.json", "json", &again),
            ("out/driving-online/timings.json", "json", &again),
        ],
    );
}

/// The error of a command that must be refused.
fn refused(folder: &Folder, arguments: &str) -> String {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    refused_words(folder, &words)
}

fn refused_words(folder: &Folder, words: &[&str]) -> String {
    let ended = run_words(folder, "to be refused", words);
    assert_eq!(ended.code, 1, "{:.200}: accepted", words.join(" "));
    ended.line
}

#[test]
fn devices_and_pipes_were_read_for_ever() {
    let folder = clinic();
    folder.write("mapping.csv", running::MAPPING);
    for extension in ["csv", "csv.gz", "parquet", "toml", "npy", "npz", "safetensors"] {
        std::os::unix::fs::symlink("/dev/zero", folder.path(&format!("zero.{extension}"))).unwrap();
        let pipe = folder.path(&format!("pipe.{extension}"));
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        std::fs::create_dir(folder.path(&format!("folder.{extension}"))).unwrap();
    }
    for what in ["zero", "pipe", "folder"] {
        for command in [
            format!("cohort lint spec.toml --set table.path={what}.csv"),
            format!("cohort lint spec.toml --set table.path={what}.csv.gz"),
            format!("cohort lint spec.toml --set table.path={what}.parquet"),
            format!("cohort lint {what}.toml"),
            format!("experiment run {what}.toml"),
            format!("plan driving --weights-file {what}.csv"),
            format!("plan driving --weights-file {what}.npy"),
            format!("plan driving --weights-file {what}.npz"),
            format!("plan driving --weights-file {what}.parquet"),
            format!("info {what}.npz"),
            format!("info {what}.safetensors"),
            format!("plan driving --mapping mapping.csv --contexts {what}.csv"),
        ] {
            let line = refused(&folder, &command);
            assert!(line.contains(&format!("{what}.")) && line.contains("is "), "{command}: {line}");
        }
    }
}

#[test]
fn a_pipe_beside_a_table_is_not_taken_for_its_truth() {
    let folder = clinic();
    assert!(std::process::Command::new("mkfifo").arg(folder.path("table.truth.json")).status().unwrap().success());
    assert!(refused(&folder, "cohort build spec.toml --out cohort").contains("table.truth.json"));
}

#[test]
fn a_key_of_sixty_thousand_parts_overflowed_the_stack() {
    let folder = clinic();
    let setting = format!("{}=1", vec!["a"; 60_000].join("."));
    for command in [["cohort", "lint", "spec.toml"], ["experiment", "run", "driving-online"]] {
        let line = refused_words(&folder, &[command.as_slice(), &["--set", &setting]].concat());
        assert!(line.contains("parts"), "{line}");
    }
}

#[test]
fn nesting_does_not_exhaust_the_stack() {
    let folder = clinic();
    folder.coirl("cohort build spec.toml --out c -q").success();
    folder.coirl("fit c --steps 1 --out run -q").success();
    let deep = 100_000;
    for (open, close) in [("a = [", "]"), ("a = {a=", "}"), ("[", "]"), ("a.", " = 1"), ("[a.", "]"), ("[[", "]]")] {
        folder.write("deep.toml", nested(open, close, deep));
        for command in ["cohort lint deep.toml", "experiment run deep.toml", "fit deep.toml --out r"] {
            assert!(refused(&folder, command).contains("deep.toml"));
        }
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        folder.write("c/cohort.json", nested(open, close, deep));
        assert!(refused(&folder, "fit c --out other").contains("cohort.json"));
        folder.write("run/source.json", nested(open, close, deep));
        assert!(refused(&folder, "explain run").contains("source.json"));
        folder.write("table.truth.json", nested(open, close, deep));
        assert!(refused(&folder, "cohort build spec.toml --out cohort").contains("truth.json"));
    }
}

/// Seeds that nobody has time for are the user's affair; room for their results is made as they come.
#[test]
fn room_for_all_seeds_at_once_was_more_than_there_is() {
    let folder = Folder::new();
    // The first seed is run, and cannot be written.
    std::fs::create_dir_all(folder.path("out/driving-online/seeds/0.json")).unwrap();
    let tiny = "--quick --set study.contexts=4 --set study.every=2 --set study.test_contexts=2";
    let line = refused(&folder, &format!("experiment run driving-online {tiny} --seeds 9223372036854775807 --out out"));
    assert!(line.contains("seeds/0.json: "), "{line}");
}

/// The cohort of the table, built.
fn built(folder: &Folder) -> serde_json::Value {
    running::json(folder.coirl("cohort build spec.toml --out built --json -q").success())
}

#[test]
fn ids_of_more_than_forty_characters_were_cut_and_so_became_one() {
    let folder = clinic();
    let short = built(&folder)["stays"].clone();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    folder.write("table.csv", table.replace("\np", "\nhttps://hospital.example/fhir/r4/Encounter/number-"));
    assert_eq!(built(&folder)["stays"], short);
}

#[test]
fn names_of_columns_may_be_longer_than_forty_characters() {
    let folder = clinic();
    let long = "sugar_in_capillary_blood_before_breakfast_in_milligrams_per_decilitre";
    for file in ["table.csv", "spec.toml"] {
        let text = String::from_utf8(folder.read(file)).unwrap();
        folder.write(file, text.replace("sugar", long));
    }
    assert_eq!(built(&folder)["states"], serde_json::json!(built(&clinic())["states"]));
}

#[test]
fn numbers_of_a_path_may_have_more_than_forty_digits() {
    let folder = demonstrated();
    let paths = String::from_utf8(folder.read(PATHS)).unwrap();
    folder.write(PATHS, paths.replace("\n0,0,", &format!("\n0,0.{},", "0".repeat(50))));
    let ended =
        run(&folder, "long numbers", &format!("check --model {MODEL} --contexts {CONTEXTS} --trajectories {PATHS}"));
    assert_eq!(ended.code, 0, "{}", ended.line);
}

#[test]
fn ids_that_are_no_utf_8_are_refused_and_not_made_one() {
    let folder = clinic();
    let table = folder.read("table.csv");
    let latin: Vec<u8> = table.iter().flat_map(|&byte| if byte == b'p' { vec![0xfc] } else { vec![byte] }).collect();
    let header = b"person,day,age,sugar,weight,dose,ill\n";
    folder.write("table.csv", [header, &latin[header.len()..]].concat());
    let line = refused(&folder, "cohort lint spec.toml");
    assert!(line.contains("table.csv: row 1 (line 2), column person") && line.contains("UTF-8"), "{line}");
}

#[test]
fn a_number_in_the_billions_taken_for_an_action_filled_the_memory() {
    let folder = clinic();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    for number in ["70000", "4294967295", "1e15", "9e18"] {
        let changed: String = table
            .lines()
            .map(|line| match line.strip_suffix(",2,0") {
                Some(rest) => format!("{rest},{number},0\n"),
                None => format!("{line}\n"),
            })
            .collect();
        folder.write("table.csv", changed);
        for command in ["cohort lint spec.toml", "cohort build spec.toml --out cohort"] {
            let line = refused(&folder, command);
            assert!(line.contains("table.csv: row ") && line.contains("column dose: "), "{line}");
        }
    }
    folder.write("table.csv", &table);
    for number in ["0", "4294967295"] {
        let line = refused(&folder, &format!("cohort lint spec.toml --set action.number={number}"));
        assert!(line.contains("actions"), "{line}");
    }
}

#[test]
fn marks_and_line_ends_of_spreadsheets_are_understood() {
    let folder = clinic();
    let usual = built(&folder)["stays"].clone();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    for changed in [format!("\u{feff}{table}"), table.replace('\n', "\r\n"), table.replace('\n', "\r")] {
        folder.write("table.csv", changed);
        assert_eq!(built(&folder)["stays"], usual);
    }
    let spec = String::from_utf8(folder.read("spec.toml")).unwrap();
    folder.write("spec.toml", format!("\u{feff}{}", spec.replace('\n', "\r\n")));
    assert_eq!(built(&folder)["stays"], usual);
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(table.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    folder.write("table.csv", &wide);
    assert!(refused(&folder, "cohort lint spec.toml").contains("UTF-16"));
    folder.write("weights.csv", &wide);
    assert!(refused(&folder, "plan driving --weights-file weights.csv").contains("UTF-16"));
}

#[test]
fn text_that_does_not_end_is_read_in_proportion() {
    let folder = clinic();
    let table = String::from_utf8(folder.read("table.csv")).unwrap();
    let million = 1_000_000;
    for (text, word) in [
        (format!("{}\n1\n", vec!["a"; million].join(",")), "person"),
        (",".repeat(million), "person"),
        (format!("{table}\"{}", "x,\n".repeat(million)), "table.csv"),
        (format!("{table}{}\n", ",".repeat(million)), "1000001 cells"),
        ("\0".repeat(million), "person"),
        ("\n".repeat(million), "empty"),
        (String::new(), "empty"),
    ] {
        folder.write("table.csv", &text);
        let ended = run(&folder, word, "cohort lint spec.toml");
        assert_eq!(ended.code, 1, "{word}");
        assert!(ended.line.contains("table.csv") && ended.line.contains(word), "{word}: {:.300}", ended.line);
        assert!(ended.resident < 400 << 20, "{word}: {} bytes", ended.resident);
        folder.write("weights.csv", &text);
        assert!(refused(&folder, "plan driving --weights-file weights.csv").contains("weights.csv"));
        folder.write("contexts.csv", &text);
        let check = "check --model driving --contexts contexts.csv --trajectories contexts.csv";
        assert!(refused(&folder, check).contains("contexts.csv"));
    }
}

#[test]
fn bombs_of_gzip_are_refused() {
    let folder = clinic();
    // Members of a gzip file that follow each other are one text.
    let endless_line = gzipped(&[b'x'; 1 << 20]).repeat(300);
    let rows = gzipped(&b"p0,0,30,60,60.5,0,0\n".repeat(50_000)).repeat(300);
    let endless_rows = [gzipped(b"person,day,age,sugar,weight,dose,ill\n"), rows].concat();
    let bombs = [(endless_line, "unpacks to more than"), (endless_rows, "unpacks to more than")];
    // Rows are looked at one by one, which takes seconds.
    for (bomb, word) in bombs.into_iter().take(effort(1).min(2) as usize) {
        folder.write("table.csv.gz", bomb);
        let ended = run(&folder, "a bomb", "cohort lint spec.toml --set table.path=table.csv.gz");
        assert_eq!(ended.code, 1, "{}", ended.line);
        assert!(ended.line.contains("table.csv.gz") && ended.line.contains(word), "{}", ended.line);
        assert!(ended.resident < 1 << 30, "{} bytes", ended.resident);
    }
}

/// Equal cells are a few bytes, however many they are.
#[test]
fn bombs_of_parquet_are_refused() {
    let folder = clinic();
    let n = 3_000_000;
    let names = ["person", "day", "age", "sugar", "weight", "dose", "ill"];
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; n]));
    folder.write("table.parquet", parquet_of(names.map(|name| (name, zeros.clone())).to_vec()));
    let line = refused(&folder, "cohort lint spec.toml --set table.path=table.parquet");
    assert!(line.contains("table.parquet: "), "{line}");
    folder.write("contexts.parquet", folder.read("table.parquet"));
    let line = refused(&folder, "plan driving --weights-file contexts.parquet");
    assert!(line.contains("unpacks to more than"), "{line}");
}

#[test]
fn the_corpus_is_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    let mut tally = Tally::new("corpus of the command line", "runs");
    let folder = clinic();
    folder.write("mapping.csv", running::MAPPING);
    for format in std::fs::read_dir(&corpus).unwrap() {
        let format = format.unwrap().path();
        for file in std::fs::read_dir(&format).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            folder.write(name, std::fs::read(&path).unwrap());
            let commands = match format.file_name().unwrap().to_str().unwrap() {
                "table" => vec![format!("cohort lint spec.toml --set table.path={name}")],
                "spec" => vec![format!("cohort lint {name}"), format!("experiment run {name}")],
                _ => vec![
                    format!("plan driving --mapping mapping.csv --contexts {name}"),
                    format!("plan driving --weights-file {name}"),
                ],
            };
            for command in commands {
                let line = refused(&folder, &command);
                assert!(line.contains(name), "{command}: {line}");
                tally.tried(1);
            }
        }
    }
}
