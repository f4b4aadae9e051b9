//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Large enough that a value at a time reaches the system as few calls.
const BUFFER_BYTES: usize = 1 << 18;

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// `write` fills a temporary file in the same folder, which is brought to disk and then renamed to `path`, replacing what was
/// there (a symbolic link is replaced, not followed). If anything fails, `path` is as before and the temporary file is
/// gone. The permissions are those of any new file.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io_error(io::Error::new(io::ErrorKind::IsADirectory, "is not a file name"))),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".coirl-").suffix(".partial");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The default of temporary files, 0600, would stay with the finished file and lock colleagues out.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let (file, temporary) = builder.tempfile_in(folder).map_err(io_error)?.into_parts();
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
    write(&mut buffered).and_then(|()| buffered.flush()).map_err(io_error)?;
    buffered.get_ref().sync_all().map_err(io_error)?;
    drop(buffered);
    temporary.persist(path).map_err(|refused| io_error(refused.error))
}
