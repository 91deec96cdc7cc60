//! Few crates, one direction: who may name whom. And what goes into the binary may be given on
//! under MIT or Apache-2.0.

use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

/// Each crate with the crates of this workspace that it may depend on. `tests` stands outside and
/// may look at all; `xtask` starts servers as the tests do.
const ARROWS: &[(&str, &[&str])] = &[
    ("scsi", &[]),
    // Pretend libraries for tests of `io` and of its users; in no program.
    ("pretend-verbs", &[]),
    ("io", &["pretend-verbs"]),
    ("rdma", &["scsi"]),
    ("iscsi", &["scsi", "rdma"]),
    ("fc", &["scsi"]),
    ("fcoe-utils", &["fc", "io"]),
    ("block", &["scsi", "io"]),
    ("address", &["scsi", "iscsi", "fc", "io", "block"]),
    (
        "runtime",
        &[
            "scsi",
            "rdma",
            "iscsi",
            "fc",
            "io",
            "block",
            "pretend-verbs",
        ],
    ),
    (
        "client",
        &[
            "scsi",
            "rdma",
            "iscsi",
            "fc",
            "io",
            "block",
            "address",
            "runtime",
            "pretend-verbs",
        ],
    ),
    (
        "engine",
        &[
            "scsi",
            "rdma",
            "iscsi",
            "fc",
            "io",
            "block",
            "address",
            "runtime",
            "client",
            "pretend-verbs",
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
        "control",
        &[
            "scsi", "iscsi", "fc", "io", "block", "address", "runtime", "client", "engine",
        ],
    ),
    (
        "lunar",
        &[
            "fcoe-utils",
            "address",
            "runtime",
            "client",
            "engine",
            "bench",
            "control",
        ],
    ),
    (
        "tests",
        &[
            "scsi",
            "rdma",
            "iscsi",
            "fc",
            "io",
            "block",
            "address",
            "runtime",
            "client",
            "engine",
            "sim",
            "control",
            "pretend-verbs",
        ],
    ),
    ("xtask", &["io", "address", "bench", "control", "tests"]),
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
    for package in metadata().workspace_packages() {
        let row = |name: &str| ARROWS.iter().find(|(known, _)| *known == name);
        let arrows = row(&package.name);
        let (name, allowed) = arrows.unwrap_or_else(|| panic!("{} has no row", package.name));
        let dependencies = package.dependencies.iter().map(|one| one.name.as_str());
        for inner in dependencies.filter(|name| row(name).is_some()) {
            assert!(allowed.contains(&inner), "{name} must not name {inner}");
        }
    }
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() {
    for package in metadata().workspace_packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        let has_them = manifest.contains("[lints]\nworkspace = true");
        assert!(has_them, "{}", package.name);
    }
}

/// Licences that ask for no more than their notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The host's own triple: packages for other systems are not built, and need not be there.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap().to_owned()
}

#[test]
fn every_dependency_has_a_licence_that_we_may_use() {
    let mut command = MetadataCommand::new();
    command.current_dir(tests::top());
    let options = ["--locked", "--filter-platform", &host()];
    command.other_options(options.map(str::to_owned));
    for package in command.exec().unwrap().packages {
        let licence = package.license.unwrap_or_default();
        assert!(allows(&licence), "{} is under {licence:?}", package.name);
    }
}

/// Whether an SPDX expression can be met with allowed licences. AND binds more closely than OR; a
/// slash is an old way to write OR, and SPDX 3 has the operators in small letters too.
fn allows(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ")
        .replace(" or ", " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at) && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut good = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        good |= both(words, at);
    }
    good
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut good = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        good &= one(words, at);
    }
    good
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let good = either(words, at);
        *at += 1;
        return good;
    }
    if words.get(*at) != Some(&"WITH") {
        return ALLOWED.contains(word);
    }
    let exception = words.get(*at + 1).copied().unwrap_or_default();
    *at += 2;
    ALLOWED.contains(&format!("{word} WITH {exception}").as_str())
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let good = [
        "MIT",
        "MIT OR GPL-3.0",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        "GPL-2.0 AND MIT OR ISC",
        "GPL-2.0 or MIT",
    ];
    let bad = [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT AND (GPL-2.0 OR LGPL-2.1)",
        "MIT MIT",
    ];
    let rows = good.map(|one| (one, true)).into_iter();
    for (licence, is_allowed) in rows.chain(bad.map(|one| (one, false))) {
        assert_eq!(allows(licence), is_allowed, "{licence}");
    }
}
