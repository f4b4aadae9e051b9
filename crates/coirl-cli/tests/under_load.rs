//! Many contexts are planned in the memory of few: what grows is the list of contexts itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../../coirl/tests/effort/mod.rs"]
mod effort;
mod running;

use effort::{Tally, effort};
use running::{Folder, contexts};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Three numbers of a context and three weights of its reward, and as much again for what allocators keep.
const BYTES_PER_CONTEXT: f64 = 2.0 * 6.0 * 8.0;
/// What the largest waves of blocks may take, whatever the number of contexts.
const WAVES: f64 = 100e6;

/// Runs the program and says how many bytes it held at most.
fn peak(folder: &Folder, arguments: &str) -> f64 {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("coirl"));
    command.current_dir(folder.path(".")).args(arguments.split_whitespace()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kilobytes) = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()) {
            peak = peak.max(1024.0 * kilobytes);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{arguments}");
    peak
}

#[test]
fn contexts_are_planned_as_they_come() {
    let folder = Folder::new();
    let mut tally = Tally::new("many contexts", "contexts");
    folder.coirl("domain export garnet --states 12 --actions 3 --features 3 --out model.npz").success();
    folder.write("mapping.csv", running::MAPPING);
    let some = contexts(10_000).iter().map(|c| format!("{:?},{:?},{:?}\n", c[0], c[1], c[2])).collect::<String>();
    let times: u64 = if effort(1) > 1 { 100 } else { 6 };
    folder.write("few.csv", &some);
    folder.write("many.csv", some.repeat(times as usize));
    for out in ["csv", "parquet", "npz"] {
        let plan = |n: &str| {
            format!("plan model.npz --mapping mapping.csv --contexts {n}.csv --out planned-{n}.{out} --quiet")
        };
        let (few, many) = (peak(&folder, &plan("few")), peak(&folder, &plan("many")));
        let n = 10_000.0 * times as f64;
        assert!(many < few + WAVES + BYTES_PER_CONTEXT * n, "{out}: {many} bytes for {n} contexts, {few} for 10,000");
        tally.tried(10_000 * times);
        tally.largest("peak MB", many / 1e6);
        std::fs::remove_file(folder.path(&format!("planned-many.{out}"))).unwrap();
    }
}
