//! What the cores have counted, as far as it is not of units: asked of all of them, and summed up.

use std::collections::BTreeMap;
use std::time::Duration;

use runtime::n_port::FrameLoss;
use scsi::device::NexusCounts;
use scsi::medium::Now;
use scsi::unit::{CoreId, UnitId};

/// What one core tells.
#[derive(Clone, Debug, Default)]
pub struct CoreSurvey {
    /// How it spent its time.
    pub time: CoreTime,
    /// Commands that have not ended, by unit.
    pub queued: BTreeMap<UnitId, u64>,
    /// The sessions that live here, by TSIH, and what they have done.
    pub sessions: Vec<(u16, NexusCounts)>,
    /// Initiators that are logged in by Fibre Channel.
    pub fc_logins: Vec<FcLogin>,
    /// Frames that were lost at each Fibre Channel port, by its name.
    pub lost_frames: Vec<(String, Vec<FrameLoss>)>,
    /// Bytes of memory that its buffers for files and devices hold.
    pub buffers: u64,
    /// Bytes that were sent without the kernel copying them.
    pub uncopied: u64,
    /// Logins, by where they came and what became of them.
    pub logins: BTreeMap<(String, LoginResult), u64>,
}

/// How a core spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Which core.
    pub core: u16,
    /// In turns that had something to do.
    pub busy: Duration,
    /// Waiting, or looking in vain.
    pub idle: Duration,
}

/// What became of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoginResult {
    /// There is a session.
    Accepted,
    /// It broke a rule, proved nothing, or was let in nowhere.
    Refused,
}

impl LoginResult {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }
}

/// An initiator that is logged in by Fibre Channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FcLogin {
    /// Its port name (WWPN).
    pub initiator: String,
    /// The port name of the port that serves it.
    pub port: String,
    /// The interface that this port is on.
    pub interface: String,
    /// The core that it lives on.
    pub core: CoreId,
    /// Since when, by the clock of the server.
    pub since: Now,
    /// What it has done.
    pub counts: NexusCounts,
}

/// What all cores together tell.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Cores that have not answered, in order.
    pub silent: Vec<u16>,
    /// How each core spent its time.
    pub times: Vec<CoreTime>,
    /// Commands that have not ended, by the name of the unit; units without any are not named.
    pub queued: BTreeMap<String, u64>,
    /// What each session has done, by TSIH.
    pub sessions: BTreeMap<u16, NexusCounts>,
    /// Initiators that are logged in by Fibre Channel.
    pub fc_logins: Vec<FcLogin>,
    /// Frames that were lost at each Fibre Channel port, by its name.
    pub lost_frames: Vec<(String, Vec<FrameLoss>)>,
    /// Bytes of memory that buffers for files and devices hold.
    pub buffers: u64,
    /// Bytes that were sent without the kernel copying them.
    pub uncopied: u64,
    /// Logins, by where they came and what became of them.
    pub logins: BTreeMap<(String, LoginResult), u64>,
    /// How often each rule was broken.
    pub violations: BTreeMap<&'static str, u64>,
}

impl Survey {
    /// Adds the frames that a core has lost of a port, which several cores may have.
    fn add_lost(&mut self, port: String, lost: Vec<FrameLoss>) {
        let known = self.lost_frames.iter_mut().find(|(name, _)| *name == port);
        let Some((_, sums)) = known else {
            return self.lost_frames.push((port, lost));
        };
        for (sum, more) in sums.iter_mut().zip(lost) {
            sum.frames += more.frames;
        }
    }

    /// Adds what a core tells, whose units are known by these names.
    pub(crate) fn add(&mut self, core: CoreSurvey, names: &BTreeMap<UnitId, String>) {
        self.times.push(core.time);
        for (unit, count) in core.queued {
            if let Some(name) = names.get(&unit) {
                *self.queued.entry(name.clone()).or_default() += count;
            }
        }
        self.sessions.extend(core.sessions);
        self.fc_logins.extend(core.fc_logins);
        for (port, lost) in core.lost_frames {
            self.add_lost(port, lost);
        }
        self.buffers += core.buffers;
        self.uncopied += core.uncopied;
        for (login, count) in core.logins {
            *self.logins.entry(login).or_default() += count;
        }
    }
}
