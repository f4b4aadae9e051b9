//! All learners on contextual problems of many kinds, beside peers in NumPy and trivial rules: builds the wheel, installs it into a virtual
//! environment, and runs `python/benchmarks/learners.py` there.

use crate::{Outcome, python, root, run};
use std::process::Command;

/// The page that the tables go to; the figure is drawn beside it.
const PAGE: &str = "docs/learner-benchmark.md";

/// What the script is asked for; its own defaults where nothing is given.
#[derive(clap::Args)]
pub(crate) struct Wanted {
    /// Write tables and figure to docs/learner-benchmark.md.
    #[arg(long)]
    write: bool,
    /// Problems of every kind.
    #[arg(long, default_value_t = 1)]
    draws: u32,
    /// Seed of the first problem of every kind.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Only these kinds, such as inventory,maze.
    #[arg(long)]
    only: Option<String>,
    /// Only these learners, such as 'adaptive;bundle'.
    #[arg(long)]
    learners: Option<String>,
    /// Processes; each has one thread.
    #[arg(long, default_value_t = 1)]
    jobs: u32,
    /// The default learner, the best of the others, and what they must beat.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn bench(wanted: &Wanted) -> Outcome {
    let wheel = python::wheel()?.display().to_string();
    let python = python::environment("learners")?;
    python::pip(&python, &["numpy"])?;
    python::pip(&python, &["--force-reinstall", "--no-deps", &wheel])?;
    let out = root().join("target").join("learners.jsonl");
    let shown = command(wanted);
    let mut bench = Command::new(&python);
    bench.arg(root().join("python/benchmarks/learners.py")).arg("--out").arg(&out);
    bench.args(["--draws", &wanted.draws.to_string(), "--seed", &wanted.seed.to_string()]);
    bench.args(["--jobs", &wanted.jobs.to_string(), "--command", &shown]);
    for (name, given) in [("--only", &wanted.only), ("--learners", &wanted.learners)] {
        if let Some(given) = given {
            bench.args([name, given]);
        }
    }
    if wanted.quick {
        bench.arg("--quick");
    }
    if wanted.write {
        bench.arg("--write").arg(root().join(PAGE));
    }
    // One thread each, so that times can be compared.
    bench.env("OMP_NUM_THREADS", "1").env("OPENBLAS_NUM_THREADS", "1");
    run(&mut bench)?;
    eprintln!("\nevery fit: {}", out.display());
    Ok(())
}

/// The command as somebody would type it to get the same tables.
fn command(wanted: &Wanted) -> String {
    let mut words = vec!["cargo xtask bench-learners --write".to_owned()];
    words.push(format!("--draws {} --seed {}", wanted.draws, wanted.seed));
    words.extend(wanted.only.as_ref().map(|given| format!("--only {given}")));
    words.extend(wanted.learners.as_ref().map(|given| format!("--learners '{given}'")));
    words.extend(wanted.quick.then(|| "--quick".to_owned()));
    words.join(" ")
}
