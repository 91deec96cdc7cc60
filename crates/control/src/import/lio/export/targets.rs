//! Targets as LIO has them: a TPG for each portal group, an ACL for each initiator.

use std::collections::{BTreeMap, BTreeSet};

use address::{HostPort, LUN_MAX};
use fc::wire::names::Wwn;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::LeftOuts;
use super::volumes::Objects;
use crate::import::draft::short_name;
use crate::login_keys;
use crate::secret::SecretSource;
use crate::tree::{
    Access, ChapRow, GroupRow, HashName, LunRow, LunRows, PortalGroupTag, Portals, TargetRow, Tree,
};

type Secrets<'a> = &'a dyn Fn(&SecretSource) -> Option<Zeroizing<String>>;

/// Every target.
pub(super) fn targets(
    tree: &Tree,
    objects: &Objects,
    secrets: Secrets<'_>,
    left: &mut LeftOuts,
) -> Vec<Value> {
    let mut used = BTreeSet::new();
    let mut all = Vec::new();
    for (name, row) in &tree.target {
        let mut target = Target {
            tree,
            objects,
            secrets,
            row,
            path: format!("target.\"{name}\""),
            is_fc: name.parse::<Wwn>().is_ok(),
            left,
            used: &mut used,
        };
        all.push(target.json(name));
    }
    for name in tree.group.keys().filter(|name| !used.contains(*name)) {
        left.add(
            format!("group.{name}"),
            "LIO has initiators only within targets",
        );
    }
    all
}

/// A target on its way to JSON.
struct Target<'a> {
    tree: &'a Tree,
    objects: &'a Objects,
    secrets: Secrets<'a>,
    row: &'a TargetRow,
    path: String,
    is_fc: bool,
    left: &'a mut LeftOuts,
    used: &'a mut BTreeSet<String>,
}

/// TPG LUNs by index, as volume and index.
type Indexes = BTreeMap<String, u64>;

