//! Portal groups and portals of a target, and the commands at them.

use std::net::{IpAddr, SocketAddr};

use address::ISCSI_PORT;

use super::Refusal;
use super::command::{Args, Done};
use super::node::{Fabric, Node, TpgPlace};
use super::run::Run;
use crate::check::{self, Portal};
use crate::tree::{PortalGroupTag, PortalRow, Portals};

/// The tags of a target's portal groups. A new target has group 1, which has no portal yet.
pub(super) fn tags(portals: &Portals) -> Vec<PortalGroupTag> {
    match portals {
        Portals::One(_) => vec![PortalGroupTag(1)],
        Portals::Groups(groups) => groups.keys().copied().collect(),
    }
}

/// The portals of one group.
pub(super) fn of_group(portals: &Portals, tag: PortalGroupTag) -> &[PortalRow] {
    match portals {
        Portals::One(all) if tag.0 == 1 => all,
        Portals::One(_) => &[],
        Portals::Groups(groups) => groups.get(&tag).map_or(&[], Vec::as_slice),
    }
}

/// The portals of one group. The group is created if necessary.
pub(super) fn group_mut(portals: &mut Portals, tag: PortalGroupTag) -> &mut Vec<PortalRow> {
    if let Portals::One(all) = portals
        && tag.0 != 1
    {
        *portals = Portals::Groups([(PortalGroupTag(1), std::mem::take(all))].into());
    }
    match portals {
        Portals::One(all) => all,
        Portals::Groups(groups) => groups.entry(tag).or_default(),
    }
}

/// Removes a group. If only group 1 is left, the tree is written without tags.
pub(super) fn remove_group(portals: &mut Portals, tag: PortalGroupTag) {
    let Portals::Groups(groups) = portals else {
        return;
    };
    groups.remove(&tag);
    if groups.len() == 1
        && let Some(first) = groups.get_mut(&PortalGroupTag(1))
    {
        *portals = Portals::One(std::mem::take(first));
    }
}

/// The displayed form of a portal, always with its port.
pub(super) fn label(portal: &str) -> String {
    match check::portal(portal) {
        Ok(Portal::Tcp(address)) => address.to_string(),
        _ => portal.to_owned(),
    }
}

/// `portals create [ip_address] [ip_port]`.
pub(super) fn create(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let address = typed(run, args)?;
    check_is_own(run, address.ip())?;
    let label = address.to_string();
    if has(run, &place, address) {
        return Err(Refusal::new(format!(
            "Network portal {label} already exists."
        )));
    }
    if let Some(row) = run.edit().target.get_mut(&place.target) {
        group_mut(&mut row.portals, place.tag).push(label.clone().into());
    }
    run.say(format!("Successfully created network portal {label}."));
    run.made(Node::Portal(place, label));
    Ok(())
}

fn typed(run: &mut Run<'_>, args: &Args) -> Result<SocketAddr, Refusal> {
    let (host, port) = (args.get("ip_address"), args.get("ip_port"));
    let text = host.unwrap_or("::");
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = match (bare.parse::<IpAddr>(), port) {
        (Ok(ip), Some(port)) => SocketAddr::new(ip, typed_port(port)?).to_string(),
        (Ok(ip), None) => {
            run.say(format!("Using default IP port {ISCSI_PORT}"));
            SocketAddr::new(ip, ISCSI_PORT).to_string()
        }
        (Err(_), None) => text.to_owned(),
        (Err(_), Some(_)) => {
            let what = format!("{text} is not an IP address.");
            return Err(Refusal::new(what).way_out("The port goes into ip_port."));
        }
    };
    if host.is_none() {
        run.say("Listening on all addresses ([::]).");
    }
    match check::portal(&address) {
        Ok(Portal::Tcp(address)) => Ok(address),
        Ok(Portal::Fcoe(_)) => {
            let what = "An iSCSI target has no ports of Fibre Channel.";
            Err(Refusal::new(what).way_out("Use /tcm_fc create for one."))
        }
        Err(error) => Err(Refusal::new(format!("{text} is not a portal: {error}"))),
    }
}

fn typed_port(text: &str) -> Result<u16, Refusal> {
    let port = text.parse::<u16>().ok().filter(|port| *port > 0);
    port.ok_or_else(|| Refusal::new(format!("{text} is not a port from 1 to 65535.")))
}

