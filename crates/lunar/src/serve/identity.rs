//! What a server is called, and where it keeps its state, when no option says so.

use std::env;
use std::fs;
use std::path::PathBuf;

/// `iqn.2026-11.org.lunar:HOSTNAME`.
pub(crate) fn default_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("iqn.2026-11.org.lunar:{}", name_part(host.trim()))
}

/// A host name in the characters that an iSCSI name may have (RFC 7143 §4.2.7.2).
fn name_part(host: &str) -> String {
    if host.is_empty() {
        return "localhost".to_owned();
    }
    host.chars()
        .map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '.' | '-') => c,
            _ => '-',
        })
        .collect()
}

/// `$STATE_DIRECTORY`, else `/var/lib/lunar` as root, else `$XDG_STATE_HOME/lunar`; `None` for a
/// user without a home.
pub(crate) fn state_dir() -> Option<PathBuf> {
    choose_state_dir(
        |name| env::var(name).ok(),
        rustix::process::geteuid().is_root(),
    )
}

fn choose_state_dir(variable: impl Fn(&str) -> Option<String>, root: bool) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| value.starts_with('/'));
    if let Some(dirs) = variable("STATE_DIRECTORY") {
        // systemd gives several, with colons between (systemd.exec(5)); the first is ours.
        return dirs.split(':').next().map(PathBuf::from);
    }
    if root {
        return Some(PathBuf::from("/var/lib/lunar"));
    }
    let home = variable("XDG_STATE_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    Some(home?.join("lunar"))
}

#[cfg(test)]
mod tests;
