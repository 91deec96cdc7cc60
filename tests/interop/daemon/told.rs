//! What a plan tells is what the host at work sees: a host that is logged in and at LUN 0 goes
//! through every change that a tree can have, and another beside it keeps its session.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use scsi::wire::lun::Lun;
use tests::cdb;
use tests::client::{Client, Ended};
use tests::initiator::{Data, Settings};

use crate::LIMIT;
use crate::rig::{Rig, TARGET, free_port, load};

const TEST_UNIT_READY: [u8; 6] = [0; 6];
const LUNS_CHANGED: [u8; 2] = [0x3f, 0x0e];
const CAPACITY_CHANGED: [u8; 2] = [0x2a, 0x09];

/// ASC and ASCQ, where a command ended with CHECK CONDITION.
fn code(ended: &Ended) -> Option<[u8; 2]> {
    (ended.status == 2).then(|| [ended.sense[12], ended.sense[13]])
}

/// A host, by its session.
struct Host(Client);

impl Host {
    /// Logs in, and takes what LUN 0 has to say to a new nexus.
    fn log_in(port: u16, number: u32) -> Self {
        let portal = SocketAddr::from(([127, 0, 0, 1], port));
        let mut host = Self(Client::connect(portal, Settings::new(number, TARGET)).unwrap());
        host.becomes_ready(0);
        host
    }

    fn asks(&mut self, lun: u16, cdb: &[u8], data: Data) -> Ended {
        self.0.lun = Lun::from_index(lun);
        self.0.command(cdb, data).unwrap()
    }

    /// ASC and ASCQ of the next command.
    #[track_caller]
    fn is_told(&mut self, lun: u16) -> [u8; 2] {
        let ended = self.asks(lun, &TEST_UNIT_READY, Data::None);
        code(&ended).unwrap_or_else(|| panic!("{ended:02x?}"))
    }

