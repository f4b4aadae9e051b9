//! `coirl experiment` and `coirl reproduce`: results that are the same twice, that go on where they were stopped, and verdicts that follow from them.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::page::{in_browser, well_formed};
use running::{Folder, json, text};
use serde_json::Value;

const TINY: &str = "--quick --set study.contexts=16 --set study.every=4 --set study.test_contexts=5";

fn results(folder: &Folder, out: &str) -> Value {
    serde_json::from_slice(&folder.read(&format!("{out}/driving-online/results.json"))).unwrap()
}

#[test]
fn experiments_are_listed_and_their_files_printed() {
    let folder = Folder::new();
    let listed = json(folder.coirl("experiment list --json").success());
    let names: Vec<&str> =
        listed["experiments"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 11 && names.contains(&"sepsis-linear"), "{names:?}");
    for name in names {
        let shown = text(folder.coirl(&format!("experiment show {name}")).success());
        assert!(shown.contains("title = ") && shown.contains("[[claim]]"), "{name}");
    }
    let refused = folder.coirl("experiment show drivin-online").failure().code(1);
    let message = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(message.contains("did you mean 'driving-online'"), "{message}");
}

#[test]
fn a_run_leaves_everything_behind_and_the_same_twice() {
    let folder = Folder::new();
    let run = |out: &str, threads: u32| {
        folder.coirl(&format!("experiment run driving-online {TINY} --out {out} --threads {threads} --quiet")).success()
    };
    run("one", 1);
    run("two", 3);
    for file in ["results.json", "results.csv", "figure.svg", "figure.png", "value.svg", "value.png", "experiment.toml"]
    {
        let (a, b) =
            (folder.read(&format!("one/driving-online/{file}")), folder.read(&format!("two/driving-online/{file}")));
        assert!(!a.is_empty() && a == b, "{file}");
    }
    assert_eq!(folder.read("one/report.html"), folder.read("two/report.html"));
    let found = results(&folder, "one");
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    assert!(!String::from_utf8(folder.read("one/driving-online/results.json")).unwrap().contains("seconds"));
    // The settings that were written repeat the run.
    folder.coirl("experiment run one/driving-online/experiment.toml --out again --quiet").success();
    let again: Value = serde_json::from_slice(&folder.read("again/experiment/results.json")).unwrap();
    assert_eq!(again["runs"], found["runs"]);
    // The table says what the results say.
    let table = String::from_utf8(folder.read("one/driving-online/results.csv")).unwrap();
    assert!(table.starts_with("method,measure,x,mean,standard deviation,seeds,seed 0,seed 1\n"), "{table:.100}");
    let first = &found["means"][0];
    let row = format!(
        "{},{},{},",
        first["method"].as_str().unwrap(),
        first["measure"].as_str().unwrap(),
        first["points"][0]["x"]
    );
    assert!(table.contains(&row.replace(".0,", ",")), "{row}");
}

#[test]
fn finished_seeds_are_kept_as_long_as_nothing_changes() {
    let folder = Folder::new();
    let run = |more: &str| {
        folder.coirl(&format!("experiment run driving-online {TINY} --out out --quiet {more}")).success();
        results(&folder, "out")
    };
    let first = run("");
    // A seed that was kept is read, not run: what is changed in it is seen in the results.
    let path = "out/driving-online/seeds/1.json";
    let mut seed: Value = serde_json::from_slice(&folder.read(path)).unwrap();
    seed["run"]["curves"][0]["points"][0][1] = 42.0.into();
    folder.write(path, seed.to_string());
    assert_eq!(run("")["runs"][1]["curves"][0]["points"][0][1], 42.0);
    let more = run("--seeds 3");
    assert_eq!(
        (more["runs"][1]["curves"][0]["points"][0][1].as_f64(), more["runs"].as_array().unwrap().len()),
        (Some(42.0), 3)
    );
    assert_eq!(more["runs"][0], first["runs"][0]);
    // With other settings it is run again, and so is one whose file was cut.
    let other = run("--set study.test_contexts=4");
    assert_ne!(other["runs"][1]["curves"][0]["points"][0][1], 42.0);
    folder.write(path, "{\"made_with\":");
    assert_eq!(run("")["runs"], first["runs"]);
}

