//! Folders of network namespaces that are gone.

use std::os::unix::net::UnixListener;

use super::*;

/// A namespace is known by a number, and nothing tells that it is gone. So what lives in a folder
/// counts: claims that a program holds, and sockets that one listens at.
#[test]
fn a_new_namespace_clears_the_folders_in_which_nothing_lives() {
    let parent = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = parent.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let [gone, claimed, heard, other] = ["fcoe-1", "fcoe-2", "fcoe-3", "fcoe-backup"].map(folder);
    fs::write(gone.join("eth0-0"), "4711\n").unwrap();
    drop(UnixListener::bind(gone.join("4711-00000000.port")).unwrap());
    let Attempt::Locked(_claim) = LockFile::acquire(&claimed.join("eth0-0")).unwrap() else {
        panic!("it is free");
    };
    let _listener = UnixListener::bind(heard.join("4711-00000000.switch")).unwrap();
    let own = ClaimDir::new(parent.path()).unwrap();
    let there = [&gone, &claimed, &heard, &other].map(|path| path.exists());
    assert_eq!(there, [false, true, true, true]);
    // The next program of the namespace does not look again.
    fs::create_dir(&gone).unwrap();
    ClaimDir::new(parent.path()).unwrap();
    assert!(gone.exists() && own.path().exists());
}

#[test]
fn a_folder_that_was_taken_for_unused_is_made_again() {
    let parent = tempfile::tempdir().unwrap();
    let own = ClaimDir::new(parent.path()).unwrap();
    fs::remove_dir(own.path()).unwrap();
    assert!(matches!(own.take("eth0-0"), Ok(Attempt::Locked(_))));
}
