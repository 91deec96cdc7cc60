//! Requests of several frames are put together (FC-FS-3): those of a sequence come in the order of
//! their SEQ_CNT, the first with SOFi3, the others with SOFn3.

use std::borrow::Cow;
use std::time::Duration;

use scsi::medium::Now;

use crate::fabric::login::EnodeKey;
use crate::wire::fcoe::{ReceivedFrame, Sof};
use crate::wire::frame::OxId;
use crate::wire::names::FcId;

/// Sequences whose last frame has not come.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// The oldest first.
    open: Vec<OpenSequence>,
}

/// The first frames of a sequence.
#[derive(Debug)]
struct OpenSequence {
    station: EnodeKey,
    from: FcId,
    to: FcId,
    ox_id: OxId,
    seq_id: u8,
    /// The SEQ_CNT that comes next.
    next: u16,
    bytes: Vec<u8>,
    is_too_long: bool,
    /// E_D_TOV after its first frame: a port that sends one frame now and then would keep its
    /// place.
    deadline: Now,
}

/// A request that has come whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WholeRequest<'a> {
    /// Its bytes; if it is too long, the first ones.
    pub(super) bytes: Cow<'a, [u8]>,
    /// It was longer than any request is.
    pub(super) is_too_long: bool,
}

impl Reassembly {
    /// A frame of a request of a station came; the whole request, if it is the last. It has to be
    /// whole after E_D_TOV.
    pub(super) fn frame<'a>(
        &mut self,
        (now, e_d_tov): (Now, Duration),
        station: EnodeKey,
        frame: &ReceivedFrame<'a>,
    ) -> Option<WholeRequest<'a>> {
        let is_last = frame.header.f_ctl.end_sequence();
        if frame.sof == Sof::I3 {
            self.open.retain(|open| !open.is_of(frame));
            if is_last {
                let bytes = Cow::Borrowed(frame.payload);
                let is_too_long = false;
                return Some(WholeRequest { bytes, is_too_long });
            }
            self.begin(now + e_d_tov, station, frame);
            return None;
        }
        let at = self.open.iter().position(|open| open.is_of(frame))?;
        let open = &mut self.open[at];
        if frame.header.seq_cnt != open.next {
            // A frame was lost, and class 3 has no way to get it back.
            self.open.remove(at);
            return None;
        }
        open.add(frame.payload);
        is_last.then(|| self.open.remove(at).whole())
    }

    fn begin(&mut self, deadline: Now, station: EnodeKey, frame: &ReceivedFrame<'_>) {
        if !self.make_room(station, frame.header.s_id) {
            return;
        }
        let header = &frame.header;
        let mut open = OpenSequence {
            station,
            from: header.s_id,
            to: header.d_id,
            ox_id: header.ox_id,
            seq_id: header.seq_id,
            next: header.seq_cnt,
            bytes: Vec::new(),
            is_too_long: false,
            deadline,
        };
        open.add(frame.payload);
        self.open.push(open);
    }

    /// Makes room for a sequence of this N_Port, at the cost of its own older one, or of those that
    /// have most: a station has as many N_Ports as it likes, and behind a port of the switch a
    /// sender makes up as many stations.
    fn make_room(&mut self, station: EnodeKey, from: FcId) -> bool {
        let of_port = self.open.iter().filter(|open| open.from == from).count();
        let victim = if of_port >= OF_A_PORT {
            self.open.iter().position(|open| open.from == from)
        } else if self.open.len() >= OPEN_MAX {
            self.oldest_of_most(station)
        } else {
            return true;
        };
        victim.map(|at| self.open.remove(at)).is_some()
    }

    /// The oldest sequence of the first station that has most at the port of the switch that has
    /// most. The station's own port and the station itself lose if no other has more; then a
    /// station that has one only keeps it.
    fn oldest_of_most(&self, station: EnodeKey) -> Option<usize> {
        let stations = self.open.iter().map(|open| open.station);
        let port = most(&stations.clone().map(|(port, _)| port), station.0);
        let there = stations.filter(|other| other.0 == port);
        let loses = most(&there, station);
        let count = there.filter(|other| *other == loses).count();
        let may_lose = count > 1 || loses == station || port != station.0;
        let is_its = |open: &OpenSequence| open.station == loses;
        self.open.iter().position(is_its).filter(|_| may_lose)
    }

    /// The exchange is given up.
    pub(super) fn forget_exchange(&mut self, from: FcId, ox_id: OxId) {
        self.open
            .retain(|open| open.from != from || open.ox_id != ox_id);
    }

    /// The port is gone.
    pub(super) fn forget_port(&mut self, from: FcId) {
        self.open.retain(|open| open.from != from);
    }

    pub(super) fn records(&self) -> usize {
        self.open.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.open.iter().map(|open| open.deadline).min()
    }

    pub(super) fn expire(&mut self, now: Now) {
        self.open.retain(|open| open.deadline > now);
    }
}

impl OpenSequence {
    fn is_of(&self, frame: &ReceivedFrame<'_>) -> bool {
        let header = &frame.header;
        let its = (header.s_id, header.d_id, header.ox_id, header.seq_id);
        its == (self.from, self.to, self.ox_id, self.seq_id)
    }

    fn add(&mut self, payload: &[u8]) {
        self.next = self.next.wrapping_add(1);
        let room = REQUEST_MAX - self.bytes.len();
        self.is_too_long |= payload.len() > room;
        self.bytes
            .extend_from_slice(&payload[..payload.len().min(room)]);
    }

    fn whole<'a>(self) -> WholeRequest<'a> {
        WholeRequest {
            bytes: Cow::Owned(self.bytes),
            is_too_long: self.is_too_long,
        }
    }
}

/// What there is most of, the first of these; `own`, if there is no more of any other.
fn most<K: Copy + PartialEq>(all: &(impl DoubleEndedIterator<Item = K> + Clone), own: K) -> K {
    let count = |of: K| all.clone().filter(|one| *one == of).count();
    let most = all.clone().rev().max_by_key(|one| count(*one));
    most.filter(|most| count(*most) > count(own)).unwrap_or(own)
}

/// The most bytes of a request. The longest that hosts send, RHBA of FDMI, has some 3,000.
pub(super) const REQUEST_MAX: usize = 8 << 10;

/// Sequences that are open at once.
pub(super) const OPEN_MAX: usize = 16;

/// And of them, of one port: more than one where a host gave one up and asks anew.
pub(super) const OF_A_PORT: usize = 2;
