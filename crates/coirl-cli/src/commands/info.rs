//! `coirl info`: what a model file holds.

use crate::arguments::{Global, PAGE};
use crate::destination::{to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::numbers::bytes;
use crate::summary::Summary;
use crate::text;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  coirl domain export driving --out model.npz
  coirl info model.npz
  coirl info model.npz --json";

const EXPLANATION: &str = "\
Reads a model from a .npz or .safetensors file, checks all of it (probabilities sum to one, successors exist, numbers \
are finite) and says how large it is, what its actions and features are called, where it starts, what it optimises and \
what contexts it accepts.";

/// Show what a model file holds
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct InfoArgs {
    /// A model file: .npz or .safetensors
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Info<'a> {
    file: String,
    bytes: u64,
    #[serde(flatten)]
    model: &'a Summary,
}

pub(crate) fn run(args: &InfoArgs, global: &Global) -> Result<Outcome, Failure> {
    let model = coirl::artifact::read_model(&args.file)?;
    let size = std::fs::metadata(&args.file).map_err(|error| Failure::in_file(&args.file, error))?.len();
    let summary = Summary::of(&model)?;
    let file = args.file.display().to_string();
    if global.json {
        let info = Info { file, bytes: size, model: &summary };
        to_stdout(|out| Ok(writeln!(out, "{}", serde_json::to_string(&info).map_err(std::io::Error::from)?)?))?;
    } else {
        to_terminal(|out| {
            let name = model.names().model.as_str();
            text::title(out, if name.is_empty() { &file } else { name })?;
            text::pair(out, "file", &format!("{file} ({})", bytes(size)))?;
            summary.write(out)?;
            writeln!(out)?;
            text::title(out, "Try")?;
            Ok(writeln!(out, "  {}", summary.example(&shell_word(&file), None))?)
        })?;
    }
    Ok(Outcome::Done)
}

/// The path as it must be typed.
fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
