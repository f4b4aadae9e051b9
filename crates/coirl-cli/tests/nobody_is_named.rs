//! What is passed on, a report, a fitted file, a model, scores, names nobody, and tells of no group that is too small; the
//! program has no means of sending anything anywhere.
#![allow(clippy::unwrap_used)]

#[path = "../../coirl/tests/effort/mod.rs"]
mod effort;
mod running;

use effort::Tally;
use running::{Folder, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const BUILD: &str = "cohort build table.csv --preset ai-clinician --set table.patient=subject --states 40 --out cohort";
/// How every planted identifier begins.
const PLANTED: [&str; 3] = ["Zk9stay", "Qwx7subject", "Bramblethwaite"];
/// An age in days that one patient has, the oldest of all.
const AGE: f64 = 33_211.187_5;

/// A table whose stays, patients and names are planted, with something in it for every finding that gives an example.
fn planted() -> Folder {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --preset ai-clinician --stays 240 --seed 3 --out made.csv -q").success();
    let made = String::from_utf8(folder.read("made.csv")).unwrap();
    let mut lines = made.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (stay, age, gender, dose) = (at("icustayid"), at("age"), at("gender"), at("input_4hourly"));
    let outcome = at("mortality_90d");
    let mut rows: Vec<Vec<String>> = lines.map(|line| line.split(',').map(str::to_owned).collect()).collect();
    let numbers: Vec<u64> = rows.iter().map(|row| row[stay].parse().unwrap()).collect();
    let (oldest, first) = (numbers[rows.len() / 2], numbers[0]);
    for (row, number) in rows.iter_mut().zip(&numbers) {
        if *number == oldest {
            row[age] = AGE.to_string();
        }
        // Two stays to a patient, but for the first, whose rows are of two patients.
        let subject = if *number == first && row[0] != "1" { 9999 } else { number / 2 };
        row[stay] = format!("{}{number}", PLANTED[0]);
        row.push(format!("{}{subject}", PLANTED[1]));
        row.push(format!("{} {number}", PLANTED[2]));
    }
    rows[1][gender] = "0".into();
    rows[0][gender] = "1".into();
    rows[3][dose] = "NaN".into();
    // The first long stay that is left ends well and badly.
    let long = (1..numbers.len() - 2)
        .find(|&i| numbers[i] != first && numbers[i - 1] != numbers[i] && numbers[i + 2] == numbers[i]);
    let ended = &mut rows[long.unwrap()][outcome];
    *ended = if ended == "0" { "1".into() } else { "0".into() };
    // The last row of the first stay stands at the end.
    let moved = numbers.iter().rposition(|number| *number == first).unwrap();
    let row = rows.remove(moved);
    rows.push(row);
    let rows: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    folder.write("table.csv", format!("{},subject,name\n{rows}", header.join(",")));
    std::fs::remove_file(folder.path("made.csv")).unwrap();
    std::fs::remove_file(folder.path("made.truth.json")).ok();
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn assert_anonymous(what: &str, bytes: &[u8]) {
    for word in PLANTED {
        assert!(!holds(bytes, word.as_bytes()), "{what} holds {word}");
    }
    assert!(!holds(bytes, b"33211.18"), "{what} holds the age of one patient");
    assert!(!holds(bytes, &AGE.to_le_bytes()), "{what} holds the age of one patient in its bytes");
    assert!(!holds(bytes, &(AGE as f32).to_le_bytes()), "{what} holds the age of one patient in its bytes");
}

#[test]
fn what_is_passed_on_holds_no_identifier() {
    let folder = planted();
    let mut tally = Tally::new("planted identifiers", "files searched");
    // Whoever holds the table is told where to look.
    let built = folder.coirl(BUILD).success();
    let told = String::from_utf8(built.get_output().stdout.clone()).unwrap();
    for word in &PLANTED[..2] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let build = json(folder.coirl(&format!("{BUILD} --json")).success());
    let codes: Vec<&str> = build["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["example"].is_string())
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    for code in ["changing-person", "torn-stay", "patient-in-two-parts", "dose-not-recorded", "outcome-contradicts"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
    for method in ["adaptive", "bc", "bc-network", "network", "majority"] {
        let fit = format!("fit cohort --method {method} --steps 8 --out runs/{method} -q");
        // Who counts is done at once.
        if method != "majority" {
            folder.coirl(&format!("{fit} --stop-after 4")).code(130);
            let checkpoint = folder.read(&format!("runs/{method}/checkpoint.json"));
            assert_anonymous(&format!("the checkpoint of {method}"), &checkpoint);
        }
        folder.coirl(&format!("{fit} --resume")).success();
        let few = "--resamples 10 --off-policy-resamples 4";
        folder.coirl(&format!("report runs/{method} {few} -q")).success();
        let scores = folder.coirl(&format!("cohort score runs/{method} {few} --json")).success();
        assert_anonymous("scores", &scores.get_output().stdout);
    }
    let passed_on = files(&folder.path("runs"));
    // What stands beside the patients' own data in the cohort is passed on with a model.
    let of_model = ["cohort.json", "model.safetensors", "flow.csv", "states.csv", "spec.toml", "manifest.json"];
    let of_model = of_model.map(|name| folder.path("cohort").join(name));
    assert!(passed_on.len() >= 5 * 5 && passed_on.iter().any(|path| path.ends_with("report.html")), "{passed_on:?}");
    for path in passed_on.iter().chain(&of_model) {
        assert_anonymous(&path.display().to_string(), &std::fs::read(path).unwrap());
        tally.tried(1);
    }
    // No row of the contexts, in the numbers of the model, is in what was learned; but for the method that keeps them all, and is said to.
    let contexts = String::from_utf8(folder.read("cohort/train/contexts.csv")).unwrap();
    let at = contexts.lines().next().unwrap().split(',').position(|name| name == "age").unwrap();
    let of_age = |line: &str| line.split(',').nth(at).unwrap().parse::<f64>().unwrap();
    let ages: Vec<f64> = contexts.lines().skip(1).map(of_age).filter(|age| *age > 0.0 && *age < 1.0).collect();
    let kept = |bytes: &[u8]| {
        let found = |age: &&f64| holds(bytes, &age.to_le_bytes()) || holds(bytes, age.to_string().as_bytes());
        ages.iter().filter(found).count()
    };
    for path in &passed_on {
        assert_eq!(kept(&std::fs::read(path).unwrap()), 0, "{} holds contexts", path.display());
    }
    let told = folder.coirl("fit cohort --method nearest --out nearest").success();
    assert!(String::from_utf8_lossy(&told.get_output().stderr).contains("as confidential as they are"));
    assert!(kept(&folder.read("nearest/fitted.safetensors")) > 20);
    // The search would find them: the cohort's own parts have them, as its documentation says.
    let parts: Vec<u8> = ["train", "validation", "test"]
        .iter()
        .flat_map(|part| folder.read(&format!("cohort/{part}/stays.csv")))
        .collect();
    assert!(holds(&parts, PLANTED[0].as_bytes()) && holds(&parts, b"33211.18"));
}

#[test]
fn small_groups_are_not_told_of() {
    let folder = planted();
    folder.coirl(&format!("{BUILD} -q")).success();
    folder.coirl("fit cohort --method majority --out run -q").success();
    let groups = |options: &str| {
        let scores =
            json(folder.coirl(&format!("cohort score run --resamples 5 --no-off-policy {options} --json")).success());
        let groupings = scores["runs"][0]["agreement"]["groupings"].as_array().unwrap().clone();
        groupings.iter().flat_map(|grouping| grouping["groups"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    let sizes = |options: &str| {
        groups(options).iter().filter_map(|group| group["agreement"]["patients"].as_u64()).collect::<Vec<u64>>()
    };
    let (all, told, strict) = (sizes("--smallest-cell 0"), sizes(""), sizes("--smallest-cell 1000"));
    assert!(all.iter().any(|n| *n < 10), "{all:?}");
    assert!(!told.is_empty() && told.len() < all.len() && told.iter().all(|n| *n >= 10), "{told:?} of {all:?}");
    assert!(strict.is_empty());
    let page = |options: &str| {
        folder.coirl(&format!("report run --resamples 5 --no-off-policy {options} -q")).success();
        String::from_utf8(folder.read("run/report.html")).unwrap()
    };
    // States in which agent and clinicians differ, by how many stays were in them.
    let paths = String::from_utf8(folder.read("cohort/train/trajectories.csv")).unwrap();
    let mut stays: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cells in paths.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()) {
        stays.entry(cells[2]).or_default().insert(cells[0]);
    }
    let listed = |page: &str| -> Vec<usize> {
        let table = page.split("<caption>Where the agent would most often").nth(1).unwrap_or_default();
        let rows = table.split("</table>").next().unwrap().split("<th scope=\"row\">").skip(1);
        rows.map(|row| stays[row.split('<').next().unwrap()].len()).collect()
    };
    let (told, all) = (page(""), page("--smallest-cell 0"));
    assert!(told.contains("too few to tell") && !all.contains("too few to tell"));
    assert!(listed(&told).iter().all(|n| *n >= 10), "{:?}", listed(&told));
    assert!(!listed(&all).is_empty() && listed(&page("--smallest-cell 1000")).is_empty());
}

/// The names of what a 64-bit ELF program takes from libraries of the system.
#[cfg(target_os = "linux")]
fn imported(program: &[u8]) -> Vec<String> {
    let number =
        |at: usize, bytes: usize| (0..bytes).rev().fold(0, |number, i| number << 8 | usize::from(program[at + i]));
    let (sections, size, n) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    // Of a section: its type, where it is, how long, and which section has its names.
    let section = |i: usize| {
        let at = sections + i * size;
        (number(at + 4, 4), number(at + 0x18, 8), number(at + 0x20, 8), number(at + 0x28, 4))
    };
    const DYNAMIC_SYMBOLS: usize = 11;
    const SYMBOL: usize = 24;
    let (_, start, length, names) = (0..n).map(section).find(|own| own.0 == DYNAMIC_SYMBOLS).unwrap();
    let names = section(names).1;
    let undefined = (start..start + length).step_by(SYMBOL).filter(|at| number(at + 6, 2) == 0);
    let name = |at: usize| {
        let text = &program[names + number(at, 4)..];
        String::from_utf8_lossy(&text[..text.iter().position(|byte| *byte == 0).unwrap()]).into_owned()
    };
    undefined.map(name).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_program_cannot_open_a_connection() {
    let imported = imported(&std::fs::read(assert_cmd::cargo::cargo_bin!("coirl")).unwrap());
    let imports = |name: &str| imported.iter().any(|own| own == name);
    assert!(imports("write"), "{imported:?}");
    for name in ["socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "getaddrinfo"] {
        assert!(!imports(name), "the program can call {name}");
    }
}
