//! Requests that a port sends to other ports, or to its name server, on behalf of another program:
//! what fcping, fcrls and fcnsq ask (FC-LS-3, ECHO and RLS; FC-GS-7, queries of the name server).
//!
//! | event | what follows |
//! |---|---|
//! | a query is taken | one sequence, in an exchange of its own |
//! | the answer, whole, from that port and Ethernet address | it is told, whatever it says |
//! | silence for E_D_TOV | [`FcQueryError::Silent`]; a later answer is not looked at |
//! | the port goes offline | [`FcQueryError::Ended`] |
//!
//! A query is sent once: the program that asks counts what is lost. It touches no login, and none
//! is needed for it, but that with the name server. Few are outstanding at a time, so that they
//! cost the port's own frames little.

use std::collections::VecDeque;
use std::time::Duration;

use scsi::medium::Now;

use super::name_client::sequence::ReceivedSequence;
use super::{Fc4Layer, Port};
use crate::remote::{PeerAddress, RemotePort};
use crate::wire::ct::name_server::NameServerRequest;
use crate::wire::ct::{self, CtHeader, CtService};
use crate::wire::els::Els;
use crate::wire::ethernet::EthernetHeader;
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// Queries of a port that are outstanding at a time.
pub const QUERIES_MAX: usize = 4;

/// A request that asks, and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FcQuery {
    to: FcId,
    is_els: bool,
    payload: Vec<u8>,
}

/// The number of a query of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcQueryId(u64);

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FcQueryError {
    /// It is none of those that are sent for others.
    #[error("only ECHO, RLS and queries of the name server are sent for other programs")]
    NotAQuery,
    /// It does not fit a frame of the port: the most bytes that do.
    #[error("a frame of this port has room for {0} bytes: ask for less")]
    TooLong(u16),
    /// [`QUERIES_MAX`] are outstanding.
    #[error("the port has as many requests outstanding as it sends for others: try again")]
    Busy,
    /// The port has no N_Port_ID.
    #[error("the port is not online: fcoeadm -i shows its state")]
    Offline,
    /// In VN2VN mode there is no neighbour with this N_Port_ID.
    #[error("no port with N_Port_ID {0} is on this Ethernet: fcoeadm -t shows targets")]
    NoPort(FcId),
    /// There is no fabric in VN2VN mode.
    #[error(
        "the port is in VN2VN mode, in which there is no name server: lunar ls shows the names of \
         its neighbours"
    )]
    NoFabric,
    /// The name server has not accepted the port yet.
    #[error("the port is not logged in to the name server yet: try again")]
    NotRegistered,
    /// No answer came for so long.
    #[error("no answer within {} ms", .0.as_millis())]
    Silent(Duration),
    /// The link or the login to the fabric has ended meanwhile.
    #[error("the port went offline: fcoeadm -i shows its state")]
    Ended,
}

impl FcQuery {
    /// An extended link service to a port: ECHO or RLS.
    ///
    /// # Errors
    /// [`FcQueryError::NotAQuery`].
    pub fn els(to: FcId, payload: Vec<u8>) -> Result<Self, FcQueryError> {
        match Els::parse(&payload) {
            Ok(Els::Echo(_) | Els::Rls(_)) => Ok(Self {
                to,
                is_els: true,
                payload,
            }),
            _ => Err(FcQueryError::NotAQuery),
        }
    }

    /// A CT_IU to the name server that asks for something, and registers nothing.
    ///
    /// # Errors
    /// [`FcQueryError::NotAQuery`].
    pub fn ct(payload: Vec<u8>) -> Result<Self, FcQueryError> {
        if is_name_query(&payload) {
            Ok(Self {
                to: FcId::DIRECTORY,
                is_els: false,
                payload,
            })
        } else {
            Err(FcQueryError::NotAQuery)
        }
    }

    const fn kind(&self) -> (RCtl, FrameType) {
        if self.is_els {
            (RCtl::ELS_REQUEST, FrameType::ELS)
        } else {
            (RCtl::UNSOLICITED_CONTROL, FrameType::CT)
        }
    }

    const fn answer_kind(&self) -> (RCtl, FrameType) {
        if self.is_els {
            (RCtl::ELS_REPLY, FrameType::ELS)
        } else {
            (RCtl::SOLICITED_CONTROL, FrameType::CT)
        }
    }
}

/// Whether it is one of the queries about one port or node that fcnsq and fcping make.
fn is_name_query(payload: &[u8]) -> bool {
    use NameServerRequest as Ask;
    let Ok((header, asked)) = CtHeader::parse(payload) else {
        return false;
    };
    let is_of_ours = header.revision == ct::REVISION && header.service == CtService::NAME_SERVER;
    let asked = Ask::parse(header.code, asked);
    let is_query = matches!(
        asked,
        Ok(Ask::GpnId(_)
            | Ask::GnnId(_)
            | Ask::GspnId(_)
            | Ask::GsnnNn(_)
            | Ask::GidPn(_)
            | Ask::GidNn(_))
    );
    is_of_ours && is_query
}

