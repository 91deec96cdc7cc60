//! Changes that go through the gate, and those that do not.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::{
    Author, Candidate, ChangeRequest, Engine, Gate, GateError, Generation, Persist, Store,
};
use crate::any;
use crate::check::check;
use crate::document::{parse, write};
use crate::plan::{Allowed, Impact, SessionFact};
use crate::tree::{Tree, VolumeRow};

const TEXT: &str = "version = 1\n\n# The first.\n[volume.a]\naddress = \"null:1G\"\n";

/// A store in memory.
#[derive(Default)]
struct Memory {
    file: String,
    kept: Vec<(Generation, String)>,
    is_full: bool,
    /// The last generation that hosts were served.
    served: u64,
}

impl Store for Memory {
    fn file(&self) -> Result<Option<String>, String> {
        Ok((!self.file.is_empty()).then(|| self.file.clone()))
    }

    fn commit(&mut self, generation: &Generation, text: &str) -> Result<(), String> {
        if self.is_full {
            return Err("cannot write lunar.toml: no space left".to_owned());
        }
        self.kept.push((generation.clone(), text.to_owned()));
        text.clone_into(&mut self.file);
        Ok(())
    }

    fn serves(&mut self, generation: u64) -> Result<(), String> {
        self.served = generation;
        Ok(())
    }

    fn withdraw(&mut self, generation: u64, text: &str) -> Result<(), String> {
        self.kept.retain(|(kept, _)| kept.number != generation);
        text.clone_into(&mut self.file);
        Ok(())
    }

    fn text(&self, generation: u64) -> Option<String> {
        let mut kept = self.kept.iter();
        let found = kept.find(|(kept, _)| kept.number == generation);
        found.map(|(_, text)| text.clone())
    }
}

/// An engine that only remembers.
#[derive(Default)]
struct Remembers {
    served: Tree,
    sessions: Vec<SessionFact>,
    /// Those that log in while volumes are opened.
    latecomers: Vec<SessionFact>,
    /// What it cannot prepare.
    cannot: Vec<String>,
    /// It refuses after the commit.
    is_busy: bool,
    /// How often secrets were read again.
    refreshed: usize,
}

impl Engine for Remembers {
    fn sessions(&self) -> Result<Vec<SessionFact>, String> {
        Ok(self.sessions.clone())
    }

    fn keep_secret(&mut self, _: &str, _: &str) -> Result<(), String> {
        Err("there is no room for secrets".to_owned())
    }

    fn refresh(&mut self, tree: &Arc<Tree>) -> Result<(), Vec<String>> {
        assert_eq!(**tree, self.served);
        self.refreshed += 1;
        Ok(())
    }

    fn apply(
        &mut self,
        tree: &Arc<Tree>,
        _: bool,
        persist: Persist<'_>,
    ) -> Result<(), Vec<String>> {
        if !self.cannot.is_empty() {
            return Err(self.cannot.clone());
        }
        self.sessions.append(&mut self.latecomers);
        persist(&self.sessions).map_err(|cause| vec![cause])?;
        if self.is_busy {
            return Err(vec!["a host owes data".to_owned()]);
        }
        self.served = Tree::clone(tree);
        Ok(())
    }
}

type TestGate = Gate<Memory, Remembers>;

fn gate() -> TestGate {
    let tree = parse(TEXT).unwrap();
    let store = Memory {
        file: TEXT.to_owned(),
        ..Memory::default()
    };
    let engine = Remembers {
        served: tree.clone(),
        ..Remembers::default()
    };
    Gate::new(store, engine, 17, TEXT.to_owned(), tree)
}

fn wish(candidate: Candidate) -> ChangeRequest {
    ChangeRequest {
        candidate,
        based_on: None,
        allowed: Allowed::default(),
        api_too: true,
        absent_ok: false,
        dry_run: false,
    }
}

