//! A TPG of LIO: its LUNs, portals, attributes and ACLs.

use std::collections::BTreeMap;

use super::acl::{self, Entry};
use super::fields::Fields;
use super::known::{self, Kind};
use super::storage::Units;
use super::target::Fabric;
use crate::import::draft::{Draft, User, lun, lun_row, portal};
use crate::import::json::Json;
use crate::import::login::LoginKey;
use crate::tree::{Access, LoginRow, LunRows, PortalRow};

/// A TPG: what is its own, and what all of a target's have to have in common.
pub(super) struct PortalGroup {
    pub(super) line: usize,
    pub(super) path: String,
    pub(super) tag: u16,
    pub(super) portals: Vec<PortalRow>,
    pub(super) content: Content,
}

/// What initiators find at a TPG.
#[derive(Default, PartialEq)]
pub(super) struct Content {
    pub(super) alias: Option<String>,
    pub(super) luns: LunRows,
    pub(super) entries: Vec<Entry>,
    pub(super) login: Option<LoginRow>,
}

/// The attributes of a TPG that decide on access; the defaults are the kernel's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// CHAP is asked for.
    pub(super) authentication: bool,
    /// Initiators without an ACL may log in.
    pub(super) generate_node_acls: bool,
    /// Those can only read.
    demo_mode_write_protect: bool,
    /// A mapping that does not say so can only be read.
    pub(super) prod_mode_write_protect: bool,
}

/// The LUNs of a TPG by their indexes, and the lines where they stand.
pub(super) type TpgLuns = BTreeMap<u64, (String, usize)>;

/// Reads a TPG; a disabled one is left out.
pub(super) fn read(
    draft: &mut Draft,
    units: &Units,
    fabric: Fabric,
    tpg: &Json,
    path: &str,
) -> Option<PortalGroup> {
    let Some(mut fields) = Fields::of(tpg, path) else {
        draft.leave(tpg.line, path, "this is not an object");
        return None;
    };
    let line = fields.line;
    let tag = fields.take("tag").map_or(Some(1), Json::number);
    let tag = tag.and_then(|tag| u16::try_from(tag).ok());
    let Some(tag) = tag else {
        draft.leave(
            line,
            format!("{path}.tag"),
            "a tag is a number from 0 to 65535",
        );
        return None;
    };
    if fields.flag("enable") == Some(false) {
        draft.leave(
            line,
            format!("{path}.enable = false"),
            "a disabled TPG is not carried over",
        );
        return None;
    }
    let luns = read_luns(draft, units, &mut fields);
    let rules = rules(draft, &mut fields, fabric);
    let everybody = fields.user("chap_");
    let mutual = fields.user("chap_mutual_");
    let mut acls = Vec::new();
    for (one, path) in fields.list("node_acls") {
        acls.extend(acl::read(draft, fabric, rules, &luns, one, &path));
    }
    let (base, mut entries) = acl::arrange(&base(&luns, rules), rules, acls);
    if !rules.generate_node_acls {
        name_unmapped(draft, &fields, &luns, &base, &entries);
    }
    entries.extend(demo_entry(draft, &fields, rules, everybody, mutual));
    let (alias, login) = parameters(draft, &mut fields);
    let portals = read_portals(draft, &mut fields);
    fields.leave_rest(draft, "Lunar has no such setting");
    Some(PortalGroup {
        line,
        path: path.to_owned(),
        tag,
        portals,
        content: Content {
            alias,
            luns: base,
            entries,
            login,
        },
    })
}

fn read_luns(draft: &mut Draft, units: &Units, fields: &mut Fields<'_>) -> TpgLuns {
    let mut luns = TpgLuns::new();
    for (one, path) in fields.list("luns") {
        let Some(mut inner) = Fields::of(one, &path) else {
            draft.leave(one.line, path, "this is not an object");
            continue;
        };
        // The name of a link in configfs, which no host sees.
        let _link = inner.take("alias");
        let index = inner.take("index").and_then(Json::number);
        let object = inner.text("storage_object").unwrap_or_default();
        if let Some(group) = inner.take("alua_tg_pt_gp_name") {
            let text = inner.shown("alua_tg_pt_gp_name", group);
            let why = "target port groups of ALUA are not configured here";
            match group.text().as_deref() {
                Some("default_tg_pt_gp" | "") | None => draft.leave_default(group.line, text, why),
                Some(_) => draft.leave(group.line, text, why),
            }
        }
        inner.leave_rest(draft, "Lunar has no such setting");
        let shown = format!("{path}: {object}");
        match (index, units.get(&object)) {
            (None, _) => draft.leave(one.line, shown, "a LUN has an index"),
            (_, None) => draft.leave(one.line, shown, "this storage object is not carried over"),
            (Some(index), Some(_)) if luns.contains_key(&index) => {
                draft.leave(one.line, shown, "this LUN is there twice");
            }
            (Some(index), Some(unit)) => {
                luns.insert(index, (unit.clone(), one.line));
            }
        }
    }
    luns
}

/// What an initiator without a mapping of its own sees. Numbers that no LUN has here are only
/// there to be mapped.
fn base(luns: &TpgLuns, rules: Rules) -> LunRows {
    let access = if rules.generate_node_acls && rules.demo_mode_write_protect {
        Access::ReadOnly
    } else {
        Access::ReadWrite
    };
    let rows = luns.iter();
    rows.filter_map(|(index, (unit, _))| Some((lun(*index)?, lun_row(unit.clone(), access))))
        .collect()
}

