//! Control frames (those that the machine itself sends) on their way to the ports of all cores, and
//! answers to orders of other threads.
//!
//! Each belongs to the table of its moment. It leaves core 0 when all cores have acknowledged that
//! table: an answer to a logout, or a notice of other zones, is true when it is heard. However fast
//! later changes come, they do not hold earlier answers up.
//!
//! A core that acknowledges nothing for [`ACKNOWLEDGE_MAX`] is not waited for any longer. It does
//! not forward meanwhile, and when it goes on, what waits in its queues is as old as E_D_TOV and is
//! dropped: at most one batch is left that it was reading, and what it had given to its sockets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::Duration;

use fc::fabric::{PortNumber, Switch};
use fc::frames::FrameSink;
use scsi::medium::Now;

use super::backlog::Backlog;
use super::core::number;
use super::cores::{FIRST_VERSION, SwitchCores};
use super::machine::{OrderAnswer, SwitchMachine};

/// Unsent control frames of a port, in bytes. More of them wait in the machine.
pub(super) const CONTROL_MAX: usize = 64 << 10;

/// How long core 0 waits for a core that acknowledges nothing.
pub(super) const ACKNOWLEDGE_MAX: Duration = Switch::E_D_TOV;

/// Control frames that wait for their table to be in force.
#[derive(Debug)]
pub(super) struct Outbox {
    cores: Arc<SwitchCores>,
    /// Each with its port, and the table that has to be in force.
    control: Backlog<(PortNumber, u64)>,
    /// Answers to orders, each with the table that has to be in force.
    answers: VecDeque<(OrderAnswer, u64)>,
    /// What each other core has acknowledged.
    acknowledged: Vec<Acknowledged>,
    /// The machine had more to send than had room, when it was asked last.
    is_any_left: bool,
}

#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    version: u64,
    /// Since when it has acknowledged no other one.
    since: Now,
    is_given_up: bool,
}

impl Outbox {
    pub(super) fn new(cores: Arc<SwitchCores>) -> Self {
        let size = cores.homes.len() * CONTROL_MAX * 2;
        let begun = Acknowledged {
            version: FIRST_VERSION,
            since: Now::ZERO,
            is_given_up: false,
        };
        Self {
            control: Backlog::new(size),
            answers: VecDeque::new(),
            is_any_left: false,
            acknowledged: vec![begun; cores.count()],
            cores,
        }
    }

    /// Other cores are given a table in place of that version: those that have it begin to be
    /// waited for now.
    pub(super) fn publishes(&mut self, now: Now, before: u64) {
        let cores = self.acknowledged.iter_mut();
        for core in cores.filter(|core| core.version == before) {
            core.since = now;
        }
    }

    /// Takes what the machine has to send by all ports and to answer, under the table of that
    /// version.
    pub(super) fn fill(&mut self, machine: &mut SwitchMachine, version: u64) {
        self.is_any_left = false;
        let answers = machine.answers.drain(..);
        self.answers.extend(answers.map(|answer| (answer, version)));
        for at in 0..self.cores.homes.len() {
            let mut sink = ControlSink {
                outbox: self,
                port: number(at),
                version,
                slot: Vec::new(),
            };
            machine.lldp.transmit(at, &mut sink);
            machine.switch.transmit(number(at), &mut sink);
        }
    }

    /// Gives control frames away whose table is in force, of which the last version is that. The
    /// version that is in force is returned.
    pub(super) fn release(
        &mut self,
        now: Now,
        version: u64,
        mut give: impl FnMut(PortNumber, &[u8]),
    ) -> u64 {
        let in_force = self.in_force(now, version);
        while let Some(((port, needed), bytes)) = self.control.front()
            && *needed <= in_force
        {
            give(*port, bytes);
            self.control.pop();
        }
        in_force
    }

    /// The next answer to an order that holds by a table that is in force.
    pub(super) fn answer(&mut self, in_force: u64) -> Option<OrderAnswer> {
        let next = self.answers.pop_front_if(|(_, needed)| *needed <= in_force);
        next.map(|(answer, _)| answer)
    }

    /// The table than which no core forwards by an older one. The last one is that.
    fn in_force(&mut self, now: Now, version: u64) -> u64 {
        let mut least = version;
        for (core, heard) in self.acknowledged.iter_mut().enumerate().skip(1) {
            let told = self.cores.posts[core].acknowledged.load(Acquire);
            if told != heard.version || told == version {
                *heard = Acknowledged {
                    version: told,
                    since: now,
                    is_given_up: false,
                };
            } else if !heard.is_given_up && now.saturating_sub(heard.since) >= ACKNOWLEDGE_MAX {
                heard.is_given_up = true;
                tracing::error!(
                    "core {core} of the switch does not run: its ports do not forward, and changes \
                     do not wait for it any longer"
                );
            }
            if !heard.is_given_up {
                least = least.min(told);
            }
        }
        least
    }

    /// Until when it waits for cores, if it does.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let waits = |heard: &&Acknowledged| !heard.is_given_up;
        let since = self.acknowledged.iter().skip(1).filter(waits);
        let first = since.map(|heard| heard.since + ACKNOWLEDGE_MAX).min();
        first.filter(|_| !self.control.is_empty() || !self.answers.is_empty())
    }

    /// Whether all control frames have left.
    pub(super) fn has_sent_all(&self) -> bool {
        let mut unsent = self.cores.unsent.iter();
        !self.is_any_left
            && unsent.all(|unsent| {
                let has_left = || unsent.bytes.load(SeqCst) == 0;
                // Else what leaves after this would not wake this core.
                has_left() || {
                    unsent.has_more.store(true, SeqCst);
                    has_left()
                }
            })
    }
}

/// What the machine sends by one port, into the outbox.
struct ControlSink<'a> {
    outbox: &'a mut Outbox,
    port: PortNumber,
    version: u64,
    slot: Vec<u8>,
}

impl FrameSink for ControlSink<'_> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let unsent = &self.outbox.cores.unsent[usize::from(self.port.0)];
        let has_room = || unsent.bytes.load(SeqCst) + len <= CONTROL_MAX;
        if !has_room() {
            unsent.has_more.store(true, SeqCst);
            // Else what has left between the two would not wake this core.
            if !has_room() {
                self.outbox.is_any_left = true;
                return None;
            }
        }
        self.slot.resize(len, 0);
        Some(&mut self.slot)
    }

    fn commit(&mut self, len: usize) {
        let (port, bytes) = (self.port, &self.slot[..len]);
        if let Some(room) = self.outbox.control.push(len, (port, self.version)) {
            room.copy_from_slice(bytes);
            let unsent = &self.outbox.cores.unsent[usize::from(port.0)];
            unsent.bytes.fetch_add(len, SeqCst);
        }
    }
}
