//! A target's port and an initiator's on one cable, over which frames are lost, doubled, held back,
//! changed in any field, and made by somebody who knows the addresses of both.

mod device;
mod frames;

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use fc::initiator::{Data, Done, FcpFailed, FcpInitiator, FcpInitiatorConfig};
use fc::initiator::{FcpInitiatorEvent, FcpTmf};
use fc::port::{Fc4Layer, Port, PortEvent};
use fc::remote::RemoteId;
use fc::target::{FcpLimits, FcpTarget};
use fc::tests::{Bytes, Ethernet, Machine, command, config, sent};
use scsi::medium::{HeapLease, Lease, Now};
use scsi::wire::lun::Lun;

use self::device::Device;
use super::script::Script;

/// See docs/fuzzing.md.
pub fn port(data: &[u8]) {
    let mut script = Script::new(data);
    let mut cable = Cable::new();
    // Both are mostly up before anything goes wrong.
    if script.byte() != 0 {
        cable.pass(Duration::from_secs(3));
    }
    while !script.is_over() {
        cable.step(&mut script);
        cable.settle();
    }
    cable.end();
}

/// One end of the cable.
struct Side<F: Fc4Layer> {
    port: Port<F>,
    /// With whom there is a nexus.
    up: BTreeSet<RemoteId>,
}

struct Cable {
    now: Now,
    target: Side<FcpTarget<HeapLease>>,
    initiator: Side<FcpInitiator<HeapLease>>,
    ethernet: Ethernet,
    device: Device,
    /// Commands and functions of the initiator's user that have not ended.
    users: BTreeSet<u64>,
    next_user: u64,
}

/// Where the ends are on the Ethernet.
const TARGET: usize = 0;
const INITIATOR: usize = 1;

impl<F: Fc4Layer> Side<F> {
    fn new(number: u8, fc4: F) -> Self {
        let mut port = Port::new(&config(number.into()), fc4, Now::ZERO, [number; 8]);
        port.link(Now::ZERO, true);
        let up = BTreeSet::new();
        Self { port, up }
    }

    /// What it sends, which must be right whatever came.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let (sent, own) = (sent(&mut self.port), self.port.address());
        sent.iter().for_each(|frame| frames::check(frame, own));
        sent
    }

    fn up(&mut self, id: RemoteId) {
        assert!(self.up.insert(id), "{id:?} is up twice");
    }

    fn down(&mut self, id: RemoteId) {
        assert!(self.up.remove(&id), "{id:?} was not up");
    }
}

impl Cable {
    fn new() -> Self {
        let fcp = FcpInitiator::new(FcpInitiatorConfig::default());
        Self {
            now: Now::ZERO,
            target: Side::new(2, FcpTarget::new(FcpLimits::default())),
            initiator: Side::new(1, fcp),
            ethernet: Ethernet::new(0),
            device: Device::default(),
            users: BTreeSet::new(),
            next_user: 0,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0..4 => self.passed_on(),
            4 => drop(self.line(script).pop_front()),
            5 => {
                let line = self.line(script);
                line.extend(line.front().cloned());
            }
            6 => {
                let line = self.line(script);
                line.rotate_left(usize::from(line.len() > 1));
            }
            7 | 8 => {
                let line = self.line(script);
                if let Some((_, frame)) = line.front_mut() {
                    frames::spoil(Rc::make_mut(frame), script);
                }
            }
            9 => self.make(script),
            10 | 11 => self.command(script),
            12 => self.function(script),
            13 => self.device.step(script, self.target.port.fc4_mut()),
            14 => self.wait(script.pick(&WAITS)),
            _ => self.link(script),
        }
    }

    fn port(&mut self, at: usize) -> &mut dyn Machine {
        match at {
            TARGET => &mut self.target.port,
            _ => &mut self.initiator.port,
        }
    }

    /// Every frame that is on its way arrives, and whatever that brings.
    fn passed_on(&mut self) {
        for _ in 0..10_000 {
            let mut arrived = false;
            for at in [TARGET, INITIATOR] {
                if let Some((_, frame)) = self.ethernet.line(at).pop_front() {
                    arrived = true;
                    let now = self.now;
                    self.port(at).receive(now, &frame);
                }
            }
            self.settle();
            if !arrived {
                return;
            }
        }
        panic!("frames without end");
    }

    fn line(&mut self, script: &mut Script<'_>) -> &mut VecDeque<(Now, Bytes)> {
        self.ethernet.line(end(script))
    }

    /// A frame of somebody who knows the addresses of both.
    fn make(&mut self, script: &mut Script<'_>) {
        let places = (self.target.port.address(), self.initiator.port.address());
        let (Some(target), Some(initiator)) = places else {
            return;
        };
        let to = end(script);
        let frame = match to {
            TARGET => frames::made(script, initiator, target),
            _ => frames::made(script, target, initiator),
        };
        let line = self.ethernet.line(to);
        line.push_front((self.now, Bytes::from(frame)));
    }

