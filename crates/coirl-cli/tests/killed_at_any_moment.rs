//! Nothing is lost and nothing is half there, however a run ends: killed, out of disk, stopped twice, or beside another one in
//! the same folder. What goes on goes on to the same bytes.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[path = "../../coirl/tests/effort/mod.rs"]
mod effort;
mod running;

use coirl::artifact::{read_checkpoint, read_fitted};
use effort::{Tally, effort, seed};
use rand::RngExt;
use running::content::{assert_same, content};
use running::{Folder, text};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FIT: &str = "fit --model demos/model.npz --contexts demos/contexts.csv --feature-expectations \
                   demos/feature-expectations.csv --test-contexts demos/test-contexts.csv --true-mapping demos/true-mapping.csv \
                   --validation 0.2 --patience 1000 --checkpoint-every 0 --resume";
/// Methods whose states are unlike each other.
const METHODS: [&str; 5] = [
    "psgd --steps 60",
    "es --steps 60",
    "network --set objective=loss --steps 20",
    "bundle --steps 20",
    "max-entropy --steps 12",
];
const LOCK: &str = ".coirl.lock";
const UNFINISHED: &str = ".coirl.unfinished";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.coirl("domain demonstrate driving --contexts 12 --test-contexts 3 --out demos").success();
    folder
}

/// The program, to be started.
fn program(folder: &Folder, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("coirl"));
    command.current_dir(folder.path(".")).args(arguments.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a finished run left, without clocks.
fn result(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    content(folder).into_iter().filter(|(name, _)| !name.ends_with("timings.json")).collect()
}

/// Whether whatever is in a folder of `fit` is whole.
fn assert_whole(run: &Path, attempt: &str) {
    if !run.exists() {
        return;
    }
    for (name, bytes) in content(run) {
        let path = run.join(&name);
        match name.as_str() {
            "checkpoint.json" => drop(read_checkpoint(&path).unwrap_or_else(|error| panic!("{attempt}: {error}"))),
            "fitted.safetensors" => drop(read_fitted(&path).unwrap_or_else(|error| panic!("{attempt}: {error}"))),
            "history.jsonl" | "mapping.csv" | "manifest.json" | "source.json" => {
                assert_eq!(bytes.last(), Some(&b'\n'), "{attempt}: {name} is cut off");
            }
            "fit.svg" => assert!(bytes.trim_ascii_end().ends_with(b"</svg>"), "{attempt}: {name} is cut off"),
            LOCK | UNFINISHED => {}
            other => assert!(other.starts_with(".coirl-") && other.ends_with(".partial"), "{attempt}: {other}"),
        }
    }
}

/// A folder with a manifest is as it was written, whatever happened since.
fn complete_or_not(folder: &Folder, out: &str, attempt: &str) {
    if folder.path(out).join("manifest.json").exists() {
        let told = folder.coirl(&format!("info {out}"));
        assert!(
            told.get_output().status.success(),
            "{attempt}: {}",
            String::from_utf8_lossy(&told.get_output().stderr)
        );
    }
}

/// Starts the program, kills it after a while, and says whether it was killed rather than through.
fn killed_after(command: &mut Command, delay: Duration, attempt: &str) -> bool {
    let mut child = command.spawn().unwrap();
    std::thread::sleep(delay);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    if !was_running {
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{attempt}: {told}");
    }
    was_running
}

/// Kills a command at random moments of its length, starting it again each time, until so many have been killed; whenever one gets through,
/// `out` must hold what the undisturbed run left.
///
/// `before` prepares the folder for a chain of kills, `after` looks at it after each.
fn kill_and_go_on(
    folder: &Folder,
    tally: &mut Tally,
    kills: u64,
    commands: &[String],
    out: &str,
    before: impl Fn(usize),
    after: impl Fn(&str),
) {
    let mut undisturbed = Vec::new();
    for command in commands {
        let began = Instant::now();
        folder.coirl(command).success();
        undisturbed.push((result(&folder.path(out)), began.elapsed()));
        std::fs::remove_dir_all(folder.path(out)).unwrap();
    }
    let (mut killed, mut started) = (0, 0_u64);
    for chain in 0.. {
        let which = chain % commands.len();
        let (expected, length) = &undisturbed[which];
        before(chain);
        loop {
            let delay = length.mul_f64(tally.random(started).random_range(0.0..1.1));
            started += 1;
            let attempt = format!("seed {}, start {started}, {} after {delay:?}", seed(), commands[which]);
            // A kill must come through in the end, whatever the moments are.
            assert!(started < 100 + 20 * kills, "{attempt}: hardly anything is killed");
            let was_killed = killed_after(&mut program(folder, &commands[which]), delay, &attempt);
            after(&attempt);
            if !was_killed {
                assert_same(&result(&folder.path(out)), expected, &attempt);
                break;
            }
            killed += 1;
            tally.tried(1);
        }
        std::fs::remove_dir_all(folder.path(out)).unwrap();
        if killed >= kills {
            break;
        }
    }
}

#[test]
fn a_fit_goes_on_to_the_same_bytes() {
    let folder = folder();
    let mut tally = Tally::new("kill -9 of a fit", "kills");
    let commands = METHODS.map(|method| format!("{FIT} --method {method} --out run --quiet"));
    let after = |attempt: &str| assert_whole(&folder.path("run"), attempt);
    kill_and_go_on(&folder, &mut tally, effort(50), &commands, "run", |_| (), after);
}

#[test]
fn an_experiment_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    let mut tally = Tally::new("kill -9 of an experiment", "kills");
    let commands = [
        "experiment run driving-online --quick --seeds 2 --out results --quiet".to_owned(),
        "experiment run beyond-plans --quick --seeds 2 --out results --quiet".to_owned(),
    ];
    let after = |attempt: &str| complete_or_not(&folder, "results/driving-online", attempt);
    kill_and_go_on(&folder, &mut tally, effort(4), &commands, "results", |_| (), after);
}

