//! Who does what next: the target's world, or one of the hosts.

use super::Lab;
use crate::oracle::Pattern;
use scsi::medium::Extent;
use sim::Rng;

/// What hosts do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// Functions that abort are among it.
    pub(crate) aborts: bool,
    /// The longest transfer, in blocks.
    pub(crate) blocks: usize,
    /// Commands that a host has under way at once.
    pub(crate) depth: usize,
}

impl Default for Mix {
    /// I/O alone.
    fn default() -> Self {
        Self {
            aborts: false,
            blocks: 12,
            depth: 8,
        }
    }
}

/// One thing that a host does.
#[derive(Clone, Copy)]
enum Act {
    Read,
    Write(Pattern),
    CompareAndWrite,
    Flush,
    AbortTask,
    AbortTaskSet,
    Ping,
}

/// How often each of them is done in relation to the rest.
const ACTS: [(Act, usize); 9] = [
    (Act::Read, 8),
    (Act::Write(Pattern::Each), 12),
    (Act::Write(Pattern::Same), 1),
    (Act::Write(Pattern::Zeros), 1),
    (Act::CompareAndWrite, 2),
    (Act::Flush, 1),
    (Act::AbortTask, 3),
    (Act::AbortTaskSet, 1),
    (Act::Ping, 1),
];

impl Mix {
    /// With functions that abort.
    #[must_use]
    pub(crate) fn with_aborts() -> Self {
        Self {
            aborts: true,
            ..Self::default()
        }
    }

    fn pick(&self, rng: &mut Rng) -> Act {
        let aborts = |act: Act| matches!(act, Act::AbortTask | Act::AbortTaskSet);
        let acts = ACTS.iter().filter(|(act, _)| self.aborts || !aborts(*act));
        let all = acts.flat_map(|(act, weight)| std::iter::repeat_n(*act, *weight));
        *rng.pick(&all.collect::<Vec<_>>())
    }
}

impl Lab {
    /// Lets one thing happen; `false` when nothing can.
    pub(crate) fn step(&mut self) -> bool {
        let world_first = self.rng.one_in(2);
        let happened = world_first && self.world.step() || self.host_step() || self.world.step();
        if happened {
            self.look_at_disks();
            if let Some(host) = self.prompt {
                self.hurry(host);
            }
        }
        happened
    }

    /// Some host sends or takes some bytes.
    fn host_step(&mut self) -> bool {
        let hosts = self.hosts.iter_mut().enumerate();
        let ready: Vec<_> = hosts
            .filter_map(|(number, host)| host.has_something_to_do().then_some(number))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let host = *self.rng.pick(&ready);
        self.act(host);
        true
    }

    fn act(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        if host.is_cut_off() {
            self.tell(|| format!("host {number} is cut off"));
            self.hosts[number].hang_up();
            return;
        }
        let (unsent, arrived) = (host.unsent(), host.arrived());
        let send = unsent > 0 && (arrived == 0 || self.rng.one_in(2));
        let len = self.some_of(if send { unsent } else { arrived });
        if send {
            self.hosts[number].send(len);
        } else {
            self.hosts[number].take(len);
            self.hear(number);
        }
    }

    fn some_of(&mut self, most: usize) -> usize {
        match self.rng.below(4) {
            0 | 1 => most,
            2 => 1 + self.rng.below(most.min(64)),
            _ => 1 + self.rng.below(most),
        }
    }

    /// Moves everything of a host both ways at once, without letting anything else happen.
    pub(crate) fn hurry(&mut self, number: usize) {
        loop {
            let host = &mut self.hosts[number];
            let unsent = host.unsent();
            host.send(unsent);
            if let Some(link) = &host.link {
                self.world.hurry(&link.wire);
            }
            self.look_at_disks();
            let host = &mut self.hosts[number];
            let arrived = host.arrived();
            if arrived == 0 && host.unsent() == 0 {
                return;
            }
            host.take(arrived);
            self.hear(number);
        }
    }

    /// Lets everything happen that can without a host sending anything.
    pub(crate) fn settle(&mut self, number: usize) {
        loop {
            let arrived = self.hosts[number].arrived();
            if arrived > 0 {
                self.hosts[number].take(arrived);
                self.hear(number);
            } else if self.world.step() {
                self.look_at_disks();
            } else {
                return;
            }
        }
    }

    /// So many random things happen, commands of ready hosts among them.
    pub(crate) fn run(&mut self, steps: usize, mix: &Mix) {
        for _ in 0..steps {
            if self.rng.one_in(6) || !self.step() {
                self.issue(mix);
            }
        }
    }

    /// Some host that can sends a random command.
    pub(crate) fn issue(&mut self, mix: &Mix) {
        self.issue_from_others(usize::MAX, mix);
    }

    /// Some host that can, but one, sends a random command.
    pub(crate) fn issue_from_others(&mut self, than: usize, mix: &Mix) {
        let hosts = self.hosts.iter().enumerate();
        let hosts = hosts.filter(|(number, _)| *number != than);
        let ready = hosts.filter(|(_, host)| host.is_ready() && host.tasks.len() < mix.depth);
        let ready: Vec<_> = ready.map(|(number, _)| number).collect();
        if !ready.is_empty() {
            let host = *self.rng.pick(&ready);
            self.issue_from(host, mix);
        }
    }

    /// A host sends a random command.
    pub(crate) fn issue_from(&mut self, host: usize, mix: &Mix) {
        let units = self.watched();
        let unit = *self.rng.pick(&units);
        let extent = self.any_extent(unit, mix.blocks);
        match mix.pick(&mut self.rng) {
            Act::Read => {
                self.read(host, unit, extent);
            }
            Act::Write(pattern) => {
                self.write(host, unit, extent, pattern);
            }
            Act::CompareAndWrite => {
                self.compare_and_write(host, unit, Extent::new(extent.lba, 1));
            }
            Act::Flush => {
                self.flush(host, unit);
            }
            Act::AbortTask => self.abort_any(host),
            Act::AbortTaskSet => self.abort_set(host, unit),
            Act::Ping => self.ping(host),
        }
    }

    fn any_extent(&mut self, unit: usize, most: usize) -> Extent {
        let blocks = self.disks[unit].traits().blocks as usize;
        let len = 1 + self.rng.below(most.min(blocks));
        let lba = self.rng.below(blocks - len + 1);
        Extent::new(lba as u64, len as u64)
    }

    fn abort_any(&mut self, host: usize) {
        let users: Vec<_> = self.hosts[host].tasks.keys().copied().collect();
        if !users.is_empty() && self.hosts[host].functions.len() < 4 {
            let user = *self.rng.pick(&users);
            self.abort(host, user);
        }
    }

    fn ping(&mut self, host: usize) {
        let bytes: [u8; 8] = self.rng.bytes();
        if let Some(link) = &mut self.hosts[host].link {
            link.initiator.ping(&bytes);
        }
    }
}