/// One that is outstanding.
#[derive(Debug)]
struct PendingQuery {
    id: FcQueryId,
    to: PeerAddress,
    answer_kind: (RCtl, FrameType),
    ox_id: OxId,
    until: Now,
    answer: ReceivedSequence,
}

/// The queries of a port.
#[derive(Debug, Default)]
pub(super) struct Queries {
    next_id: u64,
    pending: Vec<PendingQuery>,
    /// Those that were answered, or never will be.
    done: VecDeque<(FcQueryId, Result<Vec<u8>, FcQueryError>)>,
}

impl Queries {
    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.pending.iter().map(|one| one.until).min()
    }

    /// Ends those of which this is true.
    fn end(&mut self, why: FcQueryError, is_over: impl Fn(&PendingQuery) -> bool) {
        let ended = self.pending.extract_if(.., |one| is_over(one));
        self.done.extend(ended.map(|one| (one.id, Err(why))));
    }

    /// How many are kept.
    pub(super) fn records(&self) -> usize {
        self.pending.len() + self.done.len()
    }

    /// The port has gone offline.
    pub(super) fn end_all(&mut self) {
        self.end(FcQueryError::Ended, |_| true);
    }
}

impl<F: Fc4Layer> Port<F> {
    /// Sends a query. [`Self::answered_query`] tells what comes of it.
    ///
    /// # Errors
    /// See [`FcQueryError`]; nothing is sent then.
    pub fn query(&mut self, now: Now, query: FcQuery) -> Result<FcQueryId, FcQueryError> {
        self.tick(now);
        if self.queries.pending.len() >= QUERIES_MAX {
            return Err(FcQueryError::Busy);
        }
        if query.payload.len() > usize::from(self.payload_max()) {
            return Err(FcQueryError::TooLong(self.payload_max()));
        }
        let to = self.query_address(query.to)?;
        let ox_id = self.query_ox_id(&query)?;
        self.queries.next_id += 1;
        let id = FcQueryId(self.queries.next_id);
        self.queries.pending.push(PendingQuery {
            id,
            to,
            answer_kind: query.answer_kind(),
            ox_id,
            until: self.now.saturating_add(self.local.e_d_tov),
            answer: ReceivedSequence::default(),
        });
        let exchange = (ox_id, RxId::UNASSIGNED);
        self.queue_to(to, query.kind(), FCtl::REQUEST, exchange, query.payload);
        Ok(id)
    }

    /// What came of a query: the payload of its answer, accept or reject; to be asked until `None`
    /// after each call of another function.
    pub fn answered_query(&mut self) -> Option<(FcQueryId, Result<Vec<u8>, FcQueryError>)> {
        self.queries.done.pop_front()
    }

    /// Forgets a query, whose answer nothing waits for any longer.
    pub fn forget_query(&mut self, id: FcQueryId) {
        self.queries.pending.retain(|one| one.id != id);
        self.queries.done.retain(|(done, _)| *done != id);
    }

    /// In a fabric all go by way of the FCF, whether the port is known here or not.
    fn query_address(&self, to: FcId) -> Result<PeerAddress, FcQueryError> {
        if !self.is_online {
            return Err(FcQueryError::Offline);
        }
        if let Some(login) = self.fip.fabric_login() {
            return Ok(PeerAddress {
                fc_id: to,
                mac: login.fcf,
            });
        }
        let missing = match to {
            FcId::DIRECTORY => FcQueryError::NoFabric,
            _ => FcQueryError::NoPort(to),
        };
        let known = self.remotes.at(to).and_then(|id| self.remotes.get(id));
        known.map(RemotePort::address).ok_or(missing)
    }

    fn query_ox_id(&mut self, query: &FcQuery) -> Result<OxId, FcQueryError> {
        if query.is_els {
            return Ok(self.ox_ids.take());
        }
        let client = self.name_client.as_mut();
        let client = client.filter(|client| client.is_logged_in());
        client
            .map(|client| client.take_ox_id())
            .ok_or(FcQueryError::NotRegistered)
    }

    /// Takes a frame, if it is of the answer to a query.
    pub(super) fn query_answer(
        &mut self,
        ethernet: &EthernetHeader,
        frame: &ReceivedFrame<'_>,
    ) -> bool {
        if self.queries.pending.is_empty() {
            return false;
        }
        let (header, own) = (&frame.header, self.local.address);
        let is_to_us = header.d_id == own.fc_id && ethernet.dst == own.mac;
        let from = PeerAddress {
            fc_id: header.s_id,
            mac: ethernet.src,
        };
        let asked = self.queries.pending.iter().position(|one| {
            let is_its = one.to == from && one.ox_id == header.ox_id;
            is_its && one.answer_kind == (header.r_ctl, header.kind)
        });
        let Some(at) = asked.filter(|_| is_to_us) else {
            return false;
        };
        if let Some(answer) = self.queries.pending[at].answer.take(frame) {
            let query = self.queries.pending.remove(at);
            self.queries.done.push_back((query.id, Ok(answer)));
        }
        true
    }

    /// Ends those that were not answered in time.
    pub(super) fn expire_queries(&mut self) {
        let now = self.now;
        let silent = FcQueryError::Silent(self.local.e_d_tov);
        self.queries.end(silent, |one| one.until <= now);
    }
}
