//! CHAP secrets, which are never on a command line.

use std::fs::{FileType, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use engine::serve::options::SECRET_OCTETS;
use rustix::fs::OFlags;

use crate::Failure;

/// Read and write for group and others.
const NOT_PRIVATE: u32 = 0o066;

/// The first line of a file that only its owner can read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let failed = |cause| Failure::failed(format!("cannot read the secret in {name}: {cause}"));
    // A pipe must not make it wait for a writer, nor a terminal become its own.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(failed)?;
    // What was opened is looked at, not what has this name by now.
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(Failure::usage(format!(
            "{name} is {}: put the secret into a regular file",
            kind(facts.file_type())
        )));
    }
    let mode = facts.permissions().mode();
    if mode & NOT_PRIVATE != 0 {
        return Err(Failure::usage(format!(
            "{name} is open to others (mode {:03o}): chmod 600 {name}",
            mode & 0o777
        )));
    }
    // One octet more than fits, and a line end, tell a secret that is too long.
    let mut text = Vec::new();
    let most = *SECRET_OCTETS.end() as u64 + 3;
    file.take(most).read_to_end(&mut text).map_err(failed)?;
    let line = text
        .split(|&octet| octet == b'\n')
        .next()
        .unwrap_or_default();
    let secret = line.strip_suffix(b"\r").unwrap_or(line);
    if SECRET_OCTETS.contains(&secret.len()) {
        return Ok(secret.to_vec());
    }
    Err(Failure::usage(format!(
        "the first line of {name} is no secret: {} to {} octets are needed",
        SECRET_OCTETS.start(),
        SECRET_OCTETS.end()
    )))
}

fn kind(found: FileType) -> &'static str {
    match found {
        _ if found.is_dir() => "a directory",
        _ if found.is_fifo() => "a pipe",
        _ => "a device",
    }
}