    /// ASC and ASCQ of the first command that does not end with GOOD.
    #[track_caller]
    fn is_soon_told(&mut self, lun: u16) -> [u8; 2] {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(code) = code(&self.asks(lun, &TEST_UNIT_READY, Data::None)) {
                return code;
            }
            assert!(Instant::now() < until, "LUN {lun} is told nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Nothing is to be told, and the unit is at work.
    #[track_caller]
    fn is_told_nothing(&mut self, lun: u16) {
        let ended = self.asks(lun, &cdb::read(0, 8), Data::In(4096));
        assert_eq!(ended.status, 0, "{ended:02x?}");
    }

    /// Takes whatever is to be told, within the time that an absent volume has to come back.
    #[track_caller]
    fn becomes_ready(&mut self, lun: u16) {
        let until = Instant::now() + LIMIT;
        while self.asks(lun, &TEST_UNIT_READY, Data::None).status != 0 {
            assert!(Instant::now() < until, "LUN {lun} does not become ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// REPORT LUNS.
    fn luns(&mut self) -> Vec<u16> {
        let report = [0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        let list = self.asks(0, &report, Data::In(256)).data;
        list[8..].chunks(8).map(|lun| lun[1].into()).collect()
    }

    /// Blocks, by READ CAPACITY (16).
    fn capacity(&mut self, lun: u16) -> u64 {
        let mut ask = [0; 16];
        (ask[0], ask[1], ask[13]) = (0x9e, 0x10, 32);
        let data = self.asks(lun, &ask, Data::In(32)).data;
        u64::from_be_bytes(*data.first_chunk().unwrap()) + 1
    }

    /// Whether its session has been ended.
    fn is_out(&mut self) -> bool {
        let until = Instant::now() + LIMIT;
        while self.0.exchange(Duration::from_millis(100)).is_ok() {
            if Instant::now() > until {
                return false;
            }
        }
        true
    }
}

#[test]
fn a_host_at_work_sees_what_the_plan_told() {
    let rig = Rig::start();
    let second = free_port();
    let mut libiscsi = load(&rig.url(0));
    let mut host = Host::log_in(rig.port, 1);
    luns_come_and_move(&rig, &mut host);
    a_volume_grows_and_is_limited(&rig, &mut host);
    a_volume_is_absent_and_back(&rig, &mut host);
    // What has to end sessions ends those that it names, and no other.
    let portals = format!("target.{TARGET}.portals");
    let (one, both) = (
        format!("{portals}=[\"127.0.0.1:{}\"]", rig.port),
        format!(
            "{portals}=[\"127.0.0.1:{}\", \"127.0.0.1:{second}\"]",
            rig.port
        ),
    );
    rig.says(&["set", &both]);
    let mut other = Host::log_in(second, 2);
    assert!(
        rig.says(&["set", &one, "--allow", "cuts"])
            .contains("cuts: ")
    );
    assert!(other.is_out());
    host.is_told_nothing(0);
    assert!(libiscsi.try_wait().unwrap().is_none(), "{}", rig.log());
    a_name_is_revoked(&rig, host);
    libiscsi.kill().unwrap();
    libiscsi.wait().unwrap();
}

fn luns_come_and_move(rig: &Rig, host: &mut Host) {
    let luns = format!("target.{TARGET}.luns");
    let told = rig.says(&["set", "volume.c.address=null:1G", &format!("{luns}.5=c")]);
    assert!(
        told.contains("told: ") && told.contains("LUNs have changed"),
        "{told}"
    );
    assert_eq!(host.is_told(0), LUNS_CHANGED);
    host.is_told_nothing(0);
    assert_eq!(host.luns(), [0, 1, 5]);
    host.becomes_ready(5);
    let told = rig.says(&[
        "set",
        &format!("{luns}={{ 0 = \"a\", 1 = \"b\", 6 = \"c\" }}"),
    ]);
    assert!(
        told.contains("told: ") && told.contains("LUNs have changed"),
        "{told}"
    );
    assert_eq!(host.is_told(0), LUNS_CHANGED);
    assert_eq!(host.luns(), [0, 1, 6]);
    // LOGICAL UNIT NOT SUPPORTED, and the unit by its other number.
    assert_eq!(host.is_told(5), [0x25, 0]);
    host.becomes_ready(6);
    assert_eq!(host.capacity(6), 1 << 21);
}

fn a_volume_grows_and_is_limited(rig: &Rig, host: &mut Host) {
    host.becomes_ready(1);
    let told = rig.says(&["set", "volume.b.size=16M"]);
    assert!(
        told.contains("told: ") && told.contains("capacity has changed"),
        "{told}"
    );
    // Growth is looked for every two seconds.
    assert_eq!(host.is_soon_told(1), CAPACITY_CHANGED);
    assert_eq!(host.capacity(1), 16 << 11);
    let told = rig.says(&["set", "volume.a.limit.iops=50k"]);
    assert!(!told.contains("told: "), "{told}");
    host.is_told_nothing(0);
    host.is_told_nothing(1);
}

/// Its LUN is there while it is not: NOT READY, and then as any other.
fn a_volume_is_absent_and_back(rig: &Rig, host: &mut Host) {
    let path = rig.path("later.img");
    let address = format!("volume.d.address=file:{}", path.display());
    let lun = format!("target.{TARGET}.luns.9=d");
    let refused = rig.lunar(&["set", &address, &lun]);
    assert!(
        !refused.good() && refused.output.contains("later.img"),
        "{}",
        refused.output
    );
    host.is_told_nothing(0);
    rig.says(&["set", &address, &lun, "--absent-ok"]);
    assert_eq!(host.is_told(0), LUNS_CHANGED);
    assert_eq!(host.luns(), [0, 1, 6, 9]);
    let until = Instant::now() + LIMIT;
    while host.is_told(9)[0] != 4 {
        assert!(Instant::now() < until, "NOT READY is not told");
    }
    fs::write(&path, vec![0x5a; 1 << 20]).unwrap();
    host.becomes_ready(9);
    assert_eq!(host.capacity(9), 2048);
    host.is_told_nothing(0);
}

fn a_name_is_revoked(rig: &Rig, mut host: Host) {
    let name = Settings::new(1, TARGET).name;
    let others = must_be_other(&rig.says(&["sessions"]), &name);
    let only = format!("target.{TARGET}.allow=[\"{others}\"]");
    let refused = rig.lunar(&["set", &only]);
    assert!(
        !refused.good() && refused.output.contains(&name),
        "{}",
        refused.output
    );
    host.is_told_nothing(0);
    assert!(rig.says(&["set", &only, "--allow", "cuts"]).contains(&name));
    assert!(host.is_out());
    assert!(rig.says(&["sessions"]).contains(&others));
}

/// The initiator that is logged in beside this one.
fn must_be_other(sessions: &str, name: &str) -> String {
    let words = sessions.split_whitespace();
    let mut others =
        words.filter(|word| word.starts_with("iqn.") && *word != TARGET && *word != name);
    others.next().expect(sessions).to_owned()
}
