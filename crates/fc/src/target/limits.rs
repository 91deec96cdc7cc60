//! Bounds on what the initiators of a port can cost, and how several machines keep to them.
//!
//! Each machine may use as much of a bound as its nexuses are of all at the port, so that one
//! initiator alone has all of it wherever it is. Machines share nothing for that but the number of
//! nexuses, which changes with logins alone, and no machine ever waits for another one. What was
//! begun before a nexus came goes on, so that all machines together can be above a bound until that
//! has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::exchange;

/// Bounds on what initiators can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcpLimits {
    /// Commands at once, of all initiators. Those beyond end with TASK SET FULL.
    pub commands: u16,
    /// Bytes of Data-In that are kept so that they can be sent again, until their command has
    /// ended and, of longer ones, their initiator has confirmed them.
    pub unconfirmed: usize,
    /// Bytes of Data-Out that initiators are asked for at once; more by less than one request. It
    /// is to fit where frames are received, as nothing between would hold a sender back. One that
    /// was asked for nothing yet is asked for up to twice of it, so that no initiator can hold all
    /// of it.
    pub window: u64,
}

impl Default for FcpLimits {
    /// Eight initiators of 1024 commands each, as libfc sends at the most; and what a link of
    /// 10 Gbit/s carries in 13 ms.
    fn default() -> Self {
        Self {
            commands: 8192,
            unconfirmed: 16 << 20,
            window: exchange::WINDOW,
        }
    }
}

/// What one machine may use of the limits of its port.
#[derive(Debug)]
pub struct LimitShare {
    whole: FcpLimits,
    /// Bytes of Data-Out that fit where this machine receives.
    window_max: u64,
    /// Nexuses of this machine.
    own: u32,
    /// Those of all machines of the port.
    all: Arc<AtomicU32>,
}

impl LimitShare {
    /// That of a machine that is alone, or the first one of its port.
    #[must_use]
    pub fn of(whole: FcpLimits) -> Self {
        Self {
            whole,
            window_max: u64::MAX,
            own: 0,
            all: Arc::default(),
        }
    }

    /// That of another machine of the port, which has no nexus yet, and whose window has
    /// `window_max` bytes at the most.
    #[must_use]
    pub fn another(&self, window_max: u64) -> Self {
        Self {
            whole: self.whole,
            window_max,
            own: 0,
            all: Arc::clone(&self.all),
        }
    }

    pub(super) fn nexus_up(&mut self) {
        self.own += 1;
        self.all.fetch_add(1, Relaxed);
    }

    pub(super) fn nexus_down(&mut self) {
        self.own -= 1;
        self.all.fetch_sub(1, Relaxed);
    }

    /// The most commands that this machine ever has at once.
    pub(super) const fn commands_max(&self) -> u16 {
        self.whole.commands
    }

    /// See [`FcpLimits::commands`].
    pub(super) fn commands(&self) -> u64 {
        self.part(self.whole.commands.into())
    }

    /// See [`FcpLimits::unconfirmed`].
    pub(super) fn unconfirmed(&self) -> usize {
        self.part(self.whole.unconfirmed as u64) as usize
    }

    /// See [`FcpLimits::window`].
    pub(super) fn window(&self) -> u64 {
        self.part(self.whole.window).min(self.window_max)
    }

    /// Something at least, so that no command waits for ever.
    fn part(&self, whole: u64) -> u64 {
        let all = self.all.load(Relaxed);
        if self.own == all {
            return whole;
        }
        (whole * u64::from(self.own) / u64::from(all.max(1))).max(1)
    }
}
