//! What the tests of this crate have in common.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::medium::Traits;
use crate::nexus::{Nexus, NexusIdentity, TargetDevice, TargetPort};
use crate::owner::UnitChange;
use crate::unit::{UnitIdentity, UnitState};
use crate::wire::transport_id;

/// A unit of 1 GiB that can do everything.
pub(crate) fn unit() -> UnitState {
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "VOLUME".into(),
        revision: "0001".into(),
        serial: "0123456789".into(),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, 1],
        removable: true,
    };
    let traits = Traits {
        block_size: 512,
        blocks: 1 << 21,
        physical_exponent: 3,
        read_only: false,
        write_cache: true,
        unmap_granularity: Some(8),
        anchor: true,
        atomic: None,
        sanitize: &[],
        solid_state: true,
        write_same_to_end: false,
        shared: false,
    };
    UnitState {
        persistence: true,
        ..UnitState::new(identity, traits)
    }
}

/// The volume of [`unit`] has this many blocks now.
pub(crate) fn resized(blocks: u64) -> UnitChange {
    UnitChange::Medium(Traits {
        blocks,
        ..unit().traits
    })
}

/// The identity of a host by the target's port 1.
pub(crate) fn host(number: u8) -> Arc<NexusIdentity> {
    by_port(number, 1)
}

/// The identity of a host by a port.
pub(crate) fn by_port(number: u8, port: u16) -> Arc<NexusIdentity> {
    let name = format!("iqn.2026-11.org.test:host{number}");
    let initiator = transport_id::iscsi(&name, [0x80, 0, 0, 0, 0, number]);
    Arc::new(NexusIdentity { initiator, port })
}

/// The nexus of a host by port 1 with an iSCSI target that has ports 1 and 2.
pub(crate) fn nexus(number: u8) -> Nexus {
    let port = |relative_id| TargetPort {
        relative_id,
        designators: Vec::new(),
    };
    let target = TargetDevice {
        designators: Vec::new(),
        ports: vec![port(1), port(2)],
        luns: Vec::new(),
        read_only: BTreeSet::new(),
        protocol: transport_id::ISCSI,
        versions: vec![0x0960],
    };
    Nexus {
        identity: host(number),
        target: Arc::new(target),
    }
}
