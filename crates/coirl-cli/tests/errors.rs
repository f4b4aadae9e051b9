//! Bad input: a code, one line that says what is wrong and where, and nothing left behind.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, write_contexts};

/// The one line on standard error of a refused command, which leaves the folder as it was.
fn refused(folder: &Folder, arguments: &str) -> String {
    let before = folder.names();
    let run = folder.coirl(arguments).code(1);
    let output = run.get_output();
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.stdout.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(stderr.lines().count(), 1, "{arguments}: {stderr}");
    assert!(stderr.starts_with("error: ") && !stderr.contains("panicked"), "{arguments}: {stderr}");
    assert_eq!(folder.names(), before, "{arguments}");
    stderr.trim_end().to_owned()
}

/// Refused, with all these words in the line.
fn refused_naming(folder: &Folder, arguments: &str, words: &[&str]) {
    let line = refused(folder, arguments);
    for word in words {
        assert!(line.contains(word), "{arguments}: {line:?} does not name {word:?}");
    }
}

#[test]
fn models_that_are_none() {
    let folder = Folder::new();
    folder.write("text.npz", "hello, this is no archive");
    folder.write("empty.npz", "");
    std::fs::create_dir(folder.path("folder")).unwrap();
    for model in ["missing.npz", "folder", "text.npz", "empty.npz"] {
        refused_naming(&folder, &format!("plan {model} --weights 1,0,0 --out plan.csv"), &[model]);
        refused_naming(&folder, &format!("info {model}"), &[model]);
    }
}

#[test]
fn a_truncated_model() {
    let folder = Folder::new();
    for name in ["model.npz", "model.safetensors"] {
        folder.coirl(&format!("domain export driving --out {name}")).success();
        let whole = folder.read(name);
        for n in [7, 100, whole.len() / 2, whole.len() - 1] {
            folder.write(name, &whole[..n]);
            refused_naming(&folder, &format!("info {name}"), &[name]);
        }
    }
}

#[test]
fn a_small_file_that_claims_a_trillion_states() {
    let folder = Folder::new();
    folder.write(
        "huge.npz",
        archive(&[("discount", "()", &0.9_f64.to_le_bytes()), ("initial", "(1000000000000,)", &[])]),
    );
    refused_naming(&folder, "info huge.npz", &["huge.npz"]);
    let wide = ("transitions", "(1000000000000, 2, 1000000000000)", [0; 64].as_slice());
    folder.write("wide.npz", archive(&[wide, ("features", "(1000000000000, 3)", &[0; 64])]));
    refused_naming(&folder, "plan wide.npz --weights 1,0,0", &["wide.npz"]);
}

#[test]
fn weights_that_do_not_fit() {
    let folder = Folder::new();
    refused_naming(&folder, "plan driving --weights 0.1,nan,-0.5", &["--weights", "entry 1", "NaN"]);
    refused_naming(&folder, "plan driving --weights 0.1,-1,-inf", &["entry 2", "-inf"]);
    refused_naming(&folder, "plan driving --weights 0.1,-1", &["2 numbers", "3 features", "speed"]);
    refused_naming(&folder, "plan driving --weights 1,2,3,4,5,6", &["6 numbers", "3 features"]);
    folder.write("weights.csv", "1,2\n");
    refused_naming(&folder, "plan driving --weights-file weights.csv", &["weights.csv", "2 columns", "expected 3"]);
    refused(&folder, "plan driving --weights 1e308,1e308,1e308");
}

