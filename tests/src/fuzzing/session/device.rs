//! A device server that does what the script says, within its contract.

use iscsi::datamover::Datamover;
use iscsi::session::Session;
use scsi::medium::{HeapLease, Lease};
use scsi::task::{Command, Completed, Function, FunctionResult, SenseBytes, Tag};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use crate::fuzzing::script::Script;

/// See [`super`].
#[derive(Debug)]
pub(super) struct Device {
    jobs: Vec<Job>,
    functions: Vec<(u32, Lun, Function)>,
    /// The widest command window.
    window: u32,
    /// Something was to be ended since it was asked last.
    busy: bool,
}

#[derive(Debug)]
struct Job {
    tag: Tag,
    lun: Lun,
    expected_out: u32,
    /// Bytes that were asked for, from the beginning on.
    asked: u32,
    lent: Vec<(u32, usize)>,
    /// Bytes that were sent.
    sent: u32,
}

/// Commands and functions for immediate delivery that may be under way beside the window.
const IMMEDIATE: usize = 16;

impl Device {
    pub(super) const fn new(window: u32) -> Self {
        Self {
            jobs: Vec::new(),
            functions: Vec::new(),
            window,
            busy: false,
        }
    }

    pub(super) fn execute(&mut self, command: &Command) {
        let open = self.jobs.iter().any(|job| job.tag == command.tag);
        assert!(!open, "{:?} twice at once", command.tag);
        self.jobs.push(Job {
            tag: command.tag,
            lun: command.lun,
            expected_out: command.expected_out,
            asked: 0,
            lent: Vec::new(),
            sent: 0,
        });
        assert!(
            self.jobs.len() <= self.window as usize + IMMEDIATE,
            "more than the window"
        );
    }

    pub(super) fn data_out(&mut self, tag: Tag, offset: u32, data: &HeapLease) {
        let job = self.jobs.iter_mut().find(|job| job.tag == tag);
        let job = job.expect("data of a command that is open");
        let known = job
            .lent
            .iter()
            .position(|lent| *lent == (offset, data.len()));
        job.lent
            .remove(known.expect("data that was asked for, once"));
    }

    pub(super) fn manage(&mut self, id: u32, lun: Lun, function: Function) {
        self.functions.push((id, lun, function));
        assert!(
            self.functions.len() <= self.jobs.len() + 2 * IMMEDIATE,
            "functions without end"
        );
    }

    /// Does one thing.
    pub(super) fn act<D: Datamover<HeapLease>>(
        &mut self,
        script: &mut Script<'_>,
        session: &mut Session<HeapLease, D>,
    ) {
        let what = script.byte();
        let at = script.below(16);
        if what & 7 == 7 {
            if at < self.functions.len() {
                self.answer(at, script.byte(), session);
            }
            return;
        }
        let Some(job) = self.jobs.get_mut(at) else {
            return;
        };
        match what & 7 {
            0 | 1 => job.ask(script, session),
            2 | 3 => job.send(script, session),
            4 => self.abort(at, session),
            _ if !job.lent.is_empty() => {}
            5 => self.complete(at, Status::Good, session),
            _ => self.complete(at, Status::CheckCondition, session),
        }
    }

    fn complete<D: Datamover<HeapLease>>(
        &mut self,
        at: usize,
        status: Status,
        session: &mut Session<HeapLease, D>,
    ) {
        let job = self.jobs.swap_remove(at);
        let sense = [0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let completed = Completed {
            status,
            sense: match status {
                Status::Good => SenseBytes::EMPTY,
                _ => SenseBytes::new(&sense),
            },
            qualifier: u16::from(job.tag.0 as u8),
            length_in: job.sent.into(),
            length_out: job.asked.into(),
        };
        session.complete(job.tag, &completed);
    }

    fn abort<D: Datamover<HeapLease>>(&mut self, at: usize, session: &mut Session<HeapLease, D>) {
        let job = self.jobs.swap_remove(at);
        session.aborted(job.tag);
    }

    fn answer<D: Datamover<HeapLease>>(
        &mut self,
        at: usize,
        how: u8,
        session: &mut Session<HeapLease, D>,
    ) {
        let (id, lun, function) = self.functions.remove(at);
        let result = match how {
            1 => FunctionResult::Rejected,
            2 => FunctionResult::IncorrectLun,
            3 => FunctionResult::NoTask,
            4 => FunctionResult::Succeeded([0x12, 0x29, 0]),
            _ => FunctionResult::Complete,
        };
        if result == FunctionResult::Complete {
            while let Some(at) = self.jobs.iter().position(|job| job.is_met(lun, function)) {
                self.abort(at, session);
            }
        }
        session.managed(id, result);
    }

    /// Ends one thing, well; `false` when there is nothing.
    pub(super) fn finish_one<D: Datamover<HeapLease>>(
        &mut self,
        session: &mut Session<HeapLease, D>,
    ) -> bool {
        if !self.functions.is_empty() {
            self.answer(0, 0, session);
        } else if let Some(job) = self.jobs.first() {
            if job.lent.is_empty() {
                self.complete(0, Status::Good, session);
            } else {
                self.abort(0, session);
            }
        } else {
            return false;
        }
        self.busy = true;
        true
    }

    /// Whether there was something to end since this was asked last.
    pub(super) fn was_busy(&mut self) -> bool {
        std::mem::take(&mut self.busy)
    }

    pub(super) fn is_idle(&self) {
        assert!(self.jobs.is_empty() && self.functions.is_empty());
    }
}

impl Job {
    fn ask<D: Datamover<HeapLease>>(
        &mut self,
        script: &mut Script<'_>,
        session: &mut Session<HeapLease, D>,
    ) {
        let left = self.expected_out - self.asked;
        let len = left.min(1 + u32::from(script.half()));
        if len == 0 || self.lent.len() >= 4 {
            return;
        }
        let into = HeapLease::from_bytes(vec![0; len as usize]);
        self.lent.push((self.asked, len as usize));
        session.receive_data_out(self.tag, self.asked, into);
        self.asked += len;
    }

    fn send<D: Datamover<HeapLease>>(
        &mut self,
        script: &mut Script<'_>,
        session: &mut Session<HeapLease, D>,
    ) {
        let len = script.half() & 0x3fff;
        let data = HeapLease::from_bytes(vec![0x5a; len.into()]);
        session.send_data_in(self.tag, self.sent, data);
        self.sent += u32::from(len);
    }

    fn is_met(&self, lun: Lun, function: Function) -> bool {
        match function {
            Function::AbortTask(tag) => self.tag == tag,
            Function::AbortTaskSet | Function::ClearTaskSet | Function::LogicalUnitReset => {
                self.lun == lun
            }
            Function::TargetReset | Function::NexusReset => true,
            _ => false,
        }
    }
}
