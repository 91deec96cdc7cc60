//! SCST: `scst.conf` of scstadmin.
//!
//! scst.conf(5) describes the syntax, SCST's README the attributes.
//!
//! | there | here |
//! |---|---|
//! | `HANDLER vdisk_fileio`, `vdisk_blockio`, `vdisk_nullio` with `DEVICE` | volumes `file:`, `block:`, `null:` |
//! | `filename`, `size`, `size_mb`, `blocksize`, `read_only`, `removable` | address, `block-size`, `readonly`, `removable` |
//! | `write_through`, `o_direct` | `?sync`, `?direct` |
//! | `usn`, `t10_vend_id`, `prod_id`, `naa_id` | `serial`, `vendor`, `product`, `naa` |
//! | `TARGET_DRIVER iscsi`, `fcst` with an enabled `TARGET` | targets by IQN, by WWPN |
//! | `allowed_portal`; none | `portals`; all addresses |
//! | `LUN` of a target | `luns`, and `"*"` in `allow`: SCST admits every initiator that is not in a group |
//! | `GROUP` with `LUN`, `INITIATOR` | a group, and its `view` |
//! | `IncomingUser`, `OutgoingUser` of a target | `chap`, `mutual` of each of its groups; one user |
//! | keys of the login | [`super::login`] |

mod device;
mod target;

use super::block::{Blocks, Node};
use super::draft::Draft;
use super::words::{Comments, lines, words};
use super::{ImportProblem, Imported};

pub(super) fn import(text: &str) -> Result<Imported, ImportProblem> {
    let nodes = parse(text)?;
    let mut draft = Draft::default();
    let handlers = nodes.iter().filter(|node| node.key() == "HANDLER");
    let devices = device::read(&mut draft, handlers);
    for node in &nodes {
        match node.key() {
            "HANDLER" => {}
            "TARGET_DRIVER" => target::driver(&mut draft, &devices, node),
            "DEVICE_GROUP" => {
                let why = "target port groups of ALUA are not configured here";
                draft.leave(node.line, node.shown(), why);
            }
            _ => draft.leave(node.line, node.shown(), "Lunar has no such setting"),
        }
    }
    draft.note(super::NEW_DISKS);
    Ok(draft.finish())
}

/// A line opens a block, closes one, or is a statement.
fn parse(text: &str) -> Result<Vec<Node>, ImportProblem> {
    let mut blocks = Blocks::default();
    for line in lines(text, Comments::Anywhere) {
        let (statement, opens) = match line.text.strip_suffix('{') {
            Some(statement) => (statement.trim_end(), true),
            None => (&*line.text, false),
        };
        match (statement, opens) {
            ("}", false) => blocks.close(line.number)?,
            ("", true) => {
                let what = "a block begins without saying of what";
                let way_out = "write for example HANDLER vdisk_fileio {";
                return Err(ImportProblem::new(line.number, what, way_out));
            }
            (_, true) => blocks.open(Node::new(line.number, words(statement)))?,
            (_, false) => blocks.add(Node::new(line.number, words(statement))),
        }
    }
    blocks.finish()
}
