//! Target drivers of SCST, their targets and groups of initiators.

use fc::wire::names::Wwn;

use super::device::Devices;
use crate::import::block::Node;
use crate::import::draft::{Draft, User, everywhere, lun, lun_row, portal};
use crate::import::login::LoginKey;
use crate::import::words::{flag, user_and_secret};
use crate::tree::{Access, GroupRow, LoginRow, LunRows, PortalRow, Portals, TargetRow};

/// Adds the targets of a driver.
pub(super) fn driver(draft: &mut Draft, devices: &Devices, node: &Node) {
    let is_fc = match node.value() {
        "iscsi" => false,
        "fcst" => true,
        other => {
            let why = match other {
                "copy_manager" => "EXTENDED COPY needs no target of its own here",
                "scst_local" => "a LUN for this machine itself is made by lunar attach",
                _ => "targets are reached over iSCSI and FCoE here",
            };
            return draft.leave(node.line, node.shown(), why);
        }
    };
    for one in &node.inner {
        match one.key() {
            "TARGET" => target(draft, devices, one, is_fc),
            "enabled" if flag(one.value()) == Some(true) => {}
            "IncomingUser" | "OutgoingUser" => {
                let why = "SendTargets asks for no CHAP here: it shows an initiator only what it \
                           may log in to";
                draft.leave(one.line, one.shown(), why);
            }
            _ => draft.leave(one.line, one.shown(), "Lunar has no such setting"),
        }
    }
}

fn name_of(text: &str, is_fc: bool) -> Option<String> {
    if is_fc {
        text.parse::<Wwn>().ok().map(|wwn| wwn.to_string())
    } else {
        address::normalise_iscsi_name(text).ok()
    }
}

fn target(draft: &mut Draft, devices: &Devices, node: &Node, is_fc: bool) {
    let Some(name) = name_of(node.value(), is_fc) else {
        draft.leave(
            node.line,
            node.shown(),
            "this is not the name of such a target",
        );
        return;
    };
    let enabled = node.inner.iter().find(|one| one.key() == "enabled");
    if enabled.and_then(|one| flag(one.value())) != Some(true) {
        let why = "a target that is not enabled is not carried over";
        draft.leave(node.line, node.shown(), why);
        return;
    }
    let mut reader = Reader {
        draft,
        devices,
        is_fc,
        row: TargetRow::default(),
        login: LoginRow::default(),
        portals: None,
        users: Vec::new(),
        mutual: None,
        is_closed: false,
    };
    for one in &node.inner {
        reader.read(one);
    }
    reader.admit(node);
    let row = reader.finish();
    if is_fc {
        let why = "scst.conf does not say which interface: add portals = [\"fcoe:IFACE\"]";
        draft.leave(node.line, node.shown(), why);
    }
    if !draft.target(&name, row) {
        draft.leave(
            node.line,
            node.shown(),
            "a target of this name is there already",
        );
    }
}

/// A target, read line by line.
struct Reader<'a> {
    draft: &'a mut Draft,
    devices: &'a Devices,
    is_fc: bool,
    row: TargetRow,
    login: LoginRow,
    /// The portals that are named; `None` is all addresses.
    portals: Option<Vec<PortalRow>>,
    users: Vec<User>,
    mutual: Option<User>,
    is_closed: bool,
}

