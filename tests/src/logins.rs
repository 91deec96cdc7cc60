//! What the log of `lunar switch` tells of logins.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

#[cfg(test)]
mod tests;

/// The logins of a log in their order: WWPN and N_Port_ID.
pub fn logins(log: &str) -> impl Iterator<Item = (&str, &str)> {
    log.lines().filter_map(|line| {
        let (before, id) = line.split_once(" has logged in as ")?;
        // The address of the ENode stands behind its WWPN.
        let wwpn = before.split_whitespace().rev().nth(1)?;
        Some((wwpn, id.trim()))
    })
}

/// Each port has had one N_Port_ID, whichever switch gave it: `ports` of them, as told by the logs
/// of all switches, one behind the other.
///
/// # Errors
/// When a port has had another one, or there are fewer or more ports.
pub fn same_ids(log: &str, ports: usize) -> Result<()> {
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (wwpn, id) in logins(log) {
        ids.entry(wwpn).or_default().insert(id);
    }
    let all_same = ids.values().all(|ids| ids.len() == 1);
    ensure!(all_same, "N_Port_IDs have changed: {ids:?}");
    ensure!(ids.len() == ports, "{ports} ports expected: {ids:?}");
    Ok(())
}
