//! A core that serves one RAM disk on its own, for whom wants to look at what its turns cost.

pub mod rig;

use std::io;
use std::sync::Arc;

use ::io::memory::{MemoryLimit, Pool};
use ::io::ring::Ring;
use block::ram::Ram;
use block::volume::{CoreContext, Volume};
use block::volumes::Volumes;
use engine::change::NewUnit;
use engine::core::{ControlCore, ControlCoreParts, ControlUnit, Core, CoreParts, Store};
use engine::flushes::FinalFlushes;
use engine::mailbox::{CoreMailbox, Mailboxes};
use engine::views::{TargetViews, Views};
use iscsi::target::{IserPortals, NodeAccess, PortalGroup, TargetLimits};
use runtime::journal::Journal;
use scsi::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

/// The name of its target.
pub const TARGET: &str = "iqn.2026-11.org.lunar:test";

/// Where each connection has come to, as far as the core knows; iSER is taken there, too.
const PORTAL: ([u8; 4], u16) = ([127, 0, 0, 1], 3260);

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
    let mut volumes: Vec<Arc<dyn Volume>> = vec![Arc::new(ram)];
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
    let mut views = Views::default();
    let luns = [(Lun::from_index(0), UnitId::first(0))];
    let luns = luns.into_iter().collect();
    views.insert(
        TARGET.to_owned(),
        TargetViews::iscsi(TARGET, &[PortalGroup::everywhere()], &luns, &[]),
    );
    let views = Arc::new(views);
    let post = Mailboxes::new(vec![ring.waker()]).for_core(CoreId(0));
    Ok(Core::new(CoreParts {
        id: CoreId(0),
        ring,
        post,
        units: vec![Arc::new(state.clone())],
        volumes: Volumes::attach(&volumes, &context)?,
        context,
        views: Arc::clone(&views),
        journal: Arc::new(Journal::default()),
        control: Some(Box::new(control(state, volumes.remove(0), views, limits))),
    }))
}

fn control(
    state: UnitState,
    volume: Arc<dyn Volume>,
    views: Arc<Views>,
    limits: TargetLimits,
) -> ControlCore {
    let mut config = crate::target_config(TARGET, NodeAccess::default(), limits);
    config.iser = IserPortals {
        portals: vec![PORTAL.into()],
        devices: Vec::new(),
        without_crc: true,
    };
    let unit = NewUnit {
        id: UnitId::first(0),
        state,
        volume,
        name: "ram".to_owned(),
        key: "1".to_owned(),
        lock: None,
    };
    ControlCore::new(ControlCoreParts {
        config: Arc::new(config),
        views,
        units: vec![ControlUnit::new(unit, 1)],
        vanished: Box::new(|_| ()),
        device_came: Box::new(|| ()),
        store: Arc::new(Nowhere),
        flushes: Arc::new(FinalFlushes::default()),
        cores: 1,
        near_core: Box::new(|_| None),
        random: Box::new(|| [0; 64]),
        local_address: |_| Ok(PORTAL.into()),
        segment_size: |_| 1460,
    })
}

struct Nowhere;

impl Store for Nowhere {
    fn save(&self, _key: &str, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
