//! `cargo xtask torture`: the attacks of the ordinary tests, harder, with fresh seeds, for as long as is asked for. Prints what was tried and
//! what broke, and writes the figures into the book.

use crate::{Outcome, cargo, root, succeeds, supply};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The test files that attack; each tells of its attacks by `tests/effort`.
const ATTACKS: [&str; 8] = [
    "readers_under_attack",
    "numbers_under_attack",
    "kernels_stay_in_bounds",
    "killed_at_any_moment",
    "same_answer_twice",
    "cohorts_do_not_depend_on_the_order_of_the_table",
    "nobody_is_named",
    "under_load",
];
/// Tests that go through every `unsafe` block, small enough for valgrind.
const UNSAFE: [&str; 2] = ["kernels_stay_in_bounds", "clusters_are_least_squares"];
/// How much harder than in ordinary tests a round is.
const EFFORT: &str = "3";
const PAGE: &str = "docs/reliability.md";
const FROM: &str = "<!-- figures: cargo xtask torture -->";
const TO: &str = "<!-- end of figures -->";

/// All that was tried in one attack.
#[derive(Default)]
struct Tried {
    unit: String,
    times: u64,
    broke: u64,
    figures: BTreeMap<String, f64>,
}

/// By test file and attack.
type Figures = BTreeMap<(&'static str, String), Tried>;

/// Attacks for so many minutes, at least one round.
pub(crate) fn torture(minutes: u64, seed: Option<u64>) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let first = seed.unwrap_or(now.as_secs());
    let (began, limit) = (Instant::now(), Duration::from_secs(60 * minutes));
    let tallies = root().join("target/torture");
    supply::check()?;
    cargo(&["build", "--release", "--workspace", "--bin", "coirl"])?;
    let binaries = test_binaries()?;
    let mut broken = Vec::new();
    let mut tried = Figures::new();
    let mut rounds = 0;
    while rounds == 0 || began.elapsed() < limit {
        let seed = first + rounds;
        rounds += 1;
        for attack in ATTACKS {
            // The first round is complete whatever it takes.
            if rounds > 1 && began.elapsed() >= limit {
                break;
            }
            if tallies.exists() {
                fs::remove_dir_all(&tallies).map_err(|error| format!("{}: {error}", tallies.display()))?;
            }
            fs::create_dir_all(&tallies).map_err(|error| format!("{}: {error}", tallies.display()))?;
            for binary in binaries.iter().filter(|binary| binary.test == attack) {
                let minutes = began.elapsed().as_secs() / 60;
                eprintln!("\nminute {minutes}, seed {seed}: {attack}");
                let mut run = Command::new(&binary.path);
                run.current_dir(&binary.folder).env("COIRL_EFFORT", EFFORT).env("COIRL_ATTACK_SEED", seed.to_string());
                if !run.env("COIRL_TALLIES", &tallies).status().is_ok_and(|status| status.success()) {
                    let again = format!(
                        "COIRL_EFFORT={EFFORT} COIRL_ATTACK_SEED={seed} cargo test --release --workspace --test {attack}"
                    );
                    broken.push(again);
                }
            }
            add(&mut tried, attack, &tallies)?;
        }
    }
    let valgrind = under_valgrind(&binaries, &mut broken)?;
    let told = told(&tried, first, rounds, began.elapsed(), &valgrind);
    eprintln!("\n{told}");
    write_page(&told)?;
    if broken.is_empty() { Ok(()) } else { Err(format!("broken; to see it again:\n  {}", broken.join("\n  "))) }
}

/// A compiled test file.
struct TestBinary {
    test: String,
    path: PathBuf,
    /// Where its package is, and its tests run.
    folder: PathBuf,
}

