//! Who has a name, and who gets it next.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use super::*;
use tempfile::TempDir;

fn locked(path: &Path) -> Option<LockFile> {
    match LockFile::acquire(path).unwrap() {
        Attempt::Locked(lock) => Some(lock),
        Attempt::HeldBy(_) => None,
    }
}

#[test]
fn a_lock_is_held_until_it_is_dropped() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("lock");
    fs::write(&path, "4294967295, from a program that was killed").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let lock = locked(&path).unwrap();
    let Attempt::HeldBy(holder) = LockFile::acquire(&path).unwrap() else {
        panic!("two have it");
    };
    let process = format!("process {}", process::id());
    assert!(holder.to_string().starts_with(&process), "{holder}");
    drop(lock);
    assert!(!path.exists());
    let _lock = locked(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_link_in_place_of_a_lock_is_not_followed() {
    let folder = TempDir::new().unwrap();
    let (path, other) = (folder.path().join("lock"), folder.path().join("other"));
    fs::write(&other, "precious").unwrap();
    symlink(&other, &path).unwrap();
    LockFile::acquire(&path).unwrap_err();
    assert_eq!(fs::read(&other).unwrap(), b"precious");
}

/// Each of them removes the file that the next one may have opened already.
#[test]
fn of_many_that_take_turns_one_at_a_time_has_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("lock");
    let holders = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let Some(lock) = locked(&path) else {
                        continue;
                    };
                    assert_eq!(holders.fetch_add(1, SeqCst), 0);
                    holders.fetch_sub(1, SeqCst);
                    drop(lock);
                }
            });
        }
    });
}
