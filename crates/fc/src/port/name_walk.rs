//! A walk through all ports that a name server lists, one after the other (FC-GS, GA_NXT): of any
//! FC-4 type, with what they call themselves.
//!
//! | event | what follows |
//! |---|---|
//! | it begins | GA_NXT of N_Port_ID 0 |
//! | a port with a higher N_Port_ID than asked | it is listed; GA_NXT of that |
//! | another port, a reject, as many ports as are kept | the end |
//!
//! It has no timer: an answer that is lost is asked for again by [`Port::walk_names`]. Ports change
//! meanwhile, and so may the list.

use super::name_client::ServiceFrame;
use super::name_client::sequence::ReceivedSequence;
use super::{Fc4Layer, Port};
use crate::wire::ct::name_server::{NameServerAccept, NameServerRequest, PortEntry, code};
use crate::wire::ct::{CtCode, CtHeader};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// Ports that are listed: as many as a port has remote ports.
const PORTS_MAX: usize = 4096;

/// The walk, and what it has found.
#[derive(Debug)]
pub(super) struct NameWalk {
    /// The N_Port_ID that was asked last.
    asked: FcId,
    ox_id: OxId,
    answer: ReceivedSequence,
    ports: Vec<PortEntry>,
    is_over: bool,
}

impl<F: Fc4Layer> Port<F> {
    /// Begins to walk through the ports of the name server, or asks for the next one again. Returns
    /// whether it is asked: there is a login to it, and all that else is asked was answered.
    pub fn walk_names(&mut self) -> bool {
        let Some(client) = &mut self.name_client else {
            return false;
        };
        if client.is_looking() {
            return false;
        }
        let ox_id = client.take_ox_id();
        let walk = self.name_walk.get_or_insert_with(|| {
            Box::new(NameWalk {
                asked: FcId(0),
                ox_id,
                answer: ReceivedSequence::default(),
                ports: Vec::new(),
                is_over: false,
            })
        });
        walk.ox_id = ox_id;
        walk.answer = ReceivedSequence::default();
        self.ask_next();
        true
    }

    /// The ports that the walk has found so far, by N_Port_ID.
    #[must_use]
    pub fn walked(&self) -> &[PortEntry] {
        self.name_walk.as_ref().map_or(&[], |walk| &walk.ports)
    }

    /// Whether it has found all of them.
    #[must_use]
    pub fn has_walked(&self) -> bool {
        self.name_walk.as_ref().is_some_and(|walk| walk.is_over)
    }

    fn ask_next(&mut self) {
        let Some(walk) = self.name_walk.as_ref().filter(|walk| !walk.is_over) else {
            return;
        };
        self.send_service(ServiceFrame {
            to: FcId::DIRECTORY,
            kind: (RCtl::UNSOLICITED_CONTROL, FrameType::CT),
            f_ctl: FCtl::REQUEST,
            exchange: (walk.ox_id, RxId::UNASSIGNED),
            payload: NameServerRequest::GaNxt(walk.asked).encode(),
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
        if walk.is_over || !is_its || (header.r_ctl, header.kind) != kind {
            return false;
        }
        let Some(payload) = walk.answer.take(frame) else {
            return true;
        };
        walk.take(&payload);
        if !walk.is_over
            && let Some(client) = &mut self.name_client
        {
            walk.ox_id = client.take_ox_id();
            self.ask_next();
        }
        true
    }
}

impl NameWalk {
    /// Takes an answer.
    fn take(&mut self, payload: &[u8]) {
        match port(payload) {
            Some(port) if port.fc_id > self.asked && self.ports.len() < PORTS_MAX => {
                self.asked = port.fc_id;
                self.ports.push(port);
            }
            _ => self.is_over = true,
        }
    }
}

/// The port that an answer tells of.
fn port(payload: &[u8]) -> Option<PortEntry> {
    let (header, payload) = CtHeader::parse(payload).ok()?;
    if header.code != CtCode::ACCEPT {
        return None;
    }
    match NameServerAccept::parse(code::GA_NXT, payload) {
        Ok(NameServerAccept::Port(entry)) => Some(*entry),
        _ => None,
    }
}