/// Compiles the tests and says where they are.
fn test_binaries() -> Outcome<Vec<TestBinary>> {
    let mut compile = Command::new("cargo");
    compile.args(["test", "--release", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    for test in ATTACKS.iter().chain(&UNSAFE) {
        compile.args(["--test", test]);
    }
    let output = compile.current_dir(root()).stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo test --no-run: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let read = |line: &str| -> Option<TestBinary> {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some(TestBinary { test: message["target"]["name"].as_str()?.to_owned(), path, folder })
    };
    let binaries: Vec<TestBinary> = text.lines().filter_map(read).collect();
    match ATTACKS.iter().find(|attack| !binaries.iter().any(|binary| binary.test == **attack)) {
        Some(missing) => Err(format!("there is no test {missing}")),
        None => Ok(binaries),
    }
}

/// Adds what the tests of a round told.
fn add(tried: &mut Figures, test: &'static str, tallies: &Path) -> Outcome {
    for entry in fs::read_dir(tallies).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let told: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let own = tried.entry((test, told["attack"].as_str().unwrap_or_default().to_owned())).or_default();
        own.unit = told["unit"].as_str().unwrap_or_default().to_owned();
        own.times += told["tried"].as_u64().unwrap_or_default();
        own.broke += u64::from(told["broke"] == true);
        for (name, value) in told["figures"].as_object().into_iter().flatten() {
            let kept = own.figures.entry(name.clone()).or_insert(f64::NEG_INFINITY);
            *kept = kept.max(value.as_f64().unwrap_or_default());
        }
    }
    Ok(())
}

/// Runs what is unsafe under valgrind, with and without vector instructions; says what was run.
fn under_valgrind(binaries: &[TestBinary], broken: &mut Vec<String>) -> Outcome<String> {
    if !succeeds(Command::new("valgrind").arg("--version")) {
        return Ok("valgrind is not installed here and was left out".into());
    }
    let (mut runs, mut failed) = (0, 0);
    for binary in binaries.iter().filter(|binary| UNSAFE.contains(&binary.test.as_str())) {
        for simd in ["avx2", "portable"] {
            eprintln!("\nvalgrind, {simd}: {}", binary.test);
            let mut run = Command::new("valgrind");
            run.args(["--quiet", "--error-exitcode=9"]).arg(&binary.path).args(["--test-threads", "1"]);
            // One case of each property goes through the same code as a thousand.
            run.current_dir(&binary.folder)
                .env("COIRL_SIMD", simd)
                .env("PROPTEST_CASES", "2")
                .env("COIRL_UNDER_VALGRIND", "1");
            if !run.status().is_ok_and(|status| status.success()) {
                failed += 1;
                broken.push(format!("COIRL_SIMD={simd} COIRL_UNDER_VALGRIND=1 valgrind {}", binary.path.display()));
            }
            runs += 1;
        }
    }
    Ok(format!("{runs} runs of the tests of unsafe code under valgrind, with AVX2 and without; {failed} with errors"))
}

/// The figures as the page shows them.
fn told(tried: &Figures, seed: u64, rounds: u64, took: Duration, valgrind: &str) -> String {
    let mut text = format!(
        "`cargo xtask torture --minutes {} --seed {seed}`: {rounds} {} of {EFFORT} times the ordinary amount, coirl {} on {} {}.\n\n",
        took.as_secs().div_ceil(60),
        if rounds == 1 { "round" } else { "rounds" },
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    text += "| test | attack | tried | broke | largest |\n|---|---|---|---|---|\n";
    for ((test, attack), own) in tried.iter().filter(|(_, own)| own.times > 0) {
        let figures: Vec<String> =
            own.figures.iter().map(|(name, value)| format!("{name} {}", shown(*value))).collect();
        let _ = writeln!(
            text,
            "| `{test}.rs` | {attack} | {} {} | {} | {} |",
            own.times,
            own.unit,
            own.broke,
            figures.join(", ")
        );
    }
    let _ = writeln!(text, "\n{valgrind}.");
    text
}

/// Two significant digits.
fn shown(value: f64) -> String {
    if value.abs() >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn write_page(told: &str) -> Outcome {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let written = between(&page, told).ok_or_else(|| format!("{PAGE}: expected {FROM} and {TO}"))?;
    fs::write(&path, written).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}

/// The page with new figures between the two marks.
fn between(page: &str, told: &str) -> Option<String> {
    let (before, rest) = page.split_once(FROM)?;
    let (_, after) = rest.split_once(TO)?;
    Some(format!("{before}{FROM}\n\n{}\n\n{TO}{after}", told.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_figures() {
        let page = format!("# Page\n\n{FROM}\n\nold\n\n{TO}\n\nRest\n");
        let once = between(&page, "new\n").unwrap_or_default();
        assert_eq!(once, format!("# Page\n\n{FROM}\n\nnew\n\n{TO}\n\nRest\n"));
        assert_eq!(between(&once, "new"), Some(once));
        assert_eq!(between("# Page\n", "new"), None);
    }
}
