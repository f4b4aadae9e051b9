//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Large enough that a value at a time reaches the system as few calls.
const BUFFER_BYTES: usize = 1 << 18;
/// How the name of a file begins and ends while it is written.
const UNFINISHED: (&str, &str) = (".coirl-", ".partial");

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// `write` fills a temporary file in the same folder, which is brought to disk and then renamed to `path`, replacing what was
/// there (a symbolic link is replaced, not followed). If anything fails, `path` is as before and the temporary file is
/// gone. The permissions are those of any new file.
///
/// Nobody removes the temporary file of a process that was killed; [`remove_abandoned`] does, later.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io_error(io::Error::new(io::ErrorKind::IsADirectory, "is not a file name"))),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The default of temporary files, 0600, would stay with the finished file and lock colleagues out.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let (file, temporary) = builder.tempfile_in(folder).map_err(io_error)?.into_parts();
    // Held until the file has its name: what is locked is not abandoned. Where files cannot be locked, nothing is lost.
    let _ = file.try_lock();
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
    write(&mut buffered).and_then(|()| buffered.flush()).map_err(io_error)?;
    buffered.get_ref().sync_all().map_err(io_error)?;
    // An open file cannot be renamed there.
    #[cfg(windows)]
    drop(buffered);
    temporary.persist(path).map_err(|refused| io_error(refused.error))?;
    bring_to_disk(folder);
    Ok(())
}

/// Brings the names in a folder to disk, so that a file that was announced is still there after a loss of power. The content
/// is safe already; a file system that cannot do this is no reason to fail.
fn bring_to_disk(folder: &Path) {
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    #[cfg(not(unix))]
    let _ = folder;
}

/// Removes the temporary files that killed processes left in a folder. Files that somebody still writes are locked and stay.
pub fn remove_abandoned(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let unfinished = name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1);
        if !unfinished || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // What cannot be removed now will be tried again by the next run.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_writes_is_removed() -> Result<()> {
        let folder = tempfile::tempdir().map_err(|source| Error::Io { path: "".into(), source })?;
        let (path, abandoned) = (folder.path().join("result"), folder.path().join(".coirl-killed.partial"));
        let others = folder.path().join(".coirl-notes");
        std::fs::write(&others, "kept").ok();
        write_atomically(&path, |file| {
            std::fs::write(&abandoned, "half")?;
            remove_abandoned(folder.path());
            file.write_all(b"whole")
        })?;
        assert!(!abandoned.exists());
        assert!(others.exists());
        assert_eq!(std::fs::read(&path).ok().as_deref(), Some(&b"whole"[..]));
        Ok(())
    }
}
