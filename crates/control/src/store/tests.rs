//! Commits that are cut off at every step, and what the next start finds.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::rc::Rc;

use tempfile::TempDir;

use super::files::{NoSteps, RealFiles, Steps};
use super::{FileStore, Found, KEPT};
use crate::api::BODY_BYTES;
use crate::gate::{Generation, Store};
use crate::plan::Impact;

/// Lets some steps be made, and none after.
#[derive(Clone)]
struct Killed(Rc<Cell<usize>>);

impl Steps for Killed {
    fn step(&mut self, what: &'static str) -> io::Result<()> {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ())
            .ok_or_else(|| io::Error::other(format!("killed before: {what}")))
    }
}

/// Has one step fail, as a full or broken disk does, and all others be made.
struct FailsOnce(Rc<Cell<usize>>);

impl Steps for FailsOnce {
    fn step(&mut self, what: &'static str) -> io::Result<()> {
        let left = self.0.get();
        self.0.set(left.wrapping_sub(1));
        match left {
            0 => Err(io::Error::other(format!("no space left: {what}"))),
            _ => Ok(()),
        }
    }
}

fn generation(number: u64) -> Generation {
    Generation {
        number,
        at: 1_795_000_000 + number,
        who: "root".to_owned(),
        by: "lunar apply".to_owned(),
        impact: Impact::Quiet,
        differences: vec![format!("+ volume v{number}")],
    }
}

fn store(folder: &TempDir) -> FileStore {
    let (config, state) = (
        folder.path().join("lunar.toml"),
        folder.path().join("state"),
    );
    FileStore::new(&config, &state, RealFiles::<NoSteps>::default()).unwrap()
}

fn text(number: u64) -> String {
    format!("version = 1\n# generation {number}\n")
}

/// A folder in which a generation was made.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    apply(&mut store(&folder), 1).unwrap();
    folder
}

fn apply(store: &mut impl Store, number: u64) -> Result<(), String> {
    store.commit(&generation(number), &text(number))?;
    store.serves(number)
}

fn kill_after(folder: &TempDir, steps: usize) -> (FileStore<RealFiles<Killed>>, Rc<Cell<usize>>) {
    let left = Rc::new(Cell::new(steps));
    let files = RealFiles::with(Killed(Rc::clone(&left)));
    let (config, state) = (
        folder.path().join("lunar.toml"),
        folder.path().join("state"),
    );
    (FileStore::new(&config, &state, files).unwrap(), left)
}

#[test]
fn whatever_step_is_the_last_the_next_start_finds_old_or_new() {
    let found = |number, served| Found {
        text: Some(text(number)),
        last: Some((number, text(number))),
        served: Some(text(served)),
        dropped: None,
    };
    let (old, kept, new) = (found(1, 1), found(2, 1), found(2, 2));
    let mut seen = [0, 0, 0];
    for steps in 0.. {
        let folder = folder();
        let (mut store_, left) = kill_after(&folder, steps);
        let done = apply(&mut store_, 2);
        let mut now = store(&folder).find().unwrap();
        // Of a generation that was dropped the audit log is told.
        let dropped = now.dropped.take();
        assert!(dropped.is_none_or(|number| number == 2 && now == old));
        // The commit is the rename: after it the generation is new, whoever was told so.
        let which = [&old, &kept, &new].into_iter().position(|one| *one == now);
        let which = which.unwrap_or_else(|| panic!("killed after {steps}: {now:?}"));
        seen[which] += 1;
        assert!(done.is_err() || now == new);
        if left.get() > 0 {
            break;
        }
    }
    assert!(seen[0] > 8 && seen[1] > 1 && seen[2] > 1, "{seen:?}");
}

