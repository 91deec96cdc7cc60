//! Changes that are made, refused, or slow, as those see it that only look.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;

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
        units: [("disk".to_owned(), row)].into(),
        ..Inventory::default()
    }
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
    let missing = (portal, "another program listens there".to_owned());
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

#[test]
fn who_only_looks_does_not_wait_for_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let server = serve(disk(&path, "size=1M"));
    let mut seen = Vec::new();
    let mut look = || {
        seen = server.units();
        assert!(server.luns("disk").is_empty() && server.is_alive());
        Ok(())
    };
    assert!(change(&server, &disk(&path, "size=2M"), &mut look));
    assert_eq!(seen[0].blocks, 2048);
    end(&server);
}
