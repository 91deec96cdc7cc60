//! What verbs have in common: addresses as they are typed, what an initiator or a server is called,
//! and where it keeps its state, when no option says so.

use std::env;
use std::fs;
use std::path::PathBuf;

use address::Address;
use client::open::OpenOptions;

use crate::VerbError;

/// An address as it was typed.
pub(crate) fn address(text: &str) -> Result<Address, VerbError> {
    text.parse::<Address>().map_err(VerbError::usage)
}

/// Several addresses as they were typed.
pub(crate) fn addresses(texts: &[String]) -> Result<Vec<Address>, VerbError> {
    texts.iter().map(|text| address(text)).collect()
}

/// How volumes are opened.
pub(crate) fn open_options() -> Result<OpenOptions, VerbError> {
    OpenOptions::new(format!("{}:initiator", default_name())).map_err(|cause| {
        VerbError::failed(format!("cannot determine the available memory: {cause}"))
    })
}

/// This very program.
pub(crate) fn own_program() -> Result<PathBuf, VerbError> {
    env::current_exe()
        .map_err(|cause| VerbError::failed(format!("cannot find the lunar executable: {cause}")))
}

/// An argument as a shell has to be given it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// `iqn.2026-11.org.lunar:HOSTNAME`.
pub(crate) fn default_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("iqn.2026-11.org.lunar:{}", name_part(host.trim()))
}

/// A host name in the characters that an iSCSI name may have (RFC 7143 §4.2.7.2).
pub(crate) fn name_part(host: &str) -> String {
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

pub(crate) fn choose_state_dir(
    variable: impl Fn(&str) -> Option<String>,
    root: bool,
) -> Option<PathBuf> {
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
