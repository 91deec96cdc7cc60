//! kill -9: what was promised to be there is there after a restart.

mod load;
mod reserver;
mod writer;

use std::path::Path;
use std::rc::Rc;

use tests::client::Client;
use tests::initiator::Data;
use tests::server::Server;

const KEY: u64 = 0x1122_3344_5566_7788;
const BLOCK: u32 = 512;

fn write10(lba: u32, blocks: u16, fua: bool) -> [u8; 10] {
    let mut cdb = [0x2a, u8::from(fua) << 3, 0, 0, 0, 0, 0, 0, 0, 0];
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

fn read10(lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = write10(lba, blocks, false);
    cdb[0] = 0x28;
    cdb
}

const SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn pattern(number: u32) -> Rc<[u8]> {
    (0..8 * BLOCK)
        .map(|at| (at.wrapping_mul(number + 3) >> 2) as u8)
        .collect()
}

/// Writes with and without FUA, ends the server under further load, and reads what was promised.
fn acknowledged_data_survives(dir: &Path, volume: &str) {
    let server = Server::start_in(dir, &[volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    for number in 0..32 {
        let cdb = write10(number * 8, 8, number % 2 == 0);
        client.good(&cdb, Data::Out(pattern(number))).unwrap();
    }
    client.good(&SYNCHRONIZE_CACHE, Data::None).unwrap();
    client
        .good(&write10(1000, 8, true), Data::Out(pattern(77)))
        .unwrap();
    // Under way when it ends: may be there or not.
    for number in 0..16 {
        let cdb = write10(2000 + number * 8, 8, false);
        client
            .initiator
            .command(0, client.lun, &cdb, Data::Out(pattern(number)));
    }
    client
        .exchange(std::time::Duration::from_millis(1))
        .unwrap();
    server.kill().unwrap();

    let server = Server::start_in(dir, &[volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let places = (0..32)
        .map(|number| (number * 8, number))
        .chain([(1000, 77)]);
    for (lba, number) in places {
        let data = client.good(&read10(lba, 8), Data::In(8 * BLOCK)).unwrap();
        assert_eq!(data[..], pattern(number)[..], "LBA {lba}");
    }
}

#[test]
fn a_file_keeps_what_was_acknowledged() {
    let dir = tests::scratch("crash-file").unwrap();
    let volume = format!("file:{}?size=16M", dir.join("disk").display());
    acknowledged_data_survives(&dir, &volume);
}

#[test]
fn a_file_without_the_page_cache_keeps_it_too() {
    let dir = tests::scratch("crash-direct").unwrap();
    let volume = format!("file:{}?size=16M&direct", dir.join("disk").display());
    acknowledged_data_survives(&dir, &volume);
}

/// PERSISTENT RESERVE OUT with a service action, scope LU and a type (SPC-5 §6.16).
fn reserve_out(client: &mut Client, action: u8, kind: u8, key: u64, new: u64, aptpl: bool) {
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    let mut parameters = [0; 24];
    parameters[..8].copy_from_slice(&key.to_be_bytes());
    parameters[8..16].copy_from_slice(&new.to_be_bytes());
    parameters[20] = u8::from(aptpl);
    client.good(&cdb, Data::Out(Rc::from(parameters))).unwrap();
}

/// PERSISTENT RESERVE IN: the parameter data of READ KEYS (0) or READ RESERVATION (1), without
/// its header.
fn reserve_in(client: &mut Client, action: u8) -> Vec<u8> {
    let cdb = [0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0];
    let data = client.good(&cdb, Data::In(256)).unwrap();
    data[8..].to_vec()
}

fn reservations_survive(name: &str, aptpl: bool) -> bool {
    let dir = tests::scratch(name).unwrap();
    let volume = format!("file:{}?size=16M", dir.join("disk").display());
    let server = Server::start_in(&dir, &[&volume], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    reserve_out(&mut client, 0, 0, 0, KEY, aptpl);
    // Write Exclusive, Registrants Only.
    reserve_out(&mut client, 1, 5, KEY, 0, false);
    server.kill().unwrap();

    // By another address, as another target: it is the disk that counts.
    let volume = format!("file:{}/../{name}/disk?direct", dir.display());
    let options = ["--iqn", "iqn.2026-11.org.lunar:another"];
    let server = Server::start_in(&dir, &[&volume], &options).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let keys = reserve_in(&mut client, 0).starts_with(&KEY.to_be_bytes());
    let holder = reserve_in(&mut client, 1).starts_with(&KEY.to_be_bytes());
    assert_eq!(keys, holder, "registration and reservation go together");
    if keys {
        let mut other = Client::log_in(&server.luns[0], 2).unwrap();
        let ended = other
            .command(&write10(0, 8, false), Data::Out(pattern(1)))
            .unwrap();
        assert_eq!(
            ended.status, 0x18,
            "RESERVATION CONFLICT for who is not registered"
        );
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
