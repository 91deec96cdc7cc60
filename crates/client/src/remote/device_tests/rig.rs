//! A volume behind a target, used on this thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::ring::RingKind;
use address::{Address, RdmaProvider};
use block::lease::BlockLease;
use block::volume::Volume;
use scsi::medium::{Extent, Lease as _, MediumOp, MediumOutcome, MediumResult, ReadMemory};

use super::target::{PORTAL, TARGET};
use super::world;
use crate::open::{self, remote_settings};
use crate::remote::{IserOptions, RemoteError, RemoteSettings, RemoteVolume, SessionEnvironment};
use crate::worker::Worker;

/// How a test's sessions are.
pub(super) fn settings(via: Option<RdmaProvider>) -> RemoteSettings {
    let text = format!("iser://{PORTAL}/{TARGET}/0");
    let Ok(Address::Iser(mut unit)) = text.parse::<Address>() else {
        panic!("{text}");
    };
    unit.session.via = via;
    let iser = IserOptions::of(&unit.session);
    let settings = remote_settings(&unit, Some(&iser), &open::tests::options()).unwrap();
    RemoteSettings {
        outside: SessionEnvironment {
            rdma: world::library,
            ..SessionEnvironment::default()
        },
        replacement: Duration::from_secs(20),
        ..settings
    }
}

/// The thread's use of it.
pub(super) struct User {
    worker: Worker,
    pub(super) volume: Arc<RemoteVolume>,
}

/// How long anything may take.
const LONG: Duration = Duration::from_secs(30);

impl User {
    /// Opens the volume, and takes it into use.
    pub(super) fn open(settings: RemoteSettings) -> Result<Self, RemoteError> {
        Self::open_on(RingKind::Epoll, settings)
    }

    /// The same on another ring.
    pub(super) fn open_on(ring: RingKind, settings: RemoteSettings) -> Result<Self, RemoteError> {
        let volume = Arc::new(RemoteVolume::open(settings)?);
        let volumes: [Arc<dyn Volume>; 1] = [Arc::clone(&volume) as _];
        let worker = Worker::new(&volumes, ring, 64 << 20).unwrap();
        Ok(Self { worker, volume })
    }

    pub(super) fn write(&mut self, id: u64, lba: u64, bytes: &[u8]) {
        let mut data = self.worker.buffer(bytes.len()).unwrap();
        data.copy_in(0, bytes);
        let op = MediumOp::Write {
            extent: Extent::new(lba, bytes.len() as u64 / 512),
            data,
            fua: false,
            atomic: false,
        };
        self.worker.submit(0, id, op);
    }

    pub(super) fn read(&mut self, id: u64, lba: u64, bytes: usize) {
        let extent = Extent::new(lba, bytes as u64 / 512);
        let memory = ReadMemory::Private;
        self.worker.submit(0, id, MediumOp::Read { extent, memory });
    }

    /// What became of so many operations, in the order of their numbers.
    pub(super) fn results(&mut self, count: usize) -> Vec<MediumResult<BlockLease>> {
        let until = Instant::now() + LONG;
        let mut done = Vec::new();
        while done.len() < count {
            assert!(Instant::now() < until, "{} of {count}", done.len());
            self.worker.wait(Some(Duration::from_millis(10))).unwrap();
            done.extend(std::iter::from_fn(|| self.worker.next_done()));
        }
        done.sort_by_key(|done| done.id);
        done.into_iter().map(|done| done.result).collect()
    }

    /// Writes, and waits for it.
    pub(super) fn store(&mut self, lba: u64, bytes: &[u8]) {
        self.write(0, lba, bytes);
        let result = self.results(1).pop().unwrap();
        assert!(matches!(result, Ok(MediumOutcome::Done)), "{result:?}");
    }

    /// Reads, and waits for it.
    pub(super) fn load(&mut self, lba: u64, len: usize) -> Vec<u8> {
        self.read(0, lba, len);
        bytes(self.results(1).pop().unwrap())
    }

    /// What the session says of itself: the values of one name.
    pub(super) fn told(&self, name: &str) -> Vec<String> {
        let groups = self.volume.particulars().groups;
        let values = groups.into_iter().flat_map(|group| group.values);
        let named = values.filter(|(key, _)| *key == name);
        named.map(|(_, value)| value).collect()
    }

    pub(super) fn leave(self) {
        self.worker.leave().unwrap();
    }
}

pub(super) fn bytes(result: MediumResult<BlockLease>) -> Vec<u8> {
    let Ok(MediumOutcome::Lease(lease)) = result else {
        panic!("no data: {result:?}");
    };
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

/// Bytes that differ from their neighbours, and by `seed`.
pub(super) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251 + seed * 31) as u8)
        .collect()
}
