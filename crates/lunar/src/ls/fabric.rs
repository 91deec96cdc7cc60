//! Ports of Fibre Channel and their units, by what `fcoeadm -i`, `-t` and `-l` tell.

use std::collections::BTreeMap;
use std::fs;

use comfy_table::{Table, TableStyle};
use engine::address::Particulars;
use engine::discovery::fabric::{Found, Lost, Seen};

use crate::units::human_size;

/// The ports behind an Ethernet port of ours, which may be an interface, then the units of those
/// that are targets, then frames that were lost meanwhile, if any were.
pub(super) fn tables(interface: Option<&str>, found: &Found) -> String {
    let speed = interface.map_or("-".to_owned(), speed);
    let mut ports = table([
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
    let mut units = table(["TARGET", "LUN", "SIZE", "BLOCK", "DESCRIPTION", "ADDRESS"]);
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
    let lost = lost.map_or_else(String::new, |lost| format!("\nframes were lost: {lost}\n"));
    format!("{}\n{}{lost}", lines(&ports), lines(&units))
}

/// How many frames were lost in each place, for `--json`.
pub(super) fn lost(lost: &Lost) -> BTreeMap<&'static str, u64> {
    let places = lost.places().into_iter();
    places.map(|loss| (loss.place, loss.frames)).collect()
}

fn port_row(port: &Seen, speed: &str) -> [String; 7] {
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

fn described(told: &Particulars) -> [String; 3] {
    let traits = &told.traits;
    let unit = told.groups.iter().find(|group| group.heading == "unit");
    let value = |key: &str| {
        let mut values = unit.into_iter().flat_map(|group| &group.values);
        let value = values.find(|(name, _)| *name == key);
        value.map_or("", |(_, value)| value.trim())
    };
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

/// As the interface tells it, in Mbit/s.
fn speed(interface: &str) -> String {
    let told = fs::read_to_string(format!("/sys/class/net/{interface}/speed"));
    let megabits = told.ok().and_then(|told| told.trim().parse::<u32>().ok());
    match megabits {
        Some(megabits) if megabits % 1000 == 0 => format!("{} Gbit", megabits / 1000),
        Some(megabits) => format!("{megabits} Mbit"),
        None => "-".to_owned(),
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(header);
    table
}

fn lines(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.trim().to_owned() + "\n")
        .collect()
}
