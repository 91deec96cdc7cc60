//! A change of what is served, from the thread that prepared it to core 0 and on to every core.
//!
//! What can fail has been done before ([`crate::server`]), or is done in the first step, in which
//! nothing is visible. From the second step on nothing fails.
//!
//! ```text
//!   control thread        core 0                       every core
//!     |--- Change --------->|                               |
//!     |                     |--- Prepare ------------------>|  attach units and spare volumes
//!     |                     |<-- Stepped -------------------|
//!     |                     |  locks all blocks of units that get another
//!     |                     |  volume, or leave theirs to units that come
//!     |                     |--- Switch ------------------->|  swap volumes, remap nexuses
//!     |                     |<-- Stepped -------------------|
//!     |                     |  unlocks; ends sessions that may no longer be
//!     |                     |--- Retire ------------------->|  detach units, fence, close volumes
//!     |                     |<-- Stepped -------------------|
//!     |<-- done ------------|                               |
//! ```
//!
//! Without the acknowledgements a write could reach a volume that another core had taken away.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::io::rdma::RdmaListener;
use block::volume::Volume;
use fc::remote::Partners;
use fc::wire::names::Wwn;
use iscsi::target::TargetConfig;
use runtime::lockfile::LockFile;
use scsi::unit::{UnitId, UnitState};

use crate::views::Views;

/// A change whose volumes are open and whose portals are bound.
pub struct Change {
    /// Units that come.
    pub arrivals: Vec<NewUnit>,
    /// Units that get another volume.
    pub swaps: Vec<NewVolume>,
    /// Units that go.
    pub departures: Vec<UnitId>,
    /// Those of them whose file or reservations are those of a unit that comes. They are not used
    /// any more from the switch on.
    pub inherited: Vec<UnitId>,
    /// What everybody sees from then on.
    pub views: Arc<Views>,
    /// What logins go by from then on.
    pub config: Arc<TargetConfig>,
    /// The initiators that may log in to Fibre Channel ports from then on, by the names of these.
    pub partners: Vec<(Wwn, Partners)>,
    /// Portals that are listened to from then on, by their numbers.
    pub listen: Vec<(u32, OwnedFd)>,
    /// Portals that are no longer listened to.
    pub close: Vec<u32>,
    /// Portals that RDMA devices listen on from then on.
    pub listen_by_devices: Vec<(u32, RdmaListener)>,
    /// Portals that they no longer listen on.
    pub close_devices: Vec<u32>,
    /// Told when all of it is done, or that nothing of it is.
    pub done: ChangeReply,
}

/// How the end of a change is told.
pub type ChangeReply = Box<dyn FnOnce(Result<(), ChangeError>) + Send>;

/// A unit that comes.
pub struct NewUnit {
    /// Its number, of a slot that is free.
    pub id: UnitId,
    /// Its state at power on.
    pub state: UnitState,
    /// Its volume.
    pub volume: Arc<dyn Volume>,
    /// What it is called in the log: the address of its volume.
    pub name: String,
    /// Where its reservations are kept: a part of a file's name.
    pub key: String,
    /// Keeps other servers from its reservations. A unit that goes in the same change may have it
    /// too, when the one that comes goes on with its reservations.
    pub lock: Option<Arc<LockFile>>,
}

/// A volume that takes the place of a unit's.
#[derive(Clone)]
pub struct NewVolume {
    /// Whose.
    pub unit: UnitId,
    /// The volume, of blocks as long.
    pub volume: Arc<dyn Volume>,
    /// What it is called in the log.
    pub name: String,
    /// The unit has no volume from then on: `volume` stands for the missing one.
    pub is_absent: bool,
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// A core cannot use a volume.
    Attach {
        /// What the volume is called.
        volume: String,
        /// Why.
        cause: String,
    },
    /// Hosts owe data to a unit or change its reservations, or an operation goes on there that
    /// cannot be interrupted.
    Busy(String),
    /// The server stops.
    Stopping,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attach { volume, cause } => write!(f, "cannot use {volume}: {cause}"),
            Self::Busy(volume) => write!(
                f,
                "{volume} cannot be exchanged now: a host owes it data, changes its reservations, \
                 or formats or sanitizes it"
            ),
            Self::Stopping => f.write_str("the server is stopping"),
        }
    }
}

impl std::error::Error for ChangeError {}

/// A unit that comes, as every core is told.
pub struct Arrival {
    /// Its number.
    pub id: UnitId,
    /// Its state at power on.
    pub state: Arc<UnitState>,
    /// Its volume.
    pub volume: Arc<dyn Volume>,
    /// What it is called in the log.
    pub name: String,
}

/// The first step: what cores attach before anybody sees it.
pub struct Preparation {
    /// Told back with the acknowledgement.
    pub number: u64,
    /// Units that come.
    pub arrivals: Vec<Arrival>,
    /// Volumes for units that have others.
    pub spares: Vec<NewVolume>,
}

/// The second step.
pub struct Switch {
    /// Told back with the acknowledgement.
    pub number: u64,
    /// Units whose spare volume takes its place.
    pub swaps: Vec<UnitId>,
    /// What everybody sees.
    pub views: Arc<Views>,
    /// The initiators that may log in to Fibre Channel ports.
    pub partners: Vec<(Wwn, Partners)>,
}

/// The last step.
pub struct Retirement {
    /// Told back with the acknowledgement.
    pub number: u64,
    /// Units that go.
    pub units: Vec<UnitId>,
    /// Units whose spare volume goes, as the change was given up.
    pub spares: Vec<UnitId>,
}