#[test]
fn tables_that_are_none() {
    let folder = Folder::new();
    write_contexts(&folder, 5);
    folder.write("empty.csv", "");
    folder.write("header.csv", "speed,collision,off-road\n");
    folder.write("ragged.csv", "a,b,c\n0.2,0.3,0.5\n0.2,0.8\n");
    folder.write("long.csv", "0.2,0.3,0.5\n0.2,0.3,0.5,9.5\n");
    folder.write("words.csv", "a,b,c\n0.2,0.3,0.5\n0.2,much,0.5\n");
    folder.write("nan.csv", "0.2,0.3,0.5\nnan,0.3,0.5\n");
    folder.write("off.csv", "0.2,0.3,0.5\n0.2,0.3,0.4\n");
    folder.write("negative.csv", "1.2,-0.2,0\n");
    folder.write("wide.csv", "0.25,0.25,0.25,0.25\n");
    folder.write("binary.csv", [0xff, 0xfe, 0, 1, b',', 7]);
    folder.write("contexts.txt", "0.2,0.3,0.5\n");
    let contexts = |file: &str| format!("plan driving --mapping mapping.csv --contexts {file} --out plans.csv");
    for (file, words) in [
        ("missing.csv", ["missing.csv", "No such file"].as_slice()),
        ("empty.csv", &["empty.csv", "no rows"]),
        ("header.csv", &["header.csv", "no rows"]),
        ("ragged.csv", &["ragged.csv", "row 1", "line 3", "column 2", "expected 3"]),
        ("long.csv", &["long.csv", "row 1", "line 2", "column 3", "9.5", "expected 3"]),
        ("words.csv", &["words.csv", "row 1", "line 3", "column 1 (b)", "'much'", "finite number"]),
        ("nan.csv", &["nan.csv", "row 1", "column 0", "'nan'", "finite number"]),
        ("off.csv", &["off.csv", "row 1", "line 2", "simplex"]),
        ("negative.csv", &["negative.csv", "row 0", "-0.2"]),
        ("wide.csv", &["wide.csv", "row 0", "4 numbers", "expected 3"]),
        ("binary.csv", &["binary.csv"]),
        ("contexts.txt", &["contexts.txt", ".csv"]),
    ] {
        refused_naming(&folder, &contexts(file), words);
    }
    folder.write("narrow.csv", "1,2\n3,4\n5,6\n");
    folder.write("short.csv", "1,2,3\n4,5,6\n");
    let mapping = |file: &str| format!("plan driving --mapping {file} --contexts contexts.csv --json");
    refused_naming(&folder, &mapping("narrow.csv"), &["narrow.csv", "2 columns", "expected 3"]);
    refused_naming(&folder, &mapping("short.csv"), &["contexts.csv", "row 0", "2 rows"]);
    folder.write("weights.csv", "1,2,3\n4,5,6\n");
    let both = "plan driving --weights-file weights.csv --contexts contexts.csv";
    refused_naming(&folder, both, &["weights.csv", "2 rows", "5 contexts"]);
}

#[test]
fn arrays_that_are_none() {
    let folder = Folder::new();
    write_contexts(&folder, 5);
    folder.write("huge.npy", array("(1000000000000, 3)", &[0; 24]));
    folder.write("nan.npy", array("(1, 3)", &[f64::NAN, 0.5, 0.5].map(f64::to_le_bytes).concat()));
    folder.write("cube.npy", array("(1, 1, 3)", &[0; 24]));
    folder.write("none.npy", array("(0, 3)", &[]));
    folder.write("text.npy", "no array");
    let three = [0; 24].as_slice();
    folder.write("two.npz", archive(&[("a", "(1, 3)", three), ("b", "(1, 3)", three)]));
    for (file, words) in [
        ("huge.npy", ["huge.npy"].as_slice()),
        ("nan.npy", &["nan.npy", "row 0", "column 0", "NaN"]),
        ("cube.npy", &["cube.npy", "[1, 1, 3]"]),
        ("none.npy", &["none.npy", "no rows"]),
        ("text.npy", &["text.npy"]),
        ("two.npz", &["two.npz", "contexts"]),
    ] {
        refused_naming(&folder, &format!("plan driving --mapping mapping.csv --contexts {file}"), words);
    }
}

