//! The longest ECHO that comes back from a port (FC-LS-3).

use std::time::Duration;

use scsi::medium::Now;

use super::{EchoResult, PathProbe, TRIES};
use crate::fip::Neighbour;
use crate::wire::els::{Code, Els, Reply};
use crate::wire::ethernet::Mac;
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// Where the search at one port stands. Lengths are of payloads, in bytes, and multiples of 4.
#[derive(Clone, Copy, Debug)]
pub(super) struct EchoSearch {
    enode: Mac,
    /// The longest that both ends take.
    full: u16,
    /// The longest that came back; 0 before one did.
    passed: u16,
    /// The shortest that did not.
    lost: u16,
    /// The one on its way.
    len: u16,
    ox_id: OxId,
    tries: u8,
    until: Now,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum EchoStep {
    Send(u16),
    End(EchoResult),
}

impl EchoSearch {
    pub(super) const fn deadline(&self) -> Now {
        self.until
    }

    /// The one on its way came back.
    fn passes(&mut self) -> EchoStep {
        self.passed = self.len;
        self.next()
    }

    /// The one on its way has not come back in time.
    fn is_late(&mut self) -> EchoStep {
        if self.tries < TRIES {
            return EchoStep::Send(self.len);
        }
        self.lost = self.len;
        self.next()
    }

    fn next(&self) -> EchoStep {
        let result = EchoResult::Passed {
            longest: self.passed,
            full: self.full,
        };
        match (self.passed, self.lost) {
            (0, lost) if lost <= SHORTEST => EchoStep::End(EchoResult::Silent),
            // A port without ECHO is told from a narrow path by the shortest one.
            (0, _) => EchoStep::Send(SHORTEST),
            (passed, lost) if lost - passed <= 4 => EchoStep::End(result),
            (passed, lost) => EchoStep::Send((passed + (lost - passed) / 2) & !3),
        }
    }
}

impl PathProbe {
    /// Begins at a port that there is a virtual link to.
    pub(super) fn search(&mut self, neighbour: &Neighbour) {
        let full = neighbour.payload_max;
        let search = EchoSearch {
            enode: neighbour.enode,
            full,
            passed: 0,
            lost: full.saturating_add(4),
            len: full,
            ox_id: OxId::UNASSIGNED,
            tries: 0,
            until: self.now,
        };
        self.searches.insert(neighbour.fc_id, search);
        self.step(neighbour.fc_id, EchoStep::Send(full));
    }

    /// There is no virtual link to a port any more.
    pub(super) fn give_up(&mut self, fc_id: FcId) {
        if let Some(search) = self.searches.remove(&fc_id)
            && let Some(port) = self.ports.get_mut(&search.enode)
        {
            port.echo = EchoResult::Untried;
        }
    }

    /// A response, perhaps to an ECHO.
    pub(super) fn echoed(&mut self, frame: &ReceivedFrame<'_>) {
        let from = frame.header.s_id;
        let Some(search) = self.searches.get_mut(&from) else {
            return;
        };
        if frame.header.ox_id != search.ox_id {
            return;
        }
        let step = match Reply::parse(Code::ECHO, frame.payload) {
            Ok(Reply::Echo(_)) if frame.payload.len() >= usize::from(search.len) => search.passes(),
            Ok(Reply::Reject(_)) => EchoStep::End(EchoResult::Refused),
            _ => return,
        };
        self.step(from, step);
    }

    pub(super) fn expire_searches(&mut self) {
        let all = self.searches.iter_mut();
        let due = all.filter(|(_, search)| search.until <= self.now);
        let due: Vec<_> = due.map(|(fc_id, one)| (*fc_id, one.is_late())).collect();
        for (fc_id, step) in due {
            self.step(fc_id, step);
        }
    }

    fn step(&mut self, fc_id: FcId, step: EchoStep) {
        match step {
            EchoStep::Send(len) => self.send_echo(fc_id, len),
            EchoStep::End(result) => {
                if let Some(search) = self.searches.remove(&fc_id)
                    && let Some(port) = self.ports.get_mut(&search.enode)
                {
                    port.echo = result;
                }
            }
        }
    }

    fn send_echo(&mut self, fc_id: FcId, len: u16) {
        let Some(search) = self.searches.get_mut(&fc_id) else {
            return;
        };
        let ox_id = OxId(self.next_ox_id);
        self.next_ox_id = (self.next_ox_id + 1) % OxId::UNASSIGNED.0;
        search.tries = if len == search.len {
            search.tries + 1
        } else {
            1
        };
        (search.len, search.ox_id) = (len, ox_id);
        search.until = self.now.saturating_add(PATIENCE);
        // The code's word is part of the payload.
        let data = vec![0x5a; usize::from(len).saturating_sub(4)];
        let kind = (RCtl::ELS_REQUEST, FCtl::REQUEST);
        let exchange = (ox_id, RxId::UNASSIGNED);
        self.send(fc_id, kind, exchange, Els::Echo(data).encode());
    }
}

/// The shortest one: the code's word and one more.
const SHORTEST: u16 = 8;

/// How long an answer may take: more than any port on the same Ethernet needs.
const PATIENCE: Duration = Duration::from_millis(150);
