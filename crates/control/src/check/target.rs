//! Targets: their names, portals, LUNs, and who may log in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use address::{ISCSI_PORT, LUN_MAX};
use engine::inventory::FcoePort;
use fc::wire::names::Wwn;

use super::access::{check_allowed, check_twice, lets_in};
use super::{Findings, TreeProblem, found};
use crate::login_keys;
use crate::tree::{LoginRow, LunRows, PortalRow, TargetRow, Tree};

/// Where a target is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Portal {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Fibre Channel port over Ethernet.
    Fcoe(Box<FcoePort>),
}

/// What a target's name says that it is.
#[derive(Clone, Copy)]
pub(crate) enum TargetKind {
    Iscsi,
    FibreChannel,
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let mut interfaces: BTreeMap<String, &str> = BTreeMap::new();
    for (name, row) in &tree.target {
        let at = format!("target.{name:?}");
        let kind = kind(name);
        if kind.is_none() {
            findings.problem(
                &at,
                "this is not the name of a target",
                "write an IQN in lower case, or a WWPN such as 20:00:ac:de:48:23:45:67",
            );
        }
        let is_fc = matches!(kind, Some(TargetKind::FibreChannel));
        check_portals(&at, (row, kind), &mut interfaces, findings);
        check_further(tree, (&at, name, row), &mut interfaces, findings);
        check_luns(tree, &format!("{at}.luns"), &row.luns, findings);
        check_views(tree, &at, (row, is_fc), findings);
        check_access(tree, &at, row, findings);
        if let Some(login) = &row.login {
            check_login(&format!("{at}.login"), login, is_fc, findings);
        }
    }
    let overlaps = overlaps(tree).into_iter();
    findings.warnings.extend(overlaps.map(|one| one.problem));
}

/// A portal beside the wildcard of its port: one socket alone can have a port of an address, so
/// that one of the two cannot be opened.
struct Overlap {
    address: SocketAddr,
    wildcard: SocketAddr,
    problem: TreeProblem,
}

/// Overlaps of portals that come, which the engine refuses. One that there was is a portal that is
/// missing, and keeps no other change from being made.
pub(crate) fn new_overlaps(old: &Tree, new: &Tree) -> Vec<TreeProblem> {
    let known: BTreeSet<_> = tcp_portals(old, |_| true)
        .map(|(address, _)| address)
        .collect();
    let comes = |one: &Overlap| !known.contains(&one.address) || !known.contains(&one.wildcard);
    let overlaps = overlaps(new).into_iter().filter(comes);
    overlaps.map(|one| one.problem).collect()
}

/// Overlaps of portals, of whatever targets.
fn overlaps(tree: &Tree) -> Vec<Overlap> {
    let is_wildcard = |(at, _): &(SocketAddr, &str)| at.ip().is_unspecified();
    let wildcards: BTreeMap<_, _> = tcp_portals(tree, |_| true).filter(is_wildcard).collect();
    let addresses = tcp_portals(tree, |_| true).filter(|portal| !is_wildcard(portal));
    let overlap = |(address, name): (SocketAddr, &str)| {
        let all: IpAddr = match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let wildcard = SocketAddr::new(all, address.port());
        let other = wildcards.get(&wildcard)?;
        let problem = found(
            format_args!("target.{name:?}.portals"),
            format_args!("{address} is among the addresses of {wildcard}, of target {other}"),
            "write the same address in both, or give one of them another port",
        );
        Some(Overlap {
            address,
            wildcard,
            problem,
        })
    };
    addresses.filter_map(overlap).collect()
}

/// The TCP addresses of portals, each with its target.
pub(super) fn tcp_portals(
    tree: &Tree,
    wanted: impl Fn(&PortalRow) -> bool,
) -> impl Iterator<Item = (SocketAddr, &str)> {
    let targets = tree.target.iter();
    let rows = targets.flat_map(|(name, row)| row.portals.iter().map(move |(_, row)| (name, row)));
    let rows = rows.filter(move |(_, row)| wanted(row));
    rows.filter_map(|(name, row)| match portal(&row.address) {
        Ok(Portal::Tcp(address)) => Some((address, &**name)),
        _ => None,
    })
}

