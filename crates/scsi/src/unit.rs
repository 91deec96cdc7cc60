//! A logical unit: what all cores agree upon.
//!
//! A [`UnitState`] is an immutable snapshot. Only the unit's owner makes a new one, out of a
//! [`UnitChange`](crate::owner::UnitChange), and each core works by the newest that was published
//! to it (see [`crate::owner`]).
//!
//! [`UnitState::apply`] hands each change to the module whose part of the state it is. Such a
//! function changes the state in place, or fails and leaves what it did to be thrown away.

mod apply;
mod cached_extents;

use std::sync::Arc;

use crate::alua::AccessState;
use crate::long_operation::OperationState;
use crate::medium::{Extent, Traits};
use crate::nexus::NexusIdentity;
use crate::reserve::Reservations;
use crate::statistics::UnitStatistics;
use crate::unit_settings::UnitSettings;
pub use cached_extents::CachedExtents;

/// A logical unit of this process: its slot, which is the same in the tables of all cores, and
/// which of the units that have had this slot it is. What is said of one that is gone is never
/// taken for its successor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId {
    /// The slot.
    pub slot: u32,
    /// How many units had the slot before.
    pub generation: u32,
}

impl UnitId {
    /// Generations wrap at this: they travel in completion tokens too, which have 28 bits for them.
    pub const GENERATIONS: u32 = 1 << 28;

    /// The first unit that has this slot.
    #[must_use]
    pub const fn first(slot: u32) -> Self {
        Self {
            slot,
            generation: 0,
        }
    }

    /// The unit that has the slot when this one is gone.
    #[must_use]
    pub const fn successor(self) -> Self {
        Self {
            slot: self.slot,
            generation: (self.generation + 1) % Self::GENERATIONS,
        }
    }

    /// The slot, as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.slot as usize
    }
}

/// What a unit says of itself, fixed for its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitIdentity {
    /// T10 VENDOR IDENTIFICATION, up to 8 printable ASCII characters.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, up to 16.
    pub product: String,
    /// PRODUCT REVISION LEVEL, up to 4.
    pub revision: String,
    /// Unit serial number (VPD 80h), printable ASCII.
    pub serial: String,
    /// NAA designator, locally assigned (NAA 3h) or registered extended (6h): 8 or 16 bytes.
    pub naa: Vec<u8>,
    /// The medium can be removed (RMB = 1).
    pub removable: bool,
}

/// Everything that the cores must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitState {
    /// Grows by one with each publication.
    pub version: u64,
    /// The last version that came with a unit attention for anybody.
    pub announced: u64,
    /// What the unit is called.
    pub identity: Arc<UnitIdentity>,
    /// What its volume can do, with the capacity.
    pub traits: Traits,
    /// Its volume is missing, and may come back: `traits` are those that it had last.
    pub is_absent: bool,
    /// Ranges that only their holder may touch now (COMPARE AND WRITE and its like).
    pub locks: Vec<BlockLock>,
    /// Blocks that were ever locked.
    pub shared: Arc<CachedExtents>,
    /// The registrations, and the reservation.
    pub reservations: Arc<Reservations>,
    /// Whether reservations can be kept over a power loss (PTPL_C).
    pub persistence: bool,
    /// The asymmetric access state of the one target port group.
    pub access_state: AccessState,
    /// FORMAT UNIT or SANITIZE in progress, or failed.
    pub operation: OperationState,
    /// What initiators can set of the unit.
    pub settings: Arc<UnitSettings>,
    /// What the unit has done, counted by every core.
    pub statistics: Arc<UnitStatistics>,
}

impl UnitState {
    /// The state at power on of a unit without registrations, version 0, without
    /// persistence.
    #[must_use]
    pub fn new(identity: UnitIdentity, traits: Traits) -> Self {
        let settings = Arc::new(UnitSettings::new(&traits));
        Self {
            version: 0,
            announced: 0,
            identity: Arc::new(identity),
            traits,
            is_absent: false,
            locks: Vec::new(),
            shared: Arc::default(),
            reservations: Arc::default(),
            persistence: false,
            access_state: AccessState::default(),
            operation: OperationState::default(),
            settings,
            statistics: Arc::default(),
        }
    }
}

/// An extent that one command has for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLock {
    /// Which blocks.
    pub extent: Extent,
    /// By which core, for which of its requests.
    pub holder: (CoreId, u64),
}

/// A core of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CoreId(pub u16);

/// Whom an effect meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectScope {
    /// Every nexus of the unit.
    All,
    /// Every nexus but this one.
    AllBut(Arc<NexusIdentity>),
    /// Just these.
    Only(Vec<Arc<NexusIdentity>>),
}