fn change(gate: &mut TestGate, request: &ChangeRequest) -> Result<super::Outcome, GateError> {
    let author = Author {
        from: "a test".to_owned(),
        who: "root".to_owned(),
        by: "lunar set".to_owned(),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
    let (before, text) = (gate.tree().clone(), gate.text().to_owned());
    let result = gate.change(request, &author, now);
    // Old or new, and the same everywhere.
    assert_eq!(gate.engine().served, *gate.tree());
    if result.is_err() {
        assert_eq!((gate.tree(), gate.text()), (&before, &*text));
    }
    result
}

fn with_another_volume() -> Candidate {
    let mut tree = parse(TEXT).unwrap();
    tree.volume.insert("b".to_owned(), VolumeRow::new("ram:1G"));
    Candidate::Tree(tree.into())
}

#[test]
fn rows_are_written_into_the_document() {
    let mut gate = gate();
    let outcome = change(&mut gate, &wish(with_another_volume())).unwrap();
    assert_eq!((outcome.from, outcome.generation), (17, 18));
    let text = format!("{TEXT}\n[volume.b]\naddress = \"ram:1G\"\n");
    assert_eq!(gate.store().file, text);
    let (generation, _) = &gate.store().kept[0];
    assert_eq!((generation.number, &*generation.who), (18, "root"));
    assert_eq!(gate.store().served, 18);
    assert_eq!(generation.differences, ["+ volume b  address = \"ram:1G\""]);
}

#[test]
fn what_the_next_start_would_not_read_is_not_kept() {
    let mut gate = gate();
    let mut tree = parse(TEXT).unwrap();
    tree.version = 2;
    let refused = change(&mut gate, &wish(Candidate::Tree(tree.into())));
    assert!(matches!(refused, Err(GateError::Document(_))));
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut gate = gate();
    let request = ChangeRequest {
        dry_run: true,
        ..wish(with_another_volume())
    };
    assert_eq!(change(&mut gate, &request).unwrap().generation, 18);
    assert_eq!((gate.generation(), &*gate.store().file), (17, TEXT));
}

#[test]
fn nothing_to_do_makes_no_generation_and_reads_secrets_again() {
    let mut gate = gate();
    let same = Candidate::Text(TEXT.to_owned());
    assert_eq!(change(&mut gate, &wish(same)).unwrap().generation, 17);
    assert_eq!(gate.engine().refreshed, 1);
}

#[test]
fn a_comment_makes_a_generation_that_the_engine_does_not_see() {
    let mut gate = gate();
    let engine = &mut gate.engine;
    engine.cannot = vec!["never asked".to_owned()];
    gate.store.file = TEXT.replace("first", "one");
    let outcome = change(&mut gate, &wish(Candidate::File)).unwrap();
    assert!(outcome.plan.is_empty());
    assert_eq!(gate.generation(), 18);
}

#[test]
fn who_has_seen_another_generation_is_refused() {
    let mut gate = gate();
    let request = ChangeRequest {
        based_on: Some(16),
        ..wish(with_another_volume())
    };
    let stale = GateError::Stale { is: 17, was: 16 };
    assert_eq!(change(&mut gate, &request), Err(stale));
}

#[test]
fn what_somebody_has_written_into_the_file_is_not_overwritten() {
    let mut gate = gate();
    gate.store
        .file
        .push_str("[volume.c]\naddress = \"ram:2G\"\n");
    let refused = change(&mut gate, &wish(with_another_volume()));
    assert_eq!(refused, Err(GateError::Edited(17)));
    // It is taken, or dropped.
    let mut other = self::gate();
    other.store.file.push_str("# nothing\n");
    change(&mut other, &wish(Candidate::Generation(17))).unwrap();
    assert_eq!(other.store.file, other.text());
    change(&mut gate, &wish(Candidate::File)).unwrap();
    assert!(gate.tree().volume.contains_key("c"));
}

/// What is not there cannot be overwritten.
#[test]
fn a_file_that_is_missing_is_made_by_the_next_change() {
    let same = Candidate::Text(TEXT.to_owned());
    for back in [with_another_volume(), Candidate::Generation(17), same] {
        let mut gate = gate();
        gate.store.file.clear();
        let nothing = change(&mut gate, &wish(Candidate::File));
        assert_eq!(nothing, Err(GateError::NoFile(17)));
        change(&mut gate, &wish(back)).unwrap();
        assert_eq!(gate.store().file, gate.text());
    }
}

#[test]
fn a_loss_has_to_be_allowed_by_name() {
    let mut gate = gate();
    change(&mut gate, &wish(with_another_volume())).unwrap();
    let mut back = wish(Candidate::Text(TEXT.to_owned()));
    let refused = change(&mut gate, &back).unwrap_err();
    assert_eq!(refused.to_string(), "this needs --allow loses=volume.b");
    back.allowed = "loses=volume.c".parse().unwrap();
    assert_eq!(
        change(&mut gate, &back),
        Err(GateError::NoRow("volume.c".to_owned()))
    );
    back.allowed = "loses=b".parse().unwrap();
    assert_eq!(change(&mut gate, &back).unwrap().generation, 19);
}

const TARGET: &str = "[target.\"iqn.2026-11.org.example:san\"]\nportals = [\"192.0.2.1\"]\n\
                      luns = { 0 = \"a\" }\nallow = [\"*\"]\n";

/// A host that nobody saw when the change was looked at is not cut off by it.
#[test]
fn who_logs_in_while_volumes_are_opened_counts_too() {
    let mut gate = gate();
    let with_target = wish(Candidate::Text(format!("{TEXT}{TARGET}")));
    change(&mut gate, &with_target).unwrap();
    let mut back = wish(Candidate::Text(TEXT.to_owned()));
    gate.engine.latecomers = vec![SessionFact {
        target: "iqn.2026-11.org.example:san".to_owned(),
        initiator: "iqn.2026-11.org.example:host".to_owned(),
        portal: Some("192.0.2.1:3260".parse().unwrap()),
    }];
    let Err(GateError::Refused { outcome, way_out }) = change(&mut gate, &back) else {
        panic!("a host was cut off");
    };
    assert_eq!(way_out, "--allow cuts");
    let hosts = &outcome.plan.differences[0].hosts;
    assert_eq!(hosts, &["iqn.2026-11.org.example:host"]);
    // Nor does it make a difference where that is allowed: then it is told.
    back.allowed = "cuts".parse().unwrap();
    gate.engine.latecomers = gate.engine.sessions.drain(..).collect();
    let outcome = change(&mut gate, &back).unwrap();
    assert_eq!(outcome.worst, Impact::Cuts);
    assert_eq!(gate.store().kept.last().unwrap().0.impact, Impact::Cuts);
}

#[test]
fn an_earlier_generation_comes_back_as_it_was_written() {
    let mut gate = gate();
    change(&mut gate, &wish(with_another_volume())).unwrap();
    let first = gate.text().to_owned();
    let edited = first.replace("null:1G", "null:2G");
    change(&mut gate, &wish(Candidate::Text(edited))).unwrap();
    change(&mut gate, &wish(Candidate::Generation(18))).unwrap();
    assert_eq!((gate.generation(), gate.text()), (20, &*first));
    let none = change(&mut gate, &wish(Candidate::Generation(3)));
    assert_eq!(none, Err(GateError::NoGeneration(3)));
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let mut gate = gate();
    gate.engine.cannot = vec!["no such file".to_owned(), "port in use".to_owned()];
    let failed = change(&mut gate, &wish(with_another_volume())).unwrap_err();
    assert_eq!(failed.to_string(), "no such file\nport in use");
    gate.engine.cannot.clear();
    gate.store.is_full = true;
    let failed = change(&mut gate, &wish(with_another_volume())).unwrap_err();
    assert_eq!(failed.to_string(), "cannot write lunar.toml: no space left");
    gate.store.is_full = false;
    gate.engine.is_busy = true;
    let failed = change(&mut gate, &wish(with_another_volume())).unwrap_err();
    assert_eq!(failed.to_string(), "a host owes data");
    assert_eq!((&*gate.store().file, gate.store().kept.len()), (TEXT, 0));
    assert_eq!(gate.store().served, 0);
}

/// What the engine refuses after the commit leaves the file as somebody had edited it.
#[test]
fn an_edit_outlives_a_refusal() {
    let mut gate = gate();
    let edited = format!("{TEXT}[volume.c]\naddress = \"ram:2G\"\n");
    gate.store.file.clone_from(&edited);
    gate.engine.is_busy = true;
    change(&mut gate, &wish(Candidate::File)).unwrap_err();
    assert_eq!(gate.store.file, edited);
    // An earlier generation does not take its place unseen either.
    let refused = change(&mut gate, &wish(Candidate::Generation(16)));
    assert_eq!(refused, Err(GateError::Edited(17)));
}

#[test]
fn what_does_not_fit_together_is_refused_whole() {
    let mut gate = gate();
    let text = "version = 1\n[target.\"iqn.x\"]\nluns = { 0 = \"a\" }\n";
    let refused = change(&mut gate, &wish(Candidate::Text(text.to_owned())));
    assert!(matches!(refused, Err(GateError::Tree(_))));
    let refused = change(&mut gate, &wish(Candidate::Text("version = ".to_owned())));
    assert!(matches!(refused, Err(GateError::Document(_))));
}

proptest! {
    #[test]
    fn any_tree_follows_any_other_and_then_nothing_is_left_to_do(
        (old, new) in (any::tree(), any::tree())
    ) {
        let mut gate = gate();
        for tree in [old, new] {
            let everything = Allowed {
                cuts: true,
                loses: tree.volume.keys().chain(gate.tree().volume.keys()).cloned().collect(),
            };
            let request = ChangeRequest {
                allowed: everything,
                ..wish(Candidate::Tree(tree.clone().into()))
            };
            let result = change(&mut gate, &request);
            if check(&tree).problems.is_empty() {
                prop_assert!(result.is_ok());
                prop_assert_eq!(gate.tree(), &tree);
                let again = wish(Candidate::Text(write(&tree)));
                let again = ChangeRequest { dry_run: true, ..again };
                prop_assert!(change(&mut gate, &again).unwrap().plan.is_empty());
            } else {
                prop_assert!(matches!(result, Err(GateError::Tree(_))));
            }
        }
    }
}
