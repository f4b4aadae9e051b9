//! An `.npz` archive: a zip file with one array per entry.

use super::allowance::Allowance;
use super::npy::Array;
use super::{Place, format_error};
use crate::error::{Error, Result};
use npyz::{DType, Serialize, TypeStr, WriterBuilder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use zip::CompressionMethod;
use zip::read::{ZipArchive, ZipFile};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Deflate cannot make more than 1032 bytes out of one; what claims more is no honest archive.
const MAX_EXPANSION: u64 = 1100;
const EXPANSION_SLACK: u64 = 1 << 12;
/// A file may hold thousands of arrays.
const MAX_NAMES_IN_MESSAGE: usize = 20;
/// Buffer between single numbers and the archive, which sums a checksum per call.
const WRITE_BUFFER_BYTES: usize = 1 << 16;

/// An opened archive with its arrays by key.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    zip: ZipArchive<BufReader<File>>,
    entries: BTreeMap<String, usize>,
    allowance: Allowance,
}

/// An array inside an archive.
pub(super) type ArchiveArray<'a> = Array<ZipFile<'a, BufReader<File>>>;

impl Archive {
    /// Reads the directory of a file of `file_size` bytes and refuses entries that cannot be arrays.
    pub(super) fn open(path: &Path, file: File, file_size: u64) -> Result<Self> {
        let damaged = |error| format_error(path, format!("is no readable .npz archive: {error}"));
        let zip = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
        let mut archive =
            Self { path: path.to_owned(), zip, entries: BTreeMap::new(), allowance: Allowance::of_file(file_size) };
        if archive.zip.has_duplicate_names() {
            return Err(format_error(path, "has two entries of the same name"));
        }
        let mut compressed_sizes = 0_u64;
        for index in 0..archive.zip.len() {
            let entry = archive.zip.by_index_data(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            let refuse = |reason: String| Err(format_error(path, format!("entry {name:?} {reason}")));
            if name.contains(['/', '\\']) {
                return refuse("is in a folder; expected arrays at the top".into());
            }
            let Some(key) = name.strip_suffix(".npy") else {
                return refuse("is no array: its name does not end in .npy".into());
            };
            if entry.encrypted() {
                return refuse("is encrypted".into());
            }
            let (packed, unpacked) = (entry.compressed_size(), entry.size());
            let plausible = match entry.compression() {
                CompressionMethod::Stored => unpacked == packed,
                CompressionMethod::Deflated => unpacked / MAX_EXPANSION <= packed.saturating_add(EXPANSION_SLACK),
                method => {
                    let method = compression_name(method);
                    return refuse(format!("is compressed with {method}; expected none or deflate"));
                }
            };
            if !plausible {
                return refuse(format!("claims to hold {unpacked} bytes in {packed}, which its compression cannot"));
            }
            compressed_sizes = compressed_sizes.saturating_add(packed);
            archive.entries.insert(key.to_owned(), index);
        }
        // Entries that share their bytes would multiply a small file without end.
        if compressed_sizes > file_size {
            let reason = format!("claims {compressed_sizes} bytes of entries in a file of {file_size}");
            return Err(format_error(path, reason));
        }
        Ok(archive)
    }

    /// Counts what is kept beside the arrays themselves.
    pub(super) fn keep<T>(&self, key: &str, n: usize) -> Result<()> {
        self.allowance.keep::<T>(&self.place(key), n)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The array of a key, which must be there.
    pub(super) fn array(&mut self, key: &str) -> Result<ArchiveArray<'_>> {
        let place = self.place(key);
        let Some(&index) = self.entries.get(key) else {
            return Err(self.missing(&[key]));
        };
        match self.zip.by_index(index) {
            Ok(entry) => {
                let size = entry.size();
                Array::open(place, entry, size, self.allowance.clone())
            }
            Err(error) => Err(place.refuse(format_args!("cannot be read: {error}"))),
        }
    }

    /// What `read` makes of the array of a key, if there is one.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(ArchiveArray<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.has(key) { self.array(key).and_then(read).map(Some) } else { Ok(None) }
    }

