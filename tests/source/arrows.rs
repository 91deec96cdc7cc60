//! Few crates, one direction: who may name whom.

use std::collections::BTreeSet;

use cargo_metadata::{Metadata, MetadataCommand};

/// Each crate with the crates of this workspace that it may depend on. `tests` stands outside and
/// may look at all; `xtask` measures with the initiator of the tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("scsi", &[]),
    ("io", &[]),
    ("iscsi", &["scsi"]),
    ("fc", &["scsi"]),
    ("block", &["scsi", "io"]),
    ("address", &["scsi", "iscsi", "fc", "io", "block"]),
    ("runtime", &["scsi", "iscsi", "fc", "io", "block"]),
    (
        "client",
        &["scsi", "iscsi", "fc", "io", "block", "address", "runtime"],
    ),
    (
        "engine",
        &[
            "scsi", "iscsi", "fc", "io", "block", "address", "runtime", "client",
        ],
    ),
    (
        "sim",
        &[
            "scsi", "iscsi", "io", "block", "runtime", "client", "engine",
        ],
    ),
    ("bench", &["scsi", "io", "block", "address", "client"]),
    (
        "lunar",
        &["address", "runtime", "client", "engine", "bench"],
    ),
    (
        "tests",
        &[
            "scsi", "iscsi", "fc", "io", "block", "address", "runtime", "client", "engine", "sim",
        ],
    ),
    (
        "xtask",
        &["scsi", "io", "address", "client", "bench", "tests"],
    ),
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .current_dir(tests::top())
        .no_deps()
        .exec()
        .unwrap()
}

#[test]
fn crates_depend_only_downwards() {
    let metadata = metadata();
    let names: BTreeSet<_> = ARROWS.iter().map(|(name, _)| *name).collect();
    for package in metadata.workspace_packages() {
        let arrows = ARROWS
            .iter()
            .find(|(name, _)| *name == package.name.as_str());
        let (name, allowed) = arrows.unwrap_or_else(|| panic!("{} has no row", package.name));
        let inner = package
            .dependencies
            .iter()
            .map(|dependency| dependency.name.as_str());
        for dependency in inner.filter(|dependency| names.contains(dependency)) {
            assert!(
                allowed.contains(&dependency),
                "{name} must not name {dependency}"
            );
        }
    }
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() {
    for package in metadata().workspace_packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{}",
            package.name
        );
    }
}
