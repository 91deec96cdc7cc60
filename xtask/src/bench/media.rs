//! What volumes are on.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use tests::tool;

use super::VOLUME;
use super::contenders::Contender;

/// What a volume is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    /// A file in memory, through the page cache.
    File,
    /// The same with O_DIRECT.
    Direct,
    /// A loop device on such a file.
    Loop,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "file",
            Self::Direct => "file direct",
            Self::Loop => "loop device",
        })
    }
}

/// A file in memory, and the loop device on it; both go when this is dropped.
pub(crate) struct Medium {
    backend: Backend,
    file: PathBuf,
    device: Option<PathBuf>,
}

impl Medium {
    /// `user` tells it from others of its kind.
    pub(super) fn new(backend: Backend, user: Contender) -> Result<Self> {
        let name = user.to_string().replace(' ', "-");
        let file = format!("/dev/shm/lunar-bench-{name}-{}", std::process::id());
        let mut medium = Self {
            backend,
            file: file.into(),
            device: None,
        };
        fs::File::create(&medium.file)?.set_len(VOLUME)?;
        if backend == Backend::Loop {
            let mut command = Command::new("losetup");
            command.args(["--find", "--show"]).arg(&medium.file);
            medium.device = Some(tool::must(&mut command)?.trim().into());
        }
        Ok(medium)
    }

    /// As a volume of `lunar serve`.
    pub(super) fn address(&self) -> String {
        let file = self.file.display();
        match (&self.device, self.backend) {
            (Some(device), _) => format!("block:{}", device.display()),
            (None, Backend::Direct) => format!("file:{file}?direct"),
            (None, _) => format!("file:{file}"),
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        // What is gone already needs no care.
        if let Some(device) = &self.device {
            let _ = tool::must(Command::new("losetup").arg("--detach").arg(device));
        }
        let _ = fs::remove_file(&self.file);
    }
}
