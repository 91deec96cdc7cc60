//! What a change costs where there are many rows, step by step; no time is asserted.
//!
//! `cargo test --release -p control gate::scale -- --nocapture` prints it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use crate::check::check;
use crate::document::{parse, rewrite_from};
use crate::lower::{Machine, inventory, portal_groups};
use crate::plan::plan;
use crate::tree::{Tree, VolumeRow};

/// 10 LUNs in each target.
fn text(targets: usize) -> String {
    let mut text = "version = 1\n".to_owned();
    for lun in 0..targets * 10 {
        write!(text, "[volume.v{lun}]\naddress = \"null:1G\"\n").unwrap();
    }
    for target in 0..targets {
        let luns = (0..10).map(|lun| format!("{lun} = \"v{}\"", target * 10 + lun));
        let luns = luns.collect::<Vec<_>>().join(", ");
        write!(
            text,
            "[target.\"iqn.2026-11.org.example:t{target}\"]\nportals = [\"192.0.2.1\"]\n\
             luns = {{ {luns} }}\nallow = [\"*\"]\n"
        )
        .unwrap();
    }
    text
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    println!("{what:24} {:8.2} ms", start.elapsed().as_secs_f64() * 1e3);
    done
}

#[test]
fn what_one_more_of_10_000_luns_costs() {
    let text = text(1000);
    let old: Tree = timed("parse", || parse(&text)).unwrap();
    let mut new = timed("clone", || old.clone());
    new.volume
        .insert("more".to_owned(), VolumeRow::new("null:1G"));
    let rewritten = timed("rewrite", || rewrite_from(&text, &old, &new));
    let read = timed("parse again", || parse(&rewritten)).unwrap();
    assert!(read == new);
    timed("check", || check(&new));
    timed("plan", || plan(&old, &new, &[]));
    let groups = portal_groups(&new).zip(1..);
    let machine = Machine {
        id: "a machine".to_owned(),
        ports: groups.collect::<BTreeMap<_, _>>(),
        ..Machine::default()
    };
    let lowered = timed("lower", || inventory(&new, &machine, |_| true)).unwrap();
    timed("clone of an inventory", || lowered.clone());
    timed("steps", || engine::inventory::diff(&lowered, &lowered));
}
