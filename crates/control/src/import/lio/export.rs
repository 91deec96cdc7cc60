//! A tree as `saveconfig.json`, for the way back to LIO.
//!
//! LIO has one identity for a disk that this program cannot choose: vendor LIO-ORG, a product that
//! is the object's name, an NAA designator that follows from the serial number. A volume that came
//! from LIO has just that; hosts see another disk in place of any other, which is said.

mod targets;
mod volumes;

use std::collections::BTreeSet;

use serde_json::json;
use zeroize::Zeroizing;

use crate::import::LeftOut;
use crate::secret::SecretSource;
use crate::tree::{DaemonRow, DiscoveryRow, Tree};

/// A tree in LIO's words.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// `saveconfig.json`, for `targetcli restoreconfig`. It holds the secrets.
    pub text: Zeroizing<String>,
    /// What LIO has no counterpart for, by the paths of the tree.
    pub left_out: Vec<LeftOut>,
}

/// Writes a tree as `saveconfig.json`. `secrets` reads one; where it does not, the user of CHAP is
/// written without, which LIO lets nobody log in by, and the secret is left out by name, with where
/// it belongs.
#[must_use]
pub fn export_lio(
    tree: &Tree,
    secrets: &dyn Fn(&SecretSource) -> Option<Zeroizing<String>>,
) -> Exported {
    let mut left = LeftOuts::default();
    let objects = volumes::objects(tree, &mut left);
    let targets = targets::targets(tree, &objects, secrets, &mut left);
    for (row, is_there) in [
        ("daemon", tree.daemon != DaemonRow::default()),
        ("api", tree.api != crate::tree::ApiRow::default()),
        ("discovery", tree.discovery != DiscoveryRow::default()),
    ] {
        if is_there {
            left.add(row, "LIO has no such settings");
        }
    }
    let root = json!({
        "fabric_modules": [],
        "storage_objects": objects.json,
        "targets": targets,
    });
    Exported {
        text: Zeroizing::new(format!("{root:#}\n")),
        left_out: left.all,
    }
}

/// What LIO has no counterpart for.
#[derive(Default)]
struct LeftOuts {
    all: Vec<LeftOut>,
    /// Paths of secrets among them.
    secrets: BTreeSet<String>,
}

impl LeftOuts {
    /// However many initiators and targets there are that need it.
    fn add_secret(&mut self, path: String, why: String) {
        if self.secrets.insert(path.clone()) {
            self.add(path, why);
        }
    }

    fn add(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.all.push(LeftOut {
            line: 0,
            text: path.into(),
            why: why.into(),
            is_default: false,
        });
    }
}
