//! LIO: `saveconfig.json`, both ways.
//!
//! The file is what rtslib-fb dumps from configfs; saveconfig.json(5) describes its layout, and
//! `drivers/target` of the Linux kernel what its attributes do.
//!
//! | there | here |
//! |---|---|
//! | `storage_objects` of `fileio`, `block`, `ramdisk`, `pscsi`, `user` with `rbd` | volumes `file:`, `block:`, `ram:` or `null:`, `scsi:`, `rbd:` |
//! | `wwn` | `serial`, and `naa` as the kernel makes it: 6, 001405, then the first 25 hexadecimal digits of the serial number |
//! | `emulate_model_alias` | `product`: the object's name or the plugin's; `vendor` is LIO-ORG |
//! | `write_back` false, `aio` | `?sync`, `?direct` |
//! | `targets` of `iscsi`, `tcm_fc` | targets by IQN, by WWPN |
//! | TPGs with the same LUNs and ACLs | portal groups of one target, by their tags |
//! | `portals`, `iser` | `portals`, `iser` |
//! | `luns`; `mapped_luns` of an ACL | `luns`; `view` of a group where the two differ |
//! | `node_acls` | `allow`: the initiator, or a group if it has a `tag`, CHAP or a view |
//! | `chap_userid` and its like of an ACL | the group's `chap`, `mutual` |
//! | the same of a TPG, `generate_node_acls=1` | a group of `"*"`, or `"*"` without CHAP |
//! | `demo_mode_write_protect=1` | LUNs of access `ro` |
//! | `parameters` that are not LIO's defaults | `alias`, `login` |
//!
//! What [`known`] lists as done anyway is not named; all other attributes are left out, each with
//! its path. PRODUCT REVISION LEVEL ("4.0") is not kept: no row has it, and no host identifies a
//! disk by it.

mod acl;
mod export;
mod fields;
mod known;
mod portal_group;
mod storage;
mod target;

use super::draft::Draft;
use super::json::{self, Json};
use super::{ImportProblem, Imported};
pub use export::{Exported, export_lio};
use fields::Fields;

pub(super) fn import(text: &str) -> Result<Imported, ImportProblem> {
    let root = json::parse(text)?;
    let mut fields = Fields::of(&root, "").ok_or_else(|| no_saveconfig(&root))?;
    let mut draft = Draft::default();
    let objects = fields.take("storage_objects");
    let targets = fields.take("targets");
    if objects.is_none() && targets.is_none() {
        return Err(no_saveconfig(&root));
    }
    let units = storage::read(&mut draft, items(objects));
    for (number, one) in items(targets).iter().enumerate() {
        target::read(&mut draft, &units, one, &format!("targets[{number}]"));
    }
    for (number, one) in items(fields.take("fabric_modules")).iter().enumerate() {
        fabric_module(&mut draft, one, &format!("fabric_modules[{number}]"));
    }
    fields.leave_rest(&mut draft, "not known of saveconfig.json");
    Ok(draft.finish())
}

fn no_saveconfig(root: &Json) -> ImportProblem {
    let what = "the object has neither storage_objects nor targets";
    let way_out = "give a file that targetcli saveconfig has written";
    ImportProblem::new(root.line, what, way_out)
}

fn items(list: Option<&Json>) -> &[Json] {
    list.and_then(Json::items).unwrap_or_default()
}

/// What holds for a whole fabric: only CHAP of discovery sessions.
fn fabric_module(draft: &mut Draft, one: &Json, path: &str) {
    match Fields::of(one, path) {
        Some(mut fields) => {
            let _name = fields.take("name");
            let why = "SendTargets asks for no CHAP here: it shows an initiator only what it may \
                       log in to";
            fields.leave_rest(draft, why);
        }
        None => draft.leave(one.line, path, "this is not an object"),
    }
}

/// How the Linux kernel makes the NAA designator of a storage object out of its serial number
/// (`spc_gen_naa_6h_vendor_specific` in `target_core_spc.c`): IEEE Registered Extended, the company
/// identifier of OpenFabrics, then the hexadecimal digits of the serial number as far as there is
/// room, and zeros for what is missing.
fn naa(serial: &str) -> String {
    let digits = serial.chars().filter(char::is_ascii_hexdigit);
    let digits: String = digits.take(VENDOR_DIGITS).collect();
    format!("{COMPANY}{:0<VENDOR_DIGITS$}", digits.to_ascii_lowercase())
}

/// NAA 6h and the company identifier 00:14:05.
const COMPANY: &str = "6001405";

/// VENDOR SPECIFIC IDENTIFIER and its EXTENSION: 36 and 64 bits.
const VENDOR_DIGITS: usize = 25;

/// T10 VENDOR IDENTIFICATION of every storage object.
const VENDOR: &str = "LIO-ORG";

/// The name of a storage object as PRODUCT IDENTIFICATION.
fn product(name: &str) -> String {
    name.chars().take(16).collect()
}

#[cfg(test)]
mod tests;