impl Target<'_> {
    fn json(&mut self, name: &str) -> Value {
        let (luns, indexes) = self.tpg_luns();
        let tpg = self.tpg(&luns, &indexes);
        let groups = self.portal_groups();
        let tpgs = groups.into_iter().map(|(tag, portals)| {
            let mut tpg = tpg.clone();
            tpg.insert("tag".to_owned(), json!(tag));
            tpg.insert("portals".to_owned(), json!(portals));
            Value::Object(tpg)
        });
        json!({
            "fabric": if self.is_fc { "tcm_fc" } else { "iscsi" },
            "tpgs": tpgs.collect::<Vec<_>>(),
            "wwn": self.wwn(name),
        })
    }

    /// The LUNs of the target, and volumes of views at indexes above every LUN.
    fn tpg_luns(&mut self) -> (Vec<Value>, Indexes) {
        let mut indexes = Indexes::new();
        let mut luns = Vec::new();
        let row = self.row;
        let mut add = |index: u64, volume: &str, path: Option<&String>| {
            luns.extend(path.map(|path| json!({ "index": index, "storage_object": path })));
            indexes.entry(volume.to_owned()).or_insert(index);
        };
        let paths = &self.objects.paths;
        for (number, lun) in &row.luns {
            add(number.0.into(), lun.volume(), paths.get(lun.volume()));
        }
        let own: BTreeSet<&str> = row.luns.values().map(LunRow::volume).collect();
        let views = row.view.values().flat_map(BTreeMap::values);
        let further: BTreeSet<&str> = views.map(LunRow::volume).collect();
        for (index, volume) in (u64::from(LUN_MAX) + 1..).zip(further.difference(&own)) {
            add(index, volume, paths.get(*volume));
        }
        let missing = own
            .union(&further)
            .filter(|volume| !paths.contains_key(**volume));
        for volume in missing {
            let why = "this volume has no storage object";
            self.left.add(format!("{}: {volume}", self.path), why);
        }
        (luns, indexes)
    }

    /// All of a TPG but its tag and portals.
    fn tpg(&mut self, luns: &[Value], indexes: &Indexes) -> Map<String, Value> {
        let mut tpg = Map::new();
        let (acls, everybody) = self.acls(indexes);
        let asks = |acl: &Value| acl.get("chap_userid").is_some();
        let some_ask = acls.iter().chain(&everybody).any(asks);
        if some_ask && everybody.as_ref().is_some_and(|everybody| !asks(everybody)) {
            let why = "beside ACLs with CHAP, LIO asks initiators without an ACL for it too, so \
                       that none of them can log in";
            self.left.add(format!("{}.allow: *", self.path), why);
        }
        let acls = acls.into_iter().map(|mut acl| {
            if some_ask && !asks(&acl) {
                acl["attributes"] = json!({ "authentication": 0 });
            }
            acl
        });
        tpg.insert("enable".to_owned(), json!(true));
        tpg.insert("luns".to_owned(), json!(luns));
        tpg.insert("node_acls".to_owned(), json!(acls.collect::<Vec<_>>()));
        if self.is_fc {
            return tpg;
        }
        let protect = everybody.is_some() && self.is_protected();
        let attributes = json!({
            "authentication": u8::from(some_ask),
            "demo_mode_write_protect": u8::from(protect || everybody.is_none()),
            "generate_node_acls": u8::from(everybody.is_some()),
        });
        tpg.insert("attributes".to_owned(), attributes);
        if let Some(Value::Object(user)) = everybody {
            tpg.extend(user);
        }
        let parameters = self.parameters();
        if !parameters.is_empty() {
            tpg.insert("parameters".to_owned(), Value::Object(parameters));
        }
        tpg
    }

    /// Whether initiators without an ACL can only read; LIO has one switch for all LUNs.
    fn is_protected(&mut self) -> bool {
        let accesses: Vec<_> = self.row.luns.values().map(|lun| self.access(lun)).collect();
        let some = accesses.contains(&Access::ReadOnly);
        if some && accesses.contains(&Access::ReadWrite) {
            let why = "LIO protects all LUNs or none from initiators without an ACL: all";
            self.left.add(format!("{}.luns", self.path), why);
        }
        some
    }

    fn access(&self, lun: &LunRow) -> Access {
        if self.objects.protected.contains(lun.volume()) {
            Access::ReadOnly
        } else {
            lun.access()
        }
    }

    /// An ACL for each initiator, and what there is for everybody.
    fn acls(&mut self, indexes: &Indexes) -> (Vec<Value>, Option<Value>) {
        let (mut acls, mut everybody) = (Vec::new(), None);
        let mut seen = BTreeSet::new();
        let row = self.row;
        for name in &row.allow {
            let (group, initiators) = match self.tree.group.get(name) {
                Some(group) => (group, &*group.initiators),
                None => (&GroupRow::default(), std::slice::from_ref(name)),
            };
            let is_group = self.tree.group.contains_key(name);
            if is_group {
                self.used.insert(name.clone());
            }
            self.check_group(name, group, is_group);
            let luns = row.view.get(name).unwrap_or(&row.luns);
            for initiator in initiators {
                if !seen.insert(initiator) {
                    let why = format!("{initiator} has an ACL already");
                    self.left.add(format!("{}.allow: {name}", self.path), why);
                } else if initiator == "*" && self.is_fc {
                    let why = "every initiator of Fibre Channel needs an ACL in LIO";
                    self.left.add(format!("{}.allow: {name}", self.path), why);
                } else if initiator == "*" {
                    if row.view.contains_key(name) {
                        let why = "initiators without an ACL see the LUNs of the target in LIO";
                        self.left.add(format!("{}.view.{name}", self.path), why);
                    }
                    everybody = Some(self.chap(name, group));
                } else {
                    let mut acl = self.chap(name, group);
                    acl["node_wwn"] = json!(self.wwn(initiator));
                    acl["mapped_luns"] = json!(self.mapped(luns, indexes));
                    // What an import calls a group by itself needs no tag.
                    let is_own = group.chap.is_some() && *name == short_name(initiator);
                    if is_group && !(is_own && initiators.len() == 1) {
                        acl["tag"] = json!(name);
                    }
                    acls.push(acl);
                }
            }
        }
        (acls, everybody)
    }

    fn check_group(&mut self, name: &str, group: &GroupRow, is_group: bool) {
        let path = format!("group.{name}");
        if is_group && group.initiators.is_empty() {
            self.left.add(&path, "LIO has no ACL for an empty group");
        }
        if group.chap.is_some() && group.chap_min != Some(HashName::Md5) {
            let path = format!("{path}.chap-min");
            self.left.add(path, "LIO takes MD5 too");
        }
    }

    fn chap(&mut self, name: &str, group: &GroupRow) -> Value {
        let mut acl = json!({});
        let (Some(user), false) = (&group.chap, self.is_fc) else {
            return acl;
        };
        let users = [
            ("chap", "chap_", Some(user)),
            ("mutual", "chap_mutual_", group.mutual.as_ref()),
        ];
        for (key, prefix, user) in users {
            if let Some(row) = user {
                acl[format!("{prefix}userid")] = json!(row.user);
                match (self.secrets)(&row.secret) {
                    Some(secret) => acl[format!("{prefix}password")] = json!(&**secret),
                    None => {
                        let path = format!("group.{name}.{key}.secret");
                        self.left.add_secret(path, not_exported(prefix, row));
                    }
                }
            }
        }
        acl
    }

    fn mapped(&self, luns: &LunRows, indexes: &Indexes) -> Vec<Value> {
        let mapped = luns.iter().filter_map(|(number, lun)| {
            self.objects.paths.get(lun.volume())?;
            // The LUN of the same number, if it is this volume's, which may be there twice.
            let own = self.row.luns.get(number);
            let own = own.filter(|own| own.volume() == lun.volume());
            let index = match own {
                Some(_) => u64::from(number.0),
                None => *indexes.get(lun.volume())?,
            };
            Some(json!({
                "index": number.0,
                "tpg_lun": index,
                "write_protect": self.access(lun) == Access::ReadOnly,
            }))
        });
        mapped.collect()
    }

    /// Portals by tag; a target without any has TPG 1.
    fn portal_groups(&mut self) -> BTreeMap<u16, Vec<Value>> {
        let mut groups = BTreeMap::new();
        match &self.row.portals {
            Portals::One(_) => drop(groups.insert(1, Vec::new())),
            Portals::Groups(tagged) => {
                groups.extend(tagged.keys().map(|PortalGroupTag(tag)| (*tag, Vec::new())));
            }
        }
        let row = self.row;
        for (PortalGroupTag(tag), portal) in row.portals.iter() {
            match portal.address.parse::<HostPort>() {
                Ok(at) if !self.is_fc => groups.entry(tag).or_default().push(json!({
                    "ip_address": at.host.to_string(),
                    "iser": portal.iser.is_taken(),
                    "offload": false,
                    "port": at.port,
                })),
                _ => {
                    let path = format!("{}.portals: {}", self.path, portal.address);
                    self.left
                        .add(path, "saveconfig.json has portals of iSCSI only");
                }
            }
        }
        groups
    }

    fn parameters(&mut self) -> Map<String, Value> {
        let mut parameters = Map::new();
        if let Some(alias) = &self.row.alias {
            parameters.insert("TargetAlias".to_owned(), json!(alias));
        }
        let Some(login) = &self.row.login else {
            return parameters;
        };
        for key in login_keys::all() {
            match key.get(login) {
                Some(_) if key.name == "MaxSessions" => {
                    let path = format!("{}.login.{}", self.path, key.key);
                    self.left.add(path, "LIO limits no sessions");
                }
                Some(value) => drop(parameters.insert(key.name.to_owned(), json!(value))),
                None => {}
            }
        }
        parameters
    }

    /// A name as LIO writes it: `naa.2000acde48234567` for a WWPN.
    fn wwn(&self, name: &str) -> String {
        match name.parse::<Wwn>() {
            Ok(wwn) if self.is_fc => format!("naa.{:016x}", wwn.0),
            _ => name.to_owned(),
        }
    }
}

/// Where a secret belongs, and what is without it.
fn not_exported(prefix: &str, ChapRow { user, secret }: &ChapRow) -> String {
    let without = if prefix == "chap_" {
        "until then its initiators cannot log in"
    } else {
        "until then the target does not prove itself"
    };
    format!(
        "{secret} is not exported: before restoreconfig write it as \"{prefix}password\" beside \
         each \"{prefix}userid\": {user:?}; {without}"
    )
}
