//! ctld of FreeBSD: `ctl.conf`, in its own syntax and in UCL (`ctld -u`).
//!
//! ctl.conf(5) describes the first and the options of ctladm(8) what a LUN can have; libucl's
//! documents describe the second. The two are read by one parser, see [`syntax`].
//!
//! | there | here |
//! |---|---|
//! | `target NAME`, `alias` | a target, its `alias` |
//! | `portal-group` with `listen`, `listen-iser`, `tag`; none, or `default` | `portals` by tag, with `iser`; all addresses |
//! | `lun N { path … }`, `lun N NAME` with `lun NAME { … }` | a volume `file:` or `block:`, a LUN |
//! | `backend ramdisk` with `option capacity`; without it | `ram:`; `null:`, as it stores nothing |
//! | `size` of a file, `blocksize`, `serial` | `?size`, `block-size`, `serial` |
//! | `option vendor`, `product`, `naa`, `readonly`, `removable` | `vendor`, `product`, `naa`, access `ro`, `removable` |
//! | `auth-group`, and the same at a target: `chap`, `chap-mutual` | `chap`, `mutual` of a group; one user |
//! | `initiator-name`; none | `allow`; `"*"` |
//! | `initiator-portal` | closes the target: initiators are known by name here |
//! | `auth-type none`, group `no-authentication` | no CHAP |
//! | `auth-type deny`, groups `default` and `no-access` | closed, as there |
//! | `discovery-auth-group`, `isns-server`, `port`, `controller` | left out |

mod auth;
mod lun;
mod syntax;
mod target;

use std::collections::{HashMap, HashSet};

use super::block::Node;
use super::draft::{Draft, portal};
use super::{ImportProblem, Imported};
use crate::tree::{PortalIser, PortalRow};
use auth::AuthGroup;

pub(super) fn import(text: &str) -> Result<Imported, ImportProblem> {
    let nodes = syntax::parse(text)?;
    let mut draft = Draft::default();
    let mut parts = Parts::default();
    for node in &nodes {
        parts.read(&mut draft, node);
    }
    for node in nodes.iter().filter(|node| node.key() == "target") {
        target::read(&mut draft, &parts, node);
    }
    leave_unused(&mut draft, &nodes);
    draft.note(super::NEW_DISKS);
    draft.note(
        "paths are those of FreeBSD: /dev/zvol is the same with ZFS on Linux, and other devices \
         have other names",
    );
    Ok(draft.finish())
}

/// What targets refer to by name.
#[derive(Default)]
struct Parts<'a> {
    auth: HashMap<&'a str, AuthGroup>,
    portals: HashMap<&'a str, PortalGroup>,
    luns: HashMap<&'a str, &'a Node>,
}

/// Portals, and the tag that they are given.
#[derive(Default)]
struct PortalGroup {
    tag: Option<u16>,
    portals: Vec<PortalRow>,
}

impl<'a> Parts<'a> {
    fn read(&mut self, draft: &mut Draft, node: &'a Node) {
        let name = node.value();
        match node.key() {
            "target" => {}
            "auth-group" if node.has_block => {
                let mut group = AuthGroup::default();
                for one in &node.inner {
                    if !group.read(draft, one) {
                        draft.leave(one.line, one.shown(), "Lunar has no such setting");
                    }
                }
                self.auth.insert(name, group);
            }
            "portal-group" if node.has_block => {
                self.portals.insert(name, portal_group(draft, node));
            }
            "lun" if node.has_block => drop(self.luns.insert(name, node)),
            "controller" | "transport-group" => {
                draft.leave(
                    node.line,
                    node.shown(),
                    "targets are reached over iSCSI and FCoE here",
                );
            }
            "isns-server" | "isns-period" | "isns-timeout" => {
                let why = "targets are found by SendTargets, not by iSNS";
                draft.leave(node.line, node.shown(), why);
            }
            "debug" | "maxproc" | "pidfile" | "timeout" => {
                let why = "ctld's own process has such a setting, and this one has not";
                draft.leave(node.line, node.shown(), why);
            }
            _ => draft.leave(node.line, node.shown(), "Lunar has no such setting"),
        }
    }
}

/// Names the parts that no target refers to.
fn leave_unused(draft: &mut Draft, nodes: &[Node]) {
    let targets = nodes.iter().filter(|node| node.key() == "target");
    let mut used: HashSet<(&str, &str)> =
        HashSet::from([("auth-group", "default"), ("portal-group", "default")]);
    for one in targets.flat_map(|target| &target.inner) {
        match one.key() {
            "lun" => used.insert(("lun", one.word(2))),
            key => used.insert((key, one.value())),
        };
    }
    let parts = ["auth-group", "portal-group", "lun"];
    for node in nodes
        .iter()
        .filter(|node| node.has_block && parts.contains(&node.key()))
    {
        if !used.contains(&(node.key(), node.value())) {
            draft.leave(node.line, node.shown(), "no target refers to it");
        }
    }
}

fn portal_group(draft: &mut Draft, node: &Node) -> PortalGroup {
    let mut group = PortalGroup::default();
    for one in &node.inner {
        let why = match one.key() {
            "listen" | "listen-iser" => match portal(one.value(), None) {
                Some(portal) => {
                    let iser = (one.key() == "listen-iser").into();
                    let portal = PortalRow { iser, ..portal };
                    if !joins(group.portals.iter_mut(), &portal) {
                        group.portals.push(portal);
                    }
                    continue;
                }
                None => "a portal is ADDRESS or ADDRESS:PORT",
            },
            "tag" => match one.value().parse() {
                Ok(tag) => {
                    group.tag = Some(tag);
                    continue;
                }
                Err(_) => "a tag is a number from 0 to 65535",
            },
            "discovery-auth-group" | "discovery-filter" => {
                "SendTargets asks for no CHAP here: it shows an initiator only what it may log in \
                 to"
            }
            "redirect" => "a portal sends no initiator to another one",
            "offload" => "no network card takes iSCSI over here",
            _ => "Lunar has no such setting",
        };
        draft.leave(one.line, one.shown(), why);
    }
    group
}

/// Whether a portal is one that is there, by `listen` and by `listen-iser`: that takes both here.
fn joins<'a>(mut known: impl Iterator<Item = &'a mut PortalRow>, portal: &PortalRow) -> bool {
    let is_same =
        |known: &&mut PortalRow| known.address == portal.address && known.iser != portal.iser;
    let same = known.find(is_same);
    same.map(|same| same.iser = PortalIser::Soft).is_some()
}
