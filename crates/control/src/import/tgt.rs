//! tgtd: `targets.conf` of tgt-admin.
//!
//! targets.conf(5) describes it; the syntax is that of Perl's Config::General: `key value` lines
//! and `<block>` tags as in Apache's files.
//!
//! | there | here |
//! |---|---|
//! | `<target IQN>`; `driver iser` | a target, on all addresses; `iser` there |
//! | `backing-store`, `direct-store` | a volume `block:`, `file:` or, with `bs-type rbd`, `rbd:`; LUNs from 1, those of `backing-store` first |
//! | `lun`, `readonly` | the LUN's number, access `ro` |
//! | `scsi_sn`, `vendor_id`, `product_id`, `block-size`, `removable` | `serial`, `vendor`, `product`, `block-size`, `removable` |
//! | `write-cache off`, `bs-type aio`, `bsoflags` | `?sync`, `?direct` |
//! | `initiator-name`; neither it nor `initiator-address` | `allow`; `"*"` |
//! | `initiator-address` | closes the target: initiators are known by name here |
//! | `incominguser`, `outgoinguser` | `chap`, `mutual` of a group; one user |
//! | keys of the login | [`super::login`] |
//!
//! LUN 0 of tgtd is a controller without a medium, which has no counterpart.

mod syntax;
mod unit;

use super::block::Node;
use super::draft::{Admission, Draft, Initiator, User, everywhere, lun, lun_row};
use super::login::LoginKey;
use super::words::user_and_secret;
use super::{ImportProblem, Imported};
use crate::tree::{LoginRow, LunRows, PortalIser, PortalRow, Portals, TargetRow};
use unit::Unit;

pub(super) fn import(text: &str) -> Result<Imported, ImportProblem> {
    let mut draft = Draft::default();
    for node in syntax::parse(text)? {
        match node.key() {
            "target" if node.has_block => target(&mut draft, &node),
            "default-driver" if node.value() == "iscsi" => {}
            "include" => {
                let why = "an import reads one file: import that one too";
                draft.leave(node.line, node.shown(), why);
            }
            "incomingdiscoveryuser" | "outgoingdiscoveryuser" => {
                let why = "SendTargets asks for no CHAP here: it shows an initiator only what it \
                           may log in to";
                draft.leave(node.line, node.shown(), why);
            }
            _ => draft.leave(node.line, node.shown(), "Lunar has no such setting"),
        }
    }
    draft.note("LUN 0 of tgtd is a controller without a medium, so LUNs begin with 1");
    draft.note(super::NEW_DISKS);
    Ok(draft.finish())
}

fn target(draft: &mut Draft, node: &Node) {
    let Ok(name) = address::normalise_iscsi_name(node.value()) else {
        draft.leave(
            node.line,
            node.shown(),
            "this is not the name of an iSCSI target",
        );
        return;
    };
    let mut row = TargetRow {
        portals: everywhere(),
        ..TargetRow::default()
    };
    let mut login = LoginRow::default();
    let mut reader = Reader::default();
    for inner in &node.inner {
        reader.read(draft, inner, &mut login);
    }
    if reader.iser {
        row.portals = taking_iser(&row.portals);
    }
    row.login = (login != LoginRow::default()).then_some(login);
    row.luns = reader.luns(draft);
    draft.admit(&mut row, &reader.admission);
    if !draft.target(&name, row) {
        draft.leave(
            node.line,
            node.shown(),
            "a target of this name is there already",
        );
    }
}

fn taking_iser(portals: &Portals) -> Portals {
    let rows = portals.iter().map(|(_, row)| PortalRow {
        iser: PortalIser::Soft,
        ..row.clone()
    });
    Portals::One(rows.collect())
}

/// What a `<target>` has, read line by line.
#[derive(Default)]
struct Reader<'a> {
    backing: Vec<&'a Node>,
    direct: Vec<&'a Node>,
    /// Settings of all LUNs.
    common: Vec<&'a Node>,
    /// It is reached over iSER.
    iser: bool,
    admission: Admission,
}

