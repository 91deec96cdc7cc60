//! An Ethernet port of a switch: what leaves there, and what waits to leave.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::io::ether::{Drops, EtherPort, LinkStatus, Place};
use fc::fabric::{Forwarding, PortNumber, Switch, UndeliveredFrame};
use fc::frames::FrameSink;
use fc::wire::els::LinkErrors;
use runtime::n_port::{FcfAttachment, LinkProblem, NoPort};
use scsi::medium::Now;

use super::backlog::{BACKLOG_MAX, Backlog, QueuedFrame};

/// A port, with frames that wait for room: on the core where it lives, or on another one, which
/// only sends there.
#[derive(Debug)]
pub(super) struct SwitchPort {
    place: Place,
    /// It lives on another core.
    is_sender: bool,
    /// `None` while frames are received there, as they lie in its memory.
    attachment: Option<FcfAttachment>,
    waited: Arc<OwnedFd>,
    backlog: Backlog,
    /// Something was written since the last flush.
    is_dirty: bool,
    /// It took no more when it was flushed last, and has not told of room since.
    is_stuck: bool,
    /// The number of the frame that it did not take, and since when.
    refused: Option<(u64, Now)>,
    /// What the switch has to say found no room.
    is_full: bool,
}

/// A frame that came in and is to leave.
#[derive(Debug)]
pub(super) struct PassingFrame<'a> {
    /// How it is to leave.
    pub(super) way: Forwarding,
    /// When it came in.
    pub(super) since: Now,
    pub(super) ingress: PortNumber,
    /// As it came.
    pub(super) bytes: &'a [u8],
}

impl PassingFrame<'_> {
    /// The same, while it waits.
    const fn queued(&self) -> QueuedFrame {
        QueuedFrame {
            since: self.since,
            frame: self.undelivered(),
        }
    }

    /// The same, as it is counted if it does not leave.
    pub(super) const fn undelivered(&self) -> UndeliveredFrame {
        UndeliveredFrame {
            ingress: self.ingress,
            s_id: self.way.s_id,
            d_id: self.way.d_id,
            bytes: self.bytes.len() as u64,
        }
    }
}

/// What a port asks of the switch while it sends.
pub(super) trait Egress {
    fn now(&self) -> Now;

    /// Whether a frame that has waited may leave. If not, it has been counted.
    fn may_leave(&mut self, frame: &QueuedFrame) -> bool;

    /// Writes what the switch itself has to say there.
    fn say(&mut self, out: &mut SwitchPort);
}

/// What became of a frame that was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It leaves, or waits to.
    Queued,
    /// There was no room for it.
    Congested,
}

impl SwitchPort {
    pub(super) fn new(attachment: FcfAttachment) -> Self {
        Self {
            place: attachment.place.clone(),
            is_sender: false,
            waited: Arc::clone(attachment.ether.waited()),
            attachment: Some(attachment),
            backlog: Backlog::new(BACKLOG_MAX),
            is_dirty: false,
            is_stuck: false,
            refused: None,
            is_full: false,
        }
    }

    /// What another core sends there by, with a socket and a queue of its own.
    ///
    /// # Errors
    ///
    /// See [`NoPort`].
    pub(super) fn sender(&self) -> Result<Self, NoPort> {
        let attachment = self.attachment.as_ref();
        let sender = attachment
            .expect("nothing is received there yet")
            .sender()?;
        Ok(Self {
            is_sender: true,
            ..Self::new(sender)
        })
    }

    pub(super) const fn is_sender(&self) -> bool {
        self.is_sender
    }

    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// What becomes readable when there is something to receive, or room to send.
    pub(super) const fn waited(&self) -> &Arc<OwnedFd> {
        &self.waited
    }

    /// Whether it is held back in place of losing frames.
    pub(super) const fn is_cable(&self) -> bool {
        matches!(self.place, Place::Cable(_))
    }

    /// Bytes of frames that wait.
    pub(super) const fn queued(&self) -> usize {
        self.backlog.used()
    }

    /// Takes the Ethernet port out, to receive there. What is to leave there meanwhile waits.
    pub(super) const fn take(&mut self) -> Option<FcfAttachment> {
        self.attachment.take()
    }

    pub(super) fn put_back(&mut self, attachment: FcfAttachment) {
        self.attachment = Some(attachment);
    }

    pub(super) fn ether(&mut self) -> Option<&mut EtherPort> {
        self.attachment.as_mut().map(|one| &mut one.ether)
    }

    /// Whether frames can pass.
    pub(super) fn is_usable(&self) -> bool {
        let attachment = self.attachment.as_ref();
        attachment.is_some_and(FcfAttachment::is_usable)
    }

