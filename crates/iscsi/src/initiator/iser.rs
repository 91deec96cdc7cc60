//! The mover over RDMA: iSER (RFC 7145), at an initiator.
//!
//! It has no I/O and owns no queue pair. Whoever joins the two makes these calls:
//!
//! | call | when |
//! |---|---|
//! | [`Initiator::over_rdma`] | the queue pair is made, and may send: over iWARP after the Reply Frame. The first message is ready at once |
//! | [`Initiator::transmit`] | after that, and after each other call, when the queue pair has room; then what it has to send leaves |
//! | [`Initiator::heard`] | bytes have come from the wire of a queue pair that is a stream, whatever they are: the data of a long read is a sign of life, too |
//! | [`Initiator::receive`] | the queue pair has got something from its wire or its device. While it returns `false` a message waits: `poll` and `transmit` come first, and a stream is given no more bytes |
//! | [`Initiator::poll`] | after each other call, until `None` |
//! | [`Initiator::settle`] | after `expire`, `manage` and `poll`, before the queue pair gets more: it withdraws the STags of commands that have ended, whose memory is their user's again |
//! | [`Initiator::expire`] | at [`Initiator::next_deadline`] |
//! | [`Initiator::lost`] | the connection was closed, or broke |
//!
//! `receive` and `transmit` settle by themselves, too. `execute`, `manage`, `send_targets` and
//! `logout` are those of any session.
//!
//! **The end** is [`InitiatorEvent::Ended`], as over TCP: the queue pair is to be dropped then, and
//! the connection closed. Memory of the commands that failed before it is their user's, so nothing
//! may be received any more. A target that broke a rule of the queue pair is told which one by a
//! Terminate that waits in it: what the queue pair has to send leaves first, where that costs no
//! time. The target's own end of the queue pair comes as [`Completion::Ended`]; a connection that
//! is closed without one is told by `lost`.
//!
//! **What the queue pair has to be like**: it takes messages of [`MAX_MESSAGE`] bytes, lets the
//! target read, and at its startup says what Linux's initiator says (`80 00 00 00` as private data:
//! Send with Invalidate is welcome). Over a device there are receives for as many commands as the
//! window has, for [`UNEXPECTED_PDUS`] messages more, and for the answers to two immediate
//! requests.
//!
//! - **A connection is RDMA from its first byte**: the PDUs of the login are messages too. There is
//!   no Hello.
//! - **All data of a write goes with its command, or none of it**: where a write's Base Offset
//!   points to is understood in two ways, which are the same then.
//! - **The commands of a session, and what is sent beside them, fit into the receives of LIO**,
//!   however wide the window is.
//! - **A command has one STag**, of the memory that it names, for the one direction that it moves
//!   data in. It is withdrawn when the response has come, when a function that aborts it was
//!   answered, or at the end: not before, as the target may use it until then.
//! - **A good status is believed of data that has come.** A queue pair that knows what was moved by
//!   an STag tells it when that is withdrawn; a device does not, and is trusted.
//! - **The target closes the connection after a logout** (RFC 7145 §5.2.1). The session ends when
//!   it has, or some time later: a close that overtakes the Logout Response, whose sending the
//!   target's queue pair has not completed, is a failure there (siw).
//!
//! | what | file |
//! |---|---|
//! | messages that come, and the rules for their headers | `receive.rs` |
//! | messages that leave | `transmit.rs` |
//!
//! [`Completion::Ended`]: rdma::verbs::Completion::Ended
//! [`InitiatorEvent::Ended`]: super::InitiatorEvent::Ended

mod receive;
mod transmit;

use std::sync::Arc;

use rdma::verbs::Stag;
use scsi::medium::{Lease, Now};

use super::Initiator;
use super::config::{Digest, InitiatorConfig, Misconfigured, OperationalOffer};
use super::mover::{InitiatorMover, InitiatorTaskSlot};
pub use super::offer::UNEXPECTED_PDUS;
use crate::parameters::{DEFAULT_DATA_SEGMENT, Operational, Transport};
use crate::wire::bhs::BHS_LEN;
use crate::wire::iser::ISER_HEADER_LEN;

/// The longest message that a target sends, in bytes: two headers, and a data segment of a login or
/// of InitiatorRecvDataSegmentLength.
pub const MAX_MESSAGE: u32 = (ISER_HEADER_LEN + BHS_LEN) as u32 + DEFAULT_DATA_SEGMENT;

/// TargetRecvDataSegmentLength that is offered, in bytes: a write that is no longer costs no round
/// trip. It is no more than the default, as LIO agrees to whatever is offered, 64 KiB too, and its
/// receives have room for so much alone.
const IMMEDIATE: u32 = DEFAULT_DATA_SEGMENT;

/// The messages that LIO has receives for, however wide its window is: one that finds none ends the
/// connection. A receive is free again when the response to its command leaves.
const LIO_RECEIVES: usize = 128;

/// Receives that are kept free of commands, for requests that no window bounds: a ping, the answer
/// to a ping, four functions of the caller, one about a command that is late, and a logout; two are
/// to spare.
const IMMEDIATE_REQUESTS: usize = 10;

/// A connection's mover over RDMA, at an initiator.
#[derive(Debug)]
pub struct InitiatorIserMover {
    /// The longest data segment that is taken, in bytes.
    own_data_segment: u32,
    /// STags of commands that are over, to be withdrawn.
    withdrawn: Vec<Stag>,
}

/// What of a command's memory the target may reach.
#[derive(Debug, Default)]
pub struct InitiatorIserTransfer {
    advertised: Option<Stag>,
}

impl<L: Lease> Initiator<L, InitiatorIserMover> {
    /// A queue pair that was just made. `random` are fresh random bytes, used for the challenge of
    /// mutual CHAP and the first CmdSN. Of the configured offer, digests, segment lengths and
    /// unsolicited Data-Out count for TCP alone.
    ///
    /// # Errors
    /// What of the configuration cannot work.
    pub fn over_rdma(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
    ) -> Result<Self, Misconfigured> {
        Self::log_in(config, now, random)
    }
}

impl InitiatorMover for InitiatorIserMover {
    type Transfer = InitiatorIserTransfer;

    const TARGET_CLOSES: bool = true;
    const MAY_OVERTAKE: bool = true;
    const MAY_COUNT_LOGINS: bool = true;
    const MAX_TASKS: usize = LIO_RECEIVES - IMMEDIATE_REQUESTS;

    fn new(keys: &Operational) -> Self {
        Self {
            own_data_segment: keys.own_data_segment,
            withdrawn: Vec::new(),
        }
    }

    fn offer(configured: &OperationalOffer) -> OperationalOffer {
        let transport = Transport::Iser {
            data_segment: IMMEDIATE,
        };
        OperationalOffer {
            header_digest: Digest::Never,
            data_digest: Digest::Never,
            keys: Operational {
                own_data_segment: DEFAULT_DATA_SEGMENT,
                ..configured.keys.over(transport)
            },
        }
    }

    fn notice_keys(&mut self, keys: &Operational) {
        self.own_data_segment = keys.own_data_segment;
    }

    fn deallocate(&mut self, transfer: &InitiatorIserTransfer) -> bool {
        self.withdrawn.extend(transfer.advertised);
        false
    }

    /// Nothing of a command waits: what was posted leaves.
    fn retain(&mut self, _: impl FnMut(InitiatorTaskSlot) -> bool) {}

    fn is_at_rest(&self) -> bool {
        self.withdrawn.is_empty()
    }

    /// STags are withdrawn still.
    fn end(&mut self) {}

    fn trim(&mut self) {
        self.withdrawn.shrink_to_fit();
    }
}