fn rules(draft: &mut Draft, fields: &mut Fields<'_>, fabric: Fabric) -> Rules {
    let mut rules = Rules {
        authentication: fabric == Fabric::Iscsi,
        generate_node_acls: false,
        demo_mode_write_protect: true,
        prod_mode_write_protect: false,
    };
    let Some(mut attributes) = fields.object("attributes") else {
        return rules;
    };
    for (key, place) in [
        ("authentication", &mut rules.authentication),
        ("generate_node_acls", &mut rules.generate_node_acls),
        (
            "demo_mode_write_protect",
            &mut rules.demo_mode_write_protect,
        ),
        (
            "prod_mode_write_protect",
            &mut rules.prod_mode_write_protect,
        ),
    ] {
        *place = attributes.flag(key).unwrap_or(*place);
    }
    let discovery = attributes.take("demo_mode_discovery");
    if let Some(value) = discovery
        && value.flag() != Some(false)
        && !rules.generate_node_acls
    {
        known::leave_one(draft, Kind::Tpg, &attributes, "demo_mode_discovery", value);
    }
    known::leave(draft, Kind::Tpg, &attributes);
    rules
}

/// The initiators without an ACL, if they may log in.
fn demo_entry(
    draft: &mut Draft,
    fields: &Fields<'_>,
    rules: Rules,
    user: Option<User>,
    mutual: Option<User>,
) -> Option<Entry> {
    let left = |draft: &mut Draft, user: Option<User>, why: &str| {
        if let Some(user) = user {
            let text = format!("{} = {}", fields.path_of("chap_userid"), user.name);
            draft.leave(user.line, text, why);
        }
    };
    if !rules.generate_node_acls {
        let why = "LIO uses the TPG's user only with generate_node_acls=1";
        left(draft, user.or(mutual), why);
        return None;
    }
    let mut entry = Entry::plain("*".to_owned());
    if rules.authentication {
        if user.is_none() {
            let text = fields.path_of("attributes.generate_node_acls = 1");
            let why = "with authentication=1 and no chap_userid LIO admits no initiator without \
                       an ACL: set a user for them first";
            draft.leave(fields.line, text, why);
            return None;
        }
        entry.user = user;
        entry.mutual = mutual;
        "everybody".clone_into(&mut entry.name);
    } else {
        left(
            draft,
            user.or(mutual),
            "with authentication=0 LIO asks for no CHAP",
        );
    }
    Some(entry)
}

fn name_unmapped(
    draft: &mut Draft,
    fields: &Fields<'_>,
    luns: &TpgLuns,
    base: &LunRows,
    entries: &[Entry],
) {
    let views = entries.iter().filter_map(|entry| entry.view.as_ref());
    let rows = views.chain([base]).flat_map(BTreeMap::values);
    let seen: std::collections::BTreeSet<&str> = rows.map(crate::tree::LunRow::volume).collect();
    for (index, (unit, line)) in luns {
        if !seen.contains(&**unit) {
            let text = format!("{} of index {index}: {unit}", fields.path_of("luns"));
            draft.leave(*line, text, "no ACL maps this LUN, so no initiator sees it");
        }
    }
}

fn parameters(draft: &mut Draft, fields: &mut Fields<'_>) -> (Option<String>, Option<LoginRow>) {
    let Some(parameters) = fields.object("parameters") else {
        return (None, None);
    };
    let (mut alias, mut login) = (None, LoginRow::default());
    for (key, value) in parameters.rest() {
        let text = value.text().unwrap_or_default();
        let shown = parameters.shown(key, value);
        let is_default = known::is_default_parameter(key, &text);
        let read = LoginKey {
            line: value.line,
            text: &shown,
            name: key,
            value: &text,
        };
        match key {
            "TargetAlias" if !is_default => alias = Some(text),
            // Follows from `authentication`, with which LIO changes it.
            "AuthMethod" if !text.eq_ignore_ascii_case("none") => {}
            _ if !is_default && read.read(draft, &mut login) => {}
            _ => known::leave_one(draft, Kind::Parameter, &parameters, key, value),
        }
    }
    (alias, (login != LoginRow::default()).then_some(login))
}

fn read_portals(draft: &mut Draft, fields: &mut Fields<'_>) -> Vec<PortalRow> {
    let mut all = Vec::new();
    for (one, path) in fields.list("portals") {
        let Some(mut inner) = Fields::of(one, &path) else {
            draft.leave(one.line, path, "this is not an object");
            continue;
        };
        let host = inner.text("ip_address").unwrap_or_default();
        let port = inner.text("port");
        let iser = (inner.flag("iser") == Some(true)).into();
        if inner.flag("offload") == Some(true) {
            let text = inner.path_of("offload = true");
            draft.leave(one.line, text, "no network card takes iSCSI over here");
        }
        inner.leave_rest(draft, "Lunar has no such setting");
        match portal(&host, port.as_deref()) {
            Some(portal) => all.push(PortalRow { iser, ..portal }),
            None => draft.leave(one.line, path, "a portal is an IP address and a port"),
        }
    }
    all
}
