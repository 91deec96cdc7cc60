//! CHAP secrets: `lunar secret` makes one; those of other verbs are read from files, and are never
//! on a command line.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use runtime::secret::{self, SECRET_BYTES, SecretError};

use crate::{VerbError, documents};

/// Make a random CHAP secret
///
/// It goes to a new file that only its owner can read, or without FILE to standard output.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// The file to create, such as /etc/lunar/alice.secret
    file: Option<PathBuf>,

    /// Bytes of the secret, from 12 to 255; 22 and more hold the 128 bits that RFC 7143 asks for
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = length)]
    length: usize,
}

pub(crate) fn run(args: &SecretArgs) -> Result<ExitCode, VerbError> {
    let secret = secret::generate(args.length);
    let Some(file) = &args.file else {
        return documents::printed(writeln!(io::stdout(), "{}", *secret));
    };
    create(file, &secret).map_err(|cause| not_created(file, &cause))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the secret to a new file and syncs it; a file that could not be written whole is removed
/// again.
fn create(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let written = writeln!(file, "{secret}").and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

fn not_created(path: &Path, cause: &io::Error) -> VerbError {
    let path = path.display();
    VerbError::failed(match cause.kind() {
        ErrorKind::AlreadyExists => {
            format!("{path} exists already, and may be in use: give another file, or remove it")
        }
        _ => format!("cannot create {path}: {cause}"),
    })
}

fn length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|n| SECRET_BYTES.contains(n));
    length.ok_or_else(|| {
        let (first, last) = (SECRET_BYTES.start(), SECRET_BYTES.end());
        format!("a secret has {first} to {last} bytes")
    })
}

/// The first line of a file that only its owner can read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, VerbError> {
    match secret::read(path) {
        Ok(secret) => Ok(secret.to_vec()),
        Err(cause @ SecretError::Unreadable(..)) => Err(VerbError::failed(cause)),
        Err(cause) => Err(VerbError::usage(cause)),
    }
}
