//! Targets of ctld.

use std::collections::BTreeMap;

use super::auth::AuthGroup;
use super::{Parts, joins, lun};
use crate::import::block::Node;
use crate::import::draft::{self, Admission, Draft, everywhere, lun_row, portals};
use crate::tree::{PortalRow, Portals, TargetRow};

/// Adds a target.
pub(super) fn read(draft: &mut Draft, parts: &Parts<'_>, node: &Node) {
    let Ok(name) = address::normalise_iscsi_name(node.value()) else {
        draft.leave(
            node.line,
            node.shown(),
            "this is not the name of an iSCSI target",
        );
        return;
    };
    let mut reader = Reader {
        parts,
        row: TargetRow::default(),
        own: AuthGroup::default(),
        auth_group: None,
        portal_groups: Vec::new(),
    };
    for one in &node.inner {
        reader.read(draft, &name, one);
    }
    reader.portals(draft);
    reader.admit(draft, node);
    if !draft.target(&name, reader.row) {
        draft.leave(
            node.line,
            node.shown(),
            "a target of this name is there already",
        );
    }
}

struct Reader<'a> {
    parts: &'a Parts<'a>,
    row: TargetRow,
    own: AuthGroup,
    auth_group: Option<&'a Node>,
    portal_groups: Vec<&'a Node>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, draft: &mut Draft, target: &str, node: &'a Node) {
        let why = match node.key() {
            "alias" => {
                self.row.alias = Some(node.value().to_owned()).filter(|alias| !alias.is_empty());
                return;
            }
            "auth-group" => {
                self.auth_group = Some(node);
                return;
            }
            "portal-group" => {
                self.portal_groups.push(node);
                return;
            }
            "lun" => return self.lun(draft, target, node),
            "port" => "a port of an adapter is not a portal here",
            "redirect" => "a portal sends no initiator to another one",
            "offload" => "no network card takes iSCSI over here",
            _ if self.own.read(draft, node) => return,
            _ => "Lunar has no such setting",
        };
        draft.leave(node.line, node.shown(), why);
    }

    /// `lun 0 { … }`, or `lun 0 NAME`.
    fn lun(&mut self, draft: &mut Draft, target: &str, node: &Node) {
        let Some(number) = node.value().parse().ok().and_then(draft::lun) else {
            return draft.leave(node.line, node.shown(), crate::import::LUN_NUMBER);
        };
        if self.row.luns.contains_key(&number) {
            return draft.leave(node.line, node.shown(), "this LUN is there already");
        }
        let name = node.word(2);
        let block = match (name, node.has_block) {
            ("", _) | (_, true) => node,
            (name, false) => match self.parts.luns.get(name) {
                Some(block) => block,
                None => return draft.leave(node.line, node.shown(), "there is no such lun"),
            },
        };
        let wish = match name {
            "" => format!("{}-{number}", draft::short_name(target)),
            name => name.to_owned(),
        };
        if let Some((volume, access)) = lun::read(draft, &wish, block) {
            self.row.luns.insert(number, lun_row(volume, access));
        }
    }

    /// One group is portal group 1, several are numbered, unless they have tags.
    fn portals(&mut self, draft: &mut Draft) {
        let mut tagged: BTreeMap<u16, Vec<PortalRow>> = BTreeMap::new();
        for node in &self.portal_groups {
            let known = self.parts.portals.get(node.value());
            if !node.word(2).is_empty() {
                let why = "access is the same at every portal of a target in Lunar";
                draft.leave(node.line, node.shown(), why);
            }
            let all = match (known, node.value()) {
                (Some(group), _) => group.portals.clone(),
                (None, "default") => match everywhere() {
                    Portals::One(all) => all,
                    Portals::Groups(_) => Vec::new(),
                },
                (None, _) => {
                    draft.leave(node.line, node.shown(), "there is no such portal-group");
                    continue;
                }
            };
            let next = tagged
                .last_key_value()
                .map_or(1, |(tag, _)| tag.saturating_add(1));
            let tag = known.and_then(|group| group.tag).unwrap_or(next);
            for portal in all {
                if !joins(tagged.values_mut().flatten(), &portal) {
                    tagged.entry(tag).or_default().push(portal);
                }
            }
        }
        self.row.portals = if self.portal_groups.is_empty() {
            match self.parts.portals.get("default") {
                Some(group) => Portals::One(group.portals.clone()),
                None => everywhere(),
            }
        } else {
            portals(tagged)
        };
    }

    /// An auth-group of one portal-group counts for that alone, so it closes the target.
    fn admit(&mut self, draft: &mut Draft, node: &Node) {
        let by_portal = self
            .portal_groups
            .iter()
            .any(|node| !node.word(2).is_empty());
        let name = self.auth_group.map_or("default", Node::value);
        let line = self.auth_group.map_or(node.line, |group| group.line);
        let group = if self.own.is_there {
            Some(&self.own)
        } else {
            self.parts.auth.get(name)
        };
        let closed = Admission {
            is_closed: true,
            ..Admission::default()
        };
        let (mut admission, mut why) = match (group, name) {
            (Some(group), _) => group.admission(draft),
            (None, "no-authentication") => (Admission::default(), None),
            (None, "default") => (
                closed,
                Some("without an auth-group ctld lets no initiator log in"),
            ),
            (None, "no-access") => (closed, Some("no-access: no initiator can log in")),
            (None, _) => (
                closed,
                Some("there is no such auth-group: no initiator can log in"),
            ),
        };
        if by_portal {
            admission.is_closed = true;
            why = Some("an auth-group of one portal-group is left out: no initiator can log in");
        }
        if let Some(why) = why {
            draft.leave(line, format!("{}: auth-group {name}", node.shown()), why);
        }
        draft.admit(&mut self.row, &admission);
    }
}
