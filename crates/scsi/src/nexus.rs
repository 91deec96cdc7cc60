//! I_T nexuses, as a transport presents them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::unit::UnitId;
use crate::wire::lun::Lun;

/// A nexus of this core. Numbers are given out by the transport's side and not used again before
/// [`crate::device::DeviceServer::nexus_lost`] has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NexusId(pub u32);

/// What identifies an I_T nexus beyond a session: reservations outlive it (SPC-5 §5.14.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NexusIdentity {
    /// The initiator port's TransportID as it travels (SPC-5 §7.6.4), a multiple of 4 bytes.
    pub initiator: Box<[u8]>,
    /// RELATIVE TARGET PORT IDENTIFIER of the port it came through; 1 and up.
    pub port: u16,
}

/// What an initiator port had heard of each unit when its nexus was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionHistory {
    /// What it saw.
    pub target: Arc<TargetDevice>,
    /// In the order of its LUNs: [`UnitState::version`], or `None` where the port still had a unit
    /// attention to hear, or may not have heard one that parameter data told.
    ///
    /// [`UnitState::version`]: crate::unit::UnitState::version
    pub versions: Box<[Option<u64>]>,
}

impl AttentionHistory {
    /// Up to which version it had heard of a unit that it saw as this LUN.
    #[must_use]
    pub fn version(&self, lun: Lun, unit: UnitId) -> Option<u64> {
        let luns = &self.target.luns;
        let at = luns.binary_search_by_key(&lun, |entry| entry.0).ok()?;
        let version = self.versions.get(at).copied().flatten();
        version.filter(|_| luns[at].1 == unit)
    }
}

/// A SCSI target port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// RELATIVE TARGET PORT IDENTIFIER; 1 and up.
    pub relative_id: u16,
    /// Designation descriptors (SPC-5 §7.7.6.1) with ASSOCIATION = target port, ready to be
    /// placed in VPD pages 83h and 88h: for iSCSI the SCSI name string `iqn…,t,0x0001`.
    pub designators: Vec<u8>,
}

/// A SCSI target device: what an initiator that logged in to it can see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetDevice {
    /// Designation descriptors with ASSOCIATION = target device (SCSI name string).
    pub designators: Vec<u8>,
    /// All its ports, by relative id.
    pub ports: Vec<TargetPort>,
    /// Its logical units, sorted by LUN.
    pub luns: Vec<(Lun, UnitId)>,
    /// Those among them that the initiator can only read, while others may write to the unit.
    pub read_only: BTreeSet<Lun>,
    /// The SCSI protocol identifier (SPC-5 §7.6.1): 5 is iSCSI, 0 FCP.
    pub protocol: u8,
    /// Version descriptors of the transport for standard INQUIRY data: iSCSI 0x0960.
    pub versions: Vec<u16>,
}

impl TargetDevice {
    /// The unit behind `lun`, in whichever single-level form it is written.
    #[must_use]
    pub fn unit(&self, lun: Lun) -> Option<UnitId> {
        let lun = Lun::from_index(lun.index()?);
        let at = self.luns.binary_search_by_key(&lun, |entry| entry.0).ok()?;
        Some(self.luns[at].1)
    }
}

/// An I_T nexus.
#[derive(Clone, Debug)]
pub struct Nexus {
    /// Its identity.
    pub identity: Arc<NexusIdentity>,
    /// What it sees.
    pub target: Arc<TargetDevice>,
}
