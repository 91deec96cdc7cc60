//! Hosts: each is a session of an initiator with a target by a portal, if it gets one.

use std::collections::{BTreeMap, VecDeque};

use tests::initiator::{Data, Reply, Settings};
use tests::iser_end::IserSettings;

use super::Site;
use super::trees::{self, INITIATORS, LUNS, TARGETS};
use crate::host::{self, out};
use crate::lab::sense_key;
use crate::oracle::Tick;
use crate::watch::{BLOCK, BLOCKS};

/// A host.
pub(super) struct Host {
    pub(super) port: host::Host<Asked>,
    /// Which of the initiators, targets and portals are its own.
    pub(super) initiator: &'static str,
    pub(super) target: &'static str,
    pub(super) portal: usize,
    /// It sends and takes nothing, for so many steps.
    stalls: usize,
    /// How many sessions it has had.
    pub(super) sessions: usize,
    /// The session that it has ended itself.
    left: Option<usize>,
    /// LUNs that it asks until they have nothing to tell.
    probes: VecDeque<u16>,
    is_probing: bool,
    /// The question under way is from before the LUNs were to be asked anew, and tells nothing.
    is_outdated: bool,
    /// All LUNs had nothing to tell when they were asked last, in this session.
    pub(super) is_clean: bool,
    /// The unit attentions that it has heard since it was told to listen, by LUN.
    pub(super) heard: BTreeMap<u16, Vec<u16>>,
    /// What it has read with [`What::Look`], by LUN; REPORT LUNS is read on LUN 0.
    pub(super) looks: BTreeMap<u16, Vec<u8>>,
    /// When it began to log in, counted in changes; `None`: while there was one.
    dialed: Option<usize>,
}

/// What a command asks for, and since when.
pub(super) struct Asked {
    pub(super) begun: Tick,
    what: What,
}

enum What {
    Write(u32),
    Read,
    /// TEST UNIT READY, which tells what there is to tell.
    Probe,
    /// The answer is kept.
    Look,
    Other,
}

impl Host {
    pub(super) fn new(
        number: u32,
        (initiator, target, portal): (usize, usize, usize),
        iser: Option<IserSettings>,
    ) -> Self {
        let settings = Settings {
            name: INITIATORS[initiator].to_owned(),
            iser,
            ..Settings::new(number, TARGETS[target])
        };
        Self {
            port: host::Host::new(settings),
            initiator: INITIATORS[initiator],
            target: TARGETS[target],
            portal,
            stalls: 0,
            sessions: 0,
            left: None,
            probes: VecDeque::new(),
            is_probing: false,
            is_outdated: false,
            is_clean: false,
            heard: BTreeMap::new(),
            looks: BTreeMap::new(),
            dialed: None,
        }
    }

    /// It goes on; tells whether it had stopped.
    pub(super) fn wake(&mut self) -> bool {
        std::mem::take(&mut self.stalls) > 0
    }

    /// It ends its session itself.
    pub(super) fn has_left(&self) -> bool {
        self.has_ended(self.sessions)
    }

    /// It has ended one of its sessions itself.
    pub(super) fn has_ended(&self, session: usize) -> bool {
        self.left == Some(session)
    }

    /// It asks all LUNs until none has anything to tell.
    pub(super) fn probe(&mut self) {
        self.probes = (0..LUNS).collect();
        self.is_outdated = self.is_probing;
        self.is_clean = false;
    }

    /// Nothing is under way, and it has heard everything.
    pub(super) fn is_settled(&self) -> bool {
        let is_in = self.port.logged_in;
        self.port.link.is_none() || is_in && self.port.tasks.is_empty() && self.is_clean
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
        self.probes.clear();
        (self.is_probing, self.is_outdated, self.is_clean) = (false, false, false);
    }

    /// Sends the next question, if there is one and it can.
    fn ask(&mut self, begun: Tick) -> bool {
        let can = self.port.is_ready() && !self.is_probing && !self.has_left();
        let Some(lun) = self.probes.front().copied().filter(|_| can) else {
            return false;
        };
        self.is_probing = true;
        let what = What::Probe;
        let asked = Asked { begun, what };
        self.port.command(0, lun.into(), &[0; 6], Data::None, asked);
        true
    }

    /// Reads something that tells of a LUN.
    pub(super) fn look(&mut self, lun: u16, cdb: &[u8], begun: Tick) {
        let asked = Asked {
            begun,
            what: What::Look,
        };
        self.port.command(0, lun.into(), cdb, Data::In(255), asked);
    }
}

