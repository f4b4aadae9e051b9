//! Opening what can be read to its end: a device or a pipe may never have one.

use super::format_error;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a regular file, or a link to one, and says how many bytes it has. `expected` is what should be there, for the message.
pub fn open_regular(path: &Path, expected: &str) -> Result<(File, u64)> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    // Asked before opening: opening a pipe waits for somebody to write into it.
    let metadata = std::fs::metadata(path).map_err(io_error)?;
    if metadata.is_dir() {
        return Err(format_error(path, format!("is a folder; expected {expected}")));
    }
    if !metadata.is_file() {
        return Err(format_error(path, format!("is not a regular file; expected {expected}")));
    }
    Ok((File::open(path).map_err(io_error)?, metadata.len()))
}

/// The text of a regular file in UTF-8, without the byte order mark that some editors write.
pub fn read_text(path: &Path, expected: &str) -> Result<String> {
    let (mut file, _) = open_regular(path, expected)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}
