//! What a contributor runs: `cargo xtask <task>`.

mod book;
mod coverage;
mod learners;
mod python;
mod sepsis;
mod supply;
mod torture;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks formatting and lints and runs every test. What continuous integration runs.
    Test,
    /// Writes the page of the book about the command line from the help of every command.
    Book {
        /// Fail where the page is out of date, and write nothing.
        #[arg(long)]
        check: bool,
    },
    /// Attacks what is promised in docs/reliability.md with fresh seeds, longer than the ordinary tests do, and writes the figures there.
    Torture {
        /// How long; one round of everything in any case.
        #[arg(long, default_value_t = 30)]
        minutes: u64,
        /// Where random choices start [default: a fresh seed].
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Checks licences, sources and second versions of what is built in, and known vulnerabilities where their list can be reached.
    Supply,
    /// Builds the Python wheel into target/wheels.
    Wheel,
    /// Makes the data of the sepsis simulator again from the package that publishes them, and compares.
    SepsisData {
        /// Write them to where they ship.
        #[arg(long)]
        write: bool,
    },
    /// Installs QuantEcon, mdpsolver and Storm into a virtual environment and compares them with this planner.
    BenchPeers {
        /// Write the result to docs/benchmarks.md.
        #[arg(long)]
        write: bool,
        /// Seed of the problems (default: a fresh one).
        #[arg(long)]
        seed: Option<u64>,
        /// Only these problems, such as P1,P5d; P6 is P6a and P6b.
        #[arg(long)]
        only: Option<String>,
        /// Seconds that a peer's variant may take on P6 to P8, where sweeps gain little.
        #[arg(long, default_value_t = 30)]
        limit: u64,
    },
    /// Measures time and memory of planning against the number of states and of contexts.
    BenchScaling {
        /// Write the result to docs/benchmarks.md, and the figure beside it.
        #[arg(long)]
        write: bool,
        /// Ten million states and a million contexts as well; needs 16 GiB of memory.
        #[arg(long)]
        largest: bool,
        /// No more states than this.
        #[arg(long)]
        most_states: Option<usize>,
        /// No more contexts than this.
        #[arg(long)]
        most_contexts: Option<usize>,
    },
    /// Compares all learners, two peers in NumPy and trivial rules on contextual problems of many kinds whose truth is known.
    BenchLearners(learners::Wanted),
    /// Installs scikit-learn into a virtual environment and compares its k-means with this one on the same rows.
    BenchKmeans {
        /// Rows to cluster.
        #[arg(long, default_value_t = 250_000)]
        rows: usize,
        /// Numbers of clusters, such as 750,5000.
        #[arg(long, default_value = "750")]
        clusters: String,
        /// Seeds to average over.
        #[arg(long, default_value_t = 1)]
        seeds: usize,
    },
    /// Counts how often intervals of off-policy evaluation hold the truth on synthetic cohorts. Goes on where it was stopped.
    Coverage {
        /// Cohorts to write, learn from and score.
        #[arg(long, default_value_t = 50)]
        repetitions: u64,
        /// Stays of each.
        #[arg(long, default_value_t = 3000)]
        stays: u64,
        /// Times that patients are drawn again for an interval.
        #[arg(long, default_value_t = 40)]
        resamples: u64,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test => test(),
        Task::Book { check } => book::command_line(check),
        Task::Torture { minutes, seed } => torture::torture(minutes, seed),
        Task::Supply => supply::check(),
        Task::Wheel => python::wheel().map(drop),
        Task::SepsisData { write } => sepsis::data(write),
        Task::BenchPeers { write, seed, only, limit } => bench_peers(write, seed, only, limit),
        Task::BenchScaling { write, largest, most_states, most_contexts } => {
            bench_scaling(write, largest, most_states, most_contexts)
        }
        Task::BenchLearners(wanted) => learners::bench(&wanted),
        Task::BenchKmeans { rows, clusters, seeds } => bench_kmeans(rows, &clusters, seeds),
        Task::Coverage { repetitions, stays, resamples } => coverage::measure(repetitions, stays, resamples),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

type Outcome<T = ()> = Result<T, String>;

/// Formatting, lints, unit, integration and documentation tests: all in the release profile, so that the command line,
/// the tests, the benchmarks and the wheel share their builds. Then whether the book says what the commands say, what is built in, and the
/// Python package.
fn test() -> Outcome {
    require_component("rustfmt", &["fmt", "--version"])?;
    require_component("clippy", &["clippy", "--version"])?;
    cargo(&["fmt", "--all", "--", "--check"])?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    let mut tests = Command::new("cargo");
    if succeeds(Command::new("cargo").args(["nextest", "--version"])) {
        tests.args(["nextest", "run", "--release", "--workspace", "--no-fail-fast"]);
    } else {
        tests.args(["test", "--release", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    }
    if has_browser() {
        tests.env("COIRL_REQUIRE_BROWSER", "1");
    }
    run(&mut tests)?;
    cargo(&["test", "--release", "--workspace", "--doc"])?;
    run(Command::new("cargo")
        .args(["doc", "--release", "--no-deps", "--package", "coirl"])
        .env("RUSTDOCFLAGS", "--deny warnings"))?;
    book::command_line(true)?;
    supply::check()?;
    python::test()
}

/// Whether pages can be read in a real browser. Installs one where the system lets us; without one those tests are left out, and that is said.
fn has_browser() -> bool {
    let found = || succeeds(Command::new("chromium").arg("--version"));
    if found() {
        return true;
    }
    let apt = |arguments: &[&str]| run(Command::new("apt-get").args(arguments));
    let installed =
        apt(&["update", "-qq"]).and_then(|()| apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium"]));
    if installed.is_err() || !found() {
        eprintln!("note: there is no chromium, and none could be installed; pages are not read in a browser");
        return false;
    }
    true
}

/// Installs a component of the toolchain where it is missing.
fn require_component(name: &str, probe: &[&str]) -> Outcome {
    if succeeds(Command::new("cargo").args(probe)) {
        return Ok(());
    }
    run(Command::new("rustup").args(["component", "add", name]))
}

fn bench_kmeans(rows: usize, clusters: &str, seeds: usize) -> Outcome {
    let python = python::environment("peers")?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "scikit-learn==1.9.1", "numpy"]))?;
    let mut bench = Command::new("cargo");
    bench.args(["bench", "--package", "coirl", "--bench", "kmeans", "--", "--clusters", clusters]);
    bench.args(["--rows", &rows.to_string(), "--seeds", &seeds.to_string(), "--python"]).arg(&python);
    run(&mut bench)
}

fn bench_peers(write: bool, seed: Option<u64>, only: Option<String>, limit: u64) -> Outcome {
    let root = root();
    let python = python::environment("peers")?;
    let requirements = root.join("crates/coirl/benches/peers-requirements.txt");
    let pip = |arguments: &[&str]| {
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(arguments)
            .arg("--requirement")
            .arg(&requirements))
    };
    // ICU-Sepsis is wanted for its data file only, not for the simulators it depends on.
    pip(&["--no-deps"])?;
    run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "quantecon",
        "mdpsolver",
        "stormpy",
        "numba",
        "scipy",
        "numpy",
    ]))?;
    let mut bench = Command::new("cargo");
    bench.args(["bench", "--package", "coirl", "--bench", "peers", "--", "--python"]).arg(&python);
    bench.args(["--limit", &limit.to_string()]);
    if let Some(seed) = seed {
        bench.args(["--seed", &seed.to_string()]);
    }
    if let Some(only) = only {
        bench.args(["--only", &only]);
    }
    if write {
        bench.arg("--write").arg(root.join("docs/benchmarks.md"));
    }
    run(&mut bench)
}