impl<'a> Reader<'a> {
    fn read(&mut self, draft: &mut Draft, node: &'a Node, login: &mut LoginRow) {
        match node.key() {
            "backing-store" => self.backing.push(node),
            "direct-store" => self.direct.push(node),
            "driver" if node.value() == "iscsi" => {}
            "driver" if node.value() == "iser" => self.iser = true,
            "driver" => {
                draft.leave(node.line, node.shown(), "a target is reached over TCP here");
            }
            "initiator-name" => self.name(draft, node),
            "initiator-address" if node.value().eq_ignore_ascii_case("all") => {}
            "initiator-address" => {
                self.admission.is_closed = true;
                draft.leave(node.line, node.shown(), super::BY_ADDRESS);
            }
            "incominguser" => match user(node) {
                Some(user) => self.admission.users.push(user),
                None => self.no_user(draft, node),
            },
            "outgoinguser" => match user(node) {
                Some(user) if self.admission.mutual.is_none() => {
                    self.admission.mutual = Some(user);
                }
                Some(_) => draft.leave(node.line, node.shown(), "a target has one such user"),
                None => self.no_user(draft, node),
            },
            key if unit::is_setting(key) && self.common.iter().any(|one| one.key() == key) => {
                draft.leave(node.line, node.shown(), "this is set above already");
            }
            key if unit::is_setting(key) => self.common.push(node),
            key => {
                let values = node.values();
                let text = node.shown();
                let key = LoginKey {
                    line: node.line,
                    text: &text,
                    name: key,
                    value: &values,
                };
                if !key.read(draft, login) {
                    draft.leave(node.line, &*text, "Lunar has no such setting");
                }
            }
        }
    }

    fn name(&mut self, draft: &mut Draft, node: &Node) {
        let names = self.admission.names.get_or_insert_default();
        match address::normalise_iscsi_name(node.value()) {
            Ok(name) => names.push(Initiator {
                line: node.line,
                name,
            }),
            Err(_) => draft.leave(
                node.line,
                node.shown(),
                "this is not the name of an initiator",
            ),
        }
    }

    /// A target whose user cannot be read must not be open to all.
    fn no_user(&mut self, draft: &mut Draft, node: &Node) {
        self.admission.is_closed = true;
        draft.leave(node.line, node.shown(), super::NO_USER);
    }

    /// LUNs that have a number keep it; the others get the first ones that are free, as tgt-admin
    /// gives them out.
    fn luns(&self, draft: &mut Draft) -> LunRows {
        let nodes = self.backing.iter().chain(&self.direct);
        let units: Vec<_> = nodes
            .filter_map(|node| Unit::read(draft, node, &self.common))
            .collect();
        let mut rows = LunRows::new();
        let (numbered, others): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|unit| unit.number.is_some());
        let mut next = 1;
        for unit in numbered.into_iter().chain(others) {
            let number = match unit.number {
                Some(number) => lun(number),
                None => (next..)
                    .map_while(lun)
                    .find(|number| !rows.contains_key(number)),
            };
            if unit.number.is_none() {
                next = number.map_or(next, |number| u64::from(number.0) + 1);
            }
            match number {
                Some(number) if !rows.contains_key(&number) => {
                    let volume = draft.volume(unit.line, &unit.name, unit.row);
                    rows.insert(number, lun_row(volume, unit.access));
                }
                Some(_) => draft.leave(unit.line, unit.text, "this LUN is there already"),
                None => draft.leave(unit.line, unit.text, super::LUN_NUMBER),
            }
        }
        rows
    }
}

fn user(node: &Node) -> Option<User> {
    let (name, secret) = user_and_secret(&node.values())?;
    Some(User {
        line: node.line,
        name,
        secret,
    })
}
