//! `lunar ls switch`: the Fibre Channel switches that run on this machine.

use std::fs;

use engine::switch::status::{LoginStatus, SwitchStatus};
use runtime::n_port::{StatusKind, ask_all};

use super::GARBLED;
use crate::units::{bare_table, lines};
use crate::{VerbError, documents};

/// Lists them. Gives what is wrong: there is none, or one does not answer.
pub(super) fn list(json: bool) -> Result<Vec<String>, VerbError> {
    let answers = ask_all(StatusKind::Switch);
    let mut switches: Vec<SwitchStatus> = answers.told;
    switches.sort_by(|one, other| one.switch_name.cmp(&other.switch_name));
    if json {
        for switch in &switches {
            documents::print_json(switch)?;
        }
    } else if !switches.is_empty() {
        let texts: Vec<_> = switches.iter().map(tables).collect();
        documents::print(texts.join("\n").as_bytes())?;
    }
    let silent = answers.silent.into_iter().map(silence);
    let garbled = answers.garbled.into_iter().map(garbled);
    let wrong: Vec<_> = silent.chain(garbled).collect();
    if wrong.is_empty() && switches.is_empty() {
        let none = "no switch of this user runs here: lunar switch starts one";
        return Ok(vec![none.to_owned()]);
    }
    Ok(wrong)
}

/// What is said of a switch whose answer cannot be read.
fn garbled(process: u32) -> String {
    format!("the answer of the switch of process {process} {GARBLED}")
}

/// What is said of a switch that does not answer.
fn silence(process: u32) -> String {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = state.rsplit(") ").next().unwrap_or_default();
    if state.starts_with(['T', 't']) {
        format!("the switch of process {process} is stopped: kill -CONT {process} lets it go on")
    } else {
        format!("the switch of process {process} does not answer: see in its log why")
    }
}

fn tables(switch: &SwitchStatus) -> String {
    let mut head = bare_table([
        "SWITCH", "FABRIC", "DOMAIN", "VLAN", "PRIORITY", "FKA", "STATE", "ZONE SET",
    ]);
    let vlan = switch.vlan.map_or("-".to_owned(), |vlan| vlan.to_string());
    head.add_row([
        switch.switch_name.clone(),
        switch.fabric_name.clone(),
        switch.domain.to_string(),
        vlan,
        switch.priority.to_string(),
        period(switch.fka_ms),
        if switch.active { "active" } else { "standby" }.to_owned(),
        zoning(switch),
    ]);
    let mut ports = bare_table(["SWITCH PORT", "FCF MAC", "MTU", "FORWARDED", "DROPPED"]);
    for port in &switch.ports {
        ports.add_row([
            port.place.clone(),
            port.fcf_mac.clone(),
            port.mtu.to_string(),
            port.forwarded_frames.to_string(),
            port.dropped_frames.to_string(),
        ]);
    }
    let mut logins = bare_table([
        "PORT NAME",
        "NODE NAME",
        "FC-ID",
        "SWITCH PORT",
        "MAC",
        "ZONES",
    ]);
    for login in &switch.logins {
        logins.add_row(login_row(login));
    }
    let more = switch.logins_total - switch.logins.len().min(switch.logins_total);
    let more = if more > 0 {
        format!("and {more} more\n")
    } else {
        String::new()
    };
    let [head, ports, logins] = [head, ports, logins].map(|table| lines(&table));
    format!("{head}\n{ports}\n{logins}{more}")
}

fn login_row(login: &LoginStatus) -> [String; 6] {
    let zones = match &*login.zones.join(", ") {
        "" => "-".to_owned(),
        names => names.to_owned(),
    };
    [
        login.port_name.clone(),
        login.node_name.clone(),
        login.fc_id.clone(),
        login.place.clone(),
        login.mac.clone(),
        zones,
    ]
}

fn zoning(switch: &SwitchStatus) -> String {
    match &switch.zone_set {
        Some(name) => name.clone(),
        None if switch.default_permit => "none (open)".to_owned(),
        None => "none".to_owned(),
    }
}

fn period(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{ms} ms")
    }
}
