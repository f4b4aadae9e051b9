//! Single arrays of numbers, such as contexts or weights beside a model.

use super::allowance::Allowance;
use super::archive::Archive;
use super::npy::Array;
use super::{NPY_MAGIC, Place, ZIP_MAGIC, format_error, open_regular};
use crate::error::{Error, Result};
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// Reads the shape and the numbers (in C order) of a `.npy` file, or of an `.npz` file that holds one array or one under
/// `key`. As little trusted as a model file.
pub fn read_numbers(path: &Path, key: &str) -> Result<(Vec<usize>, Vec<f64>)> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let (mut file, size) = open_regular(path, "a .npy or .npz file")?;
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(io_error)?;
    file.rewind().map_err(io_error)?;
    if ZIP_MAGIC.iter().any(|magic| start.starts_with(magic)) {
        let mut archive = Archive::open(path, file, size)?;
        let mut keys = archive.keys();
        let only = match (keys.next(), keys.next()) {
            (Some(only), None) => only.to_owned(),
            _ => key.to_owned(),
        };
        drop(keys);
        numbers(archive.array(&only)?)
    } else if start.starts_with(NPY_MAGIC) {
        let place = Place { path: path.to_owned(), noun: "array", name: key.to_owned() };
        numbers(Array::open(place, BufReader::new(file), size, Allowance::of_file(size))?)
    } else {
        Err(format_error(path, "is neither a .npy array nor a .npz archive"))
    }
}

/// The keys of an `.npz` archive, sorted.
pub fn array_keys(path: &Path) -> Result<Vec<String>> {
    Ok(open_archive(path)?.keys().map(str::to_owned).collect())
}

/// An array of an `.npz` archive.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedArray {
    /// Its key.
    pub name: String,
    /// The length of every axis.
    pub shape: Vec<usize>,
    /// Its numbers, in C order.
    pub values: Vec<f64>,
}

/// All arrays of an `.npz` archive, sorted by name.
pub fn read_all_numbers(path: &Path) -> Result<Vec<NamedArray>> {
    let mut archive = open_archive(path)?;
    let keys: Vec<String> = archive.keys().map(str::to_owned).collect();
    let read = |name: String| numbers(archive.array(&name)?).map(|(shape, values)| NamedArray { name, shape, values });
    keys.into_iter().map(read).collect()
}

fn open_archive(path: &Path) -> Result<Archive> {
    let (file, size) = open_regular(path, "a .npz file")?;
    Archive::open(path, file, size)
}

fn numbers<R: Read>(array: Array<R>) -> Result<(Vec<usize>, Vec<f64>)> {
    Ok((array.shape().to_vec(), array.numbers()?))
}
