//! Volumes that go, and come back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use block::absent::Absent;
use block::file::UndoLog;
use scsi::unit::UnitId;

use super::super::{Server, ServerConfig, ServerHandle};
use crate::inventory::{Inventory, UnitRow};

/// A server with one core and one unit, at which nobody can log in.
fn serve(address: &str, may_be_absent: bool) -> ServerHandle {
    serve_as(address, may_be_absent, Some("1"), None)
}

/// The same, under a serial number that it is told, or none. Reservations are kept in a folder.
fn serve_as(
    address: &str,
    may_be_absent: bool,
    serial: Option<&str>,
    state: Option<&Path>,
) -> ServerHandle {
    let row = UnitRow {
        may_be_absent,
        serial: serial.map(str::to_owned),
        ..UnitRow::new(address.parse().unwrap(), address.to_owned())
    };
    let inventory = Inventory {
        units: [("disk".to_owned(), row.into())].into(),
        ..Inventory::default()
    };
    let mut config = ServerConfig::new("iqn.2026-11.org.lunar:us".into()).unwrap();
    config.threads = Some(std::num::NonZeroUsize::MIN);
    config.state_dir = state.map(Path::to_owned);
    Server::start(config, inventory, &UndoLog::default()).unwrap()
}

fn end(server: &ServerHandle) {
    server.stop();
    server.wait().unwrap();
}

fn unit(server: &ServerHandle) -> (UnitId, u64, bool) {
    let served = server.served();
    let unit = &served.units["disk"];
    (unit.id, unit.volume.traits().blocks, unit.absence.is_some())
}

fn file(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// The file is locked as long as anybody has it: it can be opened again, so nobody has.
#[test]
fn a_volume_that_vanished_is_the_same_unit_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let server = serve(&file(&path), false);
    let (id, blocks, absent) = unit(&server);
    assert_eq!((blocks, absent), (2048, false));
    server.vanished(id);
    assert_eq!(
        unit(&server),
        (id, 2048, true),
        "the last capacity is known"
    );
    server.vanished(id);
    server.try_absent(&mut BTreeMap::new());
    assert_eq!(unit(&server), (id, 2048, false));
    end(&server);
}

#[test]
fn what_nobody_knew_is_another_unit_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let server = serve_as(&file(&path), true, None, None);
    let (unknown, blocks, absent) = unit(&server);
    assert_eq!((blocks, absent), (0, true));
    server.try_absent(&mut BTreeMap::new());
    assert!(unit(&server).2, "it is still not there");
    fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    server.try_absent(&mut BTreeMap::new());
    let (known, blocks, absent) = unit(&server);
    assert_eq!((blocks, absent), (2048, false));
    assert_ne!(known, unknown);
    end(&server);
}

/// The part that is there is not held meanwhile: it is opened again with the rest.
#[test]
fn a_volume_of_which_a_part_is_missing_is_there_when_all_of_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ["one", "other"].map(|name| folder.path().join(name));
    let make = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 20).unwrap();
    make(&parts[0]);
    let address = format!("concat({},{})", file(&parts[0]), file(&parts[1]));
    let server = serve(&address, true);
    assert!(unit(&server).2);
    make(&parts[1]);
    server.try_absent(&mut BTreeMap::new());
    let (_, blocks, absent) = unit(&server);
    assert_eq!((blocks, absent), (4096, false));
    end(&server);
}

/// Nobody could know how long its blocks are, and its reservations are locked already.
#[test]
fn what_has_other_blocks_than_was_thought_is_another_unit_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("disk"), folder.path().join("state"));
    let server = serve_as(&file(&path), true, Some("1"), Some(&state));
    let (unknown, ..) = unit(&server);
    fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    {
        // As of a device with blocks of 4096 bytes.
        let mut served = server.served();
        let unit = Arc::make_mut(served.units.get_mut("disk").unwrap());
        unit.volume = Arc::new(Absent::new(Some(4096)));
    }
    server.try_absent(&mut BTreeMap::new());
    let (known, blocks, absent) = unit(&server);
    assert_eq!((blocks, absent), (2048, false));
    assert_ne!(known, unknown);
    end(&server);
}

/// It is known by what it was told, and it holds the lock on its reservations already.
#[test]
fn what_was_told_its_name_is_the_same_unit_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("disk"), folder.path().join("state"));
    let server = serve_as(&file(&path), true, Some("1"), Some(&state));
    let (unknown, _, absent) = unit(&server);
    assert!(absent);
    fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    server.try_absent(&mut BTreeMap::new());
    assert_eq!(unit(&server), (unknown, 2048, false));
    end(&server);
}
