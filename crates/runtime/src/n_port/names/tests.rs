//! Names that nobody else has.

use std::{env, fs, process};

use super::*;

#[test]
fn each_port_of_an_interface_has_an_address_of_its_own() {
    let own = [0x52, 0x54, 0, 0x78, 0x41, 0x7f];
    let mut low: Vec<[u8; 2]> = (0..16 * PORTS_MAX)
        .map(|number| numbered(own, number))
        .map(|[.., e, f]| [e, f])
        .collect();
    low.sort_unstable();
    low.dedup();
    assert_eq!(low.len(), usize::from(16 * PORTS_MAX));
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

fn numbers(name: &str) -> PortNumbers {
    let path = env::temp_dir().join(format!("lunar-names-{}-{name}", process::id()));
    let _ = fs::remove_dir_all(&path);
    PortNumbers {
        folder: claim::ClaimDir::new(&path).unwrap(),
        first: 1,
    }
}

#[test]
fn a_number_is_taken_until_its_owner_ends() {
    let numbers = numbers("taken");
    let free = |interface| {
        numbers
            .first_free(interface, &PortOwner::Initiator)
            .unwrap()
    };
    let (first, claim) = free("eth0");
    let (second, _other) = free("eth0");
    assert_eq!((first, second), (1, 2), "0 is a server's");
    assert_eq!(free("eth1").0, 1);
    drop(claim);
    assert_eq!(free("eth0").0, 1);
}

#[test]
fn a_server_has_its_number_or_is_told_who_has_it() {
    let numbers = numbers("server");
    let _initiator = numbers.first_free("eth0", &PortOwner::Initiator).unwrap();
    let (number, claim) = numbers.first_free("eth0", &PortOwner::Server).unwrap();
    assert_eq!(number, 0);
    let refused = numbers.first_free("eth0", &PortOwner::Server).unwrap_err();
    let process = format!("process {}", process::id());
    assert!(refused.to_string().contains(&process), "{refused}");
    let named = numbers.first_free("eth0", &PortOwner::NamedServer).unwrap();
    assert_eq!(named.0, 2);
    drop(claim);
    assert_eq!(numbers.first_free("eth0", &PortOwner::Server).unwrap().0, 0);
}

#[test]
fn a_switch_has_the_address_of_the_interface_or_is_told_how_to_get_it() {
    let numbers = numbers("switch");
    let claim = numbers.first_free("eth0", &PortOwner::Server).unwrap();
    let refused = numbers.first_free("eth0", &PortOwner::Switch).unwrap_err();
    let way_out = format!("stop it (kill {})", process::id());
    assert!(refused.to_string().contains(&way_out), "{refused}");
    drop(claim);
    assert_eq!(numbers.first_free("eth0", &PortOwner::Switch).unwrap().0, 0);
}

#[test]
fn nobody_else_can_take_a_number() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let numbers = numbers("private");
    let path = env::temp_dir().join(format!("lunar-names-{}-private", process::id()));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let _claim = numbers.first_free("eth0", &PortOwner::Server).unwrap();
    assert_eq!(mode(&path), 0o700);
    let folder = fs::read_dir(&path).unwrap().next().unwrap().unwrap().path();
    assert_eq!(
        (mode(&folder), mode(&folder.join("eth0-0"))),
        (0o700, 0o600)
    );
    symlink("/etc/passwd", folder.join("eth1-0")).unwrap();
    numbers.first_free("eth1", &PortOwner::Server).unwrap_err();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    claim::ClaimDir::new(&path).unwrap_err();
}
