//! The copying machine.
//!
//! A piece of data is read from A and written to B. A hole, or a piece that turns out to be zeros,
//! is left alone where B has a hole as well; else B unmaps it, and what it still has afterwards is
//! overwritten with zeros: a unit may round an UNMAP to its granules, or ignore it.
//!
//! Pieces end in any order. What lies before the first that has not ended is the part that is
//! copied; now and then B is flushed, and then that part is durable ([`Order::Durable`]), whatever
//! else may have been written behind it. A later run that begins there does the rest again.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use scsi::medium::{
    Extent, Lease, MediumError, MediumOp, MediumResult, Now, Outcome, Provisioning,
};

use super::spans::{Span, Spans};
use super::{CHUNK, Failure, Machine, Order, Progress, Shape, Side};

/// Copies A onto the beginning of B.
#[derive(Debug)]
pub(super) struct Copy<L> {
    b: Shape,
    a: Shape,
    spans: Spans,
    /// Zeros to compare with, [`CHUNK`] of them.
    zeros: L,
    pieces: Vec<Option<Piece>>,
    orders: VecDeque<Order<L>>,
    progress: Progress,
    flush: Flush,
    stopping: bool,
    /// Where the first piece was given up.
    given_up: Option<u64>,
    failure: Option<Failure>,
    /// The last flush is done, or there will be none.
    over: bool,
}

/// A piece that is being worked on.
#[derive(Debug)]
struct Piece {
    /// What is left of it.
    rest: Range<u64>,
    doing: Doing,
    /// B has been told to unmap the piece up to here.
    unmapped: u64,
}

/// What is under way for a piece. All but the first two are about zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Reading,
    Writing,
    Looking,
    Unmapping,
    /// Up to this octet.
    Zeroing(u64),
}

#[derive(Debug, Default)]
struct Flush {
    /// What will be durable when the one under way ends.
    under_way: Option<u64>,
    /// What is.
    durable: u64,
    last: Now,
}

/// How often B is flushed, so that not more than this is done again after a crash.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// What is overwritten with zeros by one operation, at the most, in octets: what no transport has
/// to wait for too long.
const ZEROED_AT_ONCE: u64 = 64 << 20;

/// Numbers of operations that are no piece's.
const QUESTION: u64 = u64::MAX;
const FLUSH: u64 = u64::MAX - 1;

impl<L: Lease> Copy<L> {
    /// Copies what lies behind the first `from` octets; `depth` pieces at a time. A must not be
    /// longer than B, and `from` and the length of A multiples of both block sizes.
    #[must_use]
    pub(super) fn new(a: Shape, b: Shape, from: u64, depth: usize) -> Self {
        let unit = a.block_size.max(b.block_size);
        Self {
            a,
            b,
            spans: Spans::new(a, unit, from..a.octets),
            zeros: L::from_bytes(vec![0; CHUNK as usize]),
            pieces: std::iter::repeat_with(|| None).take(depth).collect(),
            orders: VecDeque::new(),
            progress: Progress {
                total: a.octets,
                before: from,
                ..Progress::default()
            },
            flush: Flush {
                durable: from,
                ..Flush::default()
            },
            stopping: false,
            given_up: None,
            failure: None,
            over: false,
        }
    }

    /// Everything before this octet is copied.
    fn frontier(&self) -> u64 {
        let begun = self.pieces.iter().flatten().map(|piece| piece.rest.start);
        let first = begun.chain(self.spans.start()).chain(self.given_up).min();
        first.unwrap_or(self.a.octets)
    }

    fn is_idle(&self) -> bool {
        !self.spans.is_asking()
            && self.flush.under_way.is_none()
            && self.pieces.iter().all(Option::is_none)
    }

    /// Begins what there is room for.
    fn begin(&mut self) -> Option<Order<L>> {
        if self.stopping {
            return None;
        }
        if let Some(question) = self.spans.question() {
            return Some(Order::Submit(Side::A, QUESTION, question));
        }
        let free = self.pieces.iter().position(Option::is_none)?;
        let Span { range, hole } = self.spans.next()?;
        let unmapped = range.start;
        if hole {
            let order = self.look(free, &range);
            let doing = Doing::Looking;
            self.put(free, range, doing, unmapped);
            return Some(order);
        }
        let extent = self.a.extent(&range);
        self.put(free, range, Doing::Reading, unmapped);
        let copied = false;
        Some(Order::Submit(
            Side::A,
            free as u64,
            MediumOp::Read { extent, copied },
        ))
    }

    fn put(&mut self, slot: usize, rest: Range<u64>, doing: Doing, unmapped: u64) {
        self.pieces[slot] = Some(Piece {
            rest,
            doing,
            unmapped,
        });
    }

    fn look(&self, slot: usize, range: &Range<u64>) -> Order<L> {
        let extent = self.b.extent(range);
        Order::Submit(Side::B, slot as u64, MediumOp::Status { extent })
    }

    /// Makes durable what is copied: now and then, and at the end.
    fn flush(&mut self, now: Now) -> Option<Order<L>> {
        if self.over || self.flush.under_way.is_some() {
            return None;
        }
        let frontier = self.frontier();
        let ends = self.is_idle() && (self.stopping || frontier == self.a.octets);
        let due = now.saturating_sub(self.flush.last) >= FLUSH_EVERY;
        let more = frontier > self.flush.durable;
        if !(ends || due && more) {
            return None;
        }
        let complete = frontier == self.a.octets;
        if ends && !(more || complete) {
            self.over = true;
            return None;
        }
        self.over = ends;
        self.flush.last = now;
        self.flush.under_way = Some(frontier);
        let extent = Extent::new(0, 0);
        Some(Order::Submit(Side::B, FLUSH, MediumOp::Flush { extent }))
    }

