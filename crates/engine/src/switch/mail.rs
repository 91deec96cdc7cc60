//! What a core that has no machine gives the one that has it, in the order in which it came in.
//!
//! Each port has a mailbox of its own, so that a station which floods the machine fills none but
//! that of its own port.

use ::io::ether::LinkStatus;
use fc::fabric::DropReason;
use fc::wire::ethernet::VlanTag;
use scsi::medium::Now;

use super::backpressure::HOLD_MAX;

/// What came in at a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum MailItem {
    /// A frame for the switch itself, with the tag that the kernel has taken out of it.
    Frame(Option<VlanTag>),
    /// A frame that was dropped and counted, of which the machine tells its sender or the log.
    Dropped(DropReason),
    /// A frame of LLDP.
    Lldp(Option<VlanTag>),
    /// The link has changed, and may be used or not.
    Link(LinkStatus, bool),
}

/// Bytes that wait in the mailbox of a port at the most.
pub(super) const MAIL_MAX: usize = 1 << 20;

/// Bytes in it from which on the port is left unread: what is left has room for a batch.
pub(super) const MAIL_FULL: usize = MAIL_MAX / 4;

/// Whether keep alives of hosts may wait at ports of other cores, as the mail of these was not
/// taken: nothing is late before they were heard. After [`HOLD_MAX`] it is, whatever comes in.
#[derive(Debug, Default)]
pub(super) struct LateMail {
    since: Option<Now>,
}

impl LateMail {
    /// Whether that is so now, where ports are left unread or not.
    pub(super) fn may_wait(&mut self, now: Now, is_any_unread: bool) -> bool {
        if !is_any_unread {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_sub(since) < HOLD_MAX
    }

    /// Whether ports were left unread when it was asked last.
    pub(super) const fn is_any_unread(&self) -> bool {
        self.since.is_some()
    }
}