    fn command(&mut self, script: &mut Script<'_>) {
        let Some(remote) = self.initiator.up.first().copied() else {
            return;
        };
        self.next_user += 1;
        let lease = |len| HeapLease::from_bytes(vec![0x5a; len]);
        let len = usize::from(script.half() & 0x3fff);
        let data = match script.below(3) {
            0 => Data::None,
            1 => Data::In(lease(len)),
            _ => Data::Out(lease(len)),
        };
        let command = command(self.next_user, &script.array::<16>(), data);
        let initiator = self.initiator.port.fc4_mut();
        if initiator.execute(self.now, remote, command).is_ok() {
            self.users.insert(self.next_user);
        }
    }

    fn function(&mut self, script: &mut Script<'_>) {
        let Some(remote) = self.initiator.up.first().copied() else {
            return;
        };
        self.next_user += 1;
        let (user, lun) = (self.next_user, Lun::from_index(0));
        let about = user.saturating_sub(1 + script.below(4) as u64);
        let function = script.pick(&[
            FcpTmf::AbortTask(about),
            FcpTmf::QueryTask(about),
            FcpTmf::AbortTaskSet,
            FcpTmf::LogicalUnitReset,
            FcpTmf::QueryTaskSet,
            FcpTmf::QueryAsynchronousEvent,
        ]);
        let initiator = self.initiator.port.fc4_mut();
        if initiator
            .manage(self.now, remote, user, lun, function)
            .is_ok()
        {
            self.users.insert(user);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for at in [TARGET, INITIATOR] {
            let port = self.port(at);
            port.expire(now);
            let next = port.next_deadline();
            assert!(next.is_none_or(|next| next > now), "a deadline stays");
        }
    }

    fn link(&mut self, script: &mut Script<'_>) {
        let (up, now) = (script.flag(), self.now);
        self.port(end(script)).link(now, up);
    }

    /// Takes what both ports tell and send, until they are at rest.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let told = self.target_told() | self.initiator_told();
            let (to_initiator, to_target) = (self.target.sent(), self.initiator.sent());
            if !told && to_initiator.is_empty() && to_target.is_empty() {
                return;
            }
            for (to, frames) in [(INITIATOR, to_initiator), (TARGET, to_target)] {
                let frames = frames
                    .into_iter()
                    .map(|frame| (self.now, Bytes::from(frame)));
                self.ethernet.line(to).extend(frames);
            }
        }
        panic!("neither comes to rest");
    }

    fn target_told(&mut self) -> bool {
        let Some(event) = self.target.port.poll() else {
            return false;
        };
        match event {
            PortEvent::Up(id) => self.target.up(id),
            PortEvent::Down(id, _) => {
                self.target.down(id);
                self.device.lose(id);
                self.target.port.ended(self.now, id);
            }
            PortEvent::Fc4(event) => self.device.told(&self.target.up, event),
            PortEvent::Online(_)
            | PortEvent::Offline
            | PortEvent::Fabric(_)
            | PortEvent::Remark { .. } => {}
        }
        true
    }

    fn initiator_told(&mut self) -> bool {
        let Some(event) = self.initiator.port.poll() else {
            return false;
        };
        match event {
            PortEvent::Up(id) => self.initiator.up(id),
            PortEvent::Down(id, _) => self.initiator.down(id),
            PortEvent::Fc4(
                FcpInitiatorEvent::Done(Done { id, .. })
                | FcpInitiatorEvent::Failed(FcpFailed { id, .. })
                | FcpInitiatorEvent::Managed { id, .. },
            ) => assert!(self.users.remove(&id), "{id} ended twice"),
            PortEvent::Fc4(FcpInitiatorEvent::Stuck(_))
            | PortEvent::Online(_)
            | PortEvent::Offline
            | PortEvent::Fabric(_)
            | PortEvent::Remark { .. } => {}
        }
        true
    }

    /// Time passes, and nothing goes wrong meanwhile.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.passed_on();
            self.device.end_all(self.target.port.fc4_mut());
            self.passed_on();
            let deadlines = [
                self.target.port.next_deadline(),
                self.initiator.port.next_deadline(),
            ];
            let next = deadlines.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.wait(next.saturating_sub(self.now));
            self.settle();
        }
        self.now = until;
    }

    /// Lets everything end, and looks whether it has.
    fn end(&mut self) {
        self.target.port.link(self.now, true);
        self.initiator.port.link(self.now, true);
        self.pass(Duration::from_secs(180));
        assert!(self.users.is_empty(), "{:?} never end", self.users);
        let up = (self.target.up.len(), self.initiator.up.len());
        assert_eq!(up, (1, 1), "both find each other again");
    }
}

/// Either end, as the script has it.
fn end(script: &mut Script<'_>) -> usize {
    if script.flag() { TARGET } else { INITIATOR }
}

/// How long a script may wait: less and more than each of the time-outs.
const WAITS: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(500),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(12),
    Duration::from_secs(40),
];
