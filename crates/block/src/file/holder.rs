//! The program that has a file open that cannot be locked.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::process;

/// A program that has locked a file; not known where it belongs to another user, or where /proc is
/// not mounted.
#[derive(Debug, PartialEq, Eq)]
pub struct FileHolder(Option<Process>);

#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    /// As in `lunar serve`.
    name: String,
}

impl FileHolder {
    /// The program that has locked a file which was opened to be locked: this process itself, or
    /// another one.
    pub(super) fn of(file: impl AsFd) -> Self {
        let file = file.as_fd();
        let is_ours = || has_locked(process::id(), file, Some(file.as_raw_fd()));
        Self::with_id(is_ours().then(process::id).or_else(|| other(file)))
    }

    /// The other program that has locked a file which this process has locked itself. Where none is
    /// seen, it may be hidden, or be this process, which has locked the file twice.
    pub(super) fn beside_us(file: impl AsFd) -> Self {
        Self::with_id(other(file.as_fd()))
    }

    fn with_id(id: Option<u32>) -> Self {
        Self(id.map(|id| Process { id, name: name(id) }))
    }
}

fn other(file: BorrowedFd<'_>) -> Option<u32> {
    processes().find(|id| *id != process::id() && has_locked(*id, file, None))
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process has a descriptor of this file with a lock, other than one to be left out.
/// /proc/locks does not tell the processes of locks of open file descriptions.
fn has_locked(process: u32, file: BorrowedFd<'_>, but: Option<RawFd>) -> bool {
    let Ok(ours) = rustix::fs::fstat(file) else {
        return false;
    };
    let folder = Path::new("/proc").join(process.to_string());
    let entries = fs::read_dir(folder.join("fd")).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let but = but.map(|fd| OsString::from(fd.to_string()));
    names.filter(|name| Some(name) != but.as_ref()).any(|name| {
        let stat = rustix::fs::stat(folder.join("fd").join(&name));
        let is_this =
            stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (ours.st_dev, ours.st_ino));
        let facts = || fs::read_to_string(folder.join("fdinfo").join(&name)).unwrap_or_default();
        is_this && facts().lines().any(|line| line.starts_with("lock:"))
    })
}

/// The program of a process, and what it was told to do where it is one of ours.
fn name(process: u32) -> String {
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut words = line.split('\0');
    let path = Path::new(words.next().unwrap_or_default());
    let program = path.file_name().unwrap_or_default().to_string_lossy();
    match words.find(|word| !word.starts_with('-')) {
        Some(command) if program == OURS => format!("{program} {command}"),
        _ => program.into_owned(),
    }
}

impl fmt::Display for FileHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(Process { id, .. }) if *id == process::id() => {
                write!(f, "it is given twice: another volume here has it open")
            }
            Some(Process { id, name }) if name.starts_with(OURS) => write!(
                f,
                "{name} (pid {id}) has it open; use the address of its server (lunar ls), or stop \
                 it first"
            ),
            Some(Process { id, name }) => {
                write!(f, "{name} (pid {id}) has it open; stop it first")
            }
            None => write!(
                f,
                "another program has it open, or another volume here; stop it first, or use the \
                 address of its server (lunar ls)"
            ),
        }
    }
}

/// The name of our own program.
const OURS: &str = "lunar";
