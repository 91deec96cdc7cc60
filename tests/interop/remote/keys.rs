//! Reservations of a unit of another target: our initiator and our target, with two keys.

use std::rc::Rc;

use tests::cdb::{self, Reserve};
use tests::client::Client;
use tests::initiator::Data;
use tests::server::{self, Server};

use super::write;
use crate::run;

/// Exclusive Access, Registrants Only.
const KIND: u8 = 6;

fn reserve(client: &mut Client, action: Reserve, key: u64, action_key: u64) {
    let (cdb, list) = cdb::reserve_out(action, KIND, key, action_key);
    client.good(&cdb, Data::Out(Rc::from(list))).unwrap();
}

fn keys(client: &mut Client) -> Vec<u64> {
    let cdb = [0x5e, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    let data = client.good(&cdb, Data::In(256)).unwrap();
    let key = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |key, byte| key << 8 | u64::from(*byte))
    };
    let mut keys: Vec<u64> = data[8..].chunks(8).map(key).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn who_is_registered_uses_a_reserved_unit_until_it_is_fenced_off() {
    let mut back = Server::start("keys-back", &["ram:16M"], &[]).unwrap();
    let mut host = Client::log_in(&back.luns[0], 1).unwrap();
    reserve(&mut host, Reserve::RegisterAndIgnore, 0, 1);
    reserve(&mut host, Reserve::Reserve, 1, 0);

    let address = back.address(0).to_owned();
    let program = server::binary().unwrap().to_string_lossy().into_owned();
    let ran = run(&program, &["info", &address]);
    let said = ran.output;
    assert_eq!(
        ran.status.and_then(|status| status.code()),
        Some(1),
        "{said}"
    );
    assert!(
        said.contains("it is reserved by another initiator: register with a key"),
        "{said}"
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
    assert_eq!(
        keys(&mut host),
        [1, 2, 3],
        "what asked what the unit is has left nothing"
    );

    reserve(&mut host, Reserve::Preempt, 1, 2);
    let data = || Data::Out(vec![9; 512].into());
    let fenced = by_one.command(&cdb::write(3, 1, true), data()).unwrap();
    assert_eq!(fenced.status, 2, "{fenced:02x?}");
    write(&mut by_other, 4);
    assert_eq!(keys(&mut host), [1, 3]);
    one.has_logged("another initiator removed this one's registration")
        .unwrap();

    assert_eq!(one.stop().unwrap().code(), Some(0));
    assert_eq!(other.stop().unwrap().code(), Some(0));
    assert_eq!(keys(&mut host), [1], "each takes its own back");
    assert!(back.alive().unwrap());
}

#[test]
fn a_cache_is_switched_off_and_back_on() {
    let dir = tests::scratch("keys-cache").unwrap();
    let volume = format!("file:{}?size=1M", dir.join("disk").display());
    let back = Server::start_in(&dir, &[&volume], &[]).unwrap();
    let program = server::binary().unwrap().to_string_lossy().into_owned();
    let info = |option: &str| {
        let address = format!("{}?write-cache={option}", back.address(0));
        let ran = run(&program, &["info", "--json", &address]);
        ran.output
    };
    for (option, expected) in [
        ("off", "\"write_cache\":false"),
        ("on", "\"write_cache\":true"),
    ] {
        let said = info(option);
        assert!(said.contains(expected), "{said}");
    }
    let ram = Server::start("keys-ram", &["ram:1M"], &[]).unwrap();
    let address = format!("{}?write-cache=on", ram.address(0));
    let ran = run(&program, &["info", &address]);
    let said = ran.output;
    assert!(
        said.contains("the target refuses to switch its write cache on"),
        "{said}"
    );
}
