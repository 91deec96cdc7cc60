//! Requests and responses of one login as PDUs: what the first request fixes for all others, how
//! the text of several is put together, and how responses are numbered.

use super::status::{self, LoginFault, LoginStatus};
use crate::parameters::DEFAULT_DATA_SEGMENT;
use crate::text::{Assembly, Text};
use crate::wire::bhs::{BHS_LEN, Stamps};
use crate::wire::framer::padding;
use crate::wire::login::{LoginRequest, LoginResponse, stage};
use crate::wire::serial::{CmdSn, StatSn};

/// The most requests of one login. RFC 7143 §6.2 wants six exchanges at the least; a text of the
/// longest sort takes two, and no initiator needs more than a few.
pub(super) const MAX_REQUESTS: u32 = 64;

/// The header fields that stay the same, the numbering, and texts that are in progress.
#[derive(Debug)]
pub(super) struct Dialogue {
    first: LoginRequest,
    stat_sn: StatSn,
    max_cmd_sn: CmdSn,
    requests: u32,
    incoming: Assembly,
    outgoing: Text,
}

/// What a request was.
pub(super) enum RequestProgress {
    /// A part of a text; or a request for more of ours.
    Part,
    /// The end of a text.
    Whole(Vec<u8>),
}

impl Dialogue {
    /// Begins with the first request. `window` is how many commands may be sent at once when the
    /// login is over.
    pub(super) fn new(first: LoginRequest, stat_sn: u32, window: u32) -> Self {
        Self {
            first,
            stat_sn: StatSn(stat_sn),
            max_cmd_sn: first.cmd_sn.plus(window.max(1)).minus(1),
            requests: 0,
            incoming: Assembly::default(),
            outgoing: Text::default(),
        }
    }

    /// The first request.
    pub(super) const fn first(&self) -> &LoginRequest {
        &self.first
    }

    /// StatSN of the next response.
    pub(super) const fn stat_sn(&self) -> StatSn {
        self.stat_sn
    }

    /// Checks a request against the rules for all and those that the first one set, and takes its
    /// text. `current` is the stage that the login is in.
    pub(super) fn take(
        &mut self,
        request: &LoginRequest,
        current: u8,
        data: &[u8],
    ) -> Result<RequestProgress, LoginFault> {
        self.requests += 1;
        check_flags(request)?;
        self.check_same(request)?;
        if request.current != current {
            return Err(broken("a Login Request of another stage", "RFC 7143 §6.3"));
        }
        if self.requests > MAX_REQUESTS {
            return Err(broken("a login that does not complete", "RFC 7143 §6.2"));
        }
        if !self.outgoing.is_empty() {
            let asks = data.is_empty() && !request.more;
            let fault = broken("text in response to a C bit", "RFC 7143 §6.2");
            return if asks {
                Ok(RequestProgress::Part)
            } else {
                Err(fault)
            };
        }
        self.incoming.push(data)?;
        Ok(if request.more {
            RequestProgress::Part
        } else {
            RequestProgress::Whole(self.incoming.take())
        })
    }

    /// RFC 7143 §11.12: what all requests of a login must have in common. CmdSN may differ when
    /// the session has other connections, and nothing hangs on it.
    fn check_same(&self, request: &LoginRequest) -> Result<(), LoginFault> {
        let first = &self.first;
        if request.itt != first.itt {
            return Err(broken(
                "another Initiator Task Tag within a login",
                "RFC 7143 §6.3",
            ));
        }
        let identity = |r: &LoginRequest| (r.isid, r.tsih, r.cid);
        if identity(request) != identity(first) {
            return Err(broken(
                "another ISID, TSIH or CID within a login",
                "RFC 7143 §11.12",
            ));
        }
        if (request.version_min, request.version_max) != (first.version_min, first.version_max) {
            return Err(broken(
                "another version within a login",
                "RFC 7143 §11.12.4",
            ));
        }
        Ok(())
    }

    /// Sets what is to be sent, now and in answer to further requests.
    pub(super) fn send(&mut self, text: Text) {
        self.outgoing = text;
    }

    /// The next part of our text, and whether more follows.
    pub(super) fn segment(&mut self) -> (Vec<u8>, bool) {
        let (segment, more) = self.outgoing.next_segment(DEFAULT_DATA_SEGMENT);
        (segment.to_vec(), more)
    }

    /// Appends a response to `out`. `next` is the stage that it agrees to go to.
    pub(super) fn respond(
        &mut self,
        out: &mut Vec<u8>,
        current: u8,
        next: Option<u8>,
        (segment, more): &(Vec<u8>, bool),
    ) {
        let mut response = self.response(self.first.tsih, status::SUCCESS);
        response.current = current;
        response.transit = next.is_some();
        response.next = next.unwrap_or(0);
        response.more = *more;
        self.append(out, &response, segment);
    }

    /// Appends the final response that accepts the login.
    pub(super) fn accept(&mut self, out: &mut Vec<u8>, current: u8, tsih: u16, segment: &[u8]) {
        let mut response = self.response(tsih, status::SUCCESS);
        response.transit = true;
        response.current = current;
        response.next = stage::FULL_FEATURE;
        self.append(out, &response, segment);
    }

    /// Appends the response that ends the login.
    pub(super) fn reject(&mut self, out: &mut Vec<u8>, status: LoginStatus) {
        let response = self.response(self.first.tsih, status);
        self.append(out, &response, &[]);
    }

    fn response(&mut self, tsih: u16, status: LoginStatus) -> LoginResponse {
        let stat_sn = self.stat_sn;
        self.stat_sn = stat_sn.next();
        LoginResponse {
            transit: false,
            more: false,
            current: 0,
            next: 0,
            version_max: VERSION,
            version_active: VERSION,
            isid: self.first.isid,
            tsih,
            itt: self.first.itt,
            stamps: Stamps {
                stat_sn,
                exp_cmd_sn: self.first.cmd_sn,
                max_cmd_sn: self.max_cmd_sn,
            },
            status,
        }
    }

    fn append(&self, out: &mut Vec<u8>, response: &LoginResponse, segment: &[u8]) {
        let mut bhs = response.encode();
        let length = u32::try_from(segment.len()).unwrap_or(0);
        bhs.set_data_len(length);
        out.reserve(BHS_LEN + segment.len() + 3);
        out.extend_from_slice(&bhs.0);
        out.extend_from_slice(segment);
        out.resize(out.len() + usize::from(padding(length)), 0);
    }
}

/// What can be checked of any Login Request.
fn check_flags(request: &LoginRequest) -> Result<(), LoginFault> {
    if request.version_min > VERSION {
        let clause = "RFC 7143 §11.12.4";
        return Err(LoginFault::new(
            status::UNSUPPORTED_VERSION,
            "an unsupported version",
            clause,
        ));
    }
    if request.transit && request.more {
        return Err(broken(
            "the T bit and the C bit together",
            "RFC 7143 §11.12.2",
        ));
    }
    if !matches!(request.current, stage::SECURITY | stage::OPERATIONAL) {
        return Err(broken("a reserved current stage", "RFC 7143 §11.12.3"));
    }
    let onward = matches!(request.next, stage::OPERATIONAL | stage::FULL_FEATURE);
    if request.transit && !(onward && request.next > request.current) {
        return Err(broken("a next stage that cannot follow", "RFC 7143 §6.3"));
    }
    Ok(())
}

const fn broken(rule: &'static str, clause: &'static str) -> LoginFault {
    LoginFault::new(status::INITIATOR_ERROR, rule, clause)
}

/// The one version of the protocol (RFC 7143 §11.12.4).
const VERSION: u8 = 0;
