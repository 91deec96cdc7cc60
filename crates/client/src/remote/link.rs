//! The way to a unit: what carries its commands, whichever transport that is.

use std::time::Duration;

use ::io::ether::Place;
use ::io::rdma::RdmaFailure;
use block::lease::BlockLease;
use block::volume::{Context, HandleEvent};
use fc::remote::{self, LoginRefusal};
use fc::wire::els::explanation;
use fc::wire::names::Wwn;
use iscsi::initiator::{TargetRecord, error};
use scsi::client::{Data, Done, Failed, Fate, UnitRequest, Why};
use scsi::medium::Now;
use scsi::wire::lun::Lun;

use super::RemoteError;
use super::session::DeviceFailure;
use runtime::n_port::LinkProblem;

/// A link that is there, or is to be: a protocol machine with the socket that it works on. Whoever
/// has it decides when it connects.
pub(crate) trait Link {
    /// What the log calls the other end.
    fn name(&self) -> &str;

    /// What the other end is to do next, for people.
    fn awaited(&self) -> String;

    /// Whether nothing is there, nor is being made.
    fn is_down(&self) -> bool;

    /// Whether commands can be carried.
    fn is_logged_in(&self) -> bool;

    /// The number of the place where the last nexus was, from 0 on. A new nexus ends those of
    /// before in the same place alone.
    fn group(&self) -> usize;

    /// Begins to connect.
    fn connect(&mut self, cx: &mut Context<'_>);

    /// Whether a command would be taken.
    fn has_room(&self) -> bool;

    /// Sends a command; returns whether it was taken. One that is not is over with the link.
    fn execute(&mut self, now: Now, lun: Lun, request: UnitRequest<BlockLease>) -> bool;

    /// Ends gracefully. Returns whether there is something of which that is the end.
    fn log_out(&mut self, now: Now) -> bool;

    /// Leaves what there is to the next link, if it can. Nothing may be in flight.
    fn hand_over(&mut self, now: Now) -> bool {
        let _ = now;
        false
    }

    /// Ends what is there, without waiting for the other end.
    fn give_up(&mut self, now: Now);

    /// Ends what there is, or would become, without a word.
    fn close(&mut self, cx: &mut Context<'_>);

    /// The next instant at which something is to be done.
    fn next_deadline(&self) -> Option<Now>;

    /// Does what is to be done by now.
    fn expire(&mut self, now: Now);

    /// Something has happened that it gave to the ring when it had this generation.
    ///
    /// # Errors
    ///
    /// When what [`Self::connect`] began has failed.
    fn event(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        event: HandleEvent<'_>,
    ) -> Result<(), RemoteError>;

    /// What happens next.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<LinkEvent>;

    /// Sends what there is to be sent, and receives what there may be.
    fn push(&mut self, cx: &mut Context<'_>);
}

/// What a link tells.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// Commands may be given.
    LoggedIn {
        /// Whether that ended the nexus before, so that nothing of it happens any more.
        same: bool,
    },
    /// A command has a status.
    Answered(Done<BlockLease>),
    /// A command has none, but it is over at the other end.
    Undone(u32),
    /// A command was ended, as it took too long.
    Late(u32),
    /// A command ends with the link.
    Unanswered {
        id: u32,
        fate: Fate,
        /// Whether it may still change something.
        open: bool,
    },
    /// The same, while the link goes on: only its end ends the command.
    Stray { id: u32, open: bool },
    /// What a discovery session was told; nothing where the target does not tell.
    Targets(Vec<TargetRecord>),
    /// The link is no more.
    Ended {
        end: LinkEnd,
        /// How long the other end wants to be left alone.
        wait: Duration,
    },
}

impl LinkEvent {
    /// With the nexus goes everything; else only this command is over, at the target too, unless
    /// what the target does with it is unknown.
    pub(super) fn failed<W>(failed: &Failed<BlockLease, W>) -> Self {
        let reads = matches!(failed.data, Data::In(_));
        let (id, fate) = (failed.id as u32, failed.fate);
        let open = fate == Fate::Unknown && !reads;
        match failed.why {
            Why::Ended => Self::Unanswered { id, fate, open },
            Why::Late => Self::Late(id),
            Why::Own(_) if fate == Fate::Unknown => Self::Stray { id, open },
            Why::Own(_) => Self::Undone(id),
        }
    }
}

/// Why there is no session with a unit any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkEnd {
    /// Of a session of iSCSI.
    #[error(transparent)]
    Session(#[from] error::SessionEnd),
    /// Of a login of Fibre Channel.
    #[error(transparent)]
    Fcoe(#[from] FcoeLinkEnd),
    /// Of a connection by a device of RDMA.
    #[error(transparent)]
    Device(#[from] DeviceLinkEnd),
}

impl LinkEnd {
    /// Whether that was asked for.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(
            self,
            Self::Session(error::SessionEnd::LoggedOut)
                | Self::Fcoe(FcoeLinkEnd::Lost(remote::NexusEnd::ByUs))
        )
    }

    /// Whether the other end wants us elsewhere: the next connection goes there.
    pub(super) const fn is_redirection(&self) -> bool {
        matches!(self, Self::Session(error::SessionEnd::Redirected { .. }))
    }

    /// Whether commands may be in flight yet, of which nothing more is heard.
    pub(super) fn leaves_commands(&self) -> bool {
        matches!(self, Self::Fcoe(FcoeLinkEnd::GivenUp))
    }

    /// Whether commands are not answered though all else is.
    pub(super) fn is_stuck(&self) -> bool {
        matches!(
            self,
            Self::Session(error::SessionEnd::Stuck) | Self::Fcoe(FcoeLinkEnd::Stuck)
        )
    }
}

/// How long a target port is waited for. VN2VN takes a second to get an address; a port that has
/// one answers at once.
pub(super) const SEEK: Duration = Duration::from_secs(5);

/// The same for one that is heard, but has no virtual link with us. Linux logs in anew when we log
/// out; if its FLOGI comes after our process has ended, it waits 8 s for an answer and refuses all
/// else meanwhile, then is asked again after its next Beacon, up to 8 s later.
pub(super) const SEEK_LINK: Duration = Duration::from_secs(20);

/// Why there is no login with a target port any more, or there was none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FcoeLinkEnd {
    /// No port has that name.
    #[error(
        "no target with WWPN {wwpn} logged in within {} s: list the ports with lunar ls \
         '{}', and check in the target's log that it admits {ours}",
        waited.as_secs(), listing(place, *.in_fabric)
    )]
    NotFound {
        /// The WWPN of the target port.
        wwpn: Wwn,
        /// By which Ethernet port of ours.
        place: String,
        /// Whether our port is in a fabric.
        in_fabric: bool,
        /// Our own names.
        ours: Wwn,
        /// For how long.
        waited: Duration,
    },
    /// It is there, and does not let us log in.
    #[error("target {wwpn} on fcoe://{place} refuses {ours}: {why}{}", admission(*.ours, why))]
    Refused {
        /// The WWPN of the target port.
        wwpn: Wwn,
        /// By which Ethernet port of ours.
        place: String,
        /// Our own name.
        ours: Wwn,
        /// What it says.
        why: LoginRefusal,
    },
    /// Our port is in no fabric.
    #[error("{place} has not logged in to a fabric: {why}")]
    NotInFabric {
        /// The Ethernet port.
        place: String,
        /// Why not.
        why: String,
    },
    /// It is not there yet.
    #[error("no server has opened the other end of {0}: start one first")]
    Alone(Place),
    /// No frame passes at our Ethernet port.
    #[error(transparent)]
    Barred(LinkProblem),
    /// We have no port, for the reason given.
    #[error("{0}")]
    NoPort(String),
    /// It was there.
    #[error("{}", ended(*.0))]
    Lost(remote::NexusEnd),
    /// Commands end neither by themselves nor by an abort.
    #[error("the target answers neither commands nor aborts")]
    Stuck,
    /// By us, without waiting for the target.
    #[error("the login was abandoned")]
    GivenUp,
}

