//! Targets of LIO, and which of their TPGs can be portal groups of one target here.

use std::collections::BTreeMap;

use fc::wire::names::Wwn;

use super::acl::Entry;
use super::fields::Fields;
use super::portal_group::{self, Content, PortalGroup};
use super::storage::Units;
use crate::import::draft::{Draft, portals, short_name};
use crate::import::json::Json;
use crate::tree::{GroupRow, PortalRow, TargetRow};

/// What a target is reached over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fabric {
    Iscsi,
    Fcoe,
}

impl Fabric {
    /// The name of an initiator or a target as a tree writes it.
    pub(super) fn name(self, text: &str) -> Option<String> {
        match self {
            Self::Iscsi => address::normalise_iscsi_name(text).ok(),
            Self::Fcoe => text.parse::<Wwn>().ok().map(|wwn| wwn.to_string()),
        }
    }
}

/// Adds a target.
pub(super) fn read(draft: &mut Draft, units: &Units, target: &Json, path: &str) {
    let Some(mut fields) = Fields::of(target, path) else {
        draft.leave(target.line, path, "this is not an object");
        return;
    };
    let line = fields.line;
    let wwn = fields.text("wwn").unwrap_or_default();
    let fabric = fields.text("fabric").unwrap_or_default();
    let shown = format!("{path}: {fabric} {wwn}");
    let fabric = match &*fabric {
        "iscsi" => Fabric::Iscsi,
        "tcm_fc" => Fabric::Fcoe,
        other => return draft.leave(line, shown, no_fabric(other)),
    };
    let Some(name) = fabric.name(&wwn) else {
        return draft.leave(line, shown, "this is not the name of such a target");
    };
    let mut groups = Vec::new();
    for (tpg, path) in fields.list("tpgs") {
        groups.extend(portal_group::read(draft, units, fabric, tpg, &path));
    }
    if let Some(parameters) = fields.object("parameters") {
        super::known::leave(draft, super::known::Kind::Parameter, &parameters);
    }
    fields.leave_rest(draft, "Lunar has no such setting");
    let row = merge(draft, &name, groups);
    if fabric == Fabric::Fcoe {
        let why = "saveconfig.json does not say which interface: add portals = [\"fcoe:IFACE\"], \
                   with the interface whose MAC address ends the name";
        draft.leave(line, &*shown, why);
    }
    if !draft.target(&name, row) {
        draft.leave(line, shown, "a target of this name is there already");
    }
}

fn no_fabric(name: &str) -> String {
    match name {
        "loopback" => "a LUN for this machine itself is made by lunar attach, not by a target",
        "vhost" => "a LUN for a virtual machine is made by lunar attach, not by a target",
        "" => "a target has a fabric",
        _ => "targets are reached over iSCSI and FCoE here",
    }
    .to_owned()
}

/// Portal groups with the same content are one target; what differs from the first is left out
/// with its portals, where initiators would see LUNs of the first.
fn merge(draft: &mut Draft, name: &str, groups: Vec<PortalGroup>) -> TargetRow {
    let mut tagged: BTreeMap<u16, Vec<PortalRow>> = BTreeMap::new();
    let mut first: Option<Content> = None;
    for group in groups {
        match &first {
            Some(first) if *first != group.content => {
                let why = "a target has one list of LUNs and initiators here, and those of this \
                           TPG differ from the first one's: make a target of it";
                draft.leave(group.line, group.path, why);
                continue;
            }
            Some(_) => {}
            None => first = Some(group.content),
        }
        tagged.entry(group.tag).or_default().extend(group.portals);
    }
    let mut row = row(draft, name, first.unwrap_or_default());
    row.portals = portals(tagged);
    row
}

fn row(draft: &mut Draft, target: &str, content: Content) -> TargetRow {
    let mut row = TargetRow {
        alias: content.alias,
        luns: content.luns,
        login: content.login,
        ..TargetRow::default()
    };
    for entry in content.entries {
        allow(draft, target, entry, &mut row);
    }
    row
}

fn allow(draft: &mut Draft, target: &str, entry: Entry, row: &mut TargetRow) {
    if !entry.is_group() {
        row.allow.extend(entry.initiators);
        return;
    }
    let wish = if entry.name.is_empty() {
        short_name(target)
    } else {
        entry.name
    };
    let group = match &entry.user {
        Some(user) => draft.chap_group(entry.initiators, user, entry.mutual.as_ref()),
        None => GroupRow {
            initiators: entry.initiators,
            ..GroupRow::default()
        },
    };
    let name = draft.group(&wish, group);
    if let Some(view) = entry.view {
        row.view.insert(name.clone(), view);
    }
    row.allow.push(name);
}
