//! What is saved and how it is versioned.
//!
//! A model is kept in one of two files:
//!
//! | file | for | content |
//! |---|---|---|
//! | `.npz` | exchange with NumPy and SciPy | plain arrays under documented keys |
//! | `.safetensors` | this library | the model bit for bit, versioned |
//!
//! What was learned is a `.safetensors` file as well ([`write_fitted`]); a run that was interrupted is a checkpoint
//! ([`write_checkpoint`]). The policies that new contexts are transferred from are a library ([`write_library`]).
//!
//! [`read_model`] goes by what a file holds, [`write_model`] by the extension. The keys of both are listed in
//! `docs/model-files.md`.
//!
//! Files are not trusted. Nothing is allocated on the word of a header: sizes are compared with the bytes that are there,
//! arrays are read in pieces, and the content passes the constructors of [`crate::model`], which refuse whatever is no
//! model. Arrays go straight from the file into the model, so reading needs little more memory than the model itself. Only
//! regular files are read ([`open_regular`]), and what is kept of compressed ones has a limit ([`unpacked_limit`]).

mod agent;
mod allowance;
mod archive;
mod atomic;
mod checkpoint;
mod fitted;
mod library;
mod npy;
mod npz;
mod numbers;
mod regular;
mod safetensors;

pub use allowance::unpacked_limit;
pub use atomic::{remove_abandoned, write_atomically};
pub use checkpoint::{read_checkpoint, write_checkpoint};
pub use fitted::{is_fitted, read_fitted, write_fitted};
pub use library::{is_library, read_library, write_library};
pub use numbers::{NamedArray, array_keys, read_all_numbers, read_numbers};
pub use regular::{open_regular, read_text};

use crate::error::{Error, Result};
use crate::model::Cmdp;
use crate::model::digest::sha256;
use std::io::Read;
use std::path::{Path, PathBuf};

/// SHA-256 of the content of a file, in hexadecimal digits.
pub fn digest_of(content: &[u8]) -> String {
    sha256(|sink| sink(content))
}

/// SHA-256 of a regular file, in hexadecimal digits, read in pieces.
pub fn digest_of_file(path: &Path) -> Result<String> {
    let (mut file, _) = open_regular(path, "a file")?;
    let mut piece = vec![0; 1 << 16];
    let mut failure = None;
    let digest = sha256(|sink| {
        failure = loop {
            match file.read(&mut piece) {
                Ok(0) => break None,
                Ok(n) => sink(&piece[..n]),
                Err(error) => break Some(error),
            }
        };
    });
    match failure {
        None => Ok(digest),
        Some(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// How a zip archive begins: with its first entry, or with its end when it has none.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a model from an `.npz` or a `.safetensors` file, whatever its name says.
///
/// Refuses, with the file and where possible the key and the index, what is damaged, unknown or no model.
pub fn read_model(path: &Path) -> Result<Cmdp> {
    let (mut file, size) = open_regular(path, "a .npz or .safetensors file")?;
    let mut start = Vec::new();
    let read = file.by_ref().take(9).read_to_end(&mut start);
    read.map_err(|source| Error::Io { path: path.to_owned(), source })?;
    if start.is_empty() {
        Err(format_error(path, "is empty; expected a .npz or .safetensors file"))
    } else if ZIP_MAGIC.iter().any(|magic| start.starts_with(magic)) {
        npz::read(path, file, size)
    } else if start.starts_with(NPY_MAGIC) {
        Err(format_error(path, "is a single NumPy array; a model needs several, as numpy.savez writes them"))
    } else if start.get(8) == Some(&b'{') {
        safetensors::read(path, file, size)
    } else {
        Err(format_error(path, "is neither a .npz archive nor a .safetensors file"))
    }
}

/// Writes a model as `.npz` or `.safetensors`, by the extension of `path`. The same model gives the same bytes.
///
/// The file appears whole or not at all; see [`write_atomically`].
pub fn write_model(path: &Path, model: &Cmdp) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npz") => npz::write(path, model),
        Some("safetensors") => safetensors::write(path, model),
        _ => Err(format_error(path, "does not end in .npz or .safetensors, the two formats of a model")),
    }
}

/// Characters of a reason. What is quoted in it comes from the file and may be as long as that.
const LONGEST_REASON: usize = 1000;

fn format_error(path: &Path, reason: impl Into<String>) -> Error {
    let mut reason = reason.into();
    if let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) {
        reason.truncate(end);
        reason.push('…');
    }
    Error::Format { path: path.to_owned(), reason }
}

/// A named array of a file, for messages.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    /// "key" in an archive, "tensor" in a safetensors file.
    noun: &'static str,
    name: String,
}

impl Place {
    /// The array, and what is wrong with it.
    fn refuse(&self, reason: impl std::fmt::Display) -> Error {
        format_error(&self.path, format!("{} \"{}\" {reason}", self.noun, self.name))
    }

    /// One entry of the array, and what is wrong with it.
    fn refuse_entry(&self, index: usize, reason: impl std::fmt::Display) -> Error {
        format_error(&self.path, format!("{} \"{}\"[{index}] {reason}", self.noun, self.name))
    }
}