    fn flushed(&mut self, result: &MediumResult<L>) {
        let Some(durable) = self.flush.under_way.take() else {
            return;
        };
        match result {
            Ok(_) => {
                self.flush.durable = durable;
                self.orders.push_back(Order::Durable(durable));
            }
            Err(MediumError::Cancelled) => self.over = false,
            Err(error) => {
                self.over = true;
                self.fail(Side::B, None, *error);
            }
        }
    }

    fn fail(&mut self, side: Side, at: Option<u64>, error: MediumError) {
        self.stopping = true;
        self.failure.get_or_insert(Failure { side, at, error });
    }

    /// A piece was read, or written, or a step of its zeros is done.
    fn step(&mut self, slot: usize, mut piece: Piece, result: MediumResult<L>) {
        let Range { start, end } = piece.rest;
        match (piece.doing, result) {
            (_, Err(MediumError::Cancelled)) => self.give_up(start),
            (Doing::Reading, Ok(Outcome::Lease(data))) => self.read(slot, piece, data),
            (Doing::Writing, Ok(_)) => self.progress.data += end - start,
            (Doing::Looking, found) => self.looked(slot, piece, &found),
            (Doing::Unmapping, Ok(_) | Err(MediumError::Unsupported)) => {
                piece.unmapped = end;
                self.look_again(slot, piece);
            }
            (Doing::Zeroing(to), Ok(_)) => {
                self.zeros_until(&mut piece, to);
                self.look_again(slot, piece);
            }
            (doing, result) => {
                let side = match doing {
                    Doing::Reading => Side::A,
                    _ => Side::B,
                };
                let error = result.err().unwrap_or(MediumError::Read);
                self.fail(side, Some(start), error);
                self.give_up(start);
            }
        }
    }

    /// Nobody shall take for copied what begins here.
    fn give_up(&mut self, at: u64) {
        self.given_up = Some(self.given_up.map_or(at, |before| before.min(at)));
    }

    /// Data has come: it goes on to B, unless it is nothing but zeros.
    fn read(&mut self, slot: usize, mut piece: Piece, data: L) {
        if data.difference(&self.zeros.slice(0, data.len())).is_none() {
            return self.look_again(slot, piece);
        }
        if self.stopping {
            return self.give_up(piece.rest.start);
        }
        let write = MediumOp::Write {
            extent: self.b.extent(&piece.rest),
            data,
            fua: false,
            atomic: false,
        };
        piece.doing = Doing::Writing;
        self.submit(slot, piece, write);
    }

    /// B has said what it has from the beginning of the piece on. Who cannot tell has something.
    fn looked(&mut self, slot: usize, mut piece: Piece, found: &MediumResult<L>) {
        let Range { start, end } = piece.rest;
        let (len, state) = match found {
            Ok(Outcome::Provisioning { blocks, state }) => {
                (blocks.saturating_mul(self.b.block_size), *state)
            }
            _ => (end - start, Provisioning::Mapped),
        };
        let to = start.saturating_add(len).min(end);
        if state != Provisioning::Mapped {
            self.zeros_until(&mut piece, to);
            return self.look_again(slot, piece);
        }
        if self.b.unmaps && piece.unmapped <= start {
            piece.doing = Doing::Unmapping;
            let extent = self.b.extent(&piece.rest);
            let anchor = false;
            return self.submit(slot, piece, MediumOp::Unmap { extent, anchor });
        }
        let to = to.min(start + ZEROED_AT_ONCE);
        piece.doing = Doing::Zeroing(to);
        let extent = self.b.extent(&(start..to));
        let pattern = None;
        self.submit(slot, piece, MediumOp::WriteSame { extent, pattern });
    }

    fn zeros_until(&mut self, piece: &mut Piece, to: u64) {
        self.progress.holes += to - piece.rest.start;
        piece.rest.start = to;
    }

    /// Goes on with what is left of a piece of zeros, if anything is.
    fn look_again(&mut self, slot: usize, mut piece: Piece) {
        if piece.rest.is_empty() {
            return;
        }
        if self.stopping {
            return self.give_up(piece.rest.start);
        }
        piece.doing = Doing::Looking;
        let extent = self.b.extent(&piece.rest);
        self.submit(slot, piece, MediumOp::Status { extent });
    }

    fn submit(&mut self, slot: usize, piece: Piece, op: MediumOp<L>) {
        let side = Side::B;
        self.pieces[slot] = Some(piece);
        self.orders.push_back(Order::Submit(side, slot as u64, op));
    }
}

impl<L: Lease> Machine<L> for Copy<L> {
    fn poll(&mut self, now: Now) -> Option<Order<L>> {
        let order = self.orders.pop_front();
        let order = order.or_else(|| self.begin()).or_else(|| self.flush(now));
        if order.is_some() || !(self.over && self.is_idle()) {
            return order;
        }
        Some(Order::End(self.failure.map_or(Ok(()), Err)))
    }

    fn done(&mut self, id: u64, result: MediumResult<L>) {
        match id {
            QUESTION => self.spans.answered(&result),
            FLUSH => self.flushed(&result),
            slot => {
                let slot = slot as usize;
                if let Some(piece) = self.pieces.get_mut(slot).and_then(Option::take) {
                    self.step(slot, piece, result);
                }
            }
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
