//! A volume that is opened another time while it is served: what hosts were promised holds, and
//! nothing of what they have written is lost.

use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use scsi::wire::lun::Lun;
use tests::cdb::{self, Reserve};
use tests::client::Client;
use tests::initiator::{Data, Settings};

use crate::LIMIT;
use crate::rig::{Rig, TARGET};

/// REGISTER AND IGNORE EXISTING KEY with APTPL (SPC-5 §6.17.3). Returns whether it ended with GOOD.
fn registers(rig: &Rig, host: &mut Client, key: u64) -> bool {
    let (cdb, mut list) = cdb::reserve_out(Reserve::RegisterAndIgnore, 0, 0, key);
    list[20] = 1;
    let data = Data::Out(list.to_vec().into());
    let ended = host.command(&cdb, data);
    let ended = ended.unwrap_or_else(|cause| panic!("{cause}\n{}", rig.log()));
    ended.status == 0
}

/// The keys, once what the unit has to tell is told.
fn keys(host: &mut Client) -> Vec<u64> {
    let until = Instant::now() + LIMIT;
    loop {
        match host.keys() {
            Ok(keys) => return keys,
            Err(cause) => assert!(Instant::now() < until, "{cause}"),
        }
    }
}

/// A key that a host registers while its disk gets another name is refused, or kept.
#[test]
fn a_key_that_was_acknowledged_is_there_after_the_disk_has_another_name() {
    let rig = Rig::start();
    let portal = SocketAddr::from(([127, 0, 0, 1], rig.port));
    let mut host = Client::connect(portal, Settings::new(1, TARGET)).unwrap();
    host.lun = Lun::from_index(1);
    keys(&mut host);
    let (mut key, mut changes, mut meanwhile) = (1, 0, 0);
    assert!(registers(&rig, &mut host, key));
    for number in 0..24 {
        let vendor = format!("volume.b.vendor=V{number}");
        let set = ["set", &*vendor, "--allow", "loses=b"];
        let ran = thread::scope(|scope| {
            let changing = scope.spawn(|| rig.lunar(&set));
            while !changing.is_finished() {
                // Every other change has nothing in its way.
                if number % 2 == 0 && registers(&rig, &mut host, key + 1) {
                    key += 1;
                    meanwhile += 1;
                }
            }
            changing.join().unwrap()
        });
        let is_busy = ran.output.contains("changes its reservations");
        assert!(ran.good() || is_busy, "{}\n{}", ran.output, rig.log());
        changes += u32::from(ran.good());
        assert_eq!(keys(&mut host), [key], "{number}\n{}", rig.log());
    }
    assert!(changes >= 12 && meanwhile >= 12, "{changes} {meanwhile}");
}

/// A file that was opened to be read is locked by ourselves, and a RAM disk has nothing but its
/// memory.
#[test]
fn what_is_only_read_can_be_written_after_one_command_and_has_what_it_had() {
    let mut rig = Rig::start();
    let portal = SocketAddr::from(([127, 0, 0, 1], rig.port));
    let connect = || {
        [0, 1].map(|lun: u16| {
            let mut host =
                Client::connect(portal, Settings::new(1 + u32::from(lun), TARGET)).unwrap();
            host.lun = Lun::from_index(lun);
            keys(&mut host);
            host
        })
    };
    let mut hosts = connect();
    let protect = |rig: &Rig, protected: bool| {
        let settings = ["a", "b"].map(|name| format!("volume.{name}.readonly={protected}"));
        rig.says(&["set", &settings[0], &settings[1]]);
    };
    for host in &mut hosts {
        host.write(0, vec![1; 512], true).unwrap();
    }
    for turn in 1..4 {
        protect(&rig, true);
        for host in &mut hosts {
            keys(host);
            let refused = host.command(&cdb::write(0, 1, false), Data::Out(vec![9; 512].into()));
            assert_eq!(refused.unwrap().sense[2] & 15, DATA_PROTECT);
        }
        if turn == 2 {
            // The file is opened to be read and no more, and the RAM disk is a new one.
            drop(hosts);
            rig.kill();
            rig.begin();
            hosts = connect();
        }
        protect(&rig, false);
        for (host, lun) in hosts.iter_mut().zip(0..) {
            keys(host);
            let had = if lun == 0 && turn == 2 { 0 } else { turn };
            assert_eq!(host.read(0, 1).unwrap(), [had; 512], "{lun} {turn}");
            host.write(0, vec![turn + 1; 512], true).unwrap();
        }
    }
}

/// A sense key (SPC-5 §4.4.8).
const DATA_PROTECT: u8 = 7;
