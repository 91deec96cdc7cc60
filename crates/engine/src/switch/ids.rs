//! N_Port_IDs that outlive the switch: `--state DIR`.
//!
//! A file has one line for each WWPN: the name, a space, and the N_Port_ID as six hexadecimal
//! digits. It is replaced as a whole.

use std::fmt::Write;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use fc::wire::names::{FcId, Wwn};
use runtime::files::{self, nothing_is_there};

use super::ids_keeper::IdsDisk;

/// The name of the file in its folder.
const NAME: &str = "n-port-ids";

/// Bytes of it at the most: room for 16,384 lines and more.
const SIZE_MAX: u64 = 1 << 20;

/// Which N_Port_ID each WWPN has.
pub(super) type IdList = Vec<(Wwn, FcId)>;

/// Why what was remembered cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IdsError {
    /// The folder or the file.
    #[error("--state {}: {cause}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// Another switch has the folder.
    #[error(
        "--state {}: another switch keeps its N_Port_IDs there, and each would overwrite those of \
         the other: only a switch with --standby shares a folder",
        path.display()
    )]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// A line that is not of a switch.
    #[error(
        "{}:{line}: a WWPN and an N_Port_ID are expected here, as in 20:00:52:54:00:78:41:00 \
         010100: mend the line, or remove the file to give all ports new N_Port_IDs",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
    },
}

/// What is remembered in a folder, which is made if it is not there.
///
/// # Errors
///
/// See [`IdsError`].
pub(super) fn load(folder: &Path) -> Result<IdList, IdsError> {
    let failed = |path: &Path, cause| IdsError::Io {
        path: path.to_owned(),
        cause,
    };
    files::make(folder).map_err(|cause| failed(folder, cause))?;
    let path = folder.join(NAME);
    let bytes = match files::read_regular(&path, SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(cause) if nothing_is_there(&cause) => return Ok(Vec::new()),
        Err(cause) => return Err(failed(&path, cause)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().zip(1..);
    let wrong = |line| IdsError::Line {
        path: path.clone(),
        line,
    };
    lines
        .map(|(text, line)| parse(text).ok_or_else(|| wrong(line)))
        .collect()
}

/// Claims a folder that is there, until what is returned is dropped. A standby makes no claim, as
/// it shares the folder. There is none where the file system has no locks.
///
/// # Errors
///
/// [`IdsError::Taken`].
pub(super) fn claim(folder: &Path) -> Result<Option<File>, IdsError> {
    let Ok(opened) = File::open(folder) else {
        return Ok(None);
    };
    match opened.try_lock() {
        Ok(()) => Ok(Some(opened)),
        Err(TryLockError::WouldBlock) => Err(IdsError::Taken {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn parse(line: &str) -> Option<(Wwn, FcId)> {
    let (name, id) = line.split_once(' ')?;
    let is_hex = id.len() == 6 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = u32::from_str_radix(id, 16).ok().filter(|_| is_hex)?;
    Some((name.parse().ok()?, FcId(id)))
}

fn text(ids: &[(Wwn, FcId)]) -> String {
    ids.iter()
        .fold(String::new(), |mut text, (wwpn, FcId(id))| {
            // A string takes whatever is written to it.
            let _ = writeln!(text, "{wwpn} {id:06x}");
            text
        })
}

/// A folder with the list.
#[derive(Debug)]
pub(super) struct IdsFolder(pub(super) PathBuf);

impl IdsDisk for IdsFolder {
    fn read(&mut self) -> Result<IdList, IdsError> {
        load(&self.0)
    }

    fn write(&mut self, ids: &[(Wwn, FcId)]) -> Result<(), IdsError> {
        let Self(folder) = self;
        let written = files::replace(folder, NAME, text(ids).as_bytes());
        written.map_err(|cause| IdsError::Io {
            path: folder.clone(),
            cause,
        })
    }
}

/// Whether the folder has a list.
#[cfg(test)]
pub(super) fn is_there(folder: &Path) -> bool {
    std::fs::exists(folder.join(NAME)).unwrap_or_default()
}
