//! `ACL=iname=NAME,…;sip=…;dip=…;lun=…` of chiscsi.

use crate::import::draft::{Draft, lun, lun_row};
use crate::import::words::Line;
use crate::tree::{Access, LunNumber, LunRows};

/// Initiators, and the LUNs that they see.
pub(super) struct Acl {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) names: Vec<String>,
    /// The LUNs and what may be done with them; `None` for a LUN is all of them.
    luns: Vec<(Option<LunNumber>, Access)>,
}

/// Reads an ACL; one that depends on addresses admits no initiator.
pub(super) fn read(draft: &mut Draft, line: &Line, value: &str) -> Option<Acl> {
    let mut acl = Acl {
        line: line.number,
        text: line.text.clone(),
        names: Vec::new(),
        luns: Vec::new(),
    };
    let mut why = None;
    for part in value
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key.trim() {
            "iname" => {
                let names = value
                    .split(',')
                    .map(|name| address::normalise_iscsi_name(name.trim()));
                match names.collect::<Result<Vec<_>, _>>() {
                    Ok(names) => acl.names.extend(names),
                    Err(_) => why = why.or(Some("this is not the name of an initiator")),
                }
            }
            "sip" | "dip" => {
                why = Some("initiators are known by name here, not by IP address: not admitted");
            }
            "lun" => match luns(value) {
                Some(luns) => acl.luns.extend(luns),
                None => why = why.or(Some("LUNs are written as 0,1:RW, or ALL:R")),
            },
            _ => why = why.or(Some("an ACL has iname, sip, dip and lun")),
        }
    }
    if acl.names.is_empty() {
        why = why.or(Some("an ACL needs initiator names (iname): not admitted"));
    }
    match why {
        Some(why) => {
            draft.leave(line.number, &*line.text, why);
            None
        }
        None => Some(acl),
    }
}

/// `ALL:R`, `0,1:RW`, `0:R,1:RW`.
fn luns(text: &str) -> Option<Vec<(Option<LunNumber>, Access)>> {
    let mut all = Vec::new();
    let mut open = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (number, access) = match part.split_once(':') {
            Some((number, access)) => (number, Some(access)),
            None => (part, None),
        };
        open.push(if number.eq_ignore_ascii_case("all") {
            None
        } else {
            Some(number.parse().ok().and_then(lun)?)
        });
        let access = match access.map(str::to_ascii_uppercase).as_deref() {
            Some("R" | "RO") => Access::ReadOnly,
            Some("RW" | "WR") => Access::ReadWrite,
            Some(_) => return None,
            None => continue,
        };
        all.extend(open.drain(..).map(|number| (number, access)));
    }
    all.extend(open.into_iter().map(|number| (number, Access::ReadWrite)));
    Some(all)
}

impl Acl {
    /// What these initiators see of a target's LUNs: all, if the ACL says nothing of LUNs.
    pub(super) fn view(&self, own: &LunRows) -> LunRows {
        if self.luns.is_empty() {
            return own.clone();
        }
        let mut view = LunRows::new();
        for (number, access) in &self.luns {
            let meant = own
                .iter()
                .filter(|(own, _)| number.is_none_or(|number| number == **own));
            for (number, row) in meant {
                let access = match row.access() {
                    Access::ReadOnly => Access::ReadOnly,
                    Access::ReadWrite => *access,
                };
                view.insert(*number, lun_row(row.volume().to_owned(), access));
            }
        }
        view
    }
}
