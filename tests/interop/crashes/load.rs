//! kill -9 while every volume is written and reserved by several sessions, again and again.

use std::fs::File;
use std::thread;
use std::time::Duration;

use tests::client::Client;
use tests::initiator::Data;
use tests::server::{ReadyLun, Server};

use super::reserver::{self, Reserver};
use super::writer::Writer;
use crate::{LoopDevice, file};

/// Writing sessions of a volume.
const WRITERS: u32 = 2;

/// How often the server is killed; a long run does it more often.
fn rounds() -> u64 {
    let wanted = std::env::var("LUNAR_CRASHES").ok();
    wanted.map_or(3, |rounds| rounds.parse().unwrap())
}

/// A volume with those who use it.
struct Used {
    writers: Vec<Writer>,
    reserver: Reserver,
    /// What the disk called itself when it was last looked at.
    identity: Vec<Vec<u8>>,
}

impl Used {
    fn new(lun: &ReadyLun) -> Self {
        // No two sessions of a run have the same number.
        let first = 1 + u32::from(lun.lun) * 16;
        let writers: Vec<_> = (first..first + WRITERS).map(Writer::new).collect();
        for writer in &writers {
            reserver::register(lun, writer.number);
        }
        let reserver = Reserver::new(lun, first + WRITERS);
        Self {
            writers,
            reserver,
            identity: identity(lun),
        }
    }

    /// Everybody works until the server dies.
    fn work<'a>(&'a mut self, scope: &'a thread::Scope<'a, '_>, lun: &'a ReadyLun) {
        for writer in &mut self.writers {
            scope.spawn(move || writer.write_until_the_end(lun).unwrap());
        }
        let reserver = &mut self.reserver;
        scope.spawn(move || reserver.register_until_the_end(lun).unwrap());
    }

    /// What came back is what was promised.
    fn check(&mut self, lun: &ReadyLun) {
        let others: Vec<_> = self.writers.iter().map(|writer| writer.number).collect();
        let keeps = reserver::keeps(lun);
        if keeps {
            self.reserver.check(lun, &others);
        } else {
            self.reserver.find_nothing(lun);
            others
                .iter()
                .for_each(|number| reserver::register(lun, *number));
            self.reserver = Reserver::new(lun, self.reserver.number);
        }
        let before = std::mem::replace(&mut self.identity, identity(lun));
        for (before, now) in before.iter().zip(&self.identity) {
            assert_eq!(before == now, keeps, "{}: {now:02x?}", lun.volume);
        }
        for writer in &mut self.writers {
            assert!(writer.has_more(), "{}: nothing was written", lun.volume);
            if keeps {
                writer.check(lun);
            } else {
                writer.find_nothing(lun);
            }
        }
    }
}

/// The unit serial number and device identification VPD pages.
fn identity(lun: &ReadyLun) -> Vec<Vec<u8>> {
    let mut client = Client::log_in(lun, 998).unwrap();
    let pages = [0x80, 0x83].map(|page| {
        let inquiry = [0x12, 1, page, 0, 255, 0];
        client.good(&inquiry, Data::In(255)).unwrap()
    });
    pages.to_vec()
}

#[test]
fn what_was_promised_under_load_is_kept() {
    let dir = tests::scratch("crash-load").unwrap();
    let backing = File::create(dir.join("device")).unwrap();
    backing.set_len(16 << 20).unwrap();
    let device = LoopDevice::new(&dir.join("device"));
    let files = [
        "buffered?size=16M",
        "sync?size=16M&sync",
        "direct?size=16M&direct",
    ];
    let files = files.map(|name| file(&dir, name));
    let node = device.iter().map(LoopDevice::address);
    let volumes: Vec<_> = files.into_iter().chain(node).collect();
    let volumes = ["ram:16M"]
        .into_iter()
        .chain(volumes.iter().map(String::as_str));
    let volumes: Vec<_> = volumes.collect();
    let mut server = Server::start_in(&dir, &volumes, &[]).unwrap();
    let mut used: Vec<_> = server.luns.iter().map(Used::new).collect();
    for round in 0..rounds() {
        let luns = server.luns.clone();
        thread::scope(|scope| {
            for (used, lun) in used.iter_mut().zip(&luns) {
                used.work(scope, lun);
            }
            // At another moment each time.
            thread::sleep(Duration::from_millis(500 + round * 137 % 400));
            server.kill().unwrap();
        });
        server = Server::start_in(&dir, &volumes, &[]).unwrap();
        for (used, lun) in used.iter_mut().zip(&server.luns) {
            used.check(lun);
        }
    }
}