#[test]
fn a_cohort_is_whole_or_not_there() {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --preset ai-clinician --stays 120 --out table.csv --quiet").success();
    let mut tally = Tally::new("kill -9 of a cohort", "kills");
    let build = "cohort build table.csv --preset ai-clinician --states 40 --out cohort --quiet";
    // Every other chain builds over the cohort of another seed.
    let before = |chain: usize| {
        if chain % 2 == 1 {
            folder.coirl(&format!("{build} --seed 9")).success();
        }
    };
    let after = |attempt: &str| complete_or_not(&folder, "cohort", attempt);
    kill_and_go_on(&folder, &mut tally, effort(10), &[build.to_owned()], "cohort", before, after);
}

/// The program where no file may become longer than so many blocks of 512 bytes.
fn limited(folder: &Folder, arguments: &str, blocks: u64, dies: bool) -> std::process::Output {
    // Whoever ignores the signal gets an error from the write, as from a full disk; to others it is as if the power were lost at that byte.
    let trap = if dies { "" } else { "trap '' XFSZ; " };
    let mut command = Command::new("sh");
    command.current_dir(folder.path("."));
    command.args(["-c", &format!("ulimit -c 0; ulimit -f {blocks}; {trap}exec \"$0\" \"$@\"")]);
    command.arg(assert_cmd::cargo::cargo_bin!("coirl")).args(arguments.split_whitespace()).output().unwrap()
}

#[test]
fn writes_that_fail_leave_what_was_there() {
    let folder = folder();
    let mut tally = Tally::new("failing writes", "runs");
    let fit = |seed: u64| format!("{FIT} --method psgd --steps 60 --seed {seed} --out run --quiet");
    folder.coirl(&fit(1)).success();
    let expected = result(&folder.path("run"));
    std::fs::remove_dir_all(folder.path("run")).unwrap();
    folder.coirl(&fit(2)).success();
    let before = content(&folder.path("run"));
    let largest = before.values().map(Vec::len).max().unwrap() as u64;
    for i in 0..effort(12) {
        let mut random = tally.random(i);
        let (blocks, dies) = (random.random_range(0..=largest / 512), random.random_bool(0.5));
        let attempt = format!("seed {}, attempt {i}: {blocks} blocks, dies {dies}", seed());
        let output = limited(&folder, &fit(1), blocks, dies);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{attempt}");
        assert_whole(&folder.path("run"), &attempt);
        let after = content(&folder.path("run"));
        if dies {
            assert!(output.status.code().is_none(), "{attempt}: {told}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{attempt}: {told}");
            let line = told.lines().next().unwrap();
            assert!(told.lines().count() == 1 && line.starts_with("error: run"), "{attempt}: {told}");
            assert!(
                !after.keys().any(|name| name.ends_with(".partial") || name == LOCK),
                "{attempt}: {:?}",
                after.keys()
            );
        }
        // The result is the old one or the new one, and says which.
        let fitted = &after["fitted.safetensors"];
        assert!(*fitted == before["fitted.safetensors"] || *fitted == expected["fitted.safetensors"], "{attempt}");
        assert!(!after.contains_key("manifest.json") || after["manifest.json"] == before["manifest.json"], "{attempt}");
        tally.tried(1);
    }
    folder.coirl(&fit(1)).success();
    assert_same(&result(&folder.path("run")), &expected, "after all");
}

