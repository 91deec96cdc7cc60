//! A core that serves one RAM disk on its own, for whom wants to look at what its turns cost.

pub mod rig;

use std::io;
use std::sync::Arc;

use ::io::memory::{MemoryLimit, Pool};
use ::io::ring::Ring;
use block::ram::Ram;
use block::volume::{CoreContext, Volume};
use block::volumes::Volumes;
use engine::core::{ControlCore, ControlCoreParts, Core, CoreParts, Devices, Store};
use engine::flushes::FinalFlushes;
use engine::mailbox::{CoreMailbox, Mailboxes};
use iscsi::target::{NodeAccess, TargetConfig, TargetLimits, TargetNode};
use runtime::journal::Journal;
use scsi::owner::UnitOwner;
use scsi::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

/// The name of its target.
pub const TARGET: &str = "iqn.2026-11.org.lunar:test";

/// Bytes of a block of LUN 0.
pub const BLOCK: u32 = 512;

/// A core on this ring, whose LUN 0 has `size` bytes.
///
/// # Errors
/// When there is no address space left.
pub fn serving<R: Ring>(
    ring: R,
    size: u64,
    limits: TargetLimits,
) -> anyhow::Result<Core<R, CoreMailbox>> {
    let ram = Ram::new(size, BLOCK, &MemoryLimit::new(size))?;
    let volumes: Vec<Arc<dyn Volume>> = vec![Arc::new(ram)];
    let context = CoreContext::new(Pool::new(16 << 20)?);
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "COUNTED".into(),
        revision: "0".into(),
        serial: "1".into(),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, 1],
        removable: false,
    };
    let state = UnitState::new(identity, volumes[0].traits());
    let post = Mailboxes::new(vec![ring.waker()]).counter(CoreId(0));
    Ok(Core::new(CoreParts {
        fc_ports: Vec::new(),
        id: CoreId(0),
        ring,
        post,
        units: vec![Arc::new(state.clone())],
        volumes: Volumes::attach(&volumes, &context)?,
        buffers: context.pool,
        journal: Arc::new(Journal::default()),
        front: Some(Box::new(front(state, volumes, limits))),
    }))
}

fn front(state: UnitState, volumes: Vec<Arc<dyn Volume>>, limits: TargetLimits) -> ControlCore {
    let node = TargetNode {
        name: TARGET.to_owned(),
        alias: None,
        access: NodeAccess::default(),
    };
    let luns = vec![(Lun::from_index(0), UnitId::first(0))];
    let device = |level| Arc::new(iscsi::names::target_device(TARGET, luns.clone(), level));
    let devices: Devices = (0..=2)
        .map(|level| ((TARGET.to_owned(), level), device(level)))
        .collect();
    ControlCore::new(ControlCoreParts {
        config: Arc::new(TargetConfig {
            nodes: vec![Arc::new(node)],
            portals: Vec::new(),
            advertise: Vec::new(),
            limits,
        }),
        devices,
        owners: vec![UnitOwner::new(state, 1)],
        store: Arc::new(Nowhere),
        flushes: Arc::new(FinalFlushes::new(vec![String::new()])),
        volumes,
        cores: 1,
        random: Box::new(|| [0; 64]),
        local_address: |_| Ok(([127, 0, 0, 1], 3260).into()),
    })
}

struct Nowhere;

impl Store for Nowhere {
    fn save(&self, _unit: UnitId, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