/// A change makes a file that is missing: killed before that, it was never made.
#[test]
fn whatever_step_is_the_last_a_missing_file_is_made_or_nothing_is_kept() {
    let mut seen = [0, 0];
    for steps in 0.. {
        let folder = folder();
        fs::remove_file(folder.path().join("lunar.toml")).unwrap();
        let (mut store_, left) = kill_after(&folder, steps);
        let done = apply(&mut store_, 2);
        let now = store(&folder).find().unwrap();
        let is_made = now.text == Some(text(2));
        seen[usize::from(is_made)] += 1;
        let last = if is_made { 2 } else { 1 };
        assert_eq!(now.last, Some((last, text(last))), "killed after {steps}");
        assert!(is_made || now.text.is_none());
        assert_eq!(store(&folder).generations().len() as u64, last);
        if left.get() > 0 {
            assert!(done.is_ok() && is_made);
            break;
        }
    }
    assert!(seen[0] > 8 && seen[1] > 3, "{seen:?}");
}

/// Hosts were served it, or may have been: what is missing is only the file.
#[test]
fn a_file_that_is_removed_drops_no_generation_that_was_kept() {
    let folder = folder();
    let config = folder.path().join("lunar.toml");
    fs::remove_file(&config).unwrap();
    assert_eq!(store(&folder).find().unwrap().last, Some((1, text(1))));

    apply(&mut store(&folder), 2).unwrap();
    fs::remove_file(&config).unwrap();
    assert_eq!(store(&folder).find().unwrap().last, Some((2, text(2))));

    let folder = self::folder();
    let config = folder.path().join("lunar.toml");
    store(&folder).commit(&generation(2), &text(2)).unwrap();
    fs::remove_file(&config).unwrap();
    symlink(folder.path().join("late/lunar.toml"), &config).unwrap();
    assert_eq!(store(&folder).find().unwrap().last, Some((2, text(2))));
}

/// What cannot be read is not overwritten: a link that leads nowhere is not a missing file.
#[test]
fn a_link_that_leads_nowhere_is_no_missing_file() {
    let folder = folder();
    let config = folder.path().join("lunar.toml");
    fs::remove_file(&config).unwrap();
    assert_eq!(store(&folder).file(), Ok(None));
    symlink(folder.path().join("nowhere"), &config).unwrap();
    let refused = store(&folder).file().unwrap_err();
    assert!(refused.contains("lunar.toml"), "{refused}");
    assert_eq!(store(&folder).find().unwrap().text, None);

    // At the first start neither.
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("lunar.toml");
    symlink(folder.path().join("nowhere"), &config).unwrap();
    store(&folder).find().unwrap_err();
}

/// What is put back by hand is an edit: the generation that it takes the place of was served.
#[test]
fn a_file_that_is_put_back_by_hand_drops_no_generation() {
    let folder = folder();
    apply(&mut store(&folder), 2).unwrap();
    fs::write(folder.path().join("lunar.toml"), text(1)).unwrap();
    let found = store(&folder).find().unwrap();
    assert_eq!(
        (found.text, found.last),
        (Some(text(1)), Some((2, text(2))))
    );
    assert_eq!(store(&folder).generations().len(), 2);
}

/// A document may begin as the line of facts does.
#[test]
fn a_document_is_kept_octet_by_octet() {
    let folder = folder();
    for (number, text) in [(2, ""), (3, "# {\"number\":1}\n"), (4, "\r\n# {")] {
        let mut store = store(&folder);
        store.commit(&generation(number), text).unwrap();
        assert_eq!(store.text(number).as_deref(), Some(text));
        store.serves(number).unwrap();
        assert_eq!(store.text(number).as_deref(), Some(text));
        assert_eq!(store.generations().last(), Some(&generation(number)));
    }
}

/// Somebody keeps copies in the folder, and one of them is a folder.
#[test]
fn copies_are_no_generations() {
    let folder = folder();
    apply(&mut store(&folder), 2).unwrap();
    let found = store(&folder).find().unwrap();
    let history = folder.path().join("state/history");
    for name in [
        "99.toml",
        "+00099.toml",
        "000099.toml.bak",
        "000099.next.toml",
    ] {
        fs::write(history.join(name), text(99)).unwrap();
    }
    fs::create_dir(history.join("000099.toml")).unwrap();
    assert_eq!(store(&folder).find().unwrap(), found);
    assert_eq!(found.served, Some(text(2)));
    assert_eq!(store(&folder).generations().len(), 2);
}

