//! ietd, the iSCSI Enterprise Target: `ietd.conf`, and `initiators.allow` beside it.
//!
//! ietd.conf(5) describes the first, comments in the distributed file the second. `#` begins a
//! comment at the beginning of a line only; a backslash joins lines.
//!
//! | there | here |
//! |---|---|
//! | `Target IQN` | a target, on all addresses |
//! | `Lun N Path=…,Type=fileio` or `blockio` | a volume `file:` or `block:` |
//! | `Lun N Blocks=…,BlockSize=…,Type=nullio`, `Sectors=…` | `null:` |
//! | `IOMode=wb`; without it | the page cache; `?sync`, as ietd writes through |
//! | `IOMode=ro`, `ScsiSN`, `BlockSize` | access `ro`, `serial`, `block-size` |
//! | `Alias`, `IncomingUser`, `OutgoingUser` of a target | `alias`, `chap`, `mutual` of a group; one user |
//! | keys of the login, `MaxSessions` | [`super::login`] |
//! | `initiators.allow`: `ALL`, initiator names | `allow` |
//! | the same: IP addresses; no such file | the target is closed |

mod rules;
mod unit;

use super::draft::{Admission, Draft, User, everywhere};
use super::login::LoginKey;
use super::words::{Comments, Line, key_and_rest, lines, shown, user_and_secret};
use super::{ImportProblem, Imported};
use crate::tree::{LoginRow, TargetRow};
use rules::Rules;

pub(super) fn import(text: &str, allow: Option<&str>) -> Result<Imported, ImportProblem> {
    let mut draft = Draft::default();
    let mut rules = allow.map(Rules::parse).transpose()?;
    if rules.is_none() {
        draft.note(
            "who may log in stands in initiators.allow, which was not given: every target is \
             closed until allow, or the group of its user, says who may log in",
        );
    }
    let mut open: Option<Target> = None;
    for line in lines(text, Comments::WholeLines) {
        let (key, rest) = key_and_rest(&line.text);
        if key.eq_ignore_ascii_case("target") {
            if let Some(target) = open.take() {
                target.finish(&mut draft, rules.as_mut());
            }
            open = Some(Target::new(&line, rest)?);
        } else {
            match &mut open {
                Some(target) => target.read(&mut draft, &line),
                None => global(&mut draft, &line),
            }
        }
    }
    if let Some(target) = open {
        target.finish(&mut draft, rules.as_mut());
    }
    if let Some(rules) = rules {
        rules.leave_rest(&mut draft);
    }
    draft.note(super::NEW_DISKS);
    Ok(draft.finish())
}

/// What stands before the first target: users of discovery, iSNS.
fn global(draft: &mut Draft, line: &Line) {
    let (key, _) = key_and_rest(&line.text);
    let why = match &*key.to_ascii_lowercase() {
        "incominguser" | "outgoinguser" => {
            "SendTargets asks for no CHAP here: it shows an initiator only what it may log in to"
        }
        _ => "Lunar has no such setting",
    };
    draft.leave(line.number, shown(&line.text), why);
}

/// A target's lines, read one by one.
struct Target {
    line: Line,
    name: String,
    row: TargetRow,
    login: LoginRow,
    admission: Admission,
}

impl Target {
    fn new(line: &Line, name: &str) -> Result<Self, ImportProblem> {
        let name = address::normalise_iscsi_name(name);
        let name = name.map_err(|error| {
            let what = format!("this is not the name of an iSCSI target: {error}");
            ImportProblem::new(
                line.number,
                what,
                "write Target iqn.2026-11.org.example:disks",
            )
        })?;
        Ok(Self {
            line: line.clone(),
            name,
            row: TargetRow {
                portals: everywhere(),
                ..TargetRow::default()
            },
            login: LoginRow::default(),
            admission: Admission::default(),
        })
    }

    fn read(&mut self, draft: &mut Draft, line: &Line) {
        let (key, rest) = key_and_rest(&line.text);
        match &*key.to_ascii_lowercase() {
            "lun" => unit::read(draft, &mut self.row.luns, line, rest),
            "alias" => self.row.alias = Some(rest.to_owned()).filter(|alias| !alias.is_empty()),
            "incominguser" | "outgoinguser" => self.user(draft, line, key, rest),
            _ => {
                let known = LoginKey {
                    line: line.number,
                    text: &line.text,
                    name: key,
                    value: rest,
                };
                if !known.read(draft, &mut self.login) {
                    draft.leave(line.number, shown(&line.text), "Lunar has no such setting");
                }
            }
        }
    }

    fn user(&mut self, draft: &mut Draft, line: &Line, key: &str, rest: &str) {
        let Some((name, secret)) = user_and_secret(rest) else {
            // A target whose user cannot be read must not be open to all.
            self.admission.is_closed = true;
            draft.leave(line.number, shown(&line.text), super::NO_USER);
            return;
        };
        let user = User {
            line: line.number,
            name,
            secret,
        };
        if key.eq_ignore_ascii_case("incominguser") {
            self.admission.users.push(user);
        } else if self.admission.mutual.is_none() {
            self.admission.mutual = Some(user);
        } else {
            draft.leave(line.number, shown(&line.text), "a target has one such user");
        }
    }

    fn finish(mut self, draft: &mut Draft, rules: Option<&mut Rules>) {
        self.row.login = (self.login != LoginRow::default()).then_some(self.login);
        self.admission.names = match rules {
            Some(rules) => rules.of(draft, &self.name),
            None => Some(Vec::new()),
        };
        draft.admit(&mut self.row, &self.admission);
        if !draft.target(&self.name, self.row) {
            let text = self.line.text;
            draft.leave(
                self.line.number,
                text,
                "a target of this name is there already",
            );
        }
    }
}
