//! ACLs of LIO, and how few groups and views say the same.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::known::{self, Kind};
use super::portal_group::{Rules, TpgLuns};
use super::target::Fabric;
use crate::import::draft::{Draft, User, lun, lun_row, short_name};
use crate::import::json::Json;
use crate::tree::{Access, LunRows};

/// An ACL: an initiator, what it logs in with, and the LUNs that it sees.
pub(super) struct Acl {
    initiator: String,
    /// What targetcli groups ACLs by.
    tag: Option<String>,
    user: Option<User>,
    mutual: Option<User>,
    luns: LunRows,
}

/// An initiator or a group that may log in.
#[derive(Clone, PartialEq)]
pub(super) struct Entry {
    /// What the group is called, if there has to be one.
    pub(super) name: String,
    pub(super) is_tagged: bool,
    pub(super) initiators: Vec<String>,
    pub(super) user: Option<User>,
    pub(super) mutual: Option<User>,
    /// What it sees in place of the target's LUNs.
    pub(super) view: Option<LunRows>,
}

impl Entry {
    /// An initiator without anything of its own.
    pub(super) fn plain(initiator: String) -> Self {
        Self {
            name: String::new(),
            is_tagged: false,
            initiators: vec![initiator],
            user: None,
            mutual: None,
            view: None,
        }
    }

    /// Whether it takes a group to say all of it.
    pub(super) fn is_group(&self) -> bool {
        self.is_tagged || self.user.is_some() || self.view.is_some()
    }
}

/// Reads an ACL.
pub(super) fn read(
    draft: &mut Draft,
    fabric: Fabric,
    rules: Rules,
    tpg: &TpgLuns,
    acl: &Json,
    path: &str,
) -> Option<Acl> {
    let Some(mut fields) = Fields::of(acl, path) else {
        draft.leave(acl.line, path, "this is not an object");
        return None;
    };
    let wwn = fields.text("node_wwn").unwrap_or_default();
    let Some(initiator) = fabric.name(&wwn) else {
        let text = format!("{path}: {wwn}");
        draft.leave(acl.line, text, "this is not the name of an initiator");
        return None;
    };
    let attributes = fields.object("attributes");
    let authentication = attributes.map_or(rules.authentication, |mut attributes| {
        let own = attributes.take("authentication").and_then(Json::flag);
        known::leave(draft, Kind::NodeAcl, &attributes);
        own.unwrap_or(rules.authentication)
    });
    let mut user = fields.user("chap_");
    let mut mutual = fields.user("chap_mutual_");
    let tag = fields.text("tag");
    let luns = mapped_luns(draft, rules, tpg, &mut fields);
    fields.leave_rest(draft, "Lunar has no such setting");
    if authentication && user.is_none() {
        let why = "with authentication=1 and no chap_userid LIO never admits this initiator: \
                   set a user for it first";
        draft.leave(acl.line, format!("{path}: {wwn}"), why);
        return None;
    }
    if !authentication && let Some(unused) = user.take().or(mutual.take()) {
        mutual = None;
        let text = format!("{path}: {} ***", unused.name);
        draft.leave(
            unused.line,
            text,
            "with authentication=0 LIO asks for no CHAP",
        );
    }
    Some(Acl {
        initiator,
        tag,
        user,
        mutual,
        luns,
    })
}

fn mapped_luns(draft: &mut Draft, rules: Rules, tpg: &TpgLuns, fields: &mut Fields<'_>) -> LunRows {
    let mut rows = LunRows::new();
    for (one, path) in fields.list("mapped_luns") {
        let Some(mut inner) = Fields::of(one, &path) else {
            draft.leave(one.line, path, "this is not an object");
            continue;
        };
        // The name of a link in configfs, which no host sees.
        let _link = inner.take("alias");
        let number = inner.take("index").and_then(Json::number).and_then(lun);
        let unit = inner.take("tpg_lun").and_then(Json::number);
        let unit = unit.and_then(|index| tpg.get(&index));
        let protected = inner.flag("write_protect");
        inner.leave_rest(draft, "Lunar has no such setting");
        let access = if protected.unwrap_or(rules.prod_mode_write_protect) {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        };
        match (number, unit) {
            (None, _) => draft.leave(one.line, path, "a LUN is a number from 0 to 16383"),
            (_, None) => draft.leave(one.line, path, "the TPG has no such LUN"),
            (Some(number), Some((unit, _))) => {
                rows.insert(number, lun_row(unit.clone(), access));
            }
        }
    }
    rows
}

/// The LUNs of the target, and the groups that see others. Without `generate_node_acls` nothing
/// but mappings is seen, so the LUNs of the target are the mapping that most ACLs have; of equally
/// frequent ones it is that with the numbers of the TPG.
pub(super) fn arrange(straight: &LunRows, rules: Rules, acls: Vec<Acl>) -> (LunRows, Vec<Entry>) {
    let base = if rules.generate_node_acls {
        straight.clone()
    } else {
        most_frequent(straight, &acls).unwrap_or_else(|| straight.clone())
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut tagged: BTreeMap<String, usize> = BTreeMap::new();
    for acl in acls {
        let entry = Entry {
            name: match &acl.tag {
                Some(tag) => tag.clone(),
                None => short_name(&acl.initiator),
            },
            is_tagged: acl.tag.is_some(),
            initiators: vec![acl.initiator],
            user: acl.user,
            mutual: acl.mutual,
            view: (acl.luns != base).then_some(acl.luns),
        };
        let known = acl.tag.and_then(|tag| {
            let users =
                [&entry.user, &entry.mutual].map(|user| user.as_ref().map(|user| &user.name));
            let key = format!("{tag:?} {users:?} {:?}", entry.view);
            let at = *tagged.entry(key).or_insert(entries.len());
            entries.get_mut(at)
        });
        match known {
            // One tag is one group as long as all of its initiators are treated alike.
            Some(known) if (&known.user, &known.mutual) == (&entry.user, &entry.mutual) => {
                known.initiators.extend(entry.initiators);
            }
            _ => entries.push(entry),
        }
    }
    (base, entries)
}

fn most_frequent(straight: &LunRows, acls: &[Acl]) -> Option<LunRows> {
    let mut counts: BTreeMap<String, (usize, &LunRows)> = BTreeMap::new();
    for acl in acls {
        let count = counts
            .entry(format!("{:?}", acl.luns))
            .or_insert((0, &acl.luns));
        count.0 += 1;
    }
    let numbered = |luns: &LunRows| {
        let same = |(number, row): (_, &crate::tree::LunRow)| {
            straight
                .get(number)
                .is_some_and(|own| own.volume() == row.volume())
        };
        luns.len() == straight.len() && luns.iter().all(same)
    };
    let best = counts
        .into_values()
        .max_by_key(|(count, luns)| (*count, numbered(luns)));
    best.map(|(_, luns)| luns.clone())
}
