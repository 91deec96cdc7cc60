//! One Fibre Channel port on two cores: four initiators at the other end of its cable, of which
//! each core has two.

mod hosts;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use fc::initiator::FcpTmf;
use tests::cdb::{self, Reserve};
use tests::server::{self, Server};
use tests::tool;

use crate::words;

use self::hosts::{Data, Ended, Hosts};

/// A server with a RAM disk on two cores, and four initiators that are logged in.
fn scene(name: &str) -> (Server, Hosts) {
    let dir = tests::scratch(name).unwrap();
    let cable = dir.join("cable");
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["env".into(), "LUNAR_LOG=debug".into(), binary];
    let place = format!("cable:{}", cable.display());
    let options = ["--fcoe", &place, "--threads", "2"];
    let server = Server::start_as(&command, &dir, &["ram:16M"], &options).unwrap();
    let mut hosts = Hosts::new(&place, 4);
    hosts.log_in();
    for host in 0..4 {
        hosts.settle(host);
    }
    (server, hosts)
}

/// What host number `host` writes from its own LBA on, 64 KiB.
fn pattern(host: usize) -> Vec<u8> {
    let words = 0_u64..8192;
    words
        .flat_map(|word| (word << 8 | host as u64).to_le_bytes())
        .collect()
}

const BLOCKS: u32 = 128;

/// The WRITE of a host, from its own LBA on.
fn own_write(host: usize) -> [u8; 16] {
    cdb::write(u64::from(BLOCKS) * host as u64, BLOCKS, false)
}

fn write(hosts: &mut Hosts, host: usize) -> Ended {
    hosts.execute(host, &own_write(host), Data::Out(pattern(host)))
}

fn read(hosts: &mut Hosts, host: usize, whose: usize) -> Vec<u8> {
    let lba = u64::from(BLOCKS) * whose as u64;
    let ended = hosts.execute(host, &cdb::read(lba, BLOCKS), Data::In(64 << 10));
    assert_eq!(ended.status, 0, "{ended:02x?}");
    ended.data
}

/// PERSISTENT RESERVE OUT, exclusive access.
fn reserve(hosts: &mut Hosts, host: usize, action: Reserve, (key, new): (u64, u64)) -> u8 {
    let (cdb, list) = cdb::reserve_out(action, 3, key, new);
    let ended = hosts.execute(host, &cdb, Data::Out(list.to_vec()));
    ended.status
}

/// How many of them are on each core, as the log has it.
fn on_cores(log: &str) -> [usize; 2] {
    [0, 1].map(|core| log.matches(&format!("logged in, on core {core}")).count())
}

#[test]
fn initiators_of_one_port_share_its_cores_and_do_io() {
    let (server, mut hosts) = scene("fcoe-cores");
    for host in 0..4 {
        assert_eq!(write(&mut hosts, host).status, 0);
    }
    for (host, whose) in (0..4).flat_map(|host| (0..4).map(move |whose| (host, whose))) {
        assert!(
            read(&mut hosts, host, whose) == pattern(whose),
            "{host} {whose}"
        );
    }
    let log = server.stop_well().unwrap();
    assert_eq!(on_cores(&log), [2, 2], "{log}");
}

#[test]
fn a_reservation_holds_on_the_other_core() {
    let (server, mut hosts) = scene("fcoe-cores-reserved");
    assert_eq!(reserve(&mut hosts, 0, Reserve::Register, (0, 7)), 0);
    assert_eq!(reserve(&mut hosts, 0, Reserve::Reserve, (7, 0)), 0);
    assert_eq!(write(&mut hosts, 0).status, 0);
    for host in 1..4 {
        assert_eq!(write(&mut hosts, host).status, 0x18, "{host}");
    }
    assert_eq!(reserve(&mut hosts, 0, Reserve::Release, (7, 0)), 0);
    for host in 1..4 {
        assert_eq!(write(&mut hosts, host).status, 0, "{host}");
    }
    server.stop_well().unwrap();
}

