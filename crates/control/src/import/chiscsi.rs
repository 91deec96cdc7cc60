//! chiscsi of Chelsio: `chiscsi.conf`, which `iscsictl` reads.
//!
//! The chapter on the iSCSI PDU offload target of Chelsio's user's guide describes it: sections
//! `global:` and `target:`, with `key=value` lines in them.
//!
//! | there | here |
//! |---|---|
//! | `TargetName`, `TargetAlias` | a target, its `alias` |
//! | `TargetDevice=NAME,MEM,NULLRW,size=…`; without `NULLRW` | `null:`; `ram:` |
//! | `TargetDevice=PATH`, with `FILE`, `BLK` | `file:`, `block:`; LUNs from 0 |
//! | `RO`, `SYNC`, `SN=` | access `ro`, `?sync`, `serial` |
//! | `PortalGroup=6@192.0.2.1:3260,…` | `portals`, by tag |
//! | `AuthMethod=CHAP` with `Auth_CHAP_Initiator`, `Auth_CHAP_Target` | `chap`, `mutual` of a group; one user |
//! | `AuthMethod=None,CHAP` | CHAP is not asked for |
//! | `ACL=iname=…;lun=…` | `allow`, or a group with a `view` |
//! | `ACL` with `sip` or `dip` | not admitted: initiators are known by name here |
//! | no `ACL`, or `ACL_Enable=No` | `"*"` |
//! | keys of the login | [`super::login`] |

mod acl;
mod device;
mod target;

use super::draft::Draft;
use super::words::{Comments, Line, lines, shown};
use super::{ImportProblem, Imported};
use target::Target;

pub(super) fn import(text: &str) -> Result<Imported, ImportProblem> {
    let mut draft = Draft::default();
    let mut section = Section::None;
    for line in lines(text, Comments::Anywhere) {
        if let Some(name) = line
            .text
            .strip_suffix(':')
            .filter(|name| !name.contains('='))
        {
            section.finish(&mut draft)?;
            section = Section::begin(name, &line)?;
            continue;
        }
        let Some((key, value)) = line.text.split_once('=') else {
            let what = "this is neither a section nor a key with a value";
            let way_out = "write global:, target: or KEY=VALUE";
            return Err(ImportProblem::new(line.number, what, way_out));
        };
        let (key, value) = (key.trim(), value.trim());
        match &mut section {
            Section::Target(target) => target.read(&mut draft, &line, key, value),
            Section::Global | Section::Initiator => {
                draft.leave(line.number, shown(&line.text), why(key));
            }
            Section::None => {
                let what = "a key stands before the first section";
                return Err(ImportProblem::new(
                    line.number,
                    what,
                    "begin with global: or target:",
                ));
            }
        }
    }
    section.finish(&mut draft)?;
    draft.note(super::NEW_DISKS);
    Ok(draft.finish())
}

/// Why a key has no counterpart.
fn why(key: &str) -> &'static str {
    match &*key.to_ascii_lowercase() {
        "iscsi_offload_mode" => "no network card takes iSCSI over here",
        "iscsi_auth_order" => "CHAP and the list of initiators are both asked, in any order",
        "targetsessionmaxcmd" => {
            "how many commands a host may send follows from --connection-memory"
        }
        "auth_chap_challengelength" => "a challenge has the length that its hash asks for",
        "shadowmode" => "a portal sends no initiator to another one",
        "registerisns" => "targets are found by SendTargets, not by iSNS",
        key if key.starts_with("disc_") => {
            "SendTargets asks for no CHAP here: it shows an initiator only what it may log in to"
        }
        _ => "Lunar has no such setting",
    }
}

/// What the lines belong to.
enum Section {
    None,
    Global,
    /// An initiator of this machine, which has no counterpart.
    Initiator,
    Target(Box<Target>),
}

impl Section {
    fn begin(name: &str, line: &Line) -> Result<Self, ImportProblem> {
        match name.trim().to_ascii_lowercase().as_str() {
            "global" => Ok(Self::Global),
            "initiator" => Ok(Self::Initiator),
            "target" => Ok(Self::Target(Box::new(Target::new(line.number)))),
            _ => {
                let what = format!("there is no section {:?}", name.trim());
                let way_out = "sections are global:, target: and initiator:";
                Err(ImportProblem::new(line.number, what, way_out))
            }
        }
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), ImportProblem> {
        match std::mem::replace(self, Self::None) {
            Self::Target(target) => target.finish(draft),
            _ => Ok(()),
        }
    }
}
