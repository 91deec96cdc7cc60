//! A `target:` of chiscsi.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::acl::{self, Acl};
use super::device;
use crate::import::ImportProblem;
use crate::import::draft::{
    Admission, Draft, Initiator, User, everywhere, portal, portals, short_name,
};
use crate::import::login::LoginKey;
use crate::import::words::{Line, flag, shown};
use crate::tree::{GroupRow, LoginRow, PortalRow, TargetRow};

/// A target's lines, read one by one.
pub(super) struct Target {
    line: usize,
    name: Option<String>,
    row: TargetRow,
    /// How many lines there were with a device.
    devices: u64,
    login: LoginRow,
    portals: BTreeMap<u16, Vec<PortalRow>>,
    has_portal: bool,
    acls: Vec<Acl>,
    /// There is an ACL, so that an initiator without one cannot log in.
    has_acl: bool,
    uses_acls: bool,
    /// `AuthMethod=CHAP`: the others need not prove anything.
    asks_chap: bool,
    users: Vec<User>,
    mutual: Option<User>,
    is_closed: bool,
}

impl Target {
    pub(super) fn new(line: usize) -> Self {
        Self {
            line,
            name: None,
            row: TargetRow::default(),
            devices: 0,
            login: LoginRow::default(),
            portals: BTreeMap::new(),
            has_portal: false,
            acls: Vec::new(),
            has_acl: false,
            uses_acls: true,
            asks_chap: false,
            users: Vec::new(),
            mutual: None,
            is_closed: false,
        }
    }

    pub(super) fn read(&mut self, draft: &mut Draft, line: &Line, key: &str, value: &str) {
        let leave = |draft: &mut Draft, why: &str| draft.leave(line.number, shown(&line.text), why);
        match &*key.to_ascii_lowercase() {
            "targetname" => match address::normalise_iscsi_name(value) {
                Ok(name) if self.name.is_none() => self.name = Some(name),
                Ok(_) => leave(draft, "a target has one name"),
                Err(_) => leave(draft, "this is not the name of an iSCSI target"),
            },
            "targetalias" => {
                self.row.alias = Some(value.to_owned()).filter(|alias| !alias.is_empty());
            }
            "targetdevice" => {
                device::read(draft, &mut self.row.luns, self.devices, line, value);
                self.devices += 1;
            }
            "portalgroup" => self.portal_group(draft, line, value),
            "authmethod" => {
                let methods = || value.split(',').map(str::trim);
                self.asks_chap = !methods().any(|one| one.eq_ignore_ascii_case("none"));
                let known = |one: &str| ["none", "chap"].contains(&&*one.to_ascii_lowercase());
                if !methods().all(known) {
                    leave(draft, "authentication is by CHAP, or there is none");
                }
            }
            "auth_chap_initiator" | "auth_chap_target" => self.user(draft, line, key, value),
            "auth_chap_policy" => {
                if !value.eq_ignore_ascii_case("oneway") {
                    leave(
                        draft,
                        "whether a target has to prove itself is the initiator's choice",
                    );
                }
            }
            "acl_enable" => self.uses_acls = flag(value) != Some(false),
            "acl" => {
                self.has_acl = true;
                self.acls.extend(acl::read(draft, line, value));
            }
            _ => {
                let known = LoginKey {
                    line: line.number,
                    text: &line.text,
                    name: key,
                    value,
                };
                if !known.read(draft, &mut self.login) {
                    leave(draft, super::why(key));
                }
            }
        }
    }

    /// `6@192.0.2.1:3260,192.0.2.2:3260`, behind which tags of other groups may stand in brackets.
    fn portal_group(&mut self, draft: &mut Draft, line: &Line, value: &str) {
        self.has_portal = true;
        let split = value.split_once('@');
        let tag = split.and_then(|(tag, _)| tag.trim().parse::<u16>().ok());
        let (Some(tag), Some((_, list))) = (tag, split) else {
            let why = "a portal group is TAG@ADDRESS:PORT";
            return draft.leave(line.number, &*line.text, why);
        };
        for one in list.split(',').map(str::trim) {
            match portal(one, None) {
                Some(portal) => self.portals.entry(tag).or_default().push(portal),
                None => {
                    let why = "a portal is ADDRESS:PORT; time-outs and redirections are not \
                               carried over";
                    draft.leave(line.number, format!("PortalGroup={tag}@…{one}"), why);
                }
            }
        }
    }