#[test]
fn a_folder_that_a_failed_run_left_is_not_refused() {
    let folder = folder();
    folder.coirl("cohort synthesize --preset ai-clinician --stays 60 --out table.csv --quiet").success();
    let mut tally = Tally::new("failing writes into new folders", "runs");
    let fit = FIT.replace(" --checkpoint-every 0 --resume", "");
    let commands = [
        format!("{fit} --method psgd --steps 30 --out new --quiet"),
        "cohort build table.csv --preset ai-clinician --states 10 --out new --quiet".to_owned(),
    ];
    for i in 0..effort(10) {
        let mut random = tally.random(i);
        let command = &commands[i as usize % 2];
        let (blocks, dies) = (random.random_range(0..40), random.random_bool(0.5));
        let attempt = format!("seed {}, attempt {i}: {command} in {blocks} blocks, dies {dies}", seed());
        limited(&folder, command, blocks, dies);
        let again = folder.coirl(command);
        let told = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
        assert!(again.get_output().status.success(), "{attempt}: {told}");
        complete_or_not(&folder, "new", &attempt);
        assert!(!content(&folder.path("new")).keys().any(|name| name.contains(".coirl")), "{attempt}");
        std::fs::remove_dir_all(folder.path("new")).unwrap();
        tally.tried(1);
    }
}

#[test]
fn a_full_disk_is_said_and_left_clean() {
    let folder = folder();
    let mut tally = Tally::new("full disk", "runs");
    std::fs::create_dir(folder.path("disk")).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(folder.path("disk")).output();
    if !mounted.is_ok_and(|mount| mount.status.success()) {
        eprintln!("no file system can be mounted here; failing writes stand for a full disk");
        return;
    }
    let run = folder.coirl(&format!("{FIT} --method psgd --steps 60 --out disk/run --quiet"));
    let left = content(&folder.path("disk"));
    assert!(Command::new("umount").arg(folder.path("disk")).status().unwrap().success());
    let told = String::from_utf8(run.code(1).get_output().stderr.clone()).unwrap();
    assert!(told.lines().count() == 1 && told.contains("No space left"), "{told}");
    assert!(!left.keys().any(|name| name.ends_with(".partial") || name.ends_with(LOCK)), "{:?}", left.keys());
    tally.tried(1);
}

/// Starts a fit that would take for ever, in a new folder, and waits until it learns.
fn endless(folder: &Folder, out: &str) -> Child {
    if folder.path(out).exists() {
        std::fs::remove_dir_all(folder.path(out)).unwrap();
    }
    let child = program(folder, &format!("{FIT} --method psgd --steps 1000000000 --out {out}")).spawn().unwrap();
    let checkpoint = folder.path(out).join("checkpoint.json");
    let began = Instant::now();
    while !checkpoint.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is learned");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_folder_has_one_writer_and_says_who() {
    let folder = folder();
    let mut tally = Tally::new("second process in a folder", "runs");
    let first = endless(&folder, "run");
    let second = folder.coirl(&format!("{FIT} --method psgd --steps 3 --out run")).code(1);
    let told = String::from_utf8(second.get_output().stderr.clone()).unwrap();
    let holder = format!("process {}", first.id());
    assert!(told.contains("error: run: is being written to by") && told.contains(&holder), "{told}");
    assert!(told.contains("coirl fit") && told.contains("--steps 1000000000"), "{told}");
    assert!(told.contains("help: wait until it has ended, or write to another folder"), "{told}");
    // Elsewhere there is room, also within.
    folder.coirl(&format!("{FIT} --method psgd --steps 3 --out other --quiet")).success();
    interrupt(&first);
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.path("run").join(LOCK).exists());
    // A lock that nobody holds any more holds nobody up.
    let mut killed = endless(&folder, "run");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(folder.path("run").join(LOCK).exists());
    let fresh = format!("{} --method psgd --steps 3 --out run --quiet", FIT.replace(" --resume", ""));
    folder.coirl(&fresh).success();
    assert!(!folder.path("run").join(LOCK).exists());
    tally.tried(4);
}

#[test]
fn stopping_twice_loses_nothing_that_was_saved() {
    let folder = folder();
    let mut tally = Tally::new("Ctrl-C twice", "runs");
    for i in 0..effort(5) {
        let child = endless(&folder, "run");
        interrupt(&child);
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "seed {}, attempt {i}", seed());
        assert_whole(&folder.path("run"), "stopped twice");
        let step = read_checkpoint(&folder.path("run/checkpoint.json")).unwrap().step;
        assert!(step > 0);
        tally.tried(1);
    }
}

