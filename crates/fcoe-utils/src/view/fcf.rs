//! `fcoeadm -f`: the FCFs (Fibre Channel Forwarders) that an instance has discovered.

use super::{field, text};
use crate::hba::UNKNOWN;
use crate::instance::Instance;
use crate::sysfs::SysfsDir;

/// Labels of an instance, and of an FCF, with the columns of their values.
const INSTANCE: (usize, usize) = (4, 18);
const FCF: (usize, usize) = (8, 18);

/// The instances, each with its FCFs. In VN2VN there are none.
#[must_use]
pub fn fcfs(instances: &[Instance]) -> String {
    let mut out = String::new();
    for instance in instances {
        field(&mut out, INSTANCE, "Interface:", &instance.interface);
        let mode = known(&instance.controller, "mode", &["Fabric", "VN2VN"]);
        field(&mut out, INSTANCE, "Connection Type:", mode);
        for dir in instance.fcfs() {
            fcf(&mut out, &dir);
        }
    }
    out
}

fn fcf(out: &mut String, fcf: &SysfsDir) {
    let number = |attribute| fcf.number(attribute).unwrap_or(0);
    let name = fcf.name();
    let index = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    out.push_str(&format!("\n    FCF #{index} Information\n"));
    let mut field = |label, value: String| field(out, FCF, label, value);
    let states = ["Disconnected", "Connected", "Deleted"];
    field("Connection Mode:", known(fcf, "state", &states));
    field("Fabric Name:", format!("0x{:016x}", number("fabric_name")));
    field("Switch Name:", format!("0x{:016x}", number("switch_name")));
    field("MAC Address:", text(fcf, "mac").to_uppercase());
    field("FCF Priority:", number("priority").to_string());
    field("FKA Period:", format!("{} seconds", number("fka_period")));
    let selected = if number("selected") == 1 { "Yes" } else { "No" };
    field("Selected:", selected.to_owned());
    field("VLAN ID:", number("vlan_id").to_string());
    out.push('\n');
}

/// An attribute that has one of these values, or [`UNKNOWN`].
fn known(dir: &SysfsDir, attribute: &str, values: &[&str]) -> String {
    let told = text(dir, attribute);
    let value = values.iter().find(|value| told.eq_ignore_ascii_case(value));
    value.map_or(UNKNOWN, |value| value).to_owned()
}
