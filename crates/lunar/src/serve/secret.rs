//! CHAP secrets, which are never on a command line.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engine::serve::options::SECRET_OCTETS;

use crate::Failure;

/// Read and write for group and others.
const NOT_PRIVATE: u32 = 0o066;

/// The first line of a file that only its owner can read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let failed = |cause| Failure::failed(format!("cannot read the secret in {name}: {cause}"));
    let file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if facts.is_dir() {
        return Err(Failure::usage(format!(
            "{name} is a directory: name the file with the secret"
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
