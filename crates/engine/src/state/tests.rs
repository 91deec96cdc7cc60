//! Who may read what is kept, and what lies in its way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::StateDir;
use crate::core::Store;

const UNIT: &str = "unit";

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let name = format!("lunar-state-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> StateDir {
        StateDir::new(Some(&self.0.join("state")))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_saved_last_is_loaded() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(store.load(UNIT).unwrap(), None);
    store.probe().unwrap();
    assert_eq!(store.load(UNIT).unwrap(), None);
    for bytes in [&b"first"[..], b"second, and longer", b""] {
        store.save(UNIT, bytes).unwrap();
        assert_eq!(store.load(UNIT).unwrap().as_deref(), Some(bytes));
    }
}

/// CVE-2020-13867: what was kept of the configuration could be read by everybody. Reservation keys
/// are all that an initiator needs to preempt another.
#[test]
fn what_is_kept_is_for_its_owner_only() {
    let folder = Folder::new();
    let store = folder.store();
    store.probe().unwrap();
    store.save(UNIT, b"keys").unwrap();
    assert_eq!(mode(&folder.0.join("state")), 0o700);
    assert_eq!(mode(&store.path(UNIT)), 0o600);
}

/// The folder of another version of this, or of the administrator.
#[test]
fn a_folder_that_others_can_read_does_not_let_them_read_what_is_in_it() {
    let folder = Folder::new();
    let store = folder.store();
    fs::create_dir(folder.0.join("state")).unwrap();
    fs::write(store.path(UNIT), b"old").unwrap();
    fs::set_permissions(store.path(UNIT), fs::Permissions::from_mode(0o644)).unwrap();
    store.save(UNIT, b"new").unwrap();
    assert_eq!(mode(&store.path(UNIT)), 0o600);
}

/// CVE-2009-1297: a file of a name that can be guessed was written through whatever link was there.
#[test]
fn a_link_in_the_way_is_replaced_and_not_followed() {
    let folder = Folder::new();
    let store = folder.store();
    store.probe().unwrap();
    let victim = folder.0.join("victim");
    fs::write(&victim, b"of somebody else").unwrap();
    let path = store.path(UNIT);
    symlink(&victim, &path).unwrap();
    symlink(&victim, path.with_extension("new")).unwrap();
    let probe = format!(".probe-{}", std::process::id());
    symlink(&victim, folder.0.join("state").join(probe)).unwrap();
    store.probe().unwrap();
    store.save(UNIT, b"keys").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"of somebody else");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(store.load(UNIT).unwrap().as_deref(), Some(&b"keys"[..]));
}

/// Reading one would wait for a writer for ever.
#[test]
fn a_fifo_in_the_way_is_an_error() {
    let folder = Folder::new();
    let store = folder.store();
    store.probe().unwrap();
    let path = store.path(UNIT);
    for path in [path.clone(), path.with_extension("lock")] {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    for error in [store.load(UNIT).unwrap_err(), store.lock(UNIT).unwrap_err()] {
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}

#[test]
fn one_server_at_a_time_has_the_state_of_a_unit() {
    let folder = Folder::new();
    let (one, two) = (folder.store(), folder.store());
    one.probe().unwrap();
    let held = one.lock(UNIT).unwrap();
    assert!(held.is_some());
    assert!(two.lock(UNIT).unwrap().is_none(), "it is the first one's");
    drop(held);
    assert!(two.lock(UNIT).unwrap().is_some());
    let left: Vec<_> = fs::read_dir(folder.0.join("state")).unwrap().collect();
    assert!(left.is_empty(), "locks are removed: {left:?}");
}
