//! Ports of Fibre Channel and their units, by what `fcoeadm -i`, `-t` and `-l` tell.

use std::collections::BTreeMap;
use std::fs;

use address::{FcoeMode, FcoePortal};
use client::discovery::fcoe::{DiscoveredPort, FabricView, FcoeDiscovery, FrameLosses};
use client::open::Details;
use runtime::n_port::interface_below_vlan;
use serde::Serialize;

use super::said;
use crate::units::{bare_table, human_size, lines};
use crate::{VerbError, documents};

/// The ports behind an Ethernet port of ours, which may be an interface, then the units of those
/// that are targets, then frames that were lost meanwhile, if any were.
pub(super) fn tables(interface: Option<&str>, found: &FcoeDiscovery) -> String {
    let speed = interface.map_or("-".to_owned(), speed);
    let mut ports = bare_table([
        "PORT NAME",
        "NODE NAME",
        "FC-ID",
        "FRAME",
        "SPEED",
        "ROLE",
        "STATE",
    ]);
    for port in &found.ports {
        ports.add_row(port_row(port, &speed));
    }
    let mut units = bare_table(["TARGET", "LUN", "SIZE", "BLOCK", "DESCRIPTION", "ADDRESS"]);
    for target in &found.targets {
        let name = &target.name;
        match &target.units {
            Err(cause) => {
                units.add_row([name, "-", "-", "-", "-", &cause.to_string()]);
            }
            Ok(listed) => {
                for unit in listed {
                    let told = unit.particulars.as_ref();
                    let [size, block, description] = told.map_or_else(|_| dashes(), described);
                    let last = told
                        .err()
                        .map_or(unit.address.to_string(), ToString::to_string);
                    let lun = unit.lun.to_string();
                    units.add_row([name.clone(), lun, size, block, description, last]);
                }
            }
        }
    }
    let lost = found.lost.told();
    let lost = lost.map_or_else(String::new, |lost| format!("\nframes lost: {lost}\n"));
    let fabric = found.fabric.as_ref().map_or_else(String::new, fcfs);
    format!("{fabric}{}\n{}{lost}", lines(&ports), lines(&units))
}

/// The FCFs of a fabric.
fn fcfs(fabric: &FabricView) -> String {
    let mut table = bare_table([
        "FCF", "SWITCH", "FABRIC", "PRIORITY", "FKA", "VLAN", "SELECTED",
    ]);
    let vlan = fabric.vlan.map_or("-".to_owned(), |vlan| vlan.to_string());
    for fcf in &fabric.fcfs {
        table.add_row([
            fcf.mac.to_string(),
            fcf.switch_name.to_string(),
            fcf.fabric_name.to_string(),
            fcf.priority.to_string(),
            format!("{} ms", fcf.period.as_millis()),
            vlan.clone(),
            if fcf.is_selected { "yes" } else { "no" }.to_owned(),
        ]);
    }
    format!("{}\n", lines(&table))
}

/// What is missing behind a portal.
pub(super) fn missing(portal: &FcoePortal, found: &FcoeDiscovery) -> Option<String> {
    let wants_fabric = portal.mode != FcoeMode::Vn2Vn;
    match &found.fabric {
        None if wants_fabric => Some(format!(
            "{portal}: no login to a fabric: lunar fipvlan {} shows whether an FCF answers, and on \
             which VLAN",
            portal.place
        )),
        Some(fabric) if !fabric.is_whole => Some(format!(
            "{portal}: the name server did not tell all ports in time"
        )),
        _ if !found.has_target() => Some(format!("{portal} shows no targets")),
        _ => None,
    }
}

/// How many frames were lost in each place, for `--json`.
fn lost(lost: &FrameLosses) -> BTreeMap<&'static str, u64> {
    let places = lost.places().into_iter();
    places.map(|loss| (loss.place, loss.frames)).collect()
}

/// A port, as `--json` prints it.
#[derive(Serialize)]
struct PortReport<'a> {
    port_name: String,
    node_name: String,
    interface: &'a str,
    ours: bool,
    fc_id: Option<String>,
    frame_bytes: u16,
    /// Of ours, where its interface tells.
    speed_mbit: Option<u32>,
    role: Option<&'static str>,
    state: &'static str,
    /// What it calls itself in the name server.
    symbolic_name: Option<&'a str>,
    /// At ours, since it was opened.
    frames_lost: Option<BTreeMap<&'static str, u64>>,
    /// Of ours, in a fabric.
    nic: Option<NicReport>,
}

/// What `esxcli fcoe nic list` and `esxcli fcoe adapter list` show, by the same names.
#[derive(Serialize)]
struct NicReport {
    #[serde(rename = "Source MAC")]
    source_mac: Option<String>,
    #[serde(rename = "FCF MAC")]
    fcf_mac: Option<String>,
    #[serde(rename = "VNPort MAC")]
    vn_port_mac: Option<String>,
    #[serde(rename = "Underlying PNIC")]
    underlying_pnic: String,
    #[serde(rename = "Priority Class")]
    priority_class: u8,
    #[serde(rename = "User Priority")]
    user_priority: u8,
    #[serde(rename = "VLAN ID")]
    vlan_id: u16,
    /// Whether it is logged in.
    #[serde(rename = "Active")]
    active: bool,
    #[serde(rename = "Priority Settable")]
    priority_settable: bool,
    #[serde(rename = "Source MAC Settable")]
    source_mac_settable: bool,
    #[serde(rename = "VLAN Range Settable")]
    vlan_range_settable: bool,
    #[serde(rename = "Fabric Name")]
    fabric_name: String,
    #[serde(rename = "FCFs")]
    fcfs: Vec<FcfReport>,
}

