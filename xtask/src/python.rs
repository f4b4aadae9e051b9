//! The Python package: its wheel, and its tests against the wheel.

use crate::{Outcome, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What builds the wheel.
const MATURIN: &str = "maturin>=1.9,<2";

/// The interpreter of a virtual environment under `target`, made where it is missing.
pub(crate) fn environment(name: &str) -> Outcome<PathBuf> {
    let folder = root().join("target").join(name);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        run(Command::new("python3").arg("-m").arg("venv").arg(&folder))?;
    }
    Ok(python)
}

/// Installs what the arguments of `pip install` name.
pub(crate) fn pip(python: &Path, arguments: &[&str]) -> Outcome {
    run(Command::new(python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(arguments))
}

/// Builds the wheel into `target/wheels` and says where it is.
pub(crate) fn wheel() -> Outcome<PathBuf> {
    let python = environment("python")?;
    pip(&python, &[MATURIN])?;
    let out = root().join("target").join("wheels");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    let mut build = Command::new(&python);
    build.args(["-m", "maturin", "build", "--release", "--out"]).arg(&out).arg("--interpreter").arg(&python);
    run(&mut build)?;
    let entries = fs::read_dir(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let wheels = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let wheel = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl")).max();
    let wheel = wheel.ok_or_else(|| format!("{}: maturin wrote no wheel", out.display()))?;
    eprintln!("\nthe wheel: {}", wheel.display());
    Ok(wheel)
}

/// The wheel in an environment with nothing but NumPy runs the example of the README; then the tests in one with everything they compare with.
pub(crate) fn test() -> Outcome {
    let wheel = wheel()?.display().to_string();
    let plain = environment("python-plain")?;
    pip(&plain, &["--force-reinstall", "--no-deps", &wheel])?;
    pip(&plain, &[&wheel])?;
    run(Command::new(&plain).arg(root().join("python/examples/ten_lines.py")))?;
    let python = environment("python")?;
    let requirements = root().join("python/tests/requirements.txt");
    pip(&python, &["--requirement", &requirements.display().to_string()])?;
    pip(&python, &["--force-reinstall", "--no-deps", &wheel])?;
    run(Command::new(&python).args(["-m", "ruff", "check", "--quiet", "python"]))?;
    run(Command::new(&python).args(["-m", "ruff", "format", "--quiet", "--check", "python"]))?;
    run(Command::new(&python).args(["-m", "pytest", "--quiet"]))
}
