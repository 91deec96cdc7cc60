//! CHAP secrets, which are never in an address or on a command line.

use std::fs::{FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

/// How many bytes a secret may have; the lower bound is that of RFC 7143 §9.2.1, the upper one
/// keeps it in one text key.
pub const SECRET_BYTES: std::ops::RangeInclusive<usize> = 12..=255;

/// Why a file holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The system does not let us.
    #[error("cannot read the secret in {0}: {1}")]
    Unreadable(String, io::Error),
    /// It is not a regular file.
    #[error("{0} is {1}: put the secret into a regular file")]
    Kind(String, &'static str),
    /// Others than its owner can read or write it.
    #[error("{file} is open to others (mode {mode:03o}): chmod 600 {file}")]
    Open {
        /// The file of the secret.
        file: String,
        /// Permission bits.
        mode: u32,
    },
    /// Its first line is too short or too long.
    #[error(
        "the first line of {0} is not a secret: {first} to {last} bytes are needed",
        first = SECRET_BYTES.start(),
        last = SECRET_BYTES.end()
    )]
    Length(String),
    /// What the environment has instead is.
    #[error(
        "the environment variable {0} is not a secret: {first} to {last} bytes are needed",
        first = SECRET_BYTES.start(),
        last = SECRET_BYTES.end()
    )]
    Variable(&'static str),
}

/// Read and write for group and others.
const NOT_PRIVATE: u32 = 0o066;

/// The first line of a file that only its owner can read.
///
/// # Errors
///
/// When it cannot be read, others could, or there is no secret.
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let name = || path.display().to_string();
    let failed = |cause| SecretError::Unreadable(name(), cause);
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
        return Err(SecretError::Kind(name(), kind(facts.file_type())));
    }
    let mode = facts.permissions().mode();
    if mode & NOT_PRIVATE != 0 {
        let (file, mode) = (name(), mode & 0o777);
        return Err(SecretError::Open { file, mode });
    }
    // One byte more than fits, and a line end, tell a secret that is too long.
    let most = *SECRET_BYTES.end() + 3;
    let mut text = Zeroizing::new(Vec::with_capacity(most));
    file.take(most as u64)
        .read_to_end(&mut text)
        .map_err(failed)?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let secret = line.strip_suffix(b"\r").unwrap_or(line);
    if SECRET_BYTES.contains(&secret.len()) {
        return Ok(secret.to_vec().into());
    }
    Err(SecretError::Length(name()))
}

/// A random secret of ASCII letters and digits: 5.9 bits each, so 22 hold the 128
/// bits of RFC 7143 §9.2.1. It needs no quoting in the files and commands of initiators.
///
/// # Panics
///
/// If the kernel gives no random bytes.
#[must_use]
pub fn generate(length: usize) -> Zeroizing<String> {
    let mut secret = Zeroizing::new(String::with_capacity(length));
    let mut random = Zeroizing::new([0; 64]);
    while secret.len() < length {
        getrandom::fill(&mut *random).expect("the kernel gives random bytes");
        // Other bytes are dropped, not mapped: any mapping would make some letters more likely.
        let letters = random.iter().map(|&byte| char::from(byte & 0x7f));
        let letters = letters.filter(char::is_ascii_alphanumeric);
        let missing = length - secret.len();
        secret.extend(letters.take(missing));
    }
    secret
}

fn kind(found: FileType) -> &'static str {
    match found {
        _ if found.is_dir() => "a directory",
        _ if found.is_fifo() => "a pipe",
        _ => "a device",
    }
}
