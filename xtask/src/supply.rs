//! What is built into this software: licences, sources and second versions of dependencies, by cargo-deny.

use crate::{Outcome, root, run, succeeds};
use std::path::PathBuf;
use std::process::Command;

/// The version that the settings in deny.toml are for.
const VERSION: &str = "0.20.2";

/// Checks everything in deny.toml. Known vulnerabilities are looked up where their list can be reached; elsewhere that is said.
pub(crate) fn check() -> Outcome {
    let tool = tool()?;
    run(Command::new(&tool).args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
    if succeeds(Command::new(&tool).args(["fetch", "db"]).current_dir(root())) {
        run(Command::new(&tool).args(["check", "--hide-inclusion-graph", "advisories"]))
    } else {
        eprintln!(
            "note: the list of advisories cannot be reached from here; known vulnerabilities were not looked for"
        );
        Ok(())
    }
}

/// Where cargo-deny is. Compiled where it is missing, without optimisation: it reads a few files.
fn tool() -> Outcome<PathBuf> {
    let own = root().join("target/tools");
    let program = own.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    for there in [PathBuf::from("cargo-deny"), program.clone()] {
        if succeeds(Command::new(&there).arg("--version")) {
            return Ok(there);
        }
    }
    let wanted = format!("cargo-deny@{VERSION}");
    run(Command::new("cargo").args(["install", "--quiet", "--debug", "--locked", &wanted, "--root"]).arg(&own))?;
    Ok(program)
}
