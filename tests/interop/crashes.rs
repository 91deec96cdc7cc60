//! kill -9: what was promised to be there is there after a restart.

mod load;
mod reserver;
mod writer;

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tests::cdb::{self, Reserve};
use tests::client::Client;
use tests::initiator::Data;
use tests::server::Server;

use self::reserver::{RESERVATION_CONFLICT, reserve};
use crate::file;

const KEY: u64 = 0x1122_3344_5566_7788;

fn pattern(number: u32) -> Rc<[u8]> {
    (0..8 * 512_u32)
        .map(|at| (at.wrapping_mul(number + 3) >> 2) as u8)
        .collect()
}

/// Writes with and without FUA, ends the server under further load, and reads what was promised.
fn acknowledged_data_survives(dir: &Path, volume: &str) {
    let server = Server::start_in(dir, &[volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    for number in 0..32 {
        let (lba, fua) = (u64::from(number) * 8, number % 2 == 0);
        client.write(lba, &pattern(number)[..], fua).unwrap();
    }
    client.good(&cdb::flush(), Data::None).unwrap();
    client.write(1000, &pattern(77)[..], true).unwrap();
    // Under way when it ends: may be there or not.
    for number in 0..16 {
        let cdb = cdb::write(2000 + u64::from(number) * 8, 8, false);
        let (lun, data) = (client.lun, Data::Out(pattern(number)));
        client.initiator.command(0, lun, &cdb, data);
    }
    client.exchange(Duration::from_millis(1)).unwrap();
    server.kill().unwrap();

    let server = Server::start_in(dir, &[volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let places = (0..32).map(|number| (u64::from(number) * 8, number));
    for (lba, number) in places.chain([(1000, 77)]) {
        let data = client.read(lba, 8).unwrap();
        assert_eq!(data[..], pattern(number)[..], "LBA {lba}");
    }
}

#[test]
fn a_file_keeps_what_was_acknowledged() {
    let dir = tests::scratch("crash-file").unwrap();
    acknowledged_data_survives(&dir, &file(&dir, "disk?size=16M"));
}

#[test]
fn a_file_without_the_page_cache_keeps_it_too() {
    let dir = tests::scratch("crash-direct").unwrap();
    acknowledged_data_survives(&dir, &file(&dir, "disk?size=16M&direct"));
}

fn reservations_survive(name: &str, aptpl: bool) -> bool {
    let dir = tests::scratch(name).unwrap();
    let volume = file(&dir, "disk?size=16M");
    let server = Server::start_in(&dir, &[&volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    for (action, key, new, aptpl) in [
        (Reserve::Register, 0, KEY, aptpl),
        (Reserve::Reserve, KEY, 0, false),
    ] {
        let ended = reserve(&mut client, action, key, new, aptpl).unwrap();
        assert_eq!(ended.status, 0, "{ended:02x?}");
    }
    server.kill().unwrap();

    // By another address, as another target: it is the disk that counts.
    let volume = file(&dir, &format!("../{name}/disk?direct"));
    let options = ["--iqn", "iqn.2026-11.org.lunar:another"];
    let server = Server::start_in(&dir, &[&volume], &options).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let mut has = |action| {
        let told = client.reservations(action).unwrap();
        told.starts_with(&KEY.to_be_bytes())
    };
    let (keys, holder) = (has(0), has(1));
    assert_eq!(keys, holder, "registration and reservation go together");
    if keys {
        let mut other = Client::log_in(&server.luns[0], 2).unwrap();
        let (cdb, data) = (cdb::write(0, 8, false), Data::Out(pattern(1)));
        let ended = other.command(&cdb, data).unwrap();
        let why = "for who is not registered";
        assert_eq!(ended.status, RESERVATION_CONFLICT, "{why}");
    }
    keys
}

/// A RAM disk that is empty is another disk: it cannot promise to keep reservations.
#[test]
fn a_ram_disk_keeps_no_reservations() {
    let server = Server::start("crash-ram", &["ram:16M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let report = [0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0];
    let told = client.good(&report, Data::In(8)).unwrap();
    assert_eq!(told[2] & 1, 0, "PTPL_C: {told:02x?}");
}

#[test]
fn reservations_survive_if_they_were_asked_to() {
    assert!(reservations_survive("crash-aptpl", true));
    assert!(!reservations_survive("crash-no-aptpl", false));
}
