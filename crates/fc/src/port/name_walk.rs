//! A walk through all ports that a name server lists, one after the other (FC-GS, GA_NXT): of any
//! FC-4 type, with what they call themselves.
//!
//! | event | what follows |
//! |---|---|
//! | it begins | GA_NXT of N_Port_ID 0 |
//! | a port with a higher N_Port_ID than asked | it is listed; GA_NXT of that |
//! | another port, a reject as there is none | the end: the list is whole |
//! | silence for E_D_TOV; a reject that asks for patience, E_D_TOV later | the same GA_NXT |
//! | three of those in a row; any other answer; as many ports as are kept | the end, before it is whole |
//!
//! Ports change meanwhile, and so may the list.

use scsi::medium::Now;

use super::name_client::ServiceFrame;
use super::name_client::sequence::ReceivedSequence;
use super::{Fc4Layer, Port};
use crate::wire::ct::name_server::{NameServerAccept, NameServerRequest, PortEntry, code};
use crate::wire::ct::{self, CtCode, CtHeader};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// Ports that are listed: as many as a port has remote ports.
const PORTS_MAX: usize = 4096;

/// So often one GA_NXT is sent.
const TRIES: u32 = 3;

/// How far a walk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameWalkState {
    /// None was begun since the login to the fabric.
    NotBegun,
    /// An answer is waited for.
    UnderWay,
    /// All ports that the name server shows are listed.
    Whole,
    /// It ended before.
    Partial,
}

/// The walk, and what it has found.
#[derive(Debug)]
pub(super) struct NameWalk {
    /// The N_Port_ID that was asked last.
    asked: FcId,
    ox_id: OxId,
    /// When it is asked again, and how often it was.
    until: Now,
    tries: u32,
    answer: ReceivedSequence,
    ports: Vec<PortEntry>,
    state: NameWalkState,
}

impl NameWalk {
    /// When [`Port::expire_walk`] has something to do.
    pub(super) fn deadline(&self) -> Option<Now> {
        self.is_under_way().then_some(self.until)
    }

    fn is_under_way(&self) -> bool {
        self.state == NameWalkState::UnderWay
    }
}

impl<F: Fc4Layer> Port<F> {
    /// Begins to walk through the ports of the name server, unless that was begun since the login
    /// to it. Returns whether it is: there is a login, and all else that is asked was answered.
    pub fn walk_names(&mut self, now: Now) -> bool {
        self.tick(now);
        let Some(client) = &mut self.name_client else {
            return false;
        };
        if self.name_walk.is_some() {
            return true;
        }
        if client.is_looking() {
            return false;
        }
        self.name_walk = Some(Box::new(NameWalk {
            asked: FcId(0),
            ox_id: client.take_ox_id(),
            until: Now::ZERO,
            tries: 0,
            answer: ReceivedSequence::default(),
            ports: Vec::new(),
            state: NameWalkState::UnderWay,
        }));
        self.ask_next();
        true
    }

    /// The ports that the walk has found so far, by N_Port_ID.
    #[must_use]
    pub fn walked(&self) -> &[PortEntry] {
        self.name_walk.as_ref().map_or(&[], |walk| &walk.ports)
    }

    /// How far the walk is.
    #[must_use]
    pub fn walk_state(&self) -> NameWalkState {
        let walk = self.name_walk.as_ref();
        walk.map_or(NameWalkState::NotBegun, |walk| walk.state)
    }

    /// Asks again what was not answered.
    pub(super) fn expire_walk(&mut self) {
        let now = self.now;
        if let Some(walk) = &mut self.name_walk
            && walk.deadline().is_some_and(|at| at <= now)
        {
            if walk.tries >= TRIES {
                walk.state = NameWalkState::Partial;
            }
            self.ask_next();
        }
    }

    fn ask_next(&mut self) {
        let again = self.now.saturating_add(self.local.e_d_tov);
        let (Some(walk), Some(client)) = (&mut self.name_walk, &mut self.name_client) else {
            return;
        };
        if !walk.is_under_way() {
            return;
        }
        walk.ox_id = client.take_ox_id();
        walk.answer = ReceivedSequence::default();
        walk.until = again;
        walk.tries += 1;
        let (ox_id, asked) = (walk.ox_id, walk.asked);
        self.send_service(ServiceFrame {
            to: FcId::DIRECTORY,
            kind: (RCtl::UNSOLICITED_CONTROL, FrameType::CT),
            f_ctl: FCtl::REQUEST,
            exchange: (ox_id, RxId::UNASSIGNED),
            payload: NameServerRequest::GaNxt(asked).encode(),
        });
    }

    /// Takes a frame, if it is of the answer to the walk's question.
    pub(super) fn walk_answer(&mut self, frame: &ReceivedFrame<'_>) -> bool {
        let header = &frame.header;
        let Some(walk) = &mut self.name_walk else {
            return false;
        };
        let is_its = header.s_id == FcId::DIRECTORY && header.ox_id == walk.ox_id;
        let kind = (RCtl::SOLICITED_CONTROL, FrameType::CT);
        if !walk.is_under_way() || !is_its || (header.r_ctl, header.kind) != kind {
            return false;
        }
        let Some(payload) = walk.answer.take(frame) else {
            return true;
        };
        match answer(&payload) {
            WalkAnswer::Port(port) => {
                walk.take(*port);
                self.ask_next();
            }
            // It is asked again when its time is over.
            WalkAnswer::Busy => {}
            WalkAnswer::None => walk.state = NameWalkState::Whole,
            WalkAnswer::Useless => walk.state = NameWalkState::Partial,
        }
        true
    }
}

impl NameWalk {
    /// Takes the next port.
    fn take(&mut self, port: PortEntry) {
        if port.fc_id <= self.asked {
            self.state = NameWalkState::Whole;
        } else if self.ports.len() >= PORTS_MAX {
            self.state = NameWalkState::Partial;
        } else {
            (self.asked, self.tries) = (port.fc_id, 0);
            self.ports.push(port);
        }
    }
}

/// What a name server says to GA_NXT.
enum WalkAnswer {
    Port(Box<PortEntry>),
    /// Later.
    Busy,
    /// There is none.
    None,
    Useless,
}

fn answer(payload: &[u8]) -> WalkAnswer {
    let Ok((header, payload)) = CtHeader::parse(payload) else {
        return WalkAnswer::Useless;
    };
    match (header.code, header.why.reason) {
        (CtCode::ACCEPT, _) => match NameServerAccept::parse(code::GA_NXT, payload) {
            Ok(NameServerAccept::Port(entry)) => WalkAnswer::Port(entry),
            _ => WalkAnswer::Useless,
        },
        (CtCode::REJECT, ct::reason::LOGICAL_BUSY) => WalkAnswer::Busy,
        (CtCode::REJECT, ct::reason::UNABLE) => WalkAnswer::None,
        _ => WalkAnswer::Useless,
    }
}