impl Reader<'_> {
    fn read(&mut self, node: &Node) {
        match node.key() {
            "enabled" | "GROUP" => {}
            "LUN" => {
                let mut luns = std::mem::take(&mut self.row.luns);
                self.lun(&mut luns, node);
                self.row.luns = luns;
            }
            "IncomingUser" | "OutgoingUser" => self.user(node),
            "allowed_portal" => {
                let portals = self.portals.get_or_insert_default();
                match portal(node.value(), None) {
                    Some(portal) => portals.push(portal),
                    None => self.leave(node, "a portal is an IP address here, not a pattern"),
                }
            }
            key => {
                let (text, value) = (node.shown(), node.values());
                let key = LoginKey {
                    line: node.line,
                    text: &text,
                    name: key,
                    value: &value,
                };
                if !key.read(self.draft, &mut self.login) {
                    self.leave(node, "Lunar has no such setting");
                }
            }
        }
    }

    fn leave(&mut self, node: &Node, why: &str) {
        self.draft.leave(node.line, node.shown(), why);
    }

    /// `LUN 0 disk1`, and a block with `read_only`.
    fn lun(&mut self, luns: &mut LunRows, node: &Node) {
        let number = node.value().parse().ok().and_then(lun);
        let (Some(number), Some(volume)) = (number, self.devices.get(node.word(2))) else {
            let why = "a LUN is a number from 0 to 16383 and a device that is carried over";
            return self.leave(node, why);
        };
        let mut access = Access::ReadWrite;
        for one in &node.inner {
            match (one.key(), flag(one.value())) {
                ("read_only", Some(true)) => access = Access::ReadOnly,
                ("read_only", Some(false)) => {}
                _ => self
                    .draft
                    .leave(one.line, one.shown(), "Lunar has no such setting"),
            }
        }
        if luns.contains_key(&number) {
            return self.leave(node, "this LUN is there already");
        }
        luns.insert(number, lun_row(volume.clone(), access));
    }

    /// `IncomingUser "joe secret"`, in one pair of quotes or none.
    fn user(&mut self, node: &Node) {
        let Some((name, secret)) = user_and_secret(&node.values()) else {
            // A target whose user cannot be read must not be open to all.
            self.is_closed = true;
            return self
                .draft
                .leave(node.line, node.shown(), crate::import::NO_USER);
        };
        let user = User {
            line: node.line,
            name,
            secret,
        };
        match (node.key(), &self.mutual) {
            ("IncomingUser", _) => self.users.push(user),
            (_, None) => self.mutual = Some(user),
            (_, Some(_)) => {
                self.draft
                    .leave(node.line, node.shown(), "a target has one such user");
            }
        }
    }

    /// Each group with what it sees; and, where the target itself has LUNs, every initiator.
    fn admit(&mut self, node: &Node) {
        let groups: Vec<_> = node
            .inner
            .iter()
            .filter(|one| one.key() == "GROUP")
            .collect();
        let further = self.users.split_off(self.users.len().min(1));
        for user in further {
            let why = "a group has one user of CHAP: make a group for each user's initiators";
            self.draft
                .leave(user.line, format!("{} ***", user.name), why);
        }
        if self.users.is_empty()
            && let Some(mutual) = self.mutual.take()
        {
            let why = "a target proves itself only to initiators that do, by a user of CHAP";
            self.draft
                .leave(mutual.line, format!("{} ***", mutual.name), why);
        }
        if self.is_closed {
            for group in groups {
                self.leave(
                    group,
                    "the target is closed until allow says who may log in",
                );
            }
            return;
        }
        for group in groups {
            self.group(group);
        }
        if self.row.luns.is_empty() {
            return;
        }
        let everybody = match self.chap_group(vec!["*".to_owned()]) {
            Some(row) => self.draft.group("everybody", row),
            None => "*".to_owned(),
        };
        self.row.allow.push(everybody);
    }

    fn group(&mut self, node: &Node) {
        let (mut initiators, mut luns) = (Vec::new(), LunRows::new());
        for one in &node.inner {
            match one.key() {
                "LUN" => self.lun(&mut luns, one),
                "INITIATOR" if one.value() == "*" => initiators.push("*".to_owned()),
                "INITIATOR" => match name_of(one.value(), self.is_fc) {
                    Some(name) => initiators.push(name),
                    None => {
                        self.leave(one, "an initiator is known by its name here, not a pattern");
                    }
                },
                _ => self.leave(one, "Lunar has no such setting"),
            }
        }
        let row = self.chap_group(initiators.clone()).unwrap_or(GroupRow {
            initiators,
            ..GroupRow::default()
        });
        let name = self.draft.group(node.value(), row);
        if self.row.view.contains_key(&name) {
            return self.leave(node, "this group is there already");
        }
        self.row.view.insert(name.clone(), luns);
        self.row.allow.push(name);
    }

    fn chap_group(&mut self, initiators: Vec<String>) -> Option<GroupRow> {
        let user = self.users.first().filter(|_| !self.is_fc)?;
        Some(
            self.draft
                .chap_group(initiators, user, self.mutual.as_ref()),
        )
    }

    fn finish(mut self) -> TargetRow {
        self.row.login = (self.login != LoginRow::default()).then_some(self.login);
        if !self.is_fc {
            self.row.portals = self.portals.map_or_else(everywhere, Portals::One);
        }
        self.row
    }
}
