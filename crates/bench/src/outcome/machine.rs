//! The machine and the versions that a measurement holds for.

use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// Where a measurement ran. What cannot be found out is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub host: String,
    /// Model of its processor.
    pub processor: String,
    /// Threads of it that this process may use.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// The kernel, as `uname -sr` says it.
    pub kernel: String,
    /// Version of this program.
    pub version: String,
}

impl HostFacts {
    /// The one that this process runs on.
    #[must_use]
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let memory_kib = field("/proc/meminfo", "MemTotal");
        let memory_kib = memory_kib.split(' ').next().unwrap_or_default().parse();
        Self {
            host: uname.nodename().to_string_lossy().into_owned(),
            processor: field("/proc/cpuinfo", "model name"),
            cores: available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What stands behind `name` and a colon in a file of the kernel's.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}
