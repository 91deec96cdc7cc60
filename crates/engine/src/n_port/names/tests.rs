//! Names that nobody else has.

use std::process::Command;
use std::{env, process};

use super::*;

#[test]
fn each_port_of_an_interface_has_an_address_of_its_own() {
    let own = [0x52, 0x54, 0, 0x78, 0x41, 0x7f];
    let mut low: Vec<[u8; 2]> = (0..PORTS_MAX)
        .map(|number| numbered(own, number))
        .map(|[.., e, f]| [e, f])
        .collect();
    low.sort_unstable();
    low.dedup();
    assert_eq!(low.len(), usize::from(PORTS_MAX));
    assert_eq!(numbered(own, 0), own);
}

/// Those of virtual machines are often consecutive, and locally administered.
#[test]
fn an_address_is_not_that_of_a_neighbouring_machine() {
    for own in [[0x52, 0x54, 0, 0x12, 0x34, 0x56], [2, 0, 0, 0, 0xd1, 0]] {
        for number in 1..PORTS_MAX {
            let address = numbered(own, number);
            assert_ne!(address[..4], own[..4], "{number}");
            assert_eq!(address[0] & 0x0f, 2, "local, and of no group: {number}");
        }
    }
}

const OWN: Mac = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// An interface that no other test has: claims hold in all of the network namespace.
fn interface(name: &str) -> String {
    format!("{name}-{}", process::id())
}

/// What is had there, by its number.
fn had(interface: &str, owner: &Owner) -> (u64, Names) {
    let names = Names::first_free(interface, OWN, owner).unwrap();
    (names.wwpn.0 >> 48, names)
}

#[test]
fn a_number_is_taken_until_its_owner_ends() {
    let (eth0, eth1) = (interface("taken0"), interface("taken1"));
    let (first, names) = had(&eth0, &Owner::Initiator);
    let (second, _other) = had(&eth0, &Owner::Initiator);
    assert_eq!((first, second), (0x2001, 0x2002), "0 is a server's");
    assert_eq!(had(&eth1, &Owner::Initiator).0, 0x2001);
    drop(names);
    assert_eq!(had(&eth0, &Owner::Initiator).0, 0x2001);
}

#[test]
fn a_server_has_its_number_or_is_told_who_has_it() {
    let eth0 = interface("server");
    let _initiator = had(&eth0, &Owner::Initiator);
    let (number, names) = had(&eth0, &Owner::Server);
    assert_eq!(number, 0x2000);
    let refused = Names::first_free(&eth0, OWN, &Owner::Server).unwrap_err();
    let process = format!("process {}", process::id());
    assert!(refused.to_string().contains(&process), "{refused}");
    assert_eq!(had(&eth0, &Owner::NamedServer(Wwn(7))).0, 0x2002);
    drop(names);
    assert_eq!(had(&eth0, &Owner::Server).0, 0x2000);
}

#[test]
fn a_wwpn_that_is_given_is_for_one_server() {
    let eth0 = interface("named");
    let _named = had(&eth0, &Owner::NamedServer(Wwn(7)));
    let refused = Names::first_free(&eth0, OWN, &Owner::NamedServer(Wwn(7))).unwrap_err();
    assert!(refused.to_string().contains("another one"), "{refused}");
    had(&eth0, &Owner::NamedServer(Wwn(8)));
    let of_number_3 = wwpn(OWN, 3);
    let _third = had(&eth0, &Owner::NamedServer(of_number_3));
    let (_, _first) = had(&eth0, &Owner::Initiator);
    let (_, _second) = had(&eth0, &Owner::Initiator);
    let next = had(&eth0, &Owner::Initiator);
    assert_ne!(next.1.wwpn, of_number_3);
}

/// As those in a container with the network of its host: what the two share is the interface.
#[test]
fn a_name_is_taken_for_programs_with_other_files_too() {
    let eth0 = interface("mounts");
    let _names = had(&eth0, &Owner::Server);
    let test = "n_port::names::tests::a_name_is_taken_for_programs_with_other_files_too";
    if let Ok(theirs) = env::var(INTERFACE) {
        let refused = Names::first_free(&theirs, OWN, &Owner::Server).unwrap_err();
        assert!(refused.to_string().contains("already serves"), "{refused}");
        return;
    }
    let script = "mount -t tmpfs none /run && mount -t tmpfs none /tmp && exec \"$0\" \"$@\"";
    let inside = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INTERFACE, &eth0)
        .env("XDG_RUNTIME_DIR", "/tmp")
        .output()
        .expect("unshare (package util-linux)");
    let told = String::from_utf8_lossy(&inside.stdout);
    let errors = String::from_utf8_lossy(&inside.stderr);
    let passed = inside.status.success() && told.contains("1 passed");
    assert!(passed, "{told}{errors}");
}

const INTERFACE: &str = "LUNAR_NAMES_INTERFACE";
