//! Hosts that use whatever LUNs there are.

use std::collections::BTreeMap;

use tests::initiator::{Data, Reply, Settings};
use tests::iser_end::IserSettings;

use super::{LUNS, Site, TARGET};
use crate::host::{self, out};
use crate::lab::sense_key;
use crate::oracle::Tick;
use crate::watch::{BLOCK, BLOCKS};

/// A host.
pub(super) struct Host {
    pub(super) port: host::Host<Asked>,
    /// It sends and takes nothing, for so many steps.
    stalls: usize,
    /// Since when it may not be there.
    pub(super) revoked_at: Option<Tick>,
    /// LUNs of which it must hear before a command that begins after that is GOOD.
    must_hear: BTreeMap<u16, Tick>,
    /// Since when it has heard of each LUN.
    heard: BTreeMap<u16, Tick>,
}

/// What a command asks for, and since when.
pub(super) struct Asked {
    begun: Tick,
    what: What,
}

enum What {
    Write(u32),
    Read,
    Other,
}

impl Host {
    pub(super) fn new(number: u32, iser: Option<IserSettings>) -> Self {
        let settings = Settings {
            iser,
            ..Settings::new(number, TARGET)
        };
        Self {
            port: host::Host::new(settings),
            stalls: 0,
            revoked_at: None,
            must_hear: BTreeMap::new(),
            heard: BTreeMap::new(),
        }
    }

    pub(super) fn wake(&mut self) {
        self.stalls = 0;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.port.tasks.is_empty()
    }

    /// From then on it has to be told of a LUN first.
    pub(super) fn must_hear(&mut self, lun: u16, since: Tick, done: Tick) {
        let has_heard = self.heard.get(&lun).is_some_and(|heard| *heard >= since);
        if self.port.logged_in && !has_heard {
            self.must_hear.insert(lun, done);
        }
    }

    /// The writes that it has under way.
    pub(super) fn stamps(&self) -> Vec<u32> {
        let tasks = self.port.tasks.values();
        let stamps = tasks.filter_map(|task| match task.what.what {
            What::Write(stamp) => Some(stamp),
            _ => None,
        });
        stamps.collect()
    }

    fn hang_up(&mut self) {
        self.port.hang_up();
        self.port.lost.clear();
        self.must_hear.clear();
        self.heard.clear();
    }
}

impl Site {
    /// Some host sends or takes some bytes.
    pub(super) fn host_step(&mut self) -> bool {
        for host in &mut self.hosts {
            host.stalls = host.stalls.saturating_sub(1);
        }
        let is_ready = |host: &mut Host| host.stalls == 0 && host.port.has_something_to_do();
        let hosts = self.hosts.iter_mut().enumerate();
        let ready: Vec<_> = hosts
            .filter_map(|(number, host)| is_ready(host).then_some(number))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let number = *self.rng.pick(&ready);
        let port = &mut self.hosts[number].port;
        if port.is_cut_off() {
            self.tell(|| format!("host {number} is cut off"));
            self.hosts[number].hang_up();
        } else if port.exchange(&mut self.rng) {
            self.hear(number);
        }
        true
    }

    fn hear(&mut self, number: usize) {
        while let Some(reply) = self.hosts[number].port.poll() {
            match reply {
                Reply::LoggedIn => self.hosts[number].port.logged_in = true,
                Reply::LoginFailed(_) => self.hosts[number].hang_up(),
                Reply::Done {
                    user,
                    status,
                    sense,
                    data,
                } => self.done(number, user, (status, &sense), &data),
                _ => {}
            }
        }
    }

    /// Some host does something: connects, sends a command, or nothing for a while.
    pub(super) fn act(&mut self) {
        let number = self.rng.below(self.hosts.len());
        let port = &mut self.hosts[number].port;
        if port.link.is_none() {
            port.dial(self.world.connect().expect("somebody listens"));
        } else if port.is_ready() && port.tasks.len() < 6 {
            if self.rng.one_in(60) {
                self.hosts[number].stalls = self.rng.below(2000);
            } else {
                self.command(number);
            }
        }
    }

    fn command(&mut self, number: usize) {
        let lun = self.rng.below(usize::from(LUNS)) as u16;
        let blocks = 1 + self.rng.below(4) as u64;
        let lba = self.rng.below((BLOCKS - blocks + 1) as usize) as u8;
        let cdb = |opcode| [opcode, 0, 0, 0, 0, lba, 0, 0, blocks as u8, 0];
        let bytes = BLOCK * blocks as usize;
        let (cdb, data, what) = match self.rng.below(8) {
            0 => ([0; 10], Data::None, What::Other),
            1 => (cdb(0x35), Data::None, What::Other),
            2..=4 => (cdb(0x28), Data::In(bytes as u32), What::Read),
            _ => {
                let (stamp, data) = self.watch.write(number, lun, blocks);
                (cdb(0x2a), out(data), What::Write(stamp))
            }
        };
        let begun = self.tick;
        let port = &mut self.hosts[number].port;
        port.command(0, lun.into(), &cdb, data, Asked { begun, what });
    }

    fn done(&mut self, number: usize, user: u64, (status, sense): (u16, &[u8]), data: &[u8]) {
        let now = self.tick;
        let host = &mut self.hosts[number];
        let Some(task) = host.port.tasks.remove(&user) else {
            panic!("host {number}: {user} is answered twice");
        };
        let (lun, Asked { begun, what }) = (task.unit as u16, task.what);
        if let What::Write(stamp) = what {
            self.watch.over(stamp);
        }
        let named = format!("host {number}, LUN {lun}, begun {begun}");
        if sense_key(sense) == UNIT_ATTENTION {
            host.heard.insert(lun, now);
            host.must_hear.remove(&lun);
        }
        if status != 0 {
            return;
        }
        if let Some(since) = host.must_hear.get(&lun) {
            assert!(begun <= *since, "{named}: GOOD before it was told");
        }
        let revoked = host.revoked_at.is_some_and(|at| at < begun);
        assert!(!revoked, "{named}: GOOD for who may not be there");
        let possible = self.disks_of(lun, begun, now);
        assert!(
            !possible.is_empty(),
            "{named}: GOOD of a LUN that is not there"
        );
        if matches!(what, What::Read) {
            self.watch.is_of(&possible, data, &named);
        }
    }

    /// The disks that a LUN may have led to between two instants.
    fn disks_of(&self, lun: u16, begun: Tick, ended: Tick) -> Vec<usize> {
        let met = self.history.iter();
        let met = met.filter(|one| one.lun == lun && one.from <= ended && begun <= one.until);
        met.map(|one| one.disk).collect()
    }
}

const UNIT_ATTENTION: u8 = 6;
