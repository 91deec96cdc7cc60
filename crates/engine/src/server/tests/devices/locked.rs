//! Locked RAM disks: devices read and write their memory, and nothing of it is copied.

use ::io::rdma::RdmaCopies;
use block::lease::BlockLease;
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::{Data, InitiatorEvent, Tmf};
use pretend_verbs::{Count, Order};
use scsi::medium::Lease as _;
use scsi::wire::lun::Lun;

use crate::serve::options::ServeError;

use super::rig::{Host, Lab, WRITE_16, config_of, inventory_of, pattern, within};

const MIB: u64 = 1 << 20;

/// Lengths of a block, a page, what goes with a command, a segment, and several.
const LENGTHS: [usize; 6] = [512, 4096, 8192, 64 << 10, 256 << 10, 1 << 20];

/// A server of a volume; `None` where tests may not lock so much.
fn lab(address: &str) -> Option<Lab> {
    match Lab::start(inventory_of(address, true)) {
        Ok(lab) => Some(lab),
        Err(error) if is_forbidden(&error) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Tests may not lock so much.
fn is_forbidden(error: &ServeError) -> bool {
    error.to_string().contains("RLIMIT_MEMLOCK")
}

/// A host all of whose data the target fetches: what comes with a command is in the memory of a
/// receive, and is always copied.
fn fetched(lab: &Lab) -> Host {
    let mut config: InitiatorConfig = config_of(1);
    config.offer.keys.immediate_data = false;
    lab.host_by(config)
}

/// Writes and reads each length; returns what was copied for that.
fn copied_for(lab: &Lab, host: &mut Host) -> RdmaCopies {
    let before = lab.copies();
    for (number, len) in LENGTHS.into_iter().enumerate() {
        let data = pattern(len, number as u8);
        host.write(2 * number as u64, data.clone());
        assert!(host.read(2 * number as u64, len) == data, "{len} bytes");
    }
    // What a core copied is told before it posts the next response.
    host.ready();
    let after = lab.copies();
    RdmaCopies {
        sent: after.sent - before.sent,
        received: after.received - before.received,
    }
}

/// What is copied of another disk.
fn all() -> RdmaCopies {
    let bytes: usize = LENGTHS.iter().sum();
    RdmaCopies {
        sent: bytes as u64,
        received: bytes as u64,
    }
}

const NOTHING: RdmaCopies = RdmaCopies {
    sent: 0,
    received: 0,
};

#[test]
fn nothing_is_copied_of_a_locked_disk_and_all_of_another_one() {
    let lab = lab("ram:2M").unwrap();
    let mut host = fetched(&lab);
    assert_eq!(copied_for(&lab, &mut host), all());
    drop((host, lab));
    let Some(lab) = self::lab("ram:2M?locked") else {
        return;
    };
    let mut host = fetched(&lab);
    lab.until_registered(2 * MIB);
    assert_eq!(copied_for(&lab, &mut host), NOTHING);
}

/// What lies in one chunk. What lies in several is put together in memory of the pool.
#[test]
fn volumes_around_a_locked_disk_lend_its_memory() {
    for (address, bytes) in [
        ("stats(limit:iops=1000k(ram:2M?locked))", 2 * MIB),
        ("concat(ram:2M?locked,ram:64k)", 2 * MIB),
        (
            "stripe:1280k(ram:1280k?locked,ram:1280k?locked)",
            2560 << 10,
        ),
    ] {
        let Some(lab) = lab(address) else { return };
        let mut host = fetched(&lab);
        lab.until_registered(bytes);
        assert_eq!(copied_for(&lab, &mut host), NOTHING, "{address}");
    }
}

#[test]
fn blocks_that_were_never_written_are_sent_without_a_copy() {
    let Some(lab) = lab("ram:2M?locked") else {
        return;
    };
    let mut host = lab.host(1);
    lab.until_registered(2 * MIB);
    let before = lab.copies();
    assert_eq!(host.read(4000, 512), [0; 512]);
    host.ready();
    assert_eq!(lab.copies(), before);
}

/// A device would go on storing after the other host was told that the command is over.
#[test]
fn a_reset_by_another_host_ends_a_session_whose_data_is_being_stored() {
    let Some(lab) = lab("ram:2M?locked") else {
        return;
    };
    let (mut host, mut other) = (fetched(&lab), lab.host(2));
    lab.until_registered(2 * MIB);
    lab.order(Order::Hold, 2);
    let requests = lab.world.count(Count::Requests);
    let lease = BlockLease::from_bytes(pattern(256 << 10, 9));
    host.give(WRITE_16, 0, Data::Out(lease));
    // The command, and the read that it leads to.
    within(|| (lab.world.count(Count::Requests) >= requests + 2).then_some(()));
    let (now, initiator) = other.initiator();
    initiator
        .manage(now, 1, Lun::from_index(0), Tmf::LogicalUnitReset)
        .unwrap();
    let response = other.until(|event| match event {
        InitiatorEvent::Managed { response, .. } => Some(response),
        _ => None,
    });
    assert_eq!(response, Some(0));
    host.end();
    lab.until_sessions(1);
    lab.order(Order::Hold, 0);
    other.ready();
    assert_eq!(other.read(0, 256 << 10), vec![0; 256 << 10]);
}

#[test]
fn a_disk_that_comes_while_hosts_are_there_is_known_and_one_that_goes_is_forgotten() {
    let Some(lab) = lab("ram:2M?locked") else {
        return;
    };
    let mut host = fetched(&lab);
    lab.until_registered(2 * MIB);
    let pinned = lab.world.count(Count::Pinned);
    lab.server.apply(inventory_of("ram:2M", true)).unwrap();
    lab.until_registered(0);
    host.ready();
    assert!(lab.world.count(Count::Pinned) < pinned);
    assert_eq!(copied_for(&lab, &mut host), all());
    let locked = inventory_of("stats(ram:2M?locked)", true);
    lab.server.apply(locked).unwrap();
    lab.until_registered(2 * MIB);
    host.ready();
    assert_eq!(copied_for(&lab, &mut host), NOTHING);
}

#[test]
fn what_a_device_cannot_have_is_copied() {
    let Some(lab) = lab("ram:64k") else { return };
    let mut host = fetched(&lab);
    // Both ends have what they copy through then.
    host.write(0, pattern(64 << 10, 0));
    host.read(0, 64 << 10);
    let pinned = i64::try_from(lab.world.count(Count::Pinned)).unwrap();
    lab.order(Order::PinnedLimit, pinned);
    let locked = inventory_of("ram:1M?locked", true);
    match lab.server.apply(locked) {
        Err(error) if is_forbidden(&error) => return eprintln!("skipped: {error}"),
        applied => applied.unwrap(),
    }
    host.ready();
    let before = lab.copies();
    let data = pattern(64 << 10, 1);
    host.write(0, data.clone());
    assert!(host.read(0, 64 << 10) == data);
    host.ready();
    let after = lab.copies();
    assert_eq!(after.sent - before.sent, 64 << 10);
    assert_eq!(after.received - before.received, 64 << 10);
    let domains = lab.library().domains();
    assert_eq!(domains[0].locked_bytes(), 0);
}

#[test]
fn a_device_that_comes_back_knows_it_again() {
    let Some(lab) = lab("ram:2M?locked") else {
        return;
    };
    let mut host = fetched(&lab);
    lab.until_registered(2 * MIB);
    lab.order(Order::Remove, 0);
    host.end();
    drop(host);
    lab.until_sessions(0);
    within(|| (!lab.server.missing_portals().is_empty()).then_some(()));
    lab.order(Order::Devices, 1);
    within(|| {
        lab.server.try_portals();
        lab.server.missing_portals().is_empty().then_some(())
    });
    let mut host = fetched(&lab);
    lab.until_registered(2 * MIB);
    assert_eq!(copied_for(&lab, &mut host), NOTHING);
}

/// The first part of a block comes with its command, and the device reads the rest.
#[test]
fn a_block_that_comes_in_two_ways_is_whole() {
    let Some(lab) = lab("ram:2M?locked") else {
        return;
    };
    let mut config = config_of(1);
    config.offer.keys.first_burst = 1000;
    let mut host = lab.host_by(config);
    lab.until_registered(2 * MIB);
    for len in [1024, 4096, 64 << 10] {
        let lease = BlockLease::from_bytes(pattern(len, 3));
        host.give(WRITE_16, 8, Data::Out(lease));
        assert_eq!(host.done().status, 0);
        assert!(host.read(8, len) == pattern(len, 3), "{len} bytes");
    }
}
