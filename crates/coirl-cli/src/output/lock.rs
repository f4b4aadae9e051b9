//! Who writes to a folder: a lock that goes away with its process, however that ends.

use crate::arguments::Global;
use crate::failure::Failure;
use crate::text::shell_word;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that is locked. It says who holds the folder, for those who find it locked.
pub(crate) const LOCK: &str = ".coirl.lock";
/// Times that a lock may turn out to be that of a file which its holder has just removed.
const ATTEMPTS: usize = 1000;

/// A folder that nobody else writes to while this is there.
pub(crate) struct FolderLock {
    path: PathBuf,
    /// Closed last; that is what unlocks it.
    _file: File,
}

/// Who holds a folder.
#[derive(Serialize, Deserialize)]
struct Holder {
    process: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    command: String,
}

impl FolderLock {
    /// Takes a folder, or says who has it.
    pub(crate) fn take(folder: &Path, global: &Global) -> Result<Self, Failure> {
        Self::lock(folder, global, |file| match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(None),
            Err(TryLockError::Error(error)) => Err(Some(error)),
            Ok(()) => Ok(()),
        })
    }

    /// Takes a folder as soon as it is free.
    pub(crate) fn wait(folder: &Path, global: &Global) -> Result<Self, Failure> {
        Self::lock(folder, global, |file| file.lock().map_err(Some))
    }

    /// `how` says nothing where the folder is somebody else's.
    fn lock(
        folder: &Path,
        global: &Global,
        how: impl Fn(&File) -> Result<(), Option<io::Error>>,
    ) -> Result<Self, Failure> {
        let path = folder.join(LOCK);
        let refused = |error: io::Error| Failure::in_file(folder, format!("cannot be written to: {error}"));
        for _ in 0..ATTEMPTS {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = file.map_err(refused)?;
            match how(&file) {
                Ok(()) => {}
                // Some file systems know no locks; there, as before, two runs into one folder are the user's care.
                Err(Some(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(Some(error)) => return Err(refused(error)),
                Err(None) => return Err(in_use(folder, &path)),
            }
            if is_at(&file, &path) {
                // Held all the same where a full disk keeps it from being said by whom; the results will say so.
                let _ = Holder::this(global).write(&file);
                return Ok(Self { path, _file: file });
            }
        }
        Err(in_use(folder, &path))
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Still locked: whoever opened this file before sees after locking it that it is no longer there.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Holder {
    fn this(global: &Global) -> Self {
        let words = std::iter::once("coirl".to_owned()).chain(global.typed.iter().map(|word| shell_word(word)));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
        Self { process: std::process::id(), host, command: words.collect::<Vec<_>>().join(" ") }
    }

    fn read(path: &Path) -> Option<Self> {
        std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok())
    }

    fn write(&self, mut file: &File) -> io::Result<()> {
        file.set_len(0)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())
    }
}

/// Whether a path still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let same = |a: &std::fs::Metadata, b: &std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        file.metadata().is_ok_and(|own| std::fs::metadata(path).is_ok_and(|there| same(&own, &there)))
    }
    // Elsewhere a file that is open keeps its name.
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

fn in_use(folder: &Path, lock: &Path) -> Failure {
    let by = match Holder::read(lock) {
        Some(Holder { process, host: Some(host), command }) => format!("process {process} on {host}: {command}"),
        Some(Holder { process, host: None, command }) => format!("process {process}: {command}"),
        None => "another process".into(),
    };
    Failure::Refused {
        message: format!("{}: is being written to by {by}", folder.display()),
        help: Some("wait until it has ended, or write to another folder with --out".into()),
    }
}
