//! Ports of Fibre Channel and their units, by what `fcoeadm -i`, `-t` and `-l` tell.

use std::collections::BTreeMap;
use std::fs;

use client::discovery::fcoe::{DiscoveredPort, FcoeDiscovery, FrameLosses};
use client::open::Details;
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
    format!("{}\n{}{lost}", lines(&ports), lines(&units))
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
    /// At ours, since it was opened.
    frames_lost: Option<BTreeMap<&'static str, u64>>,
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
            frames_lost: port.ours.then(|| lost(&found.lost)),
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
        port.max_frame.to_string(),
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
