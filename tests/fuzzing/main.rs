//! What the fuzz targets found interesting, run again, with mutations of it: a fixed number, the
//! same each time.
#![forbid(unsafe_code)]
#![cfg(test)]

mod mutate;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mutate::Chance;
use tests::fuzzing::{TARGETS, Target};

/// Mutations of a corpus, in all. Few enough that all targets are done within a minute.
const MUTATIONS: usize = 8_000;

/// The longest input; libFuzzer's own default.
const LONGEST: usize = 4096;

fn corpus(target: Target) -> Vec<(String, Vec<u8>)> {
    let dir = tests::top().join("fuzz/corpus").join(target.name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|cause| panic!("{}: {cause}", dir.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Runs one input, and tells it where it fails.
fn run(target: Target, name: &str, bytes: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.body)(bytes)));
    if outcome.is_err() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{} fails over {name}: {hex}", target.name);
    }
}

fn replay(name: &str) {
    replay_with(name, MUTATIONS);
}

fn replay_with(name: &str, mutations: usize) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = *target.unwrap();
    let files = corpus(target);
    assert!(files.len() > 3, "a corpus of {}", files.len());
    for (name, bytes) in &files {
        assert!(bytes.len() <= LONGEST, "{name} has {} bytes", bytes.len());
        run(target, name, bytes);
    }
    let mut chance = Chance::new(name);
    for number in 0..mutations {
        let bytes = chance.mutated(&files);
        run(target, &format!("mutation {number}"), &bytes);
    }
}

#[test]
fn address() {
    replay("address");
}

#[test]
fn cdb() {
    replay("cdb");
}

#[test]
fn ct() {
    replay("ct");
}

#[test]
fn document() {
    replay("document");
}

#[test]
fn els() {
    replay("els");
}

#[test]
fn enode() {
    replay("enode");
}

#[test]
fn fcf() {
    replay("fcf");
}

#[test]
fn fcoe() {
    replay("fcoe");
}

#[test]
fn fip() {
    replay("fip");
}

#[test]
fn framer() {
    replay("framer");
}

#[test]
fn import() {
    replay("import");
}

#[test]
fn initiator() {
    replay("initiator");
}

#[test]
fn iser_initiator() {
    replay("iser_initiator");
}

#[test]
fn iser_target() {
    replay("iser_target");
}

#[test]
fn lldp() {
    replay("lldp");
}

#[test]
fn login() {
    replay("login");
}

#[test]
fn mpa() {
    replay("mpa");
}

#[test]
fn port() {
    replay("port");
}

#[test]
fn reserve() {
    replay("reserve");
}

#[test]
fn session() {
    replay("session");
}

#[test]
fn shell() {
    // Each is a whole script, and what it says of a tree.
    replay_with("shell", MUTATIONS / 10);
}

#[test]
fn text() {
    replay("text");
}

#[test]
fn vn2vn() {
    replay("vn2vn");
}

#[test]
fn zones() {
    replay("zones");
}

/// Each target has a file in `fuzz/`, a test here and a corpus. The file has nothing in it that
/// could fail to compile: only the long run of `./check` builds it.
#[test]
fn every_target_is_fuzzed() {
    let manifest = fs::read_to_string(tests::top().join("fuzz/Cargo.toml")).unwrap();
    let bins = manifest.matches("[[bin]]").count();
    assert_eq!(bins, TARGETS.len());
    for Target { name, .. } in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let path = tests::top().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let call =
            format!("libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzzing::{name}(data));");
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text, format!("#![no_main]\n\n{call}\n"));
    }
}
