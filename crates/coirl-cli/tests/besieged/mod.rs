//! Running the program on files that are not what they should be: within two gibibytes and twenty seconds, and with everything that is promised
//! of a refusal looked at.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use crate::running::Folder;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Address space of the program. Allocating more ends it by a signal.
const MOST_KIB: u64 = 2 << 20;
/// Nothing here takes a second: what takes as long as this hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// Characters of a line, the name of the file not counted.
const LONGEST_LINE: usize = 2200;

/// How the program ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// What it said, where it refused.
    pub(crate) line: String,
    /// The largest resident size that was seen.
    pub(crate) resident: u64,
}

/// Runs the program with arguments separated by spaces and checks how it ends: by itself, with a code that it documents, and with one line
/// and nothing left behind where it refuses.
pub(crate) fn run(folder: &Folder, what: &str, arguments: &str) -> Ended {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    run_words(folder, what, &words)
}

/// The same with the arguments as they are.
pub(crate) fn run_words(folder: &Folder, what: &str, words: &[&str]) -> Ended {
    let before = folder.names();
    let said = tempfile::tempdir().unwrap();
    let (stdout, stderr) = (said.path().join("stdout"), said.path().join("stderr"));
    let limited = format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .arg(assert_cmd::cargo::cargo_bin("coirl"))
        .args(words)
        .args(["--threads", "1", "--quiet"])
        .current_dir(folder.path(""))
        .env("COLUMNS", "80")
        .env("RUST_BACKTRACE", "0")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut resident = 0;
    let status = loop {
        resident = resident.max(resident_kib(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: it hangs; {}", words.join(" "));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let line = String::from_utf8_lossy(&std::fs::read(&stderr).unwrap()).into_owned();
    let told = format!("{what}: {}: {line:.2000}", words.join(" "));
    let Some(code) = status.code() else { panic!("{told}: ended by {status}") };
    assert!([0, 1, 2, 3].contains(&code), "{told}: code {code}");
    assert!(!line.contains("panicked"), "{told}");
    if code == 1 {
        assert_eq!(line.lines().filter(|line| !line.starts_with("help: ")).count(), 1, "{told}");
        assert!(line.starts_with("error: ") && line.chars().count() < LONGEST_LINE, "{told}");
        assert!(std::fs::read(&stdout).unwrap().is_empty(), "{told}: it printed results");
        assert_eq!(folder.names(), before, "{told}: it left something behind");
    }
    for name in folder.names().iter().filter(|name| !before.contains(name)) {
        remove(&folder.path(name));
    }
    Ended { code, line, resident: resident * 1024 }
}

fn remove(path: &Path) {
    if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
}

/// What the kernel says of a process that may be gone.
fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
