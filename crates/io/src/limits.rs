//! What the machine lets us have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one. Returns how many there may be now, `None`
/// for no limit. To be done before a ring listens, as io_uring keeps the limit of that moment.
///
/// # Errors
///
/// Of setrlimit.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let current = maximum;
        setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    }
    Ok(maximum)
}

/// The memory that volumes may take, in bytes: what is available, but for 64 MiB, or for a quarter
/// where there is less than four times that.
///
/// # Errors
///
/// As of [`available_memory`].
pub fn memory_for_volumes() -> io::Result<u64> {
    available_memory().map(for_volumes)
}

fn for_volumes(available: u64) -> u64 {
    available - RESERVE.min(available / 4)
}

/// The memory that this process could take now without others being swapped out or killed, in
/// bytes: what the kernel calls available, or what is left in the tightest control group around
/// us, if that is less.
///
/// # Errors
///
/// When /proc/meminfo does not tell.
pub fn available_memory() -> io::Result<u64> {
    let unread = |cause: io::Error| io::Error::new(cause.kind(), format!("/proc/meminfo: {cause}"));
    let meminfo = fs::read_to_string("/proc/meminfo").map_err(unread)?;
    let untold = || io::Error::other("/proc/meminfo has no MemAvailable");
    let available = mem_available(&meminfo).ok_or_else(untold)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = memory_groups(&groups)
        .iter()
        .filter_map(ControlGroup::left)
        .min();
    Ok(left.map_or(available, |left| left.min(available)))
}

/// How much memory this process may lock, in bytes: RLIMIT_MEMLOCK (`ulimit -l`, `LimitMEMLOCK=`
/// of systemd). A privileged process may lock more. `None` where there is no limit.
#[must_use]
pub fn memlock() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// The address space that this process can still reserve, in bytes: what RLIMIT_AS leaves
/// (`ulimit -v`, `LimitAS=` of systemd). `None` where there is no limit.
#[must_use]
pub fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split(' ').next().and_then(|size| size.parse().ok());
    let used = pages.unwrap_or(0) * rustix::param::page_size() as u64;
    Some(limit.saturating_sub(used))
}

/// The field MemAvailable, in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// A control group that limits our memory.
#[derive(Debug, PartialEq, Eq)]
struct ControlGroup {
    path: PathBuf,
    /// The names of its files for the limit and for the usage, and of what in memory.stat can be
    /// taken back at once.
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static str,
}

impl ControlGroup {
    /// What is left in it, in bytes; `None` when it has no limit.
    fn left(&self) -> Option<u64> {
        let number = |name: &str| -> Option<u64> {
            let text = fs::read_to_string(self.path.join(name)).ok()?;
            text.trim().parse().ok()
        };
        let limit = number(self.limit)?;
        let stat = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let cache = field(&stat, self.reclaimable).unwrap_or(0);
        let used = number(self.usage)?.saturating_sub(cache);
        Some(limit.saturating_sub(used))
    }
}

fn field(stat: &str, name: &str) -> Option<u64> {
    let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = fields.find(|(field, _)| *field == name)?;
    value.trim().parse().ok()
}

/// The groups of the memory controller.
fn memory_groups(list: &str) -> Vec<ControlGroup> {
    let group = |(version, path): (Version, PathBuf)| match version {
        Version::Two => ControlGroup {
            path: Path::new("/sys/fs/cgroup").join(path),
            limit: "memory.max",
            usage: "memory.current",
            reclaimable: "inactive_file",
        },
        Version::One => ControlGroup {
            path: Path::new("/sys/fs/cgroup/memory").join(path),
            limit: "memory.limit_in_bytes",
            usage: "memory.usage_in_bytes",
            reclaimable: "total_inactive_file",
        },
    };
    groups(list, "memory").into_iter().map(group).collect()
}

/// How many processors this process may keep busy on average, by the tightest quota of the control
/// groups around it; `None` without a quota. A process that takes more stands still for the rest of
/// a period, 100 ms as a rule.
#[must_use]
pub fn processor_quota() -> Option<f64> {
    let list = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let quotas = groups(&list, "cpu")
        .into_iter()
        .filter_map(|(version, path)| {
            processors(&match version {
                Version::Two => read(Path::new("/sys/fs/cgroup").join(path).join("cpu.max")),
                Version::One => {
                    let path = Path::new("/sys/fs/cgroup/cpu").join(path);
                    let quota = read(path.join("cpu.cfs_quota_us"));
                    quota + " " + &read(path.join("cpu.cfs_period_us"))
                }
            })
        });
    quotas.min_by(f64::total_cmp)
}

/// Of a quota and its period, both in microseconds. Where there is no quota it is `max` or -1.
fn processors(quota_and_period: &str) -> Option<f64> {
    let mut fields = quota_and_period.split_whitespace().map(str::parse::<u32>);
    let (quota, period) = (fields.next()?.ok()?, fields.next()?.ok()?);
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}

/// Of the interface of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The groups of a controller that /proc/self/cgroup names (`hierarchy:controllers:path`), with all
/// groups around them, of version 2 (no controllers named) and 1; without what each begins with.
fn groups(list: &str, controller: &str) -> Vec<(Version, PathBuf)> {
    let version = |controllers: &str| match controllers {
        "" => Some(Version::Two),
        some if some.split(',').any(|one| one == controller) => Some(Version::One),
        _ => None,
    };
    let lines = list.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some((version(controllers)?, Path::new(path)))
    });
    let around = |(version, path): (Version, &Path)| {
        let relative = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_owned();
        let paths: Vec<_> = path.ancestors().map(relative).collect();
        paths.into_iter().map(move |path| (version, path))
    };
    lines.flat_map(around).collect()
}

/// What volumes leave of the available memory to the rest of the process, in bytes: without it the
/// kernel would soon kill a process for want of memory.
const RESERVE: u64 = 64 << 20;

#[cfg(test)]
mod tests;
