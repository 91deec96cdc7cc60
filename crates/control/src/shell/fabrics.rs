//! Targets: IQNs below `/iscsi`, ports of Fibre Channel below `/tcm_fc`.

use fc::wire::names::Wwn;

use super::access;
use super::command::{Args, Done};
use super::node::{Fabric, Node, TpgPlace};
use super::run::Run;
use super::settings;
use super::{Effect, Refusal};
use crate::tree::{Portals, TargetRow};

/// `create [wwn]` at a fabric.
pub(super) fn create(run: &mut Run<'_>, args: &Args) -> Done {
    match run.node {
        Node::Fabric(Fabric::Iscsi) => create_iscsi(run, args),
        Node::Fabric(Fabric::FibreChannel) => create_port(run, args),
        _ => Err(no_loopback()),
    }
}

fn no_loopback() -> Refusal {
    let what = "Lunar has no loopback fabric.";
    Refusal::new(what).way_out("To use a volume on this machine, attach it: lunar attach vol:NAME.")
}

fn create_iscsi(run: &mut Run<'_>, args: &Args) -> Done {
    let name = match args.get("wwn") {
        Some(name) => iscsi_name(name)?,
        None => {
            let machine = run.machine();
            iscsi_name(&format!("{}:sn.{}", machine.iqn_base(), machine.serial()))?
        }
    };
    let mut row = TargetRow::default();
    let has_portal = run.shell.prefs.flag("auto_add_default_portal");
    if has_portal {
        row.portals = Portals::One(vec!["[::]:3260".into()]);
    }
    add(run, &name, row)?;
    run.say(format!("Created target {name}."));
    run.say("Selected TPG Tag 1.");
    run.say("Successfully created TPG 1.");
    if has_portal {
        run.say("Created default portal listening on all IPs ([::]), port 3260.");
    }
    run.made(Node::Tpg(TpgPlace::first(name)));
    Ok(())
}

fn iscsi_name(name: &str) -> Result<String, Refusal> {
    let read = address::normalise_iscsi_name(name);
    read.map_err(|error| Refusal::new(format!("{name} is not a valid iSCSI name: {error}")))
}

fn create_port(run: &mut Run<'_>, args: &Args) -> Done {
    let Some(text) = args.get("wwn") else {
        let what = "A target port needs a WWPN: 20:00: and the MAC address of its interface.";
        return Err(Refusal::new(what).way_out(known_ports(run)));
    };
    let wwn = text.parse::<Wwn>();
    let wwn = wwn.map_err(|error| Refusal::new(format!("{text} is not a valid WWN: {error}")))?;
    let interface = match args.get("interface") {
        Some(interface) => interface.to_owned(),
        None => interface_of(run, wwn)?,
    };
    let name = wwn.to_string();
    let row = TargetRow {
        portals: Portals::One(vec![format!("fcoe:{interface}").into()]),
        ..TargetRow::default()
    };
    add(run, &name, row)?;
    run.say(format!("Created target {name}."));
    run.say(format!("The port is on interface {interface}."));
    run.made(Node::Tpg(TpgPlace::first(name)));
    Ok(())
}

/// Finds the interface whose MAC address is in a WWPN.
fn interface_of(run: &Run<'_>, wwn: Wwn) -> Result<String, Refusal> {
    let interfaces = run.machine().interfaces().into_iter();
    let mut own = interfaces.filter(|(_, mac)| wwn.to_string().ends_with(&mac_text(*mac)));
    let found = own.next().map(|(name, _)| name);
    found.ok_or_else(|| {
        let what = format!("No interface has the MAC address in {wwn}.");
        Refusal::new(what).way_out(known_ports(run))
    })
}

fn known_ports(run: &Run<'_>) -> String {
    let interfaces = run.machine().interfaces().into_iter();
    let rows = interfaces.map(|(name, mac)| format!("{name} has {}", wwpn_of(mac)));
    let known: Vec<_> = rows.collect();
    if known.is_empty() {
        "This machine has no Ethernet interface.".to_owned()
    } else {
        format!("{}. Use interface=NAME to choose one.", known.join(", "))
    }
}

/// The WWPN of an interface in the form that Linux uses: NAA 2 with the MAC address.
pub(super) fn wwpn_of(mac: [u8; 6]) -> String {
    format!("20:00:{}", mac_text(mac))
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn add(run: &mut Run<'_>, name: &str, row: TargetRow) -> Done {
    if run.tree().target.contains_key(name) {
        return Err(Refusal::new(format!("Target {name} already exists.")));
    }
    run.edit().target.insert(name.to_owned(), row);
    Ok(())
}

/// `delete wwn` at a fabric: deletes the target and the groups that only it used.
pub(super) fn delete(run: &mut Run<'_>, args: &Args) -> Done {
    let word = args.need("wwn")?;
    let node = run.node.child(run.tree(), word);
    let name = match node {
        Some(Node::Target(name)) => name,
        Some(Node::Tpg(place)) => place.target,
        _ => return Err(Refusal::new(format!("There is no target {word}."))),
    };
    if let Some(row) = run.edit().target.remove(&name) {
        let groups = row.allow.iter().chain(row.view.keys());
        access::drop_unused_groups(run.edit(), groups.map(String::as_str));
    }
    settings::forget(run, &name, None);
    if run.shell.prefs.kept.remove(&name).is_some() {
        run.end_with(Effect::Preferences);
    }
    run.say(format!("Deleted Target {name}."));
    Ok(())
}

/// `enable` at a portal group.
pub(super) fn enable(run: &mut Run<'_>, _: &Args) -> Done {
    run.say("The TPG is already enabled.");
    Ok(())
}

/// `disable` at a portal group.
pub(super) fn disable(run: &mut Run<'_>, _: &Args) -> Done {
    let path = run.node.path();
    let what = "Lunar cannot disable a TPG and keep its configuration.";
    Err(Refusal::new(what).way_out(format!("Close its portals instead: {path}/portals delete.")))
}