fn check_login(at: &str, login: &LoginRow, is_fc: bool, findings: &mut Findings) {
    for row in login_keys::all() {
        if let (Some(misfit), Some(value)) = (row.misfit(login), row.get(login)) {
            let what = format!("{} is {}, and not {value}", row.name, misfit.values);
            findings.problem(format_args!("{at}.{}", row.key), what, misfit.why);
        }
    }
    let (first, most) = (login.first_burst_length, login.max_burst_length);
    if let (Some(first), Some(most)) = (first, most)
        && first > most
    {
        findings.problem(
            format_args!("{at}.first-burst-length"),
            format_args!("the first burst has {first}, and no burst may have over {most}"),
            "give max-burst-length as much, or this less (RFC 7143 §13.14)",
        );
    }
    let is_solicited = login.initial_r2t == Some(true) && login.immediate_data == Some(false);
    if is_solicited && first.is_some() {
        findings.warning(
            format_args!("{at}.first-burst-length"),
            "there is no first burst, as all data is asked for",
            "leave it out, or allow initial-r2t = false or immediate-data = true",
        );
    }
    if is_fc {
        findings.warning(at, "a WWPN has no login keys of iSCSI", "leave it out");
    }
}

/// What kind of target a name is of; `None`: of none. Names have one spelling, so that a row has
/// one name.
pub(crate) fn kind(name: &str) -> Option<TargetKind> {
    if let Ok(wwpn) = name.parse::<Wwn>() {
        return (wwpn.to_string() == name).then_some(TargetKind::FibreChannel);
    }
    let normal = address::normalise_iscsi_name(name).ok()?;
    (normal == name).then_some(TargetKind::Iscsi)
}

/// What a portal is.
///
/// # Errors
///
/// What is wrong with it, in a line.
pub fn portal(written: &str) -> Result<Portal, String> {
    if let Some(port) = written.strip_prefix("fcoe:") {
        let port = port
            .parse::<FcoePort>()
            .map_err(|error| error.to_string())?;
        return match port.wwpn {
            None => Ok(Portal::Fcoe(Box::new(port))),
            Some(_) => Err("the name of the target is its WWPN: leave wwpn= out".to_owned()),
        };
    }
    let with_port = written.parse::<SocketAddr>();
    let bare = written
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    let address = with_port.or_else(|_| bare.map(|ip| SocketAddr::new(ip, ISCSI_PORT)));
    match address {
        Err(_) => Err("write IP, IP:PORT, [IPV6]:PORT or fcoe:INTERFACE".to_owned()),
        Ok(address) if address.ip().is_multicast() => {
            Err("a multicast address cannot accept connections".to_owned())
        }
        Ok(address) if address.port() == 0 => Err("a portal needs a port".to_owned()),
        Ok(address) => Ok(Portal::Tcp(address)),
    }
}

fn check_portals<'a>(
    at: &str,
    (row, kind): (&'a TargetRow, Option<TargetKind>),
    interfaces: &mut BTreeMap<String, &'a str>,
    findings: &mut Findings,
) {
    let at = format!("{at}.portals");
    let is_fc = matches!(kind, Some(TargetKind::FibreChannel));
    let mut known = BTreeMap::new();
    for (tag, PortalRow { address, iser }) in row.portals.iter() {
        let written = address;
        if tag.0 == 0 {
            findings.problem(&at, "0 is not a portal group tag", "number groups from 1");
        }
        let portal = match portal(written) {
            Ok(portal) => portal,
            Err(cause) => {
                findings.problem(&at, format_args!("{written:?} is not a portal"), &cause);
                continue;
            }
        };
        match portal {
            Portal::Tcp(_) if is_fc => findings.problem(
                &at,
                format_args!("{written} is a portal of iSCSI, and a WWPN is reached over Ethernet"),
                "write fcoe:INTERFACE, or give the target an IQN",
            ),
            Portal::Fcoe(_) if matches!(kind, Some(TargetKind::Iscsi)) => findings.problem(
                &at,
                format_args!("{written} is a port of Fibre Channel, whose target is a WWPN"),
                "give the target a WWPN, or write IP:PORT",
            ),
            Portal::Tcp(address) => {
                if known.insert(address, tag).is_some() {
                    findings.problem(&at, format_args!("{written} is there twice"), "omit one");
                }
            }
            Portal::Fcoe(_) if iser.is_taken() => findings.problem(
                &at,
                format_args!("{written} is a port of Fibre Channel, which has no iSER"),
                "leave iser out",
            ),
            Portal::Fcoe(port) => {
                if let Some(other) = interfaces.insert(port.place.to_string(), written) {
                    findings.problem(
                        &at,
                        format_args!("another target is at {other} already"),
                        "an interface has one port: give this target another interface, or in a \
                         fabric name its WWPN by npiv= of that portal",
                    );
                }
            }
        }
    }
    if is_fc && row.portals.iter().count() > 1 {
        findings.problem(
            &at,
            "a WWPN is one port",
            "give each interface a target of its own",
        );
    }
}

