//! The folder of these files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{ConfigError, PortConfig};

/// Where fcoemon has it.
pub const FOLDER: &str = "/etc/fcoe";

/// Files begin so; `cfg-ethx` is the example that fcoe-utils comes with.
const PREFIX: &str = "cfg-";
const EXAMPLE: &str = "ethx";

/// The most bytes of a file; one with all settings and comments has about 1,000.
const FILE_MAX: u64 = 64 << 10;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It, or a file in it, cannot be read.
    #[error("{}: {}", .0.display(), .1)]
    Unreadable(PathBuf, #[source] io::Error),
    /// A file is too long.
    #[error("{}: longer than {FILE_MAX} bytes: this is no file of fcoemon", .0.display())]
    TooLong(PathBuf),
    /// A file is wrong.
    #[error("{}: {}", .0.display(), .1)]
    Malformed(PathBuf, #[source] ConfigError),
}

/// Reads all files, by the names of their interfaces.
///
/// # Errors
/// See [`FolderError`].
pub fn read(folder: &Path) -> Result<Vec<(String, PortConfig)>, FolderError> {
    let unreadable = |cause| FolderError::Unreadable(folder.to_owned(), cause);
    let mut ports = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let interface = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if let Some(interface) = interface.filter(|name| !name.is_empty() && *name != EXAMPLE) {
            ports.push((interface.to_owned(), file(&folder.join(&name))?));
        }
    }
    ports.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(ports)
}

fn file(path: &Path) -> Result<PortConfig, FolderError> {
    let unreadable = |cause| FolderError::Unreadable(path.to_owned(), cause);
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
    if read.map_err(unreadable)? as u64 > FILE_MAX {
        return Err(FolderError::TooLong(path.to_owned()));
    }
    PortConfig::parse(&text).map_err(|error| FolderError::Malformed(path.to_owned(), error))
}