#[test]
fn verdicts_follow_from_the_results() {
    let folder = Folder::new();
    folder.coirl("experiment run driving-online --quick --set study.contexts=150 --out out --quiet").success();
    let verdict = |found: &Value| found["claims"][0]["verdict"].as_str().unwrap().to_owned();
    let mut found = results(&folder, "out");
    assert_eq!(verdict(&found), "reproduced");
    let page = String::from_utf8(folder.read("out/report.html")).unwrap();
    well_formed(&page);
    assert!(page.contains("verdict holds") && page.contains("verdict fails"), "EW with the theory's step is not ahead");
    // Somebody changes a result: the page says something else.
    for run in found["runs"].as_array_mut().unwrap() {
        for curve in run["curves"].as_array_mut().unwrap().iter_mut().filter(|curve| curve["method"] == "EW") {
            for point in curve["points"].as_array_mut().unwrap() {
                point[1] = 0.1.into();
            }
        }
    }
    folder.write("out/driving-online/results.json", found.to_string());
    folder.coirl("report out --quiet").success();
    let changed = String::from_utf8(folder.read("out/report.html")).unwrap();
    assert!(changed.contains("verdict partly") && changed != page, "the verdict is as it was");
}

#[test]
fn a_page_is_read_by_a_real_browser() {
    let folder = Folder::new();
    folder.coirl(&format!("experiment run driving-online {TINY} --out out --quiet")).success();
    folder.coirl("fit --shipped driving --method adaptive --steps 10 --out run --quiet").success();
    folder.coirl("report run --quiet").success();
    for (page, figures) in [("out/report.html", 3 + 4), ("run/report.html", 1)] {
        // Three curves of the experiment and four scenes of the domains; the convergence of a run.
        let Some((dom, errors)) = in_browser(&folder.path(page)) else { return };
        assert!(errors.is_empty(), "{page}: {errors}");
        assert_eq!(dom.matches("<figure").count(), figures, "{page}");
        assert!(dom.matches("<svg").count() >= figures && dom.contains("</html>"), "{page}");
    }
}

#[test]
fn what_is_given_is_used() {
    let folder = Folder::new();
    running::write_contexts(&folder, 20);
    folder.write("start.csv", "1,0,0\n0,1,0\n0,0,1\n");
    let run = |more: &str, out: &str| {
        folder.coirl(&format!("experiment run driving-online {TINY} --out {out} --quiet {more}")).success();
        results(&folder, out)
    };
    let given = run("--contexts contexts.csv --initial start.csv --mapping mapping.csv", "given");
    assert_eq!(given["given"].as_array().unwrap().len(), 3);
    let drawn = run("", "drawn");
    assert_ne!(given["runs"], drawn["runs"]);
    // A mapping that everybody starts from explains everything from the start.
    folder.write("wanted.csv", "0.05,0,0.05\n0,0.4,0\n0.05,0.45,0\n");
    let known = run("--mapping wanted.csv --initial wanted.csv --contexts contexts.csv", "known");
    for run in known["runs"].as_array().unwrap() {
        let value = run["curves"].as_array().unwrap().iter().find(|c| c["measure"] == "value").unwrap();
        assert!((value["points"][0][1].as_f64().unwrap() - 1.0).abs() < 1e-9, "{value}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new();
    running::write_contexts(&folder, 5);
    folder.write("mine.toml", "title = \"x\"\nabout = \"y\"\nseeds = 1\n[study]\nkind = \"onlin\"\n");
    folder.write("short.csv", "1,2\n");
    for (arguments, code, words) in [
        ("experiment run mine.toml --out o", 1, &["mine.toml", "did you mean 'online'"][..]),
        ("experiment run no.toml --out o", 1, &["no.toml"]),
        ("experiment run driving-online --set study.contxts=4 --out o", 1, &["contxts", "did you mean 'contexts'"]),
        ("experiment run driving-online --set seeds --out o", 2, &["KEY=VALUE"]),
        ("experiment run driving-online --seeds 0 --out o", 2, &["--seeds"]),
        ("experiment run driving-online --contexts contexts.csv --out o", 1, &["contexts given", "500"]),
        ("experiment run driving-online --initial short.csv --out o", 1, &["short.csv", "3 rows of 3"]),
        ("experiment run patients --quick --initial short.csv --out o", 2, &["table of patients"]),
        ("experiment run driving-online --quick --paper-scale --out o", 2, &["--paper-scale"]),
    ] {
        let refused = folder.coirl(arguments).failure().code(code);
        let message = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{arguments}: {message}");
    }
}
