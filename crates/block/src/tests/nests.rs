//! Volumes out of volumes out of volumes, against plain bytes.

use std::sync::Arc;

use ::io::memory::MemoryLimit;
use proptest::prelude::*;
use scsi::medium::Now;

use super::fake::FakeRing;
use super::oracle::{Oracle, steps};
use super::places::{Folder, sparse};
use super::sketch;
use crate::fault::{FaultVolume, Faults};
use crate::file::FileVolume;
use crate::limit::{Delay, Limit, LimitRates};
use crate::parts::NamedPart;
use crate::ram::Ram;
use crate::readonly::Readonly;
use crate::stats::Stats;
use crate::verify::VerifyVolume;
use crate::volume::Volume;
use crate::{concat, stripe};

/// How volumes stand in each other. Lengths are in blocks of 512.
#[derive(Clone, Debug)]
enum Nest {
    Ram(u64),
    File(u64),
    Stripe(u64, Vec<Nest>),
    Concat(Vec<Nest>),
    Around(Around, Box<Nest>),
}

#[derive(Clone, Copy, Debug)]
enum Around {
    Readonly,
    Limit,
    Delay,
    Verify,
    Stats,
    Fault,
}

/// Opens them.
struct Place {
    memory: MemoryLimit,
    folder: Folder,
    files: u32,
}

impl Place {
    fn new() -> Self {
        Self {
            memory: MemoryLimit::new(64 << 20),
            folder: Folder::in_memory(),
            files: 0,
        }
    }

    fn open(&mut self, nest: &Nest) -> Arc<dyn Volume> {
        match nest {
            Nest::Ram(blocks) => Arc::new(Ram::new(blocks * 512, 512, &self.memory).unwrap()),
            Nest::File(blocks) => self.file(*blocks),
            Nest::Stripe(chunk, nests) => {
                let parts = self.parts(nests);
                Arc::new(stripe::open(chunk * 512, parts).unwrap())
            }
            Nest::Concat(nests) => Arc::new(concat::open(self.parts(nests)).unwrap()),
            Nest::Around(around, nest) => open_around(*around, self.open(nest)),
        }
    }

    fn file(&mut self, blocks: u64) -> Arc<dyn Volume> {
        self.files += 1;
        let options = sparse(self.folder.file(&self.files.to_string()), blocks * 512);
        Arc::new(FileVolume::open(&options).unwrap())
    }

    fn parts(&mut self, nests: &[Nest]) -> Vec<NamedPart> {
        let volumes: Vec<_> = nests.iter().map(|nest| self.open(nest)).collect();
        sketch::parts(volumes)
    }
}

fn open_around(around: Around, volume: Arc<dyn Volume>) -> Arc<dyn Volume> {
    match around {
        Around::Readonly => Arc::new(Readonly::new(volume)),
        Around::Limit => Arc::new(Limit::new(
            volume,
            LimitRates {
                iops: Some(50),
                bytes: Some(1 << 20),
                ..LimitRates::default()
            },
        )),
        Around::Delay => Arc::new(Delay::new(volume, Now::from_millis(5))),
        Around::Verify => Arc::new(VerifyVolume::new(volume, "nest".into())),
        Around::Stats => Arc::new(Stats::new(volume, String::new())),
        Around::Fault => Arc::new(FaultVolume::new(volume, Faults::default())),
    }
}

fn arounds() -> impl Strategy<Value = Around> {
    prop_oneof![
        1 => Just(Around::Readonly),
        4 => Just(Around::Limit),
        4 => Just(Around::Delay),
        8 => Just(Around::Verify),
        2 => Just(Around::Stats),
        2 => Just(Around::Fault),
    ]
}

/// Leaves are not shorter than the longest chunk.
fn nests() -> impl Strategy<Value = Nest> {
    let leaf = prop_oneof![
        2 => (64..1500_u64).prop_map(Nest::Ram),
        1 => (64..1500_u64).prop_map(Nest::File),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 2..4);
        let chunk = prop_oneof![Just(1_u64), 1..64_u64, Just(64)];
        prop_oneof![
            6 => (chunk, several.clone()).prop_map(|(chunk, nests)| Nest::Stripe(chunk, nests)),
            6 => several.prop_map(Nest::Concat),
            6 => (arounds(), inner).prop_map(|(around, nest)| Nest::Around(around, Box::new(nest))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nests_agree_with_the_model(nest in nests(), steps in steps()) {
        let mut place = Place::new();
        let volume = place.open(&nest);
        let mut oracle = Oracle::new(FakeRing::default(), &*volume);
        for (core, step, at, len) in &steps {
            oracle.step(usize::from(*core), step, *at, *len);
        }
        oracle.check_all();
    }
}