fn bench_scaling(write: bool, largest: bool, most_states: Option<usize>, most_contexts: Option<usize>) -> Outcome {
    let mut bench = Command::new("cargo");
    bench.args(["bench", "--package", "coirl", "--bench", "scaling", "--"]);
    if largest {
        bench.arg("--largest");
    }
    for (name, most) in [("--most-states", most_states), ("--most-contexts", most_contexts)] {
        if let Some(most) = most {
            bench.args([name, &most.to_string()]);
        }
    }
    if write {
        bench.arg("--write").arg(root().join("docs/benchmarks.md"));
    }
    run(&mut bench)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn cargo(arguments: &[&str]) -> Outcome {
    run(Command::new("cargo").args(arguments))
}

/// Runs the command line in a folder and returns what it printed.
fn coirl(folder: &Path, arguments: &[&str]) -> Outcome<String> {
    let binary = root().join("target/release").join(format!("coirl{}", std::env::consts::EXE_SUFFIX));
    let shown = format!("coirl {}", arguments.join(" "));
    let output = Command::new(binary).args(arguments).current_dir(folder).env("COLUMNS", "80").output();
    let output = output.map_err(|error| format!("{shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{shown}: {error}"))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs a command in the root of the repository and shows it first.
fn run(command: &mut Command) -> Outcome {
    let shown = format!(
        "{} {}",
        command.get_program().display(),
        command.get_args().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    eprintln!("\n$ {shown}");
    let status = command.current_dir(root()).status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}
