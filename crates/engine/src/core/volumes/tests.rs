//! Looks at volumes: what one that does not answer costs the others, and what the log is told.

use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use block::null::Null;
use block::volume::{CoreContext, Handle, Volume};
use scsi::medium::Traits;
use scsi::unit::UnitId;

use super::VolumeWatch;
use super::looks::{DueLook, LookQueue};

const UNIT: UnitId = UnitId::first(3);

#[test]
fn a_failure_is_told_once_until_it_changes() {
    let mut looks = VolumeWatch::default();
    let mut told = |failed: Option<ErrorKind>| {
        let failed = failed.map(io::Error::from);
        looks.end(UNIT, failed.as_ref()).is_some()
    };
    let (denied, stale) = (
        ErrorKind::PermissionDenied,
        ErrorKind::StaleNetworkFileHandle,
    );
    let each = [
        Some(denied),
        Some(denied),
        Some(stale),
        Some(stale),
        None,
        Some(stale),
    ];
    let expected = [true, false, true, false, false, true];
    assert_eq!(each.map(&mut told), expected);
}

/// A file whose server is away: a look at it ends when that is back.
#[derive(Debug)]
struct Stuck {
    null: Null,
    begun: Sender<()>,
    back: Mutex<Receiver<()>>,
}

impl Volume for Stuck {
    fn traits(&self) -> Traits {
        self.null.traits()
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.null.attach(core)
    }

    fn refresh(&self) -> io::Result<bool> {
        self.begun.send(()).map_err(io::Error::other)?;
        let back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        back.recv().map_err(io::Error::other)?;
        Ok(true)
    }
}

fn look(unit: u32, volume: Arc<dyn Volume>) -> DueLook {
    DueLook {
        unit: UnitId::first(unit),
        volume,
        statistics: Arc::default(),
    }
}

#[test]
fn where_a_thread_is_stuck_the_next_one_looks_at_the_rest() {
    let null = || Null::new(1 << 20, 512).unwrap();
    let ((begun, has_begun), (is_back, back)) = (channel(), channel());
    let stuck = Stuck {
        null: null(),
        begun,
        back: Mutex::new(back),
    };
    let queue = LookQueue::default();
    queue.add([
        look(1, Arc::new(null())),
        look(2, Arc::new(stuck)),
        look(3, Arc::new(null())),
    ]);
    let seen = || {
        let seen = queue.take_seen().into_iter();
        let seen = seen.map(|look| (look.unit.slot, look.has_changed.unwrap()));
        seen.collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| queue.work());
        has_begun.recv().unwrap();
        assert!(queue.is_any_due());
        queue.work();
        assert_eq!(seen(), [(1, false), (3, false)]);
        assert!(!queue.is_any_due());
        is_back.send(()).unwrap();
        first.join().unwrap();
    });
    assert_eq!(seen(), [(2, true)]);
}