    /// How the link is, if it has changed, and what is in the way then. What only sends is bound to
    /// another interface of the name, too, but the core where the port lives tells of the link.
    pub(super) fn news(&mut self) -> io::Result<Option<(LinkStatus, Option<LinkProblem>)>> {
        let Some(attachment) = &mut self.attachment else {
            return Ok(None);
        };
        let news = attachment.ether.news()?;
        let told = news.filter(|_| !self.is_sender);
        Ok(told.map(|link| (link, attachment.obstacle())))
    }

    /// Sends a frame that came in, behind those that wait.
    pub(super) fn send(&mut self, frame: &PassingFrame<'_>) -> Sent {
        let len = frame.way.len(frame.bytes.len());
        if !self.is_stuck
            && self.backlog.is_empty()
            && let Some(slot) = self.slot(len)
        {
            frame.way.write(frame.bytes, &mut slot[..len]);
            self.commit(len);
            return Sent::Queued;
        }
        self.is_dirty = true;
        let Some(room) = self.backlog.push(len, frame.queued()) else {
            return Sent::Congested;
        };
        frame.way.write(frame.bytes, room);
        Sent::Queued
    }

    /// It may have room again. What it did not take for E_D_TOV does not leave any more.
    pub(super) fn resume(&mut self, now: Now) {
        self.is_stuck = false;
        let Some((refused, since)) = self.refused else {
            return;
        };
        if let Some(ether) = self.ether()
            && ether.next_unsent() == Some(refused)
            && now.saturating_sub(since) > Switch::E_D_TOV
        {
            ether.give_up();
        }
    }

    /// Whether something has not left yet.
    pub(super) fn has_more(&self) -> bool {
        self.is_stuck || self.is_full || self.is_dirty || !self.backlog.is_empty()
    }

    /// Has frames leave, as many as the Ethernet port takes; it becomes ready when it takes more.
    pub(super) fn flush(&mut self, switch: &mut impl Egress) {
        for _ in 0..TURN {
            if self.is_stuck {
                return;
            }
            self.is_full = false;
            switch.say(self);
            self.refill(switch);
            if !std::mem::take(&mut self.is_dirty) {
                return;
            }
            match self.ether().map(EtherPort::flush) {
                Some(Ok(true)) if !self.is_full && self.backlog.is_empty() => return,
                // What found no slot has one now, which no later event tells of.
                Some(Ok(true)) => self.is_dirty = true,
                Some(Ok(false)) => {
                    (self.is_stuck, self.is_dirty) = (true, true);
                    self.was_refused(switch.now());
                }
                Some(Err(cause)) => {
                    return tracing::error!("{}: cannot send: {cause}", self.place);
                }
                None => return,
            }
        }
        self.wait_for_room();
    }

    fn was_refused(&mut self, now: Now) {
        let next = self.ether().and_then(|ether| ether.next_unsent());
        if self.refused.map(|(number, _)| number) != next {
            self.refused = next.map(|number| (number, now));
        }
    }

    /// Frames that were lost at the Ethernet port since it was opened, if the kernel tells.
    pub(super) fn drops(&mut self) -> Option<Drops> {
        self.ether()?.recent_drops().ok()
    }

    /// Moves frames that wait to the Ethernet port, but for those that may not leave any more.
    fn refill(&mut self, switch: &mut impl Egress) {
        let Some(attachment) = &mut self.attachment else {
            return;
        };
        while let Some((queued, bytes)) = self.backlog.front() {
            if switch.may_leave(queued) {
                let Some(slot) = attachment.ether.slot(bytes.len()) else {
                    return;
                };
                slot.copy_from_slice(bytes);
                attachment.ether.commit(bytes.len());
                self.is_dirty = true;
            }
            self.backlog.pop();
        }
    }

    fn wait_for_room(&mut self) {
        if let Some(Err(cause)) = self.ether().map(EtherPort::more_to_send) {
            tracing::error!("{}: cannot wait for room to send: {cause}", self.place);
        }
    }
}

/// What a card has counted, as RLS tells it of FCoE (FC-BB-6): frames with a wrong FCS, and for
/// symbol errors what Ethernet cards count next to them, frames that do not end with a whole byte.
pub(super) fn carrier_errors(drops: &Drops) -> LinkErrors {
    let count = |frames| u32::try_from(frames).unwrap_or(u32::MAX);
    LinkErrors {
        invalid_words: count(drops.framing),
        invalid_crcs: count(drops.fcs),
        ..LinkErrors::default()
    }
}

/// How often all slots of a port are filled in one turn: some 1,000 frames, as of an N_Port.
const TURN: usize = 16;

/// What the switch itself says leaves with the frames that it forwards, and before those that wait:
/// a port may have some for as long as others send. They are checked before they leave.
impl FrameSink for SwitchPort {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let attachment = self.attachment.as_mut().filter(|_| !self.is_stuck);
        let slot = attachment.and_then(|one| one.ether.slot(len));
        self.is_full = slot.is_none();
        slot
    }

    fn commit(&mut self, len: usize) {
        self.is_dirty = true;
        if let Some(ether) = self.ether() {
            ether.commit(len);
        }
    }
}
