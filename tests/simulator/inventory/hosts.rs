//! Hosts that use whatever LUNs there are.

use std::collections::BTreeMap;
use std::rc::Rc;

use scsi::wire::lun::Lun;
use sim::SimWire;
use tests::initiator::{Data, Initiator, Reply, Settings};

use super::{BLOCK, BLOCKS, LUNS, Site, TARGET, Tick, Write, content, parse};

/// A host.
pub(super) struct Host {
    pub(super) settings: Settings,
    link: Option<(SimWire, Initiator)>,
    pub(super) is_logged_in: bool,
    commands: u64,
    tasks: BTreeMap<u64, Task>,
    /// It sends and takes nothing, for so many steps.
    stalls: usize,
    /// Since when it may not be there.
    pub(super) revoked_at: Option<Tick>,
    /// LUNs of which it must hear before a command that begins after that is GOOD.
    must_hear: BTreeMap<u16, Tick>,
    /// Since when it has heard of each LUN.
    heard: BTreeMap<u16, Tick>,
}

struct Task {
    lun: u16,
    begun: Tick,
    what: What,
}

enum What {
    Write(u32),
    Read,
    Other,
}

impl Host {
    pub(super) fn new(number: u32) -> Self {
        Self {
            settings: Settings::new(number, TARGET),
            link: None,
            is_logged_in: false,
            commands: 0,
            tasks: BTreeMap::new(),
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
        self.tasks.is_empty()
    }

    /// From then on it has to be told of a LUN first.
    pub(super) fn must_hear(&mut self, lun: u16, since: Tick, done: Tick) {
        if self.is_logged_in && self.heard.get(&lun).is_none_or(|heard| *heard < since) {
            self.must_hear.insert(lun, done);
        }
    }

    fn pending(&mut self) -> (usize, usize, bool) {
        match &mut self.link {
            Some(_) if self.stalls > 0 => (0, 0, false),
            Some((wire, initiator)) => {
                let arrived = wire.arrived();
                (
                    initiator.output().len(),
                    arrived,
                    wire.is_over() && arrived == 0,
                )
            }
            None => (0, 0, false),
        }
    }

    /// The writes that it has under way.
    pub(super) fn stamps(&self) -> Vec<u32> {
        let stamps = self.tasks.values().filter_map(|task| match task.what {
            What::Write(stamp) => Some(stamp),
            _ => None,
        });
        stamps.collect()
    }

    fn hang_up(&mut self) {
        self.link = None;
        self.is_logged_in = false;
        self.tasks.clear();
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
        let mut ready = Vec::new();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let (unsent, arrived, is_over) = host.pending();
            if unsent > 0 || arrived > 0 || is_over {
                ready.push((number, unsent, arrived, is_over));
            }
        }
        if ready.is_empty() {
            return false;
        }
        let (number, unsent, arrived, is_over) = *self.rng.pick(&ready);
        if is_over {
            self.tell(|| format!("host {number} is cut off"));
            self.hosts[number].hang_up();
        } else if unsent > 0 && (arrived == 0 || self.rng.one_in(2)) {
            let len = 1 + self.rng.below(unsent);
            self.send(number, len);
        } else {
            let len = 1 + self.rng.below(arrived);
            self.take(number, len);
        }
        true
    }

    fn send(&mut self, number: usize, len: usize) {
        if let Some((wire, initiator)) = &mut self.hosts[number].link {
            let bytes: Vec<u8> = initiator.output().drain(..len).collect();
            wire.put(&bytes);
        }
    }

    fn take(&mut self, number: usize, len: usize) {
        let Some((wire, initiator)) = &mut self.hosts[number].link else {
            return;
        };
        initiator.receive(&wire.take(len)).expect("PDUs");
        while let Some(reply) = self.poll(number) {
            match reply {
                Reply::LoggedIn => self.hosts[number].is_logged_in = true,
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

    fn poll(&mut self, number: usize) -> Option<Reply> {
        self.hosts[number].link.as_mut()?.1.poll()
    }

    /// Some host does something: connects, sends a command, or nothing for a while.
    pub(super) fn act(&mut self) {
        let number = self.rng.below(self.hosts.len());
        let host = &mut self.hosts[number];
        let is_ready =
            |(wire, initiator): &(SimWire, Initiator)| initiator.is_ready() && !wire.is_over();
        match &host.link {
            None => {
                let wire = self.world.connect().expect("somebody listens");
                let initiator = Initiator::new(self.hosts[number].settings.clone());
                self.hosts[number].link = Some((wire, initiator));
            }
            Some(link) if host.is_logged_in && host.tasks.len() < 6 && is_ready(link) => {
                if self.rng.one_in(60) {
                    self.hosts[number].stalls = self.rng.below(2000);
                } else {
                    self.command(number);
                }
            }
            Some(_) => {}
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
                let stamp = self.writes.len() as u32;
                self.writes.push(Write {
                    host: number,
                    lun,
                    landed: None,
                    is_over: false,
                });
                let data = content(stamp, u32::MAX).repeat(blocks as usize);
                (cdb(0x2a), Data::Out(Rc::from(data)), What::Write(stamp))
            }
        };
        let begun = self.tick;
        let host = &mut self.hosts[number];
        host.commands += 1;
        let Some((_, initiator)) = &mut host.link else {
            return;
        };
        initiator.command_with(0, host.commands, Lun::from_index(lun), &cdb, data);
        let task = Task { lun, begun, what };
        host.tasks.insert(host.commands, task);
    }

    fn done(&mut self, number: usize, user: u64, (status, sense): (u16, &[u8]), data: &[u8]) {
        let now = self.tick;
        let host = &mut self.hosts[number];
        let Some(task) = host.tasks.remove(&user) else {
            panic!("host {number}: {user} is answered twice");
        };
        if let What::Write(stamp) = task.what {
            self.writes[stamp as usize].is_over = true;
        }
        let key = sense.get(2).map_or(0, |byte| byte & 0x0f);
        let named = format!("host {number}, LUN {}, begun {}", task.lun, task.begun);
        if key == 6 {
            host.heard.insert(task.lun, now);
            host.must_hear.remove(&task.lun);
        }
        if status != 0 {
            return;
        }
        if let Some(since) = host.must_hear.get(&task.lun) {
            assert!(task.begun <= *since, "{named}: GOOD before it was told");
        }
        let revoked = host.revoked_at.is_some_and(|at| at < task.begun);
        assert!(!revoked, "{named}: GOOD for who may not be there");
        let possible = self.disks_of(task.lun, task.begun, now);
        assert!(
            !possible.is_empty(),
            "{named}: GOOD of a LUN that is not there"
        );
        if matches!(task.what, What::Read) {
            for block in data.chunks(BLOCK) {
                // A block of a RAM disk that is being written is whatever has come.
                let Some((stamp, disk)) = parse(block) else {
                    continue;
                };
                let disk = match stamp {
                    0 => Some(disk as usize),
                    stamp => self.writes[stamp as usize].landed,
                };
                let is_right = disk.is_some_and(|disk| possible.contains(&disk));
                assert!(
                    is_right,
                    "{named}: read of disk {disk:?}, not of {possible:?}"
                );
            }
        }
    }

    /// The disks that a LUN may have led to between two instants.
    fn disks_of(&self, lun: u16, begun: Tick, ended: Tick) -> Vec<usize> {
        let met = self.history.iter();
        let met = met.filter(|one| one.lun == lun && one.from <= ended && begun <= one.until);
        met.map(|one| one.disk).collect()
    }
}