    /// Where an array is, for messages.
    pub(super) fn place(&self, key: &str) -> Place {
        Place { path: self.path.clone(), noun: "key", name: key.to_owned() }
    }

    /// The error when none of these keys is there and one is needed.
    pub(super) fn missing(&self, wanted: &[&str]) -> Error {
        let wanted: Vec<String> = wanted.iter().map(|key| format!("{key:?}")).collect();
        let found: Vec<&str> = self.keys().take(MAX_NAMES_IN_MESSAGE).collect();
        let rest = if self.entries.len() > found.len() { " and others" } else { "" };
        format_error(&self.path, format!("key {} is missing; the file has {found:?}{rest}", wanted.join(" or ")))
    }
}

/// The common names of the methods that this build does not unpack.
fn compression_name(method: CompressionMethod) -> String {
    match method {
        CompressionMethod::BZIP2 => "bzip2".into(),
        CompressionMethod::LZMA => "lzma".into(),
        CompressionMethod::ZSTD => "zstd".into(),
        CompressionMethod::XZ => "xz".into(),
        CompressionMethod::DEFLATE64 => "deflate64".into(),
        other => format!("{other:?}"),
    }
}

/// Writes arrays into an archive, uncompressed as `numpy.savez` does: for 100,000 states, 4 actions and 10 successors the
/// fastest compression saves an eighth of the bytes, for seven times the time of writing and three of reading. Timestamps
/// are fixed, so that equal content gives equal bytes.
pub(super) struct ArchiveWriter<'a> {
    zip: ZipWriter<&'a mut BufWriter<File>>,
}

impl<'a> ArchiveWriter<'a> {
    /// Fills an archive by `write` and completes it.
    pub(super) fn write(
        file: &'a mut BufWriter<File>,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut writer = Self { zip: ZipWriter::new(file) };
        // Flushed first, so that a full disk is met here and not while finishing.
        let written = write(&mut writer).and_then(|()| writer.zip.flush());
        if let Err(error) = written {
            // Dropped unfinished, it would try to complete the archive and print that it could not.
            std::mem::forget(writer.zip);
            return Err(error);
        }
        writer.zip.finish()?.stream_position()?;
        Ok(())
    }

    /// Adds an array of numbers in C order.
    pub(super) fn numbers<T: Serialize>(
        &mut self,
        key: &str,
        element: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let element: TypeStr = element.parse().map_err(io::Error::other)?;
        let n_bytes = shape.iter().product::<usize>().saturating_mul(element.num_bytes().unwrap_or(1));
        let mut entry = BufWriter::with_capacity(WRITE_BUFFER_BYTES, self.start(key, n_bytes)?);
        let shape: Vec<u64> = shape.iter().map(|&axis| axis as u64).collect();
        let options = npyz::WriteOptions::new().dtype(DType::new_scalar(element)).shape(&shape).writer(&mut entry);
        let mut array = options.begin_nd()?;
        array.extend(values)?;
        array.finish()?;
        entry.flush()
    }

    /// Adds a single string.
    pub(super) fn text(&mut self, key: &str, text: &str) -> io::Result<()> {
        let code_points: Vec<char> = text.chars().collect();
        // NumPy has no strings of length zero in files.
        let element: TypeStr = format!("<U{}", code_points.len().max(1)).parse().map_err(io::Error::other)?;
        let entry = self.start(key, 4 * code_points.len())?;
        let options = npyz::WriteOptions::<[char]>::new().dtype(DType::new_scalar(element)).shape(&[]).writer(entry);
        let mut array = options.begin_nd()?;
        array.push(&code_points)?;
        array.finish()
    }

    fn start(&mut self, key: &str, n_bytes: usize) -> io::Result<&mut ZipWriter<&'a mut BufWriter<File>>> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::DEFAULT)
            .unix_permissions(0o644)
            .large_file(n_bytes >= u32::MAX as usize - (1 << 16));
        self.zip.start_file(format!("{key}.npy"), options)?;
        Ok(&mut self.zip)
    }
}
