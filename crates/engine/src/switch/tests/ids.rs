//! N_Port_IDs are the same after a restart, or it is told why not.

use std::time::Duration;

use fc::wire::names::{FcId, Wwn};

use super::super::ids::{IdsError, IdsFolder, claim, is_there, load};
use super::super::ids_keeper::IdsKeeper;

const WWPN: u64 = 0x2000_0200_0000_0001;

#[test]
fn what_was_written_last_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a/b");
    assert_eq!(load(&folder).unwrap(), []);
    let keeper = IdsKeeper::start(IdsFolder(folder.clone()), |_| {}).unwrap();
    let lists = (1..100).map(|count| {
        let ids = (0..count).map(|n| (Wwn(WWPN + n), FcId(0x01_0100 + n as u32)));
        ids.collect::<Vec<_>>()
    });
    let lists: Vec<_> = lists.collect();
    for list in &lists {
        keeper.write(list.clone());
    }
    assert!(keeper.end(Duration::from_secs(60)));
    assert!(is_there(&folder));
    assert_eq!(load(&folder).unwrap(), lists[98]);
}

#[test]
fn a_line_that_is_spoilt_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [
        "20:00:02:00:00:00:00:01",
        "20:00:02:00:00:00:00:01 10100",
        "20:00:02:00:00:00:00:01 +10100",
        "20:00:02:00:00:00:00 010100",
        "",
    ] {
        let text = format!("20:00:02:00:00:00:00:01 010100\n{wrong}\n");
        std::fs::write(folder.path().join("n-port-ids"), text).unwrap();
        let refused = load(folder.path()).unwrap_err();
        assert!(matches!(refused, IdsError::Line { line: 2, .. }), "{wrong}");
    }
}

/// Each switch would overwrite what the other has written.
#[test]
fn a_folder_is_of_one_switch() {
    let folder = tempfile::tempdir().unwrap();
    let first = claim(folder.path()).unwrap();
    let refused = claim(folder.path()).unwrap_err();
    assert!(matches!(refused, IdsError::Taken { .. }), "{refused}");
    drop(first);
    assert!(claim(folder.path()).unwrap().is_some());
}