impl Site {
    /// Some host sends or takes some bytes, or asks its next question.
    pub(super) fn host_step(&mut self) -> bool {
        let now = self.tick;
        for host in &mut self.hosts {
            host.stalls = host.stalls.saturating_sub(1);
        }
        if self.hosts.iter_mut().any(|host| host.ask(now)) {
            return true;
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
                Reply::LoggedIn => self.logged_in(number),
                Reply::LoginFailed(_) => {
                    self.login_ended(number, false);
                    self.hosts[number].hang_up();
                }
                Reply::Done {
                    user,
                    status,
                    sense,
                    data,
                } => self.done(number, user, (status, &sense), data),
                _ => {}
            }
        }
    }

    fn logged_in(&mut self, number: usize) {
        self.login_ended(number, true);
        let host = &mut self.hosts[number];
        host.port.logged_in = true;
        host.sessions += 1;
        host.heard.clear();
        host.probe();
    }

    /// Where nothing has changed meanwhile, the tree says who is let in.
    fn login_ended(&self, number: usize, is_in: bool) {
        let host = &self.hosts[number];
        if self.order.is_some() || host.dialed != Some(self.changes) {
            return;
        }
        let may = self.may_be_in(host);
        let Host {
            initiator,
            target,
            portal,
            ..
        } = host;
        assert_eq!(is_in, may, "{initiator} at {target} by portal {portal}");
    }

    /// Some host does something: connects, sends a command, or nothing for a while.
    pub(super) fn act(&mut self) {
        let number = self.rng.below(self.hosts.len());
        let port = &mut self.hosts[number].port;
        if port.link.is_none() {
            self.dial(number);
        } else if port.is_ready() && port.tasks.len() < 6 && !self.hosts[number].has_left() {
            match self.rng.below(120) {
                0 | 1 => self.hosts[number].stalls = self.rng.below(2000),
                2 => {
                    let host = &mut self.hosts[number];
                    host.left = Some(host.sessions);
                    host.port.log_out();
                }
                _ => self.command(number),
            }
        }
    }

    fn dial(&mut self, number: usize) {
        let portal = self.hosts[number].portal;
        let address = trees::address(portal);
        let mut portals = self.served.portals.iter();
        let Some((at, _)) = portals.find(|(_, known)| **known == address) else {
            return;
        };
        // A portal is listened to when the change has come so far.
        let Ok(wire) = self.world.connect_to(*at, address) else {
            return;
        };
        let dialed = self.order.is_none().then_some(self.changes);
        self.hosts[number].dialed = dialed;
        self.hosts[number].port.dial(wire);
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

    fn done(&mut self, number: usize, user: u64, (status, sense): (u16, &[u8]), data: Vec<u8>) {
        let host = &mut self.hosts[number];
        let Some(task) = host.port.tasks.remove(&user) else {
            panic!("host {number}: {user} is answered twice");
        };
        let (lun, Asked { begun, what }) = (task.unit as u16, task.what);
        let attention = (sense_key(sense) == UNIT_ATTENTION).then(|| code(sense));
        if let Some(code) = attention {
            host.heard.entry(lun).or_default().push(code);
        }
        match what {
            What::Write(stamp) => self.watch.over(stamp),
            What::Look => drop(host.looks.insert(lun, data)),
            What::Probe => {
                host.is_probing = false;
                let is_outdated = std::mem::take(&mut host.is_outdated);
                if attention.is_none() && !is_outdated {
                    host.probes.pop_front();
                    host.is_clean = host.probes.is_empty();
                }
            }
            What::Read if status == 0 => self.is_right(number, lun, begun, &data),
            What::Read | What::Other => {}
        }
        let is_write = matches!(what, What::Write(_));
        if status == 0 && !matches!(what, What::Look) {
            self.may_be_good(number, lun, begun, is_write);
        }
    }

    /// A LUN was there, and could be written if it was, some time since then.
    fn may_be_good(&self, number: usize, lun: u16, begun: Tick, is_write: bool) {
        let named = || format!("host {number}, LUN {lun}, begun {begun}");
        let mut met = self.mappings(number, lun, begun).peekable();
        assert!(
            met.peek().is_some(),
            "{}: GOOD of what it does not see",
            named()
        );
        if is_write {
            let mut writable = met.filter(|one| one.is_writable);
            assert!(
                writable.next().is_some(),
                "{}: it can only be read",
                named()
            );
        }
    }

    fn is_right(&self, number: usize, lun: u16, begun: Tick, data: &[u8]) {
        let met = self.mappings(number, lun, begun);
        let disks: Vec<_> = met.filter_map(|one| one.disk).collect();
        let named = format!("host {number}, LUN {lun}, begun {begun}");
        self.watch.is_of(&disks, data, &named);
    }
}

/// ASC and ASCQ, of either format.
fn code(sense: &[u8]) -> u16 {
    let is_descriptors = sense.first().is_some_and(|code| code & 0x7f >= 0x72);
    let at = if is_descriptors { 2 } else { 12 };
    let bytes = sense.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

const UNIT_ATTENTION: u8 = 6;
