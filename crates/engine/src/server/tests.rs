//! Changes that are made, refused, or slow, as those see it that only look.

mod devices;

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::file::UndoLog;

use super::{Server, ServerConfig, ServerHandle};
use crate::inventory::{Inventory, UnitRow};

fn config() -> ServerConfig {
    let mut config = ServerConfig::new("iqn.2026-11.org.lunar:us".into()).unwrap();
    config.threads = Some(NonZeroUsize::MIN);
    config
}

fn serve(inventory: Inventory) -> ServerHandle {
    Server::start(config(), inventory, &UndoLog::default()).unwrap()
}

/// One unit, which is a file.
fn disk(path: &Path, options: &str) -> Inventory {
    let address = format!("file:{}?{options}", path.display());
    let row = UnitRow {
        serial: Some("1".to_owned()),
        ..UnitRow::new(address.parse().unwrap(), address)
    };
    Inventory {
        units: [("disk".to_owned(), row.into())].into(),
        ..Inventory::default()
    }
}

/// A change of a unit.
type Edit = fn(&mut UnitRow);

/// Its file is locked, and so are its reservations: by this server itself.
#[test]
fn a_disk_becomes_another_one_in_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("disk"), folder.path().join("state"));
    let config = ServerConfig {
        state_dir: Some(state.clone()),
        ..config()
    };
    let mut inventory = disk(&path, "size=1M");
    let server = Server::start(config, inventory.clone(), &UndoLog::default()).unwrap();
    let id = || server.served().units["disk"].id;
    let edits: [Edit; 7] = [
        |row| row.vendor = Some("LAB".to_owned()),
        |row| row.removable = true,
        |row| row.serial = Some("2".to_owned()),
        |row| row.naa = Some(vec![0x3f; 8]),
        |row| row.serial = Some("3".to_owned()),
        |row| row.block_size = Some(4096),
        |row| row.block_size = None,
    ];
    for edit in edits {
        let before = id();
        edit(Arc::make_mut(inventory.units.get_mut("disk").unwrap()));
        assert!(!change(&server, &inventory, &mut || Err("no".to_owned())));
        assert_eq!(id(), before, "the old one stays, with its locks");
        server.apply(inventory.clone()).unwrap();
        assert_ne!(id(), before, "hosts have to look again");
        let unit = &server.units()[0];
        let bytes = unit.blocks * u64::from(unit.block_size);
        assert_eq!(bytes, 1 << 20);
        assert_eq!(locks(&state), 1);
    }
    end(&server);
    assert_eq!(locks(&state), 0);
}

/// By another file, and by the same one that has grown, which no core is told of.
#[test]
fn what_is_flushed_at_the_end_is_called_as_it_is_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("disk"), folder.path().join("other"));
    let server = serve(disk(&path, "size=1M"));
    for (path, options) in [(&path, "size=2M"), (&other, "size=1M")] {
        server.apply(disk(path, options)).unwrap();
        let name = format!("file:{}?{options}", path.display());
        assert_eq!(server.flushes.missing(), [(0, name)]);
    }
    end(&server);
}

/// Units whose reservations this server keeps others from.
fn locks(state: &Path) -> usize {
    let names = fs::read_dir(state).unwrap().map(|one| one.unwrap().path());
    let is_lock = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "lock");
    names.filter(is_lock).count()
}

/// Both would write to it.
#[test]
fn a_file_that_one_disk_leaves_is_not_that_of_two_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let mut next = disk(&path, "size=1M");
    let server = serve(next.clone());
    let row = next.units.remove("disk").unwrap();
    for (name, serial) in [("one", "2"), ("other", "3")] {
        let serial = Some(serial.to_owned());
        let row = UnitRow {
            serial,
            ..UnitRow::clone(&row)
        };
        next.units.insert(name.to_owned(), row.into());
    }
    assert!(!change(&server, &next, &mut || Ok(())));
    next.units.remove("other");
    assert!(change(&server, &next, &mut || Ok(())));
    end(&server);
}

#[test]
fn two_disks_take_each_others_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut inventory = disk(&folder.path().join("a"), "size=1M");
    let mut other = disk(&folder.path().join("b"), "size=2M").units;
    let mut other = other.remove("disk").unwrap();
    Arc::make_mut(&mut other).serial = Some("2".to_owned());
    inventory.units.insert("other".to_owned(), other);
    let config = ServerConfig {
        state_dir: Some(folder.path().join("state")),
        ..config()
    };
    let server = Server::start(config, inventory.clone(), &UndoLog::default()).unwrap();
    for (name, serial) in [("disk", "2"), ("other", "1")] {
        Arc::make_mut(inventory.units.get_mut(name).unwrap()).serial = Some(serial.to_owned());
    }
    server.apply(inventory).unwrap();
    let served = server.served().units.clone();
    let serial = |name: &str| served[name].called.serial.clone();
    assert_eq!([serial("disk"), serial("other")], ["2", "1"]);
    end(&server);
}

