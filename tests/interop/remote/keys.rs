//! Reservations of a unit of another target: our initiator and our target, with two keys.

use tests::cdb::{self, Reserve};
use tests::client::Client;
use tests::initiator::Data;
use tests::server::Server;

use super::write;
use crate::{file, lunar, lunar_says, refused, says};

/// Exclusive Access, Registrants Only.
const KIND: u8 = 6;

#[test]
fn who_is_registered_uses_a_reserved_unit_until_it_is_fenced_off() {
    let mut back = Server::start("keys-back", &["ram:16M"], &[]).unwrap();
    let mut host = Client::log_in(&back.luns[0], 1).unwrap();
    host.reserve(Reserve::RegisterAndIgnore, KIND, 0, 1)
        .unwrap();
    host.reserve(Reserve::Reserve, KIND, 1, 0).unwrap();

    let address = back.address(0).to_owned();
    let said = refused(&mut lunar(&["info", &address]));
    says(
        &said,
        &["it is reserved by another initiator: register with a key"],
    );

    let front = |name: &str, key: u64| {
        let address = format!("{address}?key={key}");
        Server::start(name, &[&address], &["--threads", "1"]).unwrap()
    };
    let (one, other) = (front("keys-one", 2), front("keys-other", 3));
    let mut by_one = Client::log_in(&one.luns[0], 1).unwrap();
    let mut by_other = Client::log_in(&other.luns[0], 1).unwrap();
    write(&mut by_one, 1);
    write(&mut by_other, 2);
    let nothing_else = "what asked what the unit is has left nothing";
    assert_eq!(host.keys().unwrap(), [1, 2, 3], "{nothing_else}");

    host.reserve(Reserve::Preempt, KIND, 1, 2).unwrap();
    let data = Data::Out(vec![9; 512].into());
    let fenced = by_one.command(&cdb::write(3, 1, true), data).unwrap();
    assert_eq!(fenced.status, 2, "{fenced:02x?}");
    write(&mut by_other, 4);
    assert_eq!(host.keys().unwrap(), [1, 3]);
    one.has_logged("another initiator removed this one's registration")
        .unwrap();

    assert_eq!(one.stop().unwrap().code(), Some(0));
    assert_eq!(other.stop().unwrap().code(), Some(0));
    assert_eq!(host.keys().unwrap(), [1], "each takes its own back");
    assert!(back.alive().unwrap());
}

#[test]
fn a_cache_is_switched_off_and_back_on() {
    let dir = tests::scratch("keys-cache").unwrap();
    let back = Server::start_in(&dir, &[&file(&dir, "disk?size=1M")], &[]).unwrap();
    for (option, is_on) in [("off", false), ("on", true)] {
        let address = format!("{}?write-cache={option}", back.address(0));
        let said = lunar_says(&["info", "--json", &address]);
        says(&said, &[&format!("\"write_cache\":{is_on}")]);
    }
    let ram = Server::start("keys-ram", &["ram:1M"], &[]).unwrap();
    let address = format!("{}?write-cache=on", ram.address(0));
    let said = refused(&mut lunar(&["info", &address]));
    says(&said, &["the target refuses to switch its write cache on"]);
}
