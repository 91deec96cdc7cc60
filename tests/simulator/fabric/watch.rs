//! What has to be so at any time.

use std::collections::{BTreeMap, BTreeSet};

use fc::fabric::SwitchLogin;
use fc::wire::els::Code;
use fc::wire::ethernet::Mac;
use fc::wire::fip::{FipOperation, Flags};
use fc::wire::names::{FcId, Wwn};

use super::frames::{els, fip, pair};
use super::zoning::{ZonedPort, Zoning};

/// A mistake that is made on purpose, so that it is seen that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A change of zones is answered before the switch has taken it up.
    AnswersFirst,
    /// ENodes take an Advertisement that nobody asked for as one that proves the MTU.
    TakesUnsolicited,
}

/// Who watches.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The stations, by number.
    pub(super) ports: Vec<ZonedPort>,
    /// Zones that were answered last.
    pub(super) zoning: Zoning,
    /// Zones that are ordered and not answered yet.
    pub(super) ordered: Option<Zoning>,
    numbers: BTreeMap<Wwn, usize>,
    by_id: BTreeMap<FcId, usize>,
    /// FCFs that a station has heard an Advertisement of that it had asked for.
    proven: BTreeSet<(usize, Mac)>,
    /// Frames that were forwarded.
    pub(super) forwarded: u64,
}

impl Watch {
    pub(super) fn new(ports: Vec<ZonedPort>, zoning: Zoning) -> Self {
        let numbers = ports.iter().enumerate();
        Self {
            numbers: numbers.map(|(at, port)| (port.wwpn, at)).collect(),
            ports,
            zoning,
            ordered: None,
            by_id: BTreeMap::new(),
            proven: BTreeSet::new(),
            forwarded: 0,
        }
    }

    /// The station of this name.
    pub(super) fn number(&self, wwpn: Wwn) -> Option<usize> {
        self.numbers.get(&wwpn).copied()
    }

    /// Whether two stations see each other.
    pub(super) fn share(&self, a: usize, b: usize) -> bool {
        self.zoning.share(a, b)
    }

    /// A station knows nothing any more.
    pub(super) fn forget(&mut self, at: usize) {
        self.proven.retain(|(station, _)| *station != at);
    }

    /// A station hears a frame.
    pub(super) fn heard(&mut self, at: usize, frame: &[u8]) {
        if let Some((header, message)) = fip(frame)
            && message.operation == FipOperation::Advertisement
            && message.flags.has(Flags::SOLICITED)
        {
            self.proven.insert((at, header.src));
        }
    }

    /// A station sends a frame.
    pub(super) fn sent(&self, at: usize, frame: &[u8]) {
        if let Some((header, message)) = fip(frame)
            && message.operation == FipOperation::ElsRequest
            && let Some(&code) = els(&message).and_then(|els| els.payload.first())
            && [Code::FLOGI.0, Code::FDISC.0].contains(&code)
        {
            let is_proven = self.proven.contains(&(at, header.dst));
            assert!(is_proven, "{at} logs in to {} without its S", header.dst);
        }
    }

    /// A switch has logged a station in: as ever, with the same N_Port_ID.
    pub(super) fn logged_in(&mut self, login: &SwitchLogin) {
        let Some(at) = self.number(login.wwpn) else {
            panic!("{login:?} of nobody");
        };
        let before = self.ports[at].fc_id.replace(login.fc_id);
        let same = before.is_none_or(|before| before == login.fc_id);
        assert!(same, "{at} was {before:?} and is {:?}", login.fc_id);
        let other = self.by_id.insert(login.fc_id, at);
        assert!(
            other.is_none_or(|other| other == at),
            "{other:?} was {login:?}"
        );
    }

    /// A switch forwards a frame.
    pub(super) fn forwards(&mut self, frame: &[u8]) {
        self.forwarded += 1;
        let Some((from, to)) = pair(frame) else {
            panic!("it forwards what is no FCoE");
        };
        let number = |fc_id| self.by_id.get(&fc_id).copied();
        let (Some(a), Some(b)) = (number(from), number(to)) else {
            panic!("it forwards from {from:?} to {to:?}, which nobody is");
        };
        let ordered = self.ordered.as_ref();
        let may = self.share(a, b) || ordered.is_some_and(|zoning| zoning.share(a, b));
        assert!(may, "it forwards from {a} to {b}, which share no zone");
    }
}
