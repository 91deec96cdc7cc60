//! A unit and its nexuses for tests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::commands::{Handler, LocalFacts, Query, QueryResult, find};
use crate::medium::{Atomic, SanitizeKind, Traits};
use crate::nexus::{Nexus, NexusIdentity, TargetDevice, TargetPort};
use crate::statistics::{SpaceUsage, UsageGauge};
use crate::task::CommandFailure;
use crate::testing;
use crate::unit::{UnitId, UnitIdentity, UnitState};
use crate::wire::lun::Lun;
use crate::wire::sense::{Sense, SenseKey};

/// A thin, cached, removable unit of 2,048 blocks of 512 bytes that can do everything.
pub(crate) fn unit() -> UnitState {
    let identity = UnitIdentity {
        product: "RAM".into(),
        serial: "S123".into(),
        naa: vec![0x31, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
        ..UnitIdentity::clone(&testing::unit().identity)
    };
    UnitState::new(identity, traits())
}

/// A volume that says the same each time it is asked.
#[derive(Debug)]
pub(crate) struct FixedUsage(pub(crate) SpaceUsage);

impl UsageGauge for FixedUsage {
    fn usage(&self) -> Option<SpaceUsage> {
        Some(self.0)
    }
}

pub(crate) fn traits() -> Traits {
    Traits {
        blocks: 2048,
        atomic: Some(Atomic {
            max_blocks: 64,
            alignment: 8,
            granularity: 8,
        }),
        sanitize: &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
        ..testing::unit().traits
    }
}

/// A target device with LUNs 0, 1 and 300.
pub(crate) fn target() -> Arc<TargetDevice> {
    let name = |text: &str| {
        let mut bytes = vec![0x53, 0x98, 0, text.len() as u8];
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    Arc::new(TargetDevice {
        designators: name("iqn.x\0\0\0"),
        ports: vec![TargetPort {
            relative_id: 1,
            designators: name("iqn.x,t,0x0001\0\0"),
        }],
        luns: [0, 1, 300]
            .map(|n| (Lun::from_index(n), UnitId::first(n.into())))
            .into(),
        read_only: BTreeSet::new(),
        protocol: 5,
        versions: vec![0x0960],
    })
}

pub(crate) fn nexus(number: u16) -> Nexus {
    Nexus {
        identity: Arc::new(NexusIdentity {
            initiator: [5, 0, 0, 4, b'i', 0, (number >> 8) as u8, number as u8].into(),
            port: 1,
        }),
        target: target(),
    }
}

/// What a test asks.
pub(crate) struct TestQuery<'a> {
    pub(crate) cdb: &'a [u8],
    pub(crate) parameters: &'a [u8],
    pub(crate) unit: Option<&'a UnitState>,
    pub(crate) lun: Lun,
    pub(crate) now: Duration,
    pub(crate) local: LocalFacts,
}

impl<'a> TestQuery<'a> {
    pub(crate) fn new(cdb: &'a [u8], unit: &'a UnitState) -> Self {
        Self {
            cdb,
            parameters: &[],
            unit: Some(unit),
            lun: Lun::from_index(0),
            now: Duration::from_millis(5000),
            local: LocalFacts::default(),
        }
    }

    /// With a parameter list.
    pub(crate) fn with(cdb: &'a [u8], parameters: &'a [u8], unit: &'a UnitState) -> Self {
        Self {
            parameters,
            ..Self::new(cdb, unit)
        }
    }

    /// As the device server would ask, by way of the table.
    pub(crate) fn answer(&self) -> QueryResult {
        let row = match find(self.cdb) {
            Ok(row) => row,
            Err(sense) => return QueryResult::Fail(CommandFailure::Check(sense)),
        };
        assert_eq!(row.usage.len(), self.cdb.len(), "length of {}", row.name);
        let query = Query {
            cdb: self.cdb,
            parameters: self.parameters,
            unit: self.unit,
            nexus: &nexus(1),
            lun: self.lun,
            now: self.now,
            local: &self.local,
        };
        match row.handler {
            Handler::Query(handler) | Handler::Parameters(_, handler) => handler(&query),
            Handler::Medium(_) => panic!("{} touches the medium", row.name),
        }
    }
}

/// The parameter data that a command answers, whole.
pub(crate) fn data(cdb: &[u8], unit: &UnitState) -> Vec<u8> {
    match TestQuery::new(cdb, unit).answer() {
        QueryResult::Data(data) => data,
        other => panic!("{cdb:02x?}: {other:02x?}"),
    }
}

/// The sense data that a command answers.
#[track_caller]
pub(crate) fn sense(answer: QueryResult) -> Sense {
    match answer {
        QueryResult::Fail(CommandFailure::Check(sense)) => sense,
        other => panic!("{other:02x?}"),
    }
}

#[track_caller]
pub(crate) fn is_cdb_field(answer: QueryResult, byte: u16, bit: Option<u8>) {
    let sense = sense(answer);
    assert_eq!(sense.key, SenseKey::IllegalRequest);
    assert_eq!(sense, Sense::cdb_field(byte, bit));
}

/// A command is refused for this field of its CDB.
#[track_caller]
pub(crate) fn refuses(cdb: &[u8], unit: &UnitState, byte: u16, bit: Option<u8>) {
    is_cdb_field(TestQuery::new(cdb, unit).answer(), byte, bit);
}