/// Further ports of an ENode (NPIV): each is a target of its own, which is reached there alone.
fn check_further<'a>(
    tree: &'a Tree,
    (at, name, row): (&str, &str, &'a TargetRow),
    known: &mut BTreeMap<String, &'a str>,
    findings: &mut Findings,
) {
    let at = format!("{at}.portals");
    for (_, written) in row.portals.iter() {
        let Ok(Portal::Fcoe(port)) = portal(&written.address) else {
            continue;
        };
        for wwpn in port.npiv {
            let further = wwpn.to_string();
            let what = format!("npiv={further}");
            if further == name || known.insert(further.clone(), &written.address).is_some() {
                let mend = "give each further port a WWPN of its own";
                findings.problem(
                    &at,
                    format_args!("{what}: another port has this name"),
                    mend,
                );
                continue;
            }
            match tree.target.get(&further) {
                None => findings.problem(
                    &at,
                    format_args!("{what}: there is no target of this name"),
                    &format!("add [target.{further:?}], with the LUNs that it shows"),
                ),
                Some(target) if !target.portals.is_empty() => findings.problem(
                    &at,
                    format_args!("{what}: this target has portals of its own"),
                    "leave either out",
                ),
                Some(_) => {}
            }
        }
    }
}

fn check_luns(tree: &Tree, at: &str, luns: &LunRows, findings: &mut Findings) {
    for (number, lun) in luns {
        if number.0 > LUN_MAX {
            findings.problem(
                format_args!("{at}.{number}"),
                "this number is too high",
                &format!("the highest LUN is {LUN_MAX}"),
            );
        }
        if !tree.volume.contains_key(lun.volume()) {
            let near = address::nearest(lun.volume(), tree.volume.keys().map(String::as_str));
            findings.problem(
                format_args!("{at}.{number}"),
                format_args!("there is no volume {:?}", lun.volume()),
                &super::access::did_you_mean(near),
            );
        }
    }
}

fn check_views(tree: &Tree, at: &str, (row, is_fc): (&TargetRow, bool), findings: &mut Findings) {
    for (group, luns) in &row.view {
        let at = format!("{at}.view.{group}");
        check_luns(tree, &at, luns, findings);
        let Some(members) = tree.group.get(group) else {
            let near = address::nearest(group, tree.group.keys().map(String::as_str));
            findings.problem(
                &at,
                format_args!("there is no group {group:?}"),
                &super::access::did_you_mean(near),
            );
            continue;
        };
        if row.allow.contains(group) {
            continue;
        }
        if !lets_in(tree, &row.allow, members, is_fc) {
            let never = format_args!("{group} may not log in, so it never sees this");
            findings.warning(&at, never, "add it to allow");
        } else if members.chap.is_some() && !is_fc {
            let open = format_args!("{group} is let in by another name, without its chap");
            findings.warning(&at, open, "add it to allow");
        }
    }
}

fn check_access(tree: &Tree, at: &str, row: &TargetRow, findings: &mut Findings) {
    let allow = format!("{at}.allow");
    check_allowed(tree, &allow, &row.allow, findings);
    check_twice(tree, &allow, &row.allow, findings);
    if row.allow.is_empty() {
        findings.warning(
            &allow,
            "nobody may log in to this target",
            "name groups or initiators, or \"*\" for everybody",
        );
    }
    if row.portals.is_empty() {
        findings.warning(
            format_args!("{at}.portals"),
            "this target has no portal, so nobody reaches it",
            "add one, such as \"192.0.2.1\"",
        );
    }
}
