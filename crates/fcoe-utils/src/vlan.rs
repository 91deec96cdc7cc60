//! FIP VLAN discovery (FC-BB-6, VLAN Request and VLAN Notification): on which VLANs there is FCoE.
//!
//! [`query::VlanQuery`] is the machine of one Ethernet port, without I/O and clock;
//! [`ports::discover`] lets it run on the ports of this machine.

pub mod interface;
pub mod ports;
pub mod query;

use fc::wire::ethernet::Mac;

/// The sender of a VLAN Notification: an FCF, or in VN2VN another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// VLAN identifier; 0 for frames without a tag.
    pub vid: u16,
    /// Its address.
    pub mac: Mac,
}

/// The table of `fipvlan`, of the forwarders at each interface. `kind` is their title.
#[must_use]
pub fn table(kind: ForwarderKind, found: &[(&str, Forwarder)]) -> String {
    let (title, column) = match kind {
        ForwarderKind::Fcf => ("Fibre Channel Forwarders Discovered", "FCF MAC"),
        ForwarderKind::Vn2vn => ("VN2VN Responders Discovered", "VN2VN MAC"),
    };
    let head = format!("{:<16}| {:<5}| {column}", "interface", "VLAN");
    let mut out = format!("{title}\n{head}\n{}\n", "-".repeat(42));
    for (interface, Forwarder { vid, mac }) in found {
        out.push_str(&format!("{interface:<16.16}| {vid:<5}| {mac}\n"));
    }
    out.push('\n');
    out
}

/// Which forwarders a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwarderKind {
    /// FCFs.
    Fcf,
    /// Ports of VN2VN.
    Vn2vn,
}
