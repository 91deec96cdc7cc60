//! N_Ports of Fibre Channel: commands between two of them, and what a thousand remote ports take.

use std::collections::VecDeque;
use std::time::Duration;

use fc::frames::FrameSink;
use fc::initiator::{Data, FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent, IdleInitiator};
use fc::port::{Fc4Layer, Port, PortEvent};
use fc::remote::RemoteId;
use fc::target::{FcpLimits, FcpTarget, FcpTargetEvent};
use fc::tests::{command, config, good};
use io::counting::{allocations, held};
use scsi::medium::{Lease, Now};

use super::Nowhere;

/// Frames on their way, in memory that is used again.
#[derive(Default)]
struct Wire {
    frames: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl FrameSink for Wire {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.open.capacity() == 0 {
            self.open = self.spare.pop().unwrap_or_default();
        }
        self.open.resize(len, 0);
        Some(&mut self.open)
    }

    fn commit(&mut self, len: usize) {
        self.open.truncate(len);
        self.frames.push_back(std::mem::take(&mut self.open));
    }
}

impl Wire {
    /// Hands everything over.
    fn deliver(&mut self, now: Now, to: &mut Port<impl Fc4Layer>) {
        while let Some(frame) = self.frames.pop_front() {
            to.receive(now, &frame, None);
            self.spare.push(frame);
        }
    }
}

fn port<F: Fc4Layer>(low: u16, fc4: F) -> Port<F> {
    let mut port = Port::new(&config(low), fc4, Duration::ZERO, [7; 8]);
    port.link(Duration::ZERO, true);
    port
}

/// An initiator that has nothing to say.
fn silent(low: u16) -> Port<IdleInitiator> {
    let initiator = FcpInitiator::<Nowhere>::new(FcpInitiatorConfig::default());
    port(low, initiator.rest())
}

/// Two ports, and a device that is always ready.
struct Pair {
    target: Port<FcpTarget<Nowhere>>,
    initiator: Port<FcpInitiator<Nowhere>>,
    wire: Wire,
    now: Now,
    ended: usize,
}

impl Pair {
    fn new() -> Self {
        let target = FcpTarget::new(FcpLimits::default());
        let mut pair = Self {
            target: port(2, target),
            initiator: port(1, FcpInitiator::new(FcpInitiatorConfig::default())),
            wire: Wire::default(),
            now: Duration::ZERO,
            ended: 0,
        };
        while pair.now < Duration::from_secs(2) {
            pair.now += Duration::from_millis(1);
            pair.target.expire(pair.now);
            pair.initiator.expire(pair.now);
            pair.settle();
        }
        pair
    }

    fn settle(&mut self) {
        loop {
            self.serve();
            while let Some(event) = self.initiator.poll() {
                self.ended +=
                    usize::from(matches!(event, PortEvent::Fc4(FcpInitiatorEvent::Done(_))));
            }
            let (wire, now) = (&mut self.wire, self.now);
            let to_initiator = self.target.transmit(wire);
            wire.deliver(now, &mut self.initiator);
            let to_target = self.initiator.transmit(wire);
            wire.deliver(now, &mut self.target);
            if !to_initiator && !to_target {
                break;
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.target.poll() {
            let fcp = self.target.fc4_mut();
            match event {
                PortEvent::Fc4(FcpTargetEvent::Execute { remote, command }) => {
                    let (tag, len) = (command.tag, command.expected_in);
                    if len > 0 {
                        fcp.send_data_in(remote, tag, 0, Nowhere(len as usize));
                        fcp.complete(remote, tag, &good(len.into(), 0));
                    } else {
                        let into = Nowhere(command.expected_out as usize);
                        fcp.receive_data_out(remote, tag, 0, into);
                    }
                }
                PortEvent::Fc4(FcpTargetEvent::DataOut {
                    remote, tag, data, ..
                }) => {
                    fcp.complete(remote, tag, &good(0, data.len() as u64));
                }
                _ => {}
            }
        }
    }

    /// Eight reads and eight writes of several frames at once.
    fn round(&mut self) {
        for id in 0..16 {
            let data = match id % 2 {
                0 => Data::In(Nowhere(16 << 10)),
                _ => Data::Out(Nowhere(16 << 10)),
            };
            let command = command(id, &[0x28; 16], data);
            let initiator = self.initiator.fc4_mut();
            assert!(initiator.execute(self.now, RemoteId(0), command).is_ok());
        }
        self.settle();
    }
}

#[test]
fn commands_between_two_ports_do_not_use_the_heap() {
    let mut pair = Pair::new();
    // They take places in turn; each of those has memory when it was used for a read and a write.
    for _ in 0..4000 {
        pair.round();
    }
    let (before, ended) = (allocations(), pair.ended);
    for _ in 0..1000 {
        pair.round();
    }
    assert_eq!(pair.ended - ended, 16_000);
    assert_eq!(allocations() - before, 0);
}

/// A target with many initiators, each of which hears nobody but it.
struct Crowd {
    target: Port<FcpTarget<Nowhere>>,
    initiators: Vec<Port<IdleInitiator>>,
    /// Memory that the target holds, in bytes.
    held: isize,
}

impl Crowd {
    fn new(number: u16) -> Self {
        let before = held();
        let fcp = FcpTarget::new(FcpLimits::default());
        let target = port(2000, fcp);
        let held = held() - before;
        Self {
            target,
            initiators: (1..=number).map(silent).collect(),
            held,
        }
    }

    fn run(&mut self, now: Now) {
        self.with_target(|target| target.expire(now));
        for at in 0..self.initiators.len() {
            let mut wire = Wire::default();
            self.initiators[at].expire(now);
            while self.initiators[at].transmit(&mut wire) {
                self.with_target(|target| wire.deliver(now, target));
                self.answer(now);
            }
        }
    }

    /// Does something with the target, and books what it holds afterwards.
    fn with_target(&mut self, act: impl FnOnce(&mut Port<FcpTarget<Nowhere>>)) {
        let before = held();
        act(&mut self.target);
        while self.target.poll().is_some() {}
        self.held += held() - before;
    }

    fn answer(&mut self, now: Now) {
        let mut wire = Wire::default();
        let before = held();
        self.target.transmit(&mut wire);
        let frames = wire.frames.iter().map(Vec::capacity).sum::<usize>();
        self.held += held() - before - frames as isize;
        for frame in wire.frames {
            let low = usize::from(u16::from_be_bytes([frame[4], frame[5]]));
            let is_for_all = frame[0] & 1 != 0;
            let all = self.initiators.iter_mut().enumerate();
            for (_, port) in all.filter(|(at, _)| is_for_all || at + 1 == low) {
                port.receive(now, &frame, None);
            }
        }
    }
}

#[test]
fn a_thousand_remote_ports_fit_into_64_mib() {
    let mut crowd = Crowd::new(1000);
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(3) {
        now += Duration::from_millis(5);
        crowd.run(now);
    }
    let up = crowd.target.remotes().filter(|remote| remote.is_up());
    assert_eq!(up.count(), 1000);
    let held = crowd.held;
    assert!(held < 64 << 20, "{held} bytes");
}
