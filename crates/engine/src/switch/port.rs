//! An Ethernet port of a switch: what leaves there, and what waits to leave.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::io::ether::{Drops, EtherPort, LinkStatus, Place};
use fc::fabric::{Forwarding, PortNumber, UndeliveredFrame};
use fc::frames::FrameSink;
use fc::wire::els::LinkErrors;
use runtime::n_port::{FcfAttachment, FrameLosses, LinkProblem};
use scsi::medium::Now;

use super::backlog::{BACKLOG_MAX, Backlog, QueuedFrame};

/// A port, with frames that wait for room.
#[derive(Debug)]
pub(super) struct SwitchPort {
    place: Place,
    /// `None` while frames are received there, as they lie in its memory.
    attachment: Option<FcfAttachment>,
    waited: Arc<OwnedFd>,
    backlog: Backlog,
    /// Something was written since the last flush.
    is_dirty: bool,
    /// It took no more when it was flushed last, and has not told of room since.
    is_stuck: bool,
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
    pub(super) const fn queued(&self) -> QueuedFrame {
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
            waited: Arc::clone(attachment.ether.waited()),
            attachment: Some(attachment),
            backlog: Backlog::new(BACKLOG_MAX),
            is_dirty: false,
            is_stuck: false,
            is_full: false,
        }
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

    /// How the link is, if it has changed, and what is in the way then.
    pub(super) fn news(&mut self) -> io::Result<Option<(LinkStatus, Option<LinkProblem>)>> {
        let Some(attachment) = &mut self.attachment else {
            return Ok(None);
        };
        let news = attachment.ether.news()?;
        Ok(news.map(|link| (link, attachment.obstacle())))
    }

    /// Sends a frame that came in, behind those that wait.
    pub(super) fn send(&mut self, frame: &PassingFrame<'_>) -> Sent {
        let len = frame.way.len(frame.bytes.len());
        self.put(len, frame.queued(), |room| {
            frame.way.write(frame.bytes, room);
        })
    }

    /// Sends a frame of another core, which is as it is to leave.
    pub(super) fn send_on(&mut self, queued: QueuedFrame, bytes: &[u8]) -> Sent {
        self.put(bytes.len(), queued, |room| room.copy_from_slice(bytes))
    }

    fn put(&mut self, len: usize, queued: QueuedFrame, write: impl FnOnce(&mut [u8])) -> Sent {
        if !self.is_stuck
            && self.backlog.is_empty()
            && let Some(slot) = self.slot(len)
        {
            write(&mut slot[..len]);
            self.commit(len);
            return Sent::Queued;
        }
        self.is_dirty = true;
        let Some(room) = self.backlog.push(len, queued) else {
            return Sent::Congested;
        };
        write(room);
        Sent::Queued
    }

    /// It may have room again.
    pub(super) const fn resume(&mut self) {
        self.is_stuck = false;
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
            self.refill(switch);
            self.is_full = false;
            switch.say(self);
            if !std::mem::take(&mut self.is_dirty) {
                return;
            }
            match self.ether().map(EtherPort::flush) {
                Some(Ok(true)) if !self.is_full && self.backlog.is_empty() => return,
                // What found no slot has one now, which no later event tells of.
                Some(Ok(true)) => self.is_dirty = true,
                Some(Ok(false)) => (self.is_stuck, self.is_dirty) = (true, true),
                Some(Err(cause)) => {
                    return tracing::error!("{}: cannot send: {cause}", self.place);
                }
                None => return,
            }
        }
        self.wait_for_room();
    }

    /// Frames that were lost at the Ethernet port since it was opened, if the kernel tells.
    pub(super) fn losses(&mut self) -> Option<FrameLosses> {
        let drops = self.ether()?.recent_drops().ok();
        drops.map(FrameLosses::new)
    }

    /// Errors that an interface has counted since the port was opened, if the kernel tells.
    pub(super) fn carrier_errors(&mut self) -> Option<LinkErrors> {
        if self.is_cable() {
            return None;
        }
        let drops = self.ether()?.recent_drops().ok();
        drops.as_ref().map(carrier_errors)
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

/// What the switch itself says leaves with the frames that it forwards, but waits for those that
/// wait.
impl FrameSink for SwitchPort {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let may_go = !self.is_stuck && self.backlog.is_empty();
        let attachment = self.attachment.as_mut().filter(|_| may_go);
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
