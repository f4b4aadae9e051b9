//! Where results go: standard output, or a file that appears whole or not at all.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes bytes to standard output.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Writes styled text to standard output; styles are dropped where colour is not wanted.
pub(crate) fn to_terminal(write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Writes a file; whatever fails inside `write` leaves `path` as it was.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failure = None;
    let written = coirl::artifact::write_atomically(path, |file| {
        write(file).map_err(|reason| {
            failure = Some(reason);
            io::Error::other("not finished")
        })
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(written?),
    }
}

/// Refuses a file that could not be written once everything is computed.
pub(crate) fn check_can_be_written(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Failure::in_file(path, "its folder is not there"));
    }
    if path.is_dir() { Err(Failure::in_file(path, "is a folder; expected a file to write")) } else { Ok(()) }
}

/// Refuses to write over what is read.
pub(crate) fn check_is_not_read<'p>(out: &Path, read: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Failure> {
    // What is not there yet is nobody's input.
    let Ok(own) = out.canonicalize() else { return Ok(()) };
    match read.into_iter().any(|path| path.canonicalize().is_ok_and(|path| path == own)) {
        true => {
            Err(Failure::in_file(out, "is read by this command; it would be lost: write to another file with --out"))
        }
        false => Ok(()),
    }
}

/// One line on standard error, unless asked to be quiet.
pub(crate) fn note(quiet: bool, line: &str) {
    if !quiet {
        let dim = anstyle::Style::new().dimmed();
        // A note that nobody can read is no reason to fail.
        let _ = writeln!(anstream::stderr().lock(), "{dim}{line}{dim:#}");
    }
}