    /// `"user":"secret"`.
    fn user(&mut self, draft: &mut Draft, line: &Line, key: &str, value: &str) {
        let pair = value
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let Some((name, secret)) = pair.and_then(|pair| pair.split_once("\":\"")) else {
            // A target whose user cannot be read must not be open to all.
            self.is_closed = true;
            return draft.leave(line.number, shown(&line.text), crate::import::NO_USER);
        };
        let user = User {
            line: line.number,
            name: name.to_owned(),
            secret: Zeroizing::new(secret.to_owned()),
        };
        if key.eq_ignore_ascii_case("auth_chap_initiator") {
            self.users.push(user);
        } else if self.mutual.is_none() {
            self.mutual = Some(user);
        } else {
            draft.leave(line.number, shown(&line.text), "a target has one such user");
        }
    }

    pub(super) fn finish(mut self, draft: &mut Draft) -> Result<(), ImportProblem> {
        let Some(name) = self.name.take() else {
            let what = "this target has no TargetName, or one that is not an iSCSI name";
            let way_out = "write TargetName=iqn.2026-11.org.example:disks";
            return Err(ImportProblem::new(self.line, what, way_out));
        };
        self.row.login = (self.login != LoginRow::default()).then_some(self.login.clone());
        self.row.portals = if self.has_portal {
            portals(std::mem::take(&mut self.portals))
        } else {
            everywhere()
        };
        self.check_users(draft);
        self.admit(draft);
        if !draft.target(&name, self.row) {
            let text = format!("TargetName={name}");
            draft.leave(self.line, text, "a target of this name is there already");
        }
        Ok(())
    }

    fn check_users(&mut self, draft: &mut Draft) {
        if self.asks_chap && self.users.is_empty() {
            let why = "CHAP is asked for, and there is no user: the target is closed";
            draft.leave(self.line, "AuthMethod=CHAP", why);
            self.is_closed = true;
        }
        if self.asks_chap {
            return;
        }
        for user in self.users.drain(..).chain(self.mutual.take()) {
            let why = "with AuthMethod=None,CHAP, the default, no initiator has to prove itself";
            draft.leave(user.line, format!("{} ***", user.name), why);
        }
    }

    fn admit(&mut self, draft: &mut Draft) {
        let mut admission = Admission {
            names: None,
            users: std::mem::take(&mut self.users),
            mutual: self.mutual.take(),
            is_closed: self.is_closed,
        };
        if !self.has_acl || !self.uses_acls {
            for acl in &self.acls {
                draft.leave(acl.line, &*acl.text, "ACL_Enable=No: it is not looked at");
            }
            return draft.admit(&mut self.row, &admission);
        }
        for acl in std::mem::take(&mut self.acls) {
            if self.is_closed {
                draft.leave(
                    acl.line,
                    acl.text,
                    "the target is closed, as a user is left out",
                );
                continue;
            }
            let view = acl.view(&self.row.luns);
            let plain = view == self.row.luns;
            if plain {
                let line = acl.line;
                let names = acl.names.into_iter().map(|name| Initiator { line, name });
                admission.names = Some(names.collect());
                draft.admit(&mut self.row, &admission);
            } else {
                let group = self.group(draft, acl.names, &admission);
                self.row.view.insert(group.clone(), view);
                self.row.allow.push(group);
            }
            // They are named once.
            admission.users.truncate(1);
        }
    }

    fn group(&self, draft: &mut Draft, initiators: Vec<String>, admission: &Admission) -> String {
        let wish = initiators
            .first()
            .map_or_else(String::new, |name| short_name(name));
        let row = match admission.users.first() {
            Some(user) => draft.chap_group(initiators, user, admission.mutual.as_ref()),
            None => GroupRow {
                initiators,
                ..GroupRow::default()
            },
        };
        draft.group(&wish, row)
    }
}