fn change(
    server: &ServerHandle,
    inventory: &Inventory,
    persist: &mut dyn FnMut() -> Result<(), String>,
) -> bool {
    let made = server.apply_after(inventory.clone(), &BTreeSet::new(), persist);
    made.is_ok()
}

fn end(server: &ServerHandle) {
    server.stop();
    server.wait().unwrap();
}

/// A host could have written behind the old end of a file that grew for a change that is refused.
#[test]
fn a_file_grows_when_the_change_is_kept_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let len = || fs::metadata(&path).unwrap().len();
    for (small, large) in [("size=1M", "size=2M"), ("size=2M&sparse", "size=3M&sparse")] {
        let server = serve(disk(&path, small));
        let (before, larger) = (len(), disk(&path, large));
        let mut full = || Err("no space left".to_owned());
        assert!(!change(&server, &larger, &mut full));
        assert_eq!(len(), before);
        let mut kept = || {
            assert_eq!(len(), before);
            Ok(())
        };
        assert!(change(&server, &larger, &mut kept));
        assert_eq!(len(), before + (1 << 20));
        end(&server);
    }
}

#[test]
fn a_portal_that_is_taken_at_the_start_is_listened_to_when_it_is_free() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = other.local_addr().unwrap();
    let inventory = Inventory {
        portals: vec![portal],
        ..Inventory::default()
    };
    let mut config = config();
    assert!(Server::start(config.clone(), inventory.clone(), &UndoLog::default()).is_err());
    config.portals_may_be_missing = true;
    let server = Server::start(config, inventory.clone(), &UndoLog::default()).unwrap();
    let cause = "another program has this port: targetcli ls shows Linux's own target, ss -ltnp \
                 any other; stop it, or take another port";
    let missing = (portal, format!("nothing listens on {portal} ({cause})"));
    assert_eq!(server.missing_portals(), [missing]);
    // It may go, and come again only if it can be had.
    assert!(change(&server, &Inventory::default(), &mut || Ok(())));
    assert!(!change(&server, &inventory, &mut || Ok(())));
    end(&server);
    let mut config = self::config();
    config.portals_may_be_missing = true;
    let server = Server::start(config, inventory, &UndoLog::default()).unwrap();
    drop(other);
    server.try_portals();
    assert!(server.missing_portals().is_empty());
    TcpStream::connect(portal).unwrap();
    end(&server);
}

/// All addresses, and one of them, cannot both be listened to by strangers.
#[test]
fn a_portal_moves_from_all_addresses_to_one_and_back() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let local = |last| SocketAddr::from(([127, 0, 0, last], port));
    let at = |portal| Inventory {
        portals: vec![portal],
        ..Inventory::default()
    };
    let (all, one) = (at(([0; 4], port).into()), at(local(1)));
    let reaches = |last| TcpStream::connect(local(last)).is_ok();
    let server = serve(all.clone());
    assert!(!change(&server, &one, &mut || Err("no".to_owned())));
    assert!(reaches(2), "nothing has changed");
    assert!(change(&server, &one, &mut || Ok(())));
    assert!(reaches(1));
    // The kernel may still be about to close it.
    let until = Instant::now() + Duration::from_secs(20);
    while reaches(2) {
        assert!(Instant::now() < until);
    }
    let other = TcpListener::bind(local(2)).unwrap();
    assert!(!change(&server, &all, &mut || Ok(())), "another program");
    assert!(reaches(1));
    drop(other);
    assert!(change(&server, &all, &mut || Ok(())));
    assert!(reaches(1) && reaches(2));
    end(&server);
}

#[test]
fn who_only_looks_does_not_wait_for_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let server = serve(disk(&path, "size=1M"));
    let mut seen = Vec::new();
    let mut look = || {
        seen = server.units();
        assert!(server.luns("disk").is_empty() && server.survey().silent.is_empty());
        Ok(())
    };
    assert!(change(&server, &disk(&path, "size=2M"), &mut look));
    assert_eq!(seen[0].blocks, 2048);
    end(&server);
}