#[test]
fn single_contexts_and_settings() {
    let folder = Folder::new();
    folder.write("mapping.csv", running::MAPPING);
    refused_naming(&folder, "plan driving --mapping mapping.csv --context 0.5,0.6,0.1", &["simplex"]);
    refused_naming(&folder, "plan driving --mapping mapping.csv --context nan,0.6,0.4", &["entry 0"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --discount 1.5", &["1.5"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --discount 1", &["absorbing"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --tolerance -1", &["tolerance"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --max-sweeps 0", &["max_sweeps"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --horizon 0", &["horizon"]);
    refused_naming(&folder, "plan driving --weights 1,0,0 --start 1531", &["1531", "1530"]);
    refused_naming(&folder, "domain show grid --width 0", &["0 states"]);
    refused_naming(&folder, "domain show grid --width 100000 --height 100000", &["10000000000"]);
    refused_naming(&folder, "domain show garnet --states 18446744073709551615", &["18446744073709551615"]);
    refused_naming(&folder, "domain show garnet --successors 101", &["n_successors"]);
    refused_naming(&folder, "domain show maze --side 18446744073709551615", &["--side", "18446744073709551615"]);
    refused_naming(&folder, "domain show maze --slip 1.5", &["slip", "1.5"]);
    refused_naming(&folder, "domain show pendulum --grid 1", &["grid", "at least 2"]);
    refused_naming(&folder, "domain show epidemic --people 0", &["people", "at least 1"]);
    refused_naming(&folder, "domain show driving --discount nan", &["NaN"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("taken.csv")).unwrap();
    for file in ["nowhere/plan.csv", "nowhere/plan.npz", "taken.csv", "plan.unknown"] {
        refused_naming(&folder, &format!("plan driving --weights 1,0,0 --out {file}"), &[file]);
    }
    refused_naming(&folder, "domain export driving --out nowhere/model.npz", &["nowhere/model.npz"]);
    refused_naming(&folder, "domain export driving --out model.txt", &["model.txt", ".npz"]);
}

#[test]
fn a_mistyped_domain_gets_its_name() {
    let folder = Folder::new();
    let run = folder.coirl("plan drivng --weights 1,0,0").code(1);
    let stderr = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(stderr.starts_with("error: drivng: ") && stderr.contains("\nhelp: ") && stderr.contains("'driving'"));
    let run = folder.coirl("plan garnet --weights 1,0,0,0,0 --context 1").success();
    assert!(run.get_output().stderr.is_empty());
}

#[test]
fn wrong_usage_has_its_own_code() {
    let folder = Folder::new();
    for arguments in [
        "plan driving",
        "plan driving --weights 1,x,0",
        "plan driving --weights 1,0,0 --weights-file w.csv",
        "plan driving --mapping mapping.csv",
        "plan driving --weights 1,0,0 --average --horizon 3",
        "plan driving --weights 1,0,0 --format npz",
        "plan driving --weights 1,0,0 --format csv --json",
        "plan driving --weights 1,0,0 --threads 0",
        "domain show nothing",
        "domain export driving",
        "domain show driving --actions 4",
    ] {
        let run = folder.coirl(arguments).code(2);
        let stderr = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(stderr.starts_with("error: ") && !stderr.contains("panicked"), "{arguments}: {stderr}");
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_stops_early_is_no_error() {
    use std::process::{Command, Stdio};
    for arguments in
        [["plan", "driving", "--weights", "1,0,0", "--json"], ["plan", "driving", "--weights", "1,0,0", "-q"]]
    {
        let mut program = Command::new(assert_cmd::cargo::cargo_bin("coirl"));
        let mut child = program.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A .npy file of doubles with this claimed shape.
fn array(shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
}

/// A .npz file of such arrays.
fn archive(arrays: &[(&str, &str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (key, shape, data) in arrays {
        archive.start_file(format!("{key}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&array(shape, data)).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = Folder::new();
    write_contexts(&folder, 4);
    folder.coirl("domain export driving --out model.npz -q").success();
    let before = ["model.npz", "contexts.csv", "mapping.csv"].map(|name| folder.read(name));
    for name in ["model.npz", "./contexts.csv", "mapping.csv"] {
        let plan = format!("plan model.npz --contexts contexts.csv --mapping mapping.csv --format csv --out {name}");
        refused_naming(&folder, &plan, &[name, "is read by this command"]);
    }
    assert_eq!(["model.npz", "contexts.csv", "mapping.csv"].map(|name| folder.read(name)), before);
}