/// What to do where a target does not let us log in.
fn admission(ours: Wwn, why: &LoginRefusal) -> String {
    match why.reject().map(|reject| reject.explanation) {
        Some(explanation::PORT_NAME) => {
            format!("; let the target admit {ours} (lunar serve: --allow)")
        }
        Some(explanation::NO_RESOURCES) => {
            "; let the target take more logins (lunar serve: --max-sessions)".to_owned()
        }
        _ => "; look in the target's log".to_owned(),
    }
}

/// What `lunar ls` is given to list the ports that ours can see.
fn listing(place: &str, in_fabric: bool) -> String {
    let mode = if in_fabric { "?mode=fabric" } else { "" };
    format!("fcoe://{place}{mode}")
}

/// Why there is no connection by a device of RDMA any more, or there was none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceLinkEnd {
    /// It was not made.
    #[error("cannot connect{}: {cause}", by(device.as_deref()))]
    NotConnected {
        /// The device on the way, if there is one.
        device: Option<String>,
        /// Why not, with the way out.
        cause: String,
    },
    /// The device, or the way to the target, has failed.
    #[error("RDMA device {device}: {why}; check the target and the device's link (rdma link)")]
    Failed {
        /// Its name.
        device: String,
        /// What it says.
        why: RdmaFailure,
    },
    /// A command has no memory.
    #[error(
        "no memory can be pinned for the data of a command by RDMA device {0}: raise the limit \
         (ulimit -l unlimited; LimitMEMLOCK=infinity in a unit of systemd)"
    )]
    NoMemory(String),
}

impl From<(String, DeviceFailure)> for DeviceLinkEnd {
    fn from((device, failure): (String, DeviceFailure)) -> Self {
        match failure {
            DeviceFailure::Failed(why) => Self::Failed { device, why },
            DeviceFailure::NoMemory => Self::NoMemory(device),
        }
    }
}

fn by(device: Option<&str>) -> String {
    device.map_or_else(String::new, |name| format!(" by RDMA device {name}"))
}

fn ended(end: remote::NexusEnd) -> &'static str {
    match end {
        remote::NexusEnd::LoggedOut => "the target logged us out",
        remote::NexusEnd::Replaced => "the target logged in again, as after a restart",
        remote::NexusEnd::Lost(_) => "the target no longer responds",
        remote::NexusEnd::ByUs => "logged out",
        remote::NexusEnd::Stuck => "the target does not complete exchanges",
    }
}
