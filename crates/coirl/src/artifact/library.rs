//! Known contexts with their policies, as [`crate::transfer`] uses them: a safetensors file whose `__metadata__` is
//!
//! ```json
//! {"format": "coirl-library", "version": "1", "header": "<JSON>"}
//! ```
//!
//! The header holds the digest of the model and the mapping that the library belongs to, and how many contexts and policies
//! there are. For each part (one, or one per cluster; tensors of empty parts are left out)
//!
//! | tensor | type and shape | |
//! |---|---|---|
//! | `0.contexts` | F64 `[n, d]` | the contexts, of a linear mapping |
//! | `0.coefficients` | F64 `[n, b]` | what the contexts are known by, of a network: reward weights, for mixtures after the context |
//! | `0.policy_of` | U32 `[n]` | the policy of each |
//! | `0.policies` | U8 or U16 `[p, s]` | distinct policies, two bytes per state from 257 actions on |
//! | `0.sums` | F64 `[s, b, p]` | discounted sums of the mapping's rows (b = d), or of the features (b = k, of a network); not for mixtures |
//! | `0.scale` | F64 `[b]` | sizes by which ties are judged, not for mixtures |
//!
//! Sums are compared with the policies when read. That the policies are optimal is taken from the digest.

use super::fitted::open;
use super::format_error;
use super::safetensors::{Tensor, TensorFile, Values, write_tensors};
use crate::error::Result;
use crate::mapping::{LearnedMapping, RewardMapping};
use crate::model::{ActionId, Cmdp};
use crate::plan::Policy;
use crate::transfer::{CompactPolicy, Knowledge, KnownContexts, PolicyLibrary, Transfer};
use std::borrow::Cow;
use std::path::Path;

const FORMAT: &str = "coirl-library";
const VERSION: &str = "1";

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    digest: String,
    parts: Vec<Part>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    n_contexts: usize,
    n_policies: usize,
}

/// Writes what is known. The file appears whole or not at all; see [`super::write_atomically`].
pub fn write_library(path: &Path, transfer: &Transfer<'_>) -> Result<()> {
    let known = transfer.known();
    let parts = known.iter().map(|known| Part { n_contexts: known.len(), n_policies: known.n_policies() }).collect();
    let n_states = transfer.model().n_states();
    let mut tensors = Vec::new();
    for (i, known) in known.iter().enumerate().filter(|(_, known)| !known.is_empty()) {
        let mut add = |name: &str, shape: Vec<usize>, values| {
            tensors.push(Tensor { name: format!("{i}.{name}"), shape, values });
        };
        let ((coefficients, policy_of), size) = (known.parts(), known.size());
        add(known_by(transfer.mapping()), vec![known.len(), size], Values::F64(Cow::Borrowed(coefficients)));
        add("policy_of", vec![known.len()], Values::U32(Cow::Borrowed(policy_of)));
        add("policies", vec![known.n_policies(), n_states], compact(known));
        if let Some(library) = part(transfer.knowledge(), i) {
            let (sums, scale) = library.sums();
            add("sums", vec![n_states, size, known.n_policies()], Values::F64(Cow::Borrowed(sums)));
            add("scale", vec![size], Values::F64(Cow::Borrowed(scale)));
        }
    }
    write_tensors(path, FORMAT, VERSION, &Header { digest: transfer.digest(), parts }, &tensors)
}