#[test]
fn a_commit_that_is_taken_back_leaves_nothing() {
    let folder = folder();
    let mut store_ = store(&folder);
    store_.commit(&generation(2), &text(2)).unwrap();
    store_.withdraw(2, &text(1)).unwrap();
    assert_eq!(store_.file(), Ok(Some(text(1))));
    assert_eq!(store_.generations(), [generation(1)]);
    assert_eq!(store_.text(2), None);
}

#[test]
fn what_was_edited_is_seen_beside_what_was_applied() {
    let folder = folder();
    fs::write(folder.path().join("lunar.toml"), "by hand").unwrap();
    let found = Found {
        text: Some("by hand".to_owned()),
        last: Some((1, text(1))),
        served: Some(text(1)),
        dropped: None,
    };
    assert_eq!(store(&folder).find(), Ok(found));
}

#[test]
fn a_document_that_could_not_be_read_again_is_not_kept() {
    let folder = folder();
    let mut store = store(&folder);
    let before = store.file();
    let long = format!("# {}\n", "-".repeat(BODY_BYTES));
    let told = store.commit(&generation(2), &long).unwrap_err();
    assert_eq!(told, "the configuration would have more than 4194304 bytes");
    assert_eq!(store.file(), before);
}

#[test]
fn a_store_that_is_empty_has_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let none = Found {
        text: None,
        last: None,
        served: None,
        dropped: None,
    };
    assert_eq!(store(&folder).find(), Ok(none));
}

#[test]
fn the_last_generations_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    for number in 1..=KEPT + 3 {
        store.commit(&generation(number), &text(number)).unwrap();
    }
    let kept = store.generations();
    assert_eq!(kept.len() as u64, KEPT);
    assert_eq!(kept[0].number, 4);
}

#[test]
fn the_file_keeps_its_mode_and_a_link_its_end() {
    let folder = folder();
    let (config, real) = (
        folder.path().join("lunar.toml"),
        folder.path().join("real.toml"),
    );
    fs::rename(&config, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o604)).unwrap();
    symlink(&real, &config).unwrap();
    store(&folder).commit(&generation(2), &text(2)).unwrap();
    assert_eq!(fs::read_to_string(&real).unwrap(), text(2));
    assert!(fs::symlink_metadata(&config).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o604
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named_and_nothing_changes() {
    let folder = folder();
    let gone = folder.path().join("no/lunar.toml");
    let state = folder.path().join("state");
    let mut store = FileStore::new(&gone, &state, RealFiles::<NoSteps>::default()).unwrap();
    let refused = store.commit(&generation(2), &text(2)).unwrap_err();
    assert!(refused.contains("no/lunar.toml"), "{refused}");
    assert_eq!(store.generations().len(), 1);
}

/// The sync after the rename fails too: the file must not say what nobody is served.
#[test]
fn whatever_step_fails_a_commit_that_is_refused_leaves_nothing() {
    let mut refused = 0;
    for step in 0.. {
        let folder = folder();
        let left = Rc::new(Cell::new(step));
        let files = RealFiles::with(FailsOnce(Rc::clone(&left)));
        let (config, state) = (
            folder.path().join("lunar.toml"),
            folder.path().join("state"),
        );
        let mut failing = FileStore::new(&config, &state, files).unwrap();
        if failing.commit(&generation(2), &text(2)).is_ok() {
            break;
        }
        refused += 1;
        assert_eq!(failing.file(), Ok(Some(text(1))), "{step}");
        assert_eq!(failing.generations(), [generation(1)], "{step}");
        for place in [folder.path().to_owned(), state.join("history")] {
            let names = fs::read_dir(place)
                .unwrap()
                .map(|one| one.unwrap().file_name());
            let left: Vec<_> = names
                .filter(|name| name.to_string_lossy().ends_with("new"))
                .collect();
            assert_eq!(left, [""; 0], "{step}");
        }
    }
    assert!(refused >= 10, "{refused}");
}
