//! `coirl info`: what a model file, or the file of a fitted mapping, holds.

use crate::arguments::{Global, PAGE};
use crate::destination::{to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::fitting::{agent_in_words, rows_of_mapping, status_in_words, write_mapping};
use crate::networks::NetworkReport;
use crate::numbers::{bytes, count, short};
use crate::output::{Machine, Manifest, Since};
use crate::summary::Summary;
use crate::text;
use clap::Args;
use coirl::learn::{RunCertificate, Status};
use coirl::methods::Settings;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  coirl domain export driving --out model.npz
  coirl info model.npz
  coirl info model.npz --json
  coirl info coirl-fit/fitted.safetensors
  coirl info coirl-fit";

const EXPLANATION: &str = "\
Reads a model from a .npz or .safetensors file, checks all of it (probabilities sum to one, successors exist, numbers \
are finite) and says how large it is, what its actions and features are called, where it starts, what it optimises and \
what contexts it accepts. Of what `coirl fit` has learned it shows the mapping, the method, why the run ended and what is \
certain about the result. Of a folder with results it shows the manifest: versions, machine, seed, digests of data and settings, and whether \
every file is as it was written.";

/// Show what a file or a folder of results holds
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct InfoArgs {
    /// A model (.npz, .safetensors), a fitted mapping (.safetensors), or a folder of `fit`, `cohort build` or `experiment run`
    #[arg(value_name = "FILE|DIR")]
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
    if args.file.is_dir() {
        return show_folder(&args.file, global);
    }
    if coirl::artifact::is_fitted(&args.file) {
        return show_fitted(&args.file, global);
    }
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
            Ok(writeln!(out, "  {}", summary.example(&text::shell_word(&file), None))?)
        })?;
    }
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct FittedInfo<'a> {
    file: String,
    bytes: u64,
    kind: &'static str,
    status: Status,
    steps: u64,
    demonstrations: u64,
    planner_calls: u64,
    certificate: &'a RunCertificate,
    settings: &'a Settings,
    digest: &'a str,
    agent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<Vec<&'a [f64]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkReport>,
    context_names: &'a [String],
    feature_names: &'a [String],
}

fn show_fitted(path: &Path, global: &Global) -> Result<Outcome, Failure> {
    let fitted = coirl::artifact::read_fitted(path)?;
    let size = std::fs::metadata(path).map_err(|error| Failure::in_file(path, error))?.len();
    let file = path.display().to_string();
    let method = serde_json::to_string(&fitted.settings.method).map_err(std::io::Error::from)?;
    if global.json {
        let info = FittedInfo {
            file,
            bytes: size,
            kind: "fitted",
            status: fitted.status,
            steps: fitted.steps,
            demonstrations: fitted.demonstrations,
            planner_calls: fitted.planner_calls,
            certificate: &fitted.certificate,
            settings: &fitted.settings,
            digest: &fitted.digest,
            agent: fitted.agent.kind(),
            mapping: rows_of_mapping(&fitted),
            network: NetworkReport::of(&fitted),
            context_names: &fitted.names.contexts,
            feature_names: &fitted.names.features,
        };
        to_stdout(|out| Ok(writeln!(out, "{}", serde_json::to_string(&info).map_err(std::io::Error::from)?)?))?;
        return Ok(Outcome::Done);
    }
    let certificate = &fitted.certificate;
    to_terminal(|out| {
        text::title(out, &format!("fitted mapping: {}", fitted.names.model))?;
        text::pair(out, "file", &format!("{file} ({})", bytes(size)))?;
        text::pair(out, "method", &method)?;
        text::pair(out, "seed", &fitted.settings.seed.to_string())?;
        let steps = count(fitted.steps as usize);
        text::pair(
            out,
            "steps",
            &format!("{steps}, {}", status_in_words(fitted.status, fitted.settings.stop.watched.unwrap_or_default())),
        )?;
        let used = format!("{} demonstrations, {} plans", fitted.demonstrations, fitted.planner_calls);
        text::pair(out, "used", &used)?;
        let loss = |loss: Option<f64>| loss.map_or("not known".into(), short);
        text::pair(out, "agent", &format!("{}: {}", fitted.agent.kind(), agent_in_words(&fitted.agent)))?;
        if let Some(network) = NetworkReport::of(&fitted) {
            network.write(out)?;
        }
        text::pair(out, "loss", &loss(certificate.loss))?;
        if certificate.last_iterate_loss.is_some() {
            text::pair(out, "", &format!("{} of the last iterate", loss(certificate.last_iterate_loss)))?;
        }
        let limit = certificate.bound.map_or(String::new(), |bound| format!("{}: ", short(bound)));
        text::pair(out, "bound", &format!("{limit}{}", certificate.guarantee))?;
        if let Some(distance) = certificate.distance {
            text::pair(out, "distance", &format!("{} from the expert's feature expectations", short(distance)))?;
        }
        if let Some(game) = &certificate.game_value {
            let between = format!("between {} and {}: {}", short(game.lower), short(game.upper), game);
            text::pair(out, "game value", &between)?;
        }
        if let Some(gap) = certificate.gap {
            text::pair(out, "gap", &short(gap))?;
        }
        if certificate.bias_bound > 0.0 {
            text::pair(out, "bias", &format!("at most {} in the estimated μ", short(certificate.bias_bound)))?;
        }
        text::pair(out, "data", &format!("SHA-256 {}", fitted.digest))?;
        write_mapping(out, &fitted)
    })?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct FolderInfo<'a> {
    folder: String,
    manifest: &'a Manifest,
    files: &'a BTreeMap<&'a str, Since>,
}

fn show_folder(path: &Path, global: &Global) -> Result<Outcome, Failure> {
    let Some(manifest) = Manifest::read(path)? else {
        let reason = "has no manifest.json: it is not a folder of results, or the run that writes to it has not ended";
        return Err(Failure::in_file(path, reason));
    };
    let files = manifest.compare(path)?;
    if global.json {
        let info = FolderInfo { folder: path.display().to_string(), manifest: &manifest, files: &files };
        to_stdout(|out| Ok(writeln!(out, "{}", serde_json::to_string(&info).map_err(std::io::Error::from)?)?))?;
    } else {
        to_terminal(|out| {
            text::title(out, &path.display().to_string())?;
            text::pair(out, "made by", &format!("coirl {} ({})", manifest.command, manifest.program))?;
            let Machine { system, architecture, processor_features, .. } = &manifest.machine;
            text::pair(out, "machine", &format!("{system} {architecture} {}", processor_features.join(" ")))?;
            text::pair(out, "seed", &manifest.seed.to_string())?;
            for (what, digest) in &manifest.data {
                text::pair(out, "data", &format!("{what}: SHA-256 {digest}"))?;
            }
            text::pair(out, "settings", &manifest.settings.to_string())?;
            let row = |(name, since): (&&str, &Since)| vec![(*name).to_owned(), since.in_words().to_owned()];
            Ok(text::table(out, &["file", "since it was written"], &[], files.iter().map(row).collect())?)
        })?;
    }
    match files.iter().find(|(_, since)| **since != Since::Unchanged) {
        None => Ok(Outcome::Done),
        Some((name, since)) => {
            let path = path.join(name);
            Err(Failure::in_file(&path, format!("{} since the manifest was written", since.in_words())))
        }
    }
}
