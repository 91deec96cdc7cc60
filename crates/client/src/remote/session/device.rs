//! A session over iSER, by a device of RDMA.
//!
//! There are no bytes: whoever has it looks for what the device has done, has everything sent at
//! once, and arms the queue pair before it sleeps.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::io::rdma::{RdmaConnectOptions, RdmaConnected, RdmaEnd, RdmaFailure, RdmaPairOptions};
use block::lease::BlockLease;
use iscsi::initiator::config::{Auth, InitiatorConfig, InitiatorLimits, Misconfigured};
use iscsi::initiator::error::{LoginError, SessionEnd};
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE, UNEXPECTED_PDUS};
use iscsi::initiator::{Initiator, InitiatorEvent};
use iscsi::wire::iser::private_data;
use rdma::verbs::QueuePair as _;
use runtime::device_pair::DevicePair;
use scsi::medium::Now;

/// A session over iSER, and the queue pair that it has.
pub(in super::super) struct DeviceSession {
    pub(super) initiator: Initiator<BlockLease, InitiatorIserMover>,
    pair: DevicePair,
    /// Whether CHAP was offered.
    proven: bool,
    /// The pair may have something to tell.
    more: bool,
}

/// What is told of a queue pair of a device.
#[derive(Clone, Debug)]
pub(in super::super) struct DeviceFacts {
    /// Its name.
    pub(in super::super) device: String,
    /// Reads of ours, and of the target, that may be under way.
    pub(in super::super) ord: u16,
    pub(in super::super) ird: u16,
    /// The target's Sends may invalidate keys.
    pub(in super::super) invalidates: bool,
}

/// Why a session over a device has ended, where the device knows that.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum DeviceFailure {
    /// It gave up.
    Failed(RdmaFailure),
    /// There was no memory that the target may reach.
    NoMemory,
}

/// Commands at once: each has a receive for its response. A wider window of a target is not used.
const TASKS: u16 = 64;

/// Receives: one a command, those for what the target may send unasked, and the answers to two
/// immediate requests.
const RECEIVES: u16 = TASKS + UNEXPECTED_PDUS as u16 + 2;

/// Memory that the target may reach, in bytes. Commands for which there is none wait.
const STAGING: usize = 32 << 20;

/// Whether a target may invalidate keys: no, memory is used again by the same key, as to register
/// it costs more than to copy what is short.
const BEARS_INVALIDATION: bool = false;

/// How a connection of a session is made.
pub(in super::super) fn connect_options(device: Option<String>, limit: Now) -> RdmaConnectOptions {
    RdmaConnectOptions {
        pair: RdmaPairOptions {
            max_receive: MAX_MESSAGE,
            // No longer than what is received: both ends take 8 KiB along with a PDU.
            max_send: MAX_MESSAGE,
            receives: RECEIVES,
            receives_max: RECEIVES,
        },
        private_data: private_data(BEARS_INVALIDATION).to_vec(),
        device,
        limit,
        memory: STAGING,
    }
}

impl DeviceSession {
    /// A session on a connection that was just made.
    pub(super) fn new(
        config: &InitiatorConfig,
        now: Now,
        random: [u8; 37],
        connected: RdmaConnected,
    ) -> Result<Self, Misconfigured> {
        let tasks = config.limits.tasks.min(usize::from(TASKS));
        let config = InitiatorConfig {
            limits: InitiatorLimits {
                tasks,
                ..config.limits
            },
            ..config.clone()
        };
        let proven = matches!(config.auth, Auth::Chap(_));
        Ok(Self {
            initiator: Initiator::over_rdma(Arc::new(config), now, random)?,
            // An initiator invalidates nothing, whatever the target bears.
            pair: DevicePair::new(connected.pair, false),
            proven,
            more: true,
        })
    }

    /// The pair may have something to tell.
    pub(in super::super) fn look(&mut self) {
        self.more = true;
    }

    /// Whether it may still have something to tell that can be taken now.
    pub(super) fn has_more(&self) -> bool {
        self.more && !self.initiator.is_stalled()
    }

    /// Takes what the device has done, up to the next event, and no more than a target that keeps
    /// to its bounds can have sent: others send faster than they are heard.
    pub(super) fn receive(&mut self, now: Now) {
        self.pair.allow(2 * usize::from(RECEIVES));
        self.more = !self.initiator.receive(now, &mut self.pair);
    }

    /// Sends what there is to be sent, in one chain.
    pub(in super::super) fn transmit(&mut self) {
        self.initiator.transmit(&mut self.pair);
        self.pair.pair().flush();
    }

    /// Has the descriptor become readable with the next completion; `false` if something has come
    /// in before that, which is to be looked at.
    pub(in super::super) fn arm(&mut self) -> bool {
        !self.pair.pair().arm()
    }

    /// The descriptor is readable.
    pub(in super::super) fn wake(&mut self) {
        self.pair.pair().wake();
        self.more = true;
    }

    pub(in super::super) fn descriptor(&mut self) -> Arc<OwnedFd> {
        Arc::clone(self.pair.pair().descriptor())
    }

    pub(super) fn expire(&mut self, now: Now) {
        self.initiator.expire(now);
        // Memory of commands that have ended is their user's with the next event.
        self.initiator.settle(&mut self.pair);
        if self.initiator.is_idle() {
            self.pair.pair().trim();
        }
    }

    /// An event. A device tells that the connection is over as software iWARP tells a Terminate,
    /// but without a reason: that is what TCP's end is.
    pub(super) fn poll(&mut self) -> Option<InitiatorEvent<BlockLease>> {
        let event = self.initiator.poll()?;
        let proven = self.proven;
        Some(match event {
            InitiatorEvent::Ended(SessionEnd::Terminated(_)) => {
                InitiatorEvent::Ended(SessionEnd::Lost)
            }
            InitiatorEvent::Ended(SessionEnd::Login(LoginError::Terminated(_))) => {
                InitiatorEvent::Ended(LoginError::Lost { proven }.into())
            }
            event => event,
        })
    }

    pub(super) fn facts(&self) -> DeviceFacts {
        let limits = self.pair.limits();
        DeviceFacts {
            device: self.pair.device().to_owned(),
            ord: limits.ord,
            ird: limits.ird,
            invalidates: BEARS_INVALIDATION,
        }
    }

    /// Why the session has ended so, where the device knows that.
    pub(super) fn failure(&self, end: &SessionEnd) -> Option<DeviceFailure> {
        if !matches!(
            end,
            SessionEnd::Violated(_) | SessionEnd::Login(LoginError::Violated(_))
        ) {
            return None;
        }
        match self.pair.end()? {
            RdmaEnd::Failed(failure) => Some(DeviceFailure::Failed(failure)),
            RdmaEnd::Requested => Some(DeviceFailure::NoMemory),
            RdmaEnd::ByPeer => None,
        }
    }
}
