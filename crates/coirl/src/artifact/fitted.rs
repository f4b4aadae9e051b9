//! What was learned, as this library keeps it: a safetensors file whose `__metadata__` is
//!
//! ```json
//! {"format": "coirl-fitted", "version": "2", "header": "<JSON>"}
//! ```
//!
//! with the tensors of the agent: `mapping`, F64 `[d, k]`, or those in `agent.rs`. The header holds everything else: status, certificate, settings as they were
//! resolved, digest of the data, counts, names and history. Its numbers are written so that they read back as the same
//! numbers. The same result gives the same bytes.

use super::agent::{AgentHeader, from_tensors, to_tensors};
use super::safetensors::{TensorFile, write_tensors};
use super::{format_error, open_regular};
use crate::error::Result;
use crate::learn::{Record, RunCertificate, Status};
use crate::methods::{Fitted, Settings};
use crate::model::Names;
use std::borrow::Cow;
use std::path::Path;

const FORMAT: &str = "coirl-fitted";
const VERSION: &str = "2";

/// Everything but the tensors, in the order in which it is written.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    agent: AgentHeader,
    status: Status,
    steps: u64,
    demonstrations: u64,
    planner_calls: u64,
    digest: Cow<'a, str>,
    certificate: Cow<'a, RunCertificate>,
    settings: Cow<'a, Settings>,
    names: Cow<'a, Names>,
    history: Cow<'a, [Record]>,
}

/// Writes what was learned. The file appears whole or not at all; see [`super::write_atomically`].
pub fn write_fitted(path: &Path, fitted: &Fitted) -> Result<()> {
    let (agent, tensors) = to_tensors(&fitted.agent)?;
    let header = Header {
        agent,
        status: fitted.status,
        steps: fitted.steps,
        demonstrations: fitted.demonstrations,
        planner_calls: fitted.planner_calls,
        digest: Cow::Borrowed(&fitted.digest),
        certificate: Cow::Borrowed(&fitted.certificate),
        settings: Cow::Borrowed(&fitted.settings),
        names: Cow::Borrowed(&fitted.names),
        history: Cow::Borrowed(&fitted.history),
    };
    write_tensors(path, FORMAT, VERSION, &header, &tensors)
}

/// Reads what was learned. Refuses, naming the file, what is damaged, of another version or something else.
pub fn read_fitted(path: &Path) -> Result<Fitted> {
    let mut tensors = open(path)?;
    let header: Header<'static> = tensors.header(FORMAT, VERSION)?;
    let agent = from_tensors(&header.agent, &mut tensors).map_err(|error| error.in_file(path))?;
    tensors.check_all_read()?;
    check_names(&header).map_err(|reason| format_error(path, reason))?;
    Ok(Fitted {
        agent,
        status: header.status,
        certificate: header.certificate.into_owned(),
        history: header.history.into_owned(),
        settings: header.settings.into_owned(),
        names: header.names.into_owned(),
        digest: header.digest.into_owned(),
        demonstrations: header.demonstrations,
        planner_calls: header.planner_calls,
        steps: header.steps,
    })
}

/// Whether a file says that it holds what was learned, rather than a model or something else.
pub fn is_fitted(path: &Path) -> bool {
    open(path).is_ok_and(|tensors| tensors.format() == Some(FORMAT))
}

/// Opens a regular file.
pub(super) fn open(path: &Path) -> Result<TensorFile> {
    let (file, size) = open_regular(path, "a .safetensors file")?;
    TensorFile::open(path, file, size)
}

/// Printing code looks names up by the rows and columns of the mapping.
fn check_names(header: &Header<'_>) -> Result<(), String> {
    let (dimension, n_features) = header.agent.shape();
    let lists = [("feature", &header.names.features, n_features), ("context", &header.names.contexts, dimension)];
    for (what, names, n) in lists {
        if let Some(n) = n
            && !names.is_empty()
            && names.len() != n
        {
            return Err(format!("has {} {what} names for a mapping that has {n}", names.len()));
        }
    }
    Ok(())
}