#[test]
fn four_at_once_do_not_disturb_each_other() {
    let folder = folder();
    let mut tally = Tally::new("four processes at once", "runs");
    for round in 0..effort(2) {
        let fit = |i: u64| format!("{FIT} --method psgd --steps 40 --seed {i} --quiet");
        let alone = |i: u64| format!("{} --out alone-{i}", fit(i));
        let start = |i: u64| program(&folder, &format!("{} --out beside-{i}", fit(i))).spawn().unwrap();
        let children: Vec<Child> = (0..4).map(start).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        // In one folder exactly one of them is let in, or several one after the other; what is there in the end is whole.
        let start = |_| program(&folder, &format!("{} --out shared", fit(0))).spawn().unwrap();
        let together: Vec<Child> = (0..4).map(start).collect();
        let codes: Vec<Option<i32>> = together.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
        assert!(codes.contains(&Some(0)) && codes.iter().all(|code| matches!(code, Some(0 | 1))), "{codes:?}");
        for i in 0..4 {
            folder.coirl(&alone(i)).success();
            let (alone, beside) = (folder.path(&format!("alone-{i}")), folder.path(&format!("beside-{i}")));
            assert_same(&content(&alone), &content(&beside), &format!("seed {}, round {round}", seed()));
        }
        assert_same(&content(&folder.path("shared")), &content(&folder.path("alone-0")), "in one folder");
        // Experiments share a folder, and its page tells of all of them.
        let run = |name: &str| format!("experiment run {name} --quick --seeds 1 --out results --quiet");
        let names = ["driving-online", "beyond-plans"];
        let children = names.map(|name| program(&folder, &run(name)).spawn().unwrap());
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let page = String::from_utf8(folder.read("results/report.html")).unwrap();
        assert!(names.iter().all(|name| page.contains(name)), "seed {}, round {round}", seed());
        for out in ["alone-0", "alone-1", "alone-2", "alone-3", "beside-0", "beside-1", "beside-2", "beside-3"] {
            std::fs::remove_dir_all(folder.path(out)).unwrap();
        }
        std::fs::remove_dir_all(folder.path("shared")).unwrap();
        std::fs::remove_dir_all(folder.path("results")).unwrap();
        tally.tried(14);
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_before_anything_is_learned() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let closed = folder.path("closed");
    std::fs::create_dir(&closed).unwrap();
    let mut command = program(&folder, &format!("{FIT} --method psgd --steps 3 --out closed"));
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        // Whoever may write everywhere becomes nobody, with a copy of the program that nobody can reach.
        let copy = folder.path("coirl");
        std::fs::copy(assert_cmd::cargo::cargo_bin!("coirl"), &copy).unwrap();
        std::fs::set_permissions(folder.path("."), std::fs::Permissions::from_mode(0o755)).unwrap();
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        command = Command::new(copy);
        command.current_dir(folder.path(".")).args(arguments).uid(65534);
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.lines().count() == 1 && told.contains("closed: cannot be written to: Permission denied"), "{told}");
    assert_eq!(std::fs::read_dir(&closed).unwrap().count(), 0);
}

#[test]
fn a_folder_says_what_it_was_made_with_and_whether_it_still_is() {
    let folder = folder();
    folder.coirl(&format!("{FIT} --method psgd --steps 3 --seed 5 --out run --quiet")).success();
    let shown = text(folder.coirl("info run").success());
    for words in ["coirl fit", env!("CARGO_PKG_VERSION"), "x86_64", "\"max_steps\":3", "SHA-256", "unchanged"] {
        assert!(shown.contains(words) || words == "x86_64" && !cfg!(target_arch = "x86_64"), "{words}: {shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&text(folder.coirl("info run --json").success())).unwrap();
    assert_eq!(json["manifest"]["seed"], 5);
    assert_eq!(json["files"]["fitted.safetensors"], "unchanged");
    let mut mapping = folder.read("run/mapping.csv");
    mapping.push(b'\n');
    folder.write("run/mapping.csv", mapping);
    std::fs::remove_file(folder.path("run/fit.svg")).unwrap();
    let told = folder.coirl("info run").code(1);
    let shown = String::from_utf8(told.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("changed") && shown.contains("missing"), "{shown}");
    std::fs::remove_file(folder.path("run/manifest.json")).unwrap();
    let told = String::from_utf8(folder.coirl("info run").code(1).get_output().stderr.clone()).unwrap();
    assert!(told.contains("run: has no manifest.json"), "{told}");
}