/// Reads what is known about a mapping in a model. Refuses, naming the file, what is damaged, of another version, or
/// belongs to another mapping or model.
pub fn read_library<'a>(path: &Path, model: &'a Cmdp, mapping: impl Into<LearnedMapping>) -> Result<Transfer<'a>> {
    let mut tensors = open(path)?;
    let header: Header = tensors.header(FORMAT, VERSION)?;
    let mut transfer = Transfer::new(model, mapping)?;
    let digest = transfer.digest();
    if header.digest != digest {
        let reason = format!(
            "belongs to another mapping or model (digest {:.12}…, not {digest:.12}…); make it again for this one",
            header.digest
        );
        return Err(format_error(path, reason));
    }
    let n_parts = transfer.known().len();
    if header.parts.len() != n_parts {
        return Err(format_error(path, format!("has {} parts; expected {n_parts}", header.parts.len())));
    }
    for (i, part) in header.parts.iter().enumerate().filter(|(_, part)| part.n_contexts > 0) {
        fill(&mut tensors, &mut transfer, i, part).map_err(|error| error.in_file(path))?;
    }
    tensors.check_all_read()?;
    Ok(transfer)
}

/// Whether a file says that it holds a library.
pub fn is_library(path: &Path) -> bool {
    open(path).is_ok_and(|tensors| tensors.format() == Some(FORMAT))
}

/// The tensor of what contexts are known by.
fn known_by(mapping: &LearnedMapping) -> &'static str {
    match mapping {
        LearnedMapping::Linear(_) => "contexts",
        LearnedMapping::Neural(_) => "coefficients",
    }
}

fn part<'t, 'a>(knowledge: &'t Knowledge<'a>, index: usize) -> Option<&'t PolicyLibrary<'a>> {
    match knowledge {
        Knowledge::Shared(library) => Some(library),
        Knowledge::Clusters(libraries) => libraries.get(index),
        Knowledge::Mixture(_) => None,
    }
}

fn compact(known: &KnownContexts) -> Values<'static> {
    let (mut bytes, mut words) = (Vec::new(), Vec::new());
    for policy in known.compact() {
        match &**policy {
            CompactPolicy::Bytes(actions) => bytes.extend_from_slice(actions),
            CompactPolicy::Words(actions) => words.extend_from_slice(actions),
        }
    }
    if words.is_empty() { Values::U8(bytes) } else { Values::U16(words) }
}

fn fill(tensors: &mut TensorFile, transfer: &mut Transfer<'_>, index: usize, part: &Part) -> Result<()> {
    let model = transfer.model();
    let (n_states, size) = (model.n_states(), transfer.known()[index].size());
    let name = |what: &str| format!("{index}.{what}");
    let coefficients: Vec<f64> = tensors.tensor(&name(known_by(transfer.mapping())), &[part.n_contexts, size])?;
    let policy_of: Vec<u32> = tensors.tensor(&name("policy_of"), &[part.n_contexts])?;
    let shape = [part.n_policies, n_states];
    let actions: Vec<ActionId> = match model.n_actions() {
        0..=256 => tensors.tensor::<u8>(&name("policies"), &shape)?.into_iter().map(|a| ActionId(a.into())).collect(),
        _ => tensors.tensor::<u16>(&name("policies"), &shape)?.into_iter().map(|a| ActionId(a.into())).collect(),
    };
    let policies: Vec<Policy> = actions.chunks_exact(n_states).map(|row| Policy::Stationary(row.to_vec())).collect();
    // Reward weights may be anything; contexts may not.
    let n_context = match (transfer.mapping(), transfer.knowledge()) {
        (LearnedMapping::Neural(_), Knowledge::Shared(_) | Knowledge::Clusters(_)) => None,
        (mapping, _) => Some(mapping.dimension()),
    };
    if let Some(n_context) = n_context {
        for row in coefficients.chunks_exact(size) {
            model.context_space().context(&row[..n_context])?;
        }
    }
    let known = transfer.known()[index].filled(&coefficients, &policy_of, &policies)?;
    let library = match transfer.knowledge_mut() {
        Knowledge::Mixture(nearest) => {
            nearest.fill(known);
            return Ok(());
        }
        Knowledge::Shared(library) => library,
        Knowledge::Clusters(libraries) => &mut libraries[index],
    };
    let sums = tensors.tensor(&name("sums"), &[n_states, size, part.n_policies])?;
    let scale = tensors.tensor(&name("scale"), &[size])?;
    library.fill(known, sums, scale)
}
