//! What is told at the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use block::null::Null;
use block::volume::{CoreContext, Handle, Volume};
use scsi::medium::{MediumError, Traits};

use super::not_flushed;
use super::options::Error;
use crate::flushes::Flushes;

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

#[test]
fn a_cache_that_was_switched_on_while_serving_is_missed_when_it_is_not_flushed() {
    let volume = |_| Switched {
        null: Null::new(1 << 20, 512).unwrap(),
        write_cache: AtomicBool::new(false),
    };
    let switched: Vec<Arc<Switched>> = (0..3).map(volume).map(Arc::new).collect();
    let volumes: Vec<Arc<dyn Volume>> = switched.iter().map(|volume| volume.clone() as _).collect();
    let flushes = Flushes::new(["a", "b", "c"].map(String::from).to_vec());
    flushes.flushed(0, Err(MediumError::Write));
    flushes.flushed(1, Ok(()));
    assert!(not_flushed(&flushes, &volumes).is_ok(), "none has a cache");
    for volume in &switched {
        volume.write_cache.store(true, Relaxed);
    }
    let told = not_flushed(&flushes, &volumes);
    assert!(matches!(told, Err(Error::NotFlushed(names)) if names == ["a", "c"]));
}