/// Refuses an address that the machine does not have: the portal could not be opened.
fn check_is_own(run: &Run<'_>, address: IpAddr) -> Done {
    match run.machine().addresses() {
        Some(own) if !address.is_unspecified() && !own.contains(&address) => {
            let own: Vec<_> = own.iter().map(IpAddr::to_string).collect();
            let what = format!("IP address does not exist: {address}.");
            let way_out = format!("This machine has {}.", own.join(", "));
            Err(Refusal::new(what).way_out(way_out))
        }
        _ => Ok(()),
    }
}

fn has(run: &Run<'_>, place: &TpgPlace, address: SocketAddr) -> bool {
    let row = place.row(run.tree());
    row.is_some_and(|row| {
        let mut known = row
            .portals
            .iter()
            .map(|(_, known)| check::portal(&known.address));
        known.any(|known| known == Ok(Portal::Tcp(address)))
    })
}

/// `portals delete ip_address [ip_port]`.
pub(super) fn delete(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let host = args.need("ip_address")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let word = match (args.get("ip_port"), bare.parse::<IpAddr>()) {
        (Some(port), Ok(IpAddr::V6(address))) => format!("[{address}]:{port}"),
        (Some(port), _) => format!("{host}:{port}"),
        (None, _) => host.to_owned(),
    };
    let node = Node::Portals(place.clone()).child(run.tree(), &word);
    let Some(Node::Portal(_, portal)) = node else {
        return Err(Refusal::new(format!("There is no network portal {word}.")));
    };
    if let Some(row) = run.edit().target.get_mut(&place.target) {
        group_mut(&mut row.portals, place.tag).retain(|one| one.address != portal);
    }
    run.say(format!("Deleted network portal {}", label(&portal)));
    Ok(())
}

/// `create [tag]` at a target.
pub(super) fn create_group(run: &mut Run<'_>, args: &Args) -> Done {
    let target = run.target()?;
    let row = run.tree().target.get(&target);
    let known = row.map(|row| tags(&row.portals)).unwrap_or_default();
    let tag = match args.get("tag") {
        Some(text) => typed_tag(text)?,
        None => {
            let mut free = (1..=u16::MAX).map(PortalGroupTag);
            let tag = free.find(|tag| !known.contains(tag));
            tag.ok_or_else(|| Refusal::new("All TPG tags are taken."))?
        }
    };
    if known.contains(&tag) {
        return Err(Refusal::new(format!("TPG {tag} already exists.")));
    }
    if let Some(row) = run.edit().target.get_mut(&target) {
        group_mut(&mut row.portals, tag);
    }
    if args.get("tag").is_none() {
        run.say(format!("Selected TPG Tag {tag}."));
    }
    run.say(format!("Successfully created TPG {tag}."));
    run.say("All TPGs of a target share its LUNs and ACLs.");
    run.made(Node::Tpg(TpgPlace { target, tag }));
    Ok(())
}

fn typed_tag(text: &str) -> Result<PortalGroupTag, Refusal> {
    let digits = text.trim_start_matches("tpgt").trim_start_matches("tpg");
    let tag = digits.parse::<PortalGroupTag>().ok();
    let tag = tag.filter(|tag| tag.0 > 0);
    tag.ok_or_else(|| Refusal::new(format!("{text} is not a TPG tag from 1 to 65535.")))
}

/// `delete tag` at a target.
pub(super) fn delete_group(run: &mut Run<'_>, args: &Args) -> Done {
    let target = run.target()?;
    let tag = typed_tag(args.need("tag")?)?;
    let row = run.tree().target.get(&target);
    let known = row.map(|row| tags(&row.portals)).unwrap_or_default();
    if !known.contains(&tag) {
        return Err(Refusal::new(format!("There is no TPG {tag}.")));
    }
    if known.len() == 1 {
        let fabric = Fabric::of(&target).name();
        let what = format!("TPG {tag} is the only one of {target}.");
        return Err(
            Refusal::new(what).way_out(format!("To delete the target: /{fabric} delete {target}."))
        );
    }
    if let Some(row) = run.edit().target.get_mut(&target) {
        remove_group(&mut row.portals, tag);
    }
    run.say(format!("Deleted TPG {tag}."));
    Ok(())
}