/// 29h/03h: a bus device reset function occurred (SPC-5 annex D).
#[test]
fn a_logical_unit_reset_is_told_on_the_other_core() {
    let (server, mut hosts) = scene("fcoe-cores-reset");
    assert_eq!(hosts.manage(1, FcpTmf::LogicalUnitReset), Some(0));
    for host in 0..4 {
        let ended = write(&mut hosts, host);
        assert_eq!((ended.status, ended.code()), (2, 0x2903), "{host}");
        assert_eq!(write(&mut hosts, host).status, 0, "{host}");
    }
    server.stop_well().unwrap();
}

/// Each job of `bench` has a port of its own. The kernel hands each core the frames of its own
/// initiators where the server has the capabilities that its unit gives it; elsewhere one core
/// hands them on.
#[test]
fn initiators_on_one_ethernet_share_the_cores() {
    let dir = tests::scratch("fcoe-cores-veth").unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let (alone, into) = if is_root {
        ("-n", "")
    } else {
        ("-rn", "-U --preserve-credentials ")
    };
    let caps = if is_root { AS_UNIT } else { "" };
    let script = format!(
        "ip link add front mtu 2500 up type veth peer name back mtu 2500 && \
         ip link set back up && exec env LUNAR_LOG=debug {caps} \"$0\" \"$@\""
    );
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["unshare", alone, "sh", "-c", &script, &binary].map(str::to_owned);
    let options = ["--fcoe", "back", "--open", "--threads", "2"];
    let server = Server::start_as(&command, &dir, &["ram:16M"], &options).unwrap();
    let unit = server.address(0).replace("fcoe://back/", "fcoe://front/");
    let load = format!(
        "nsenter -t {} {into}-n {binary} bench {unit} --rw randrw --iodepth 8 --numjobs 4 --verify \
         --runtime 2s",
        server.pid()
    );
    let load = words(&load);
    tool::must(Command::new(load[0]).args(&load[1..])).unwrap_or_else(|cause| panic!("{cause:#}"));
    let log = server.stop_well().unwrap();
    let [first, second] = on_cores(&log);
    assert!(second >= 2 && first.abs_diff(second) <= 1, "{log}");
    assert_eq!(log.contains("hands frames on"), !is_root, "{log}");
}

/// Takes the capabilities away that the unit does not give.
const AS_UNIT: &str = "setpriv --bounding-set=-all,$(\"$0\" unit | tr A-Z a-z | \
                       sed -n '/^capabilityb/{s/.*=//;s/cap_/+/g;s/ /,/g;p}')";

/// It may get another core, but nothing of what it had heard is told twice.
#[test]
fn initiators_come_again_and_go_on() {
    let (server, mut hosts) = scene("fcoe-cores-again");
    for round in 0..3 {
        for host in 0..4 {
            assert_eq!(write(&mut hosts, host).status, 0, "{round} {host}");
        }
        hosts.log_out();
        thread::sleep(Duration::from_millis(50));
        hosts.log_in();
        for host in 0..4 {
            let loss = hosts.execute(host, &[0; 16], Data::None);
            assert_eq!((loss.status, loss.code()), (2, 0x2907), "{round} {host}");
            assert!(
                read(&mut hosts, host, host) == pattern(host),
                "{round} {host}"
            );
        }
    }
    let log = server.stop_well().unwrap();
    assert_eq!(on_cores(&log), [8, 8], "{log}");
}

/// A command that is cut off by the end of its login writes nothing afterwards, though the data
/// that it asked for comes then.
#[test]
fn a_login_that_is_replaced_leaves_nothing_behind() {
    let (server, mut hosts) = scene("fcoe-cores-replaced");
    for host in 0..4 {
        hosts.begin(host, &own_write(host), Data::Out(pattern(host + 4)));
    }
    let late = hosts.begin_anew(pattern(0).len());
    hosts.log_in();
    for host in 0..4 {
        hosts.settle(host);
        assert_eq!(write(&mut hosts, host).status, 0, "{host}");
    }
    hosts.send(&late);
    for host in 0..4 {
        assert!(read(&mut hosts, host, host) == pattern(host), "{host}");
    }
    server.stop_well().unwrap();
}