#[derive(Serialize)]
struct FcfReport {
    mac: String,
    switch_name: String,
    fabric_name: String,
    priority: u8,
    fka_ms: u64,
    selected: bool,
}

/// The priority of FCoE by custom.
const PRIORITY: u8 = 3;

fn nic(
    (place, interface): (&str, Option<&str>),
    port: &DiscoveredPort,
    fabric: &FabricView,
) -> NicReport {
    let selected = fabric.fcfs.iter().find(|fcf| fcf.is_selected);
    let fcfs = fabric.fcfs.iter().map(|fcf| FcfReport {
        mac: fcf.mac.to_string(),
        switch_name: fcf.switch_name.to_string(),
        fabric_name: fcf.fabric_name.to_string(),
        priority: fcf.priority,
        fka_ms: fcf.period.as_millis() as u64,
        selected: fcf.is_selected,
    });
    // On the interface of a VLAN the kernel has the tag.
    let below = interface.and_then(interface_below_vlan);
    let own_vlan = below.as_ref().map_or(0, |(_, vid)| *vid);
    NicReport {
        source_mac: port.enode_mac.map(|mac| mac.to_string()),
        fcf_mac: selected.map(|fcf| fcf.mac.to_string()),
        vn_port_mac: port.vn_port_mac.map(|mac| mac.to_string()),
        underlying_pnic: below.map_or_else(|| place.to_owned(), |(lower, _)| lower),
        priority_class: PRIORITY,
        user_priority: PRIORITY,
        vlan_id: fabric.vlan.unwrap_or(own_vlan),
        active: port.fc_id.is_some(),
        // Frames of FCoE leave with priority 3, and FIP with the address of the interface.
        priority_settable: false,
        source_mac_settable: false,
        // By vlan=, unless the interface is that of a VLAN.
        vlan_range_settable: own_vlan == 0,
        fabric_name: fabric.fabric_name.to_string(),
        fcfs: fcfs.collect(),
    }
}

/// The ports at a place, which may be an interface.
pub(super) fn print_ports(
    (place, interface): (&str, Option<&str>),
    found: &FcoeDiscovery,
) -> Result<(), VerbError> {
    let speed = interface.and_then(megabits);
    for port in &found.ports {
        documents::print_json(&PortReport {
            port_name: port.port_name.to_string(),
            node_name: port.node_name.to_string(),
            interface: place,
            ours: port.ours,
            fc_id: port.fc_id.map(|id| id.to_string()),
            frame_bytes: port.max_frame,
            speed_mbit: speed.filter(|_| port.ours),
            role: Some(port.role).filter(|role| *role != "-"),
            state: port.state,
            symbolic_name: port.symbolic_name.as_deref(),
            frames_lost: port.ours.then(|| lost(&found.lost)),
            nic: found
                .fabric
                .as_ref()
                .filter(|_| port.ours)
                .map(|fabric| nic((place, interface), port, fabric)),
        })?;
    }
    Ok(())
}

fn port_row(port: &DiscoveredPort, speed: &str) -> [String; 7] {
    let fc_id = port.fc_id.map_or("-".to_owned(), |id| id.to_string());
    let ours = if port.ours { " (ours)" } else { "" };
    [
        port.port_name.to_string(),
        port.node_name.to_string(),
        fc_id,
        match port.max_frame {
            0 => "-".to_owned(),
            bytes => bytes.to_string(),
        },
        if port.ours { speed } else { "-" }.to_owned(),
        format!("{}{ours}", port.role),
        port.state.to_owned(),
    ]
}

fn described(told: &Details) -> [String; 3] {
    let traits = &told.traits;
    let value = |key| said(told, key).unwrap_or_default();
    [
        human_size(traits.blocks * u64::from(traits.block_size)),
        traits.block_size.to_string(),
        format!(
            "{} {} (rev {})",
            value("vendor"),
            value("product"),
            value("revision")
        ),
    ]
}

fn dashes() -> [String; 3] {
    ["-", "-", "-"].map(str::to_owned)
}

fn speed(interface: &str) -> String {
    match megabits(interface) {
        Some(megabits) if megabits % 1000 == 0 => format!("{} Gbit", megabits / 1000),
        Some(megabits) => format!("{megabits} Mbit"),
        None => "-".to_owned(),
    }
}

/// As the interface tells it, in Mbit/s.
fn megabits(interface: &str) -> Option<u32> {
    let told = fs::read_to_string(format!("/sys/class/net/{interface}/speed"));
    told.ok()?.trim().parse().ok()
}
