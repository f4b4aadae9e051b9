//! Interrupted runs, as JSON:
//!
//! ```json
//! {"format": "coirl-checkpoint", "checkpoint": {"version": 2, …}}
//! ```

use super::atomic::write_atomically;
use super::{format_error, open_regular};
use crate::error::{Error, Result};
use crate::learn::CHECKPOINT_VERSION;
use crate::methods::Checkpoint;
use std::io::{self, Read as _, Write};
use std::path::Path;

const FORMAT: &str = "coirl-checkpoint";

#[derive(serde::Serialize)]
struct Written<'a> {
    format: &'a str,
    checkpoint: &'a Checkpoint,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    format: String,
    checkpoint: serde_json::Value,
}

/// Writes a checkpoint. The file appears whole or not at all, so that an interruption while writing leaves the one before.
pub fn write_checkpoint(path: &Path, checkpoint: &Checkpoint) -> Result<()> {
    write_atomically(path, |file| {
        serde_json::to_writer(&mut *file, &Written { format: FORMAT, checkpoint }).map_err(io::Error::from)?;
        file.write_all(b"\n")
    })
}

/// Reads a checkpoint. Refuses, naming the file, what is damaged, of another version or something else; whether it belongs
/// to the model and the data at hand is for [`crate::methods::resume`] to say.
pub fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    let (mut file, _) = open_regular(path, "a checkpoint")?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let damaged = |error: serde_json::Error| format_error(path, format!("is no readable checkpoint: {error}"));
    let Read { format, checkpoint } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if format != FORMAT {
        return Err(format_error(path, format!("is a {format:?} file; expected \"{FORMAT}\"")));
    }
    match checkpoint.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(CHECKPOINT_VERSION) => {}
        Some(version) => {
            let reason = format!("has version {version} of {FORMAT}; this build reads version {CHECKPOINT_VERSION}");
            return Err(format_error(path, reason));
        }
        None => return Err(format_error(path, format!("does not say its version of {FORMAT}"))),
    }
    serde_json::from_value(checkpoint).map_err(damaged)
}
