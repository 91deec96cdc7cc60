//! Conformance, interoperation, and tests of the source itself: what they share.
#![forbid(unsafe_code)]

pub mod cdb;
pub mod client;
pub mod conformance;
pub mod cunit;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod initiator;
pub mod iser_end;
pub mod logins;
pub mod one_core;
pub mod process;
pub mod server;
pub mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iscsi::target::{IserPortals, NodeAccess, TargetConfig, TargetLimits, TargetNode};

/// The top folder of the repository.
#[must_use]
pub fn top() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// A folder for what tests write, below the build output; it is made anew.
///
/// # Errors
/// When it cannot be made.
pub fn scratch(name: &str) -> std::io::Result<PathBuf> {
    let dir = top().join("target/tests").join(name);
    match std::fs::remove_dir_all(&dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// One iSCSI target of this name, for those whom `access` lets in.
#[must_use]
pub fn target_config(name: &str, access: NodeAccess, limits: TargetLimits) -> TargetConfig {
    let node = TargetNode::new(name.to_owned(), access);
    TargetConfig {
        nodes: vec![Arc::new(node)],
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits,
    }
}
