//! What units call themselves, and what is told at the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use block::null::Null;
use block::volume::{CoreContext, Handle, Volume};
use scsi::medium::{MediumError, Traits};
use scsi::statistics::{SpaceUsage, UsageGauge as _};

use super::{Designation, VolumeGauge, designation, not_flushed};
use crate::flushes::FinalFlushes;
use crate::inventory::UnitRow;
use crate::serve::options::ServeError;

/// A unit of somebody else, whose cache somebody switches.
#[derive(Debug)]
struct Switched {
    null: Null,
    write_cache: AtomicBool,
}

impl Volume for Switched {
    fn traits(&self) -> Traits {
        Traits {
            write_cache: self.write_cache.load(Relaxed),
            ..self.null.traits()
        }
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.null.attach(core)
    }
}

/// A file, whose file system is asked.
#[derive(Debug)]
struct Asked {
    null: Null,
    times: AtomicU64,
}

impl Volume for Asked {
    fn traits(&self) -> Traits {
        self.null.traits()
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.null.attach(core)
    }

    fn usage(&self) -> Option<SpaceUsage> {
        let used = self.times.fetch_add(1, Relaxed);
        Some(SpaceUsage { used, available: 0 })
    }

    fn can_grow(&self) -> bool {
        true
    }
}

/// A core stands still for as long as a file system takes for its answer.
#[test]
fn a_core_is_told_what_a_file_used_when_it_was_looked_at() {
    let volume: Arc<dyn Volume> = Arc::new(Asked {
        null: Null::new(1 << 20, 512).unwrap(),
        times: AtomicU64::new(0),
    });
    let gauge = VolumeGauge::new(&volume);
    let used = || gauge.usage().map(|usage| usage.used);
    assert_eq!([used(), used()], [Some(0); 2]);
    gauge.look();
    assert_eq!([used(), used()], [Some(1); 2]);
}

#[test]
fn a_cache_that_was_switched_on_while_serving_is_missed_when_it_is_not_flushed() {
    let volume = |_| Switched {
        null: Null::new(1 << 20, 512).unwrap(),
        write_cache: AtomicBool::new(false),
    };
    let switched: Vec<Arc<Switched>> = (0..3).map(volume).map(Arc::new).collect();
    let volumes = (0..)
        .zip(&switched)
        .map(|(slot, volume)| (slot, &**volume as _));
    let volumes = volumes.collect();
    let flushes = FinalFlushes::default();
    for (slot, name) in (0..).zip(["a", "b", "c"]) {
        flushes.insert(slot, name.to_owned());
    }
    flushes.flushed(0, Err(MediumError::Write));
    flushes.flushed(1, Ok(()));
    assert!(not_flushed(&flushes, &volumes).is_ok(), "none has a cache");
    for volume in &switched {
        volume.write_cache.store(true, Relaxed);
    }
    let told = not_flushed(&flushes, &volumes);
    assert!(matches!(told, Err(ServeError::NotFlushed(names)) if names == ["a", "c"]));
}

#[test]
fn the_identity_decides() {
    let disk = Designation::of_volume("file 1");
    assert_eq!(disk, Designation::of_volume("file 1"));
    let other = Designation::of_volume("file 2");
    assert!(disk.naa != other.naa && disk.serial != other.serial);
}

#[test]
fn the_serial_number_of_before_gives_back_the_designator() {
    let disk = Designation::of_volume("file 1");
    assert_eq!(disk, Designation::of_serial(disk.serial.clone()));
}

#[test]
fn what_is_drawn_does_not_last() {
    assert!(!Designation::passing([7; 8]).lasts);
    assert!(Designation::of_serial("S1".into()).lasts);
}

#[test]
fn a_unit_keeps_the_designator_that_it_is_told_to_have() {
    let naa: Vec<u8> = (0x60..0x70).collect();
    let row = UnitRow {
        serial: Some("S1".into()),
        naa: Some(naa.clone()),
        ..UnitRow::new("null:1G".parse().unwrap(), "null:1G".into())
    };
    let called = designation("a", &row, &Null::new(1 << 20, 512).unwrap());
    let by_serial = Designation::of_serial("S1".into());
    assert_eq!(called, Designation { naa, ..by_serial });
}

#[test]
fn the_designator_is_locally_assigned() {
    assert_eq!(Designation::of_volume("file 1").naa[0] >> 4, 3);
}
