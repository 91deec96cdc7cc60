//! Tokens of a core: what an event of its ring belongs to.

use ::io::ring::Token;
use block::volume::HandleId;
use scsi::unit::UnitId;

/// What an operation was started for. Packed as kind (4 bits), generation or node (28 bits),
/// index (32 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKey {
    /// Whatever a volume started: which of its nodes, and that node's own slot. Kind 0, as volumes
    /// make these tokens themselves.
    Volume(HandleId, u32),
    /// Accepting at a portal.
    Accept(u32),
    /// Receiving on a connection.
    Receive(SlotKey),
    /// Sending on a connection.
    Send(SlotKey),
    /// Persisting the state of a unit.
    Persist(UnitId),
    /// Watching a Fibre Channel port.
    FcPort(u32),
    /// Watching this core's way to the Ethernet of a port of another core.
    FcBranch(u32),
    /// Looking at volumes.
    Watch,
    /// Waiting for RDMA devices.
    Rdma,
}

/// The token with which core 0 listens at a portal.
#[must_use]
pub fn accept_token(portal: u32) -> Token {
    EventKey::Accept(portal).token()
}

/// A connection's slot, with a generation so that late events of an earlier one are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotKey {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// Generations wrap at this.
pub(super) const GENERATIONS: u32 = 1 << 28;

impl EventKey {
    pub(super) fn token(self) -> Token {
        let (kind, middle, index) = match self {
            Self::Volume(HandleId(node), slot) => (0, node, slot),
            Self::Accept(portal) => (1, 0, portal),
            Self::Receive(key) => (2, key.generation, key.slot),
            Self::Send(key) => (3, key.generation, key.slot),
            Self::Persist(unit) => (4, unit.generation, unit.slot),
            Self::FcPort(fc_port) => (5, 0, fc_port),
            Self::Watch => (6, 0, 0),
            Self::Rdma => (7, 0, 0),
            Self::FcBranch(branch) => (8, 0, branch),
        };
        Token(kind << 60 | u64::from(middle) << 32 | u64::from(index))
    }

    pub(super) fn of(token: Token) -> Option<Self> {
        let middle = (token.0 >> 32) as u32 & (GENERATIONS - 1);
        let index = token.0 as u32;
        let key = SlotKey {
            slot: index,
            generation: middle,
        };
        let unit = UnitId {
            slot: index,
            generation: middle,
        };
        Some(match token.0 >> 60 {
            0 => Self::Volume(HandleId(middle), index),
            1 => Self::Accept(index),
            2 => Self::Receive(key),
            3 => Self::Send(key),
            4 => Self::Persist(unit),
            5 => Self::FcPort(index),
            6 => Self::Watch,
            7 => Self::Rdma,
            8 => Self::FcBranch(index),
            _ => return None,
        })
    }
}
