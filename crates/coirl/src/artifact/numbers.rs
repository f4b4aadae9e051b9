//! Single arrays of numbers, such as contexts or weights beside a model.

use super::archive::Archive;
use super::npy::Array;
use super::{NPY_MAGIC, Place, ZIP_MAGIC, format_error};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// Reads the shape and the numbers (in C order) of a `.npy` file, or of an `.npz` file that holds one array or one under
/// `key`. As little trusted as a model file.
pub fn read_numbers(path: &Path, key: &str) -> Result<(Vec<usize>, Vec<f64>)> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io_error)?;
    if !metadata.is_file() {
        return Err(format_error(path, "is no file; expected a .npy or .npz file"));
    }
    let mut file = File::open(path).map_err(io_error)?;
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(io_error)?;
    file.rewind().map_err(io_error)?;
    if ZIP_MAGIC.iter().any(|magic| start.starts_with(magic)) {
        let mut archive = Archive::open(path, file, metadata.len())?;
        let mut keys = archive.keys();
        let only = match (keys.next(), keys.next()) {
            (Some(only), None) => only.to_owned(),
            _ => key.to_owned(),
        };
        drop(keys);
        numbers(archive.array(&only)?)
    } else if start.starts_with(NPY_MAGIC) {
        let place = Place { path: path.to_owned(), noun: "array", name: key.to_owned() };
        numbers(Array::open(place, BufReader::new(file), metadata.len())?)
    } else {
        Err(format_error(path, "is neither a .npy array nor a .npz archive"))
    }
}

/// The keys of an `.npz` archive, sorted.
pub fn array_keys(path: &Path) -> Result<Vec<String>> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io_error)?;
    if !metadata.is_file() {
        return Err(format_error(path, "is no file; expected a .npz file"));
    }
    let archive = Archive::open(path, File::open(path).map_err(io_error)?, metadata.len())?;
    Ok(archive.keys().map(str::to_owned).collect())
}

fn numbers<R: Read>(array: Array<R>) -> Result<(Vec<usize>, Vec<f64>)> {
    Ok((array.shape().to_vec(), array.numbers()?))
}
