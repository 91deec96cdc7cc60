//! What waits is given up, and what has begun runs to its end.

use std::sync::Arc;

use scsi::medium::{MediumError, Now};

use super::fake::FakeRing;
use super::rig::{Rig, read};
use super::sketch::{limit, ram};
use crate::limit::Delay;
use crate::parts::NamedPart;
use crate::stats::{OperationKind, Stats};
use crate::stripe;
use crate::verify::VerifyVolume;
use crate::volume::Volume;

const MS: Now = Now::from_millis(1);

type Wrap = fn(Arc<dyn Volume>) -> Arc<dyn Volume>;

/// Whether an operation was given up.
fn is_cancelled(rig: &mut Rig<FakeRing>, id: u64) -> bool {
    matches!(rig.result(id), Some(Err(MediumError::Cancelled)))
}

#[test]
fn a_write_that_waits_is_given_up_at_once_and_never_lands() {
    let wrappers: [Wrap; 2] = [
        |inside| Arc::new(VerifyVolume::new(inside, "ram".to_owned())),
        |inside| Arc::new(Stats::new(inside, "inside".to_owned())),
    ];
    for wrapped in wrappers {
        let delay = Arc::new(Delay::new(ram(2048), 1000 * MS));
        let mut rig = Rig::fake(&*wrapped(delay));
        let [given_up, other] = [9, 7].map(|byte| {
            let write = rig.write_op(byte, 1, byte as u8, false);
            rig.submit(0, write)
        });
        rig.cancel(0, &(given_up..given_up + 1));
        assert!(is_cancelled(&mut rig, given_up));
        assert!(rig.result(other).is_none());
        rig.pass_to(1000 * MS);
        assert!(rig.result(other).is_some());
        assert_eq!(
            (rig.read(9, 1), rig.read(7, 1)),
            (vec![0; 512], vec![7; 512])
        );
    }
}

#[test]
fn of_a_write_on_several_parts_only_what_waits_is_given_up() {
    let slow = Arc::new(Delay::new(ram(2048), 1000 * MS));
    let part = |(name, volume): (&str, Arc<dyn Volume>)| NamedPart {
        name: name.to_owned(),
        volume,
    };
    let parts = [("prompt", ram(2048)), ("slow", slow)].map(part);
    let stripe = stripe::open(512, parts.into()).unwrap();
    let mut rig = Rig::fake(&stripe);
    let id = rig.submit_write(0, 0, 2, 5);
    assert!(rig.result(id).is_none());
    rig.cancel(0, &(0..u64::MAX));
    assert!(is_cancelled(&mut rig, id));
    rig.pass_to(1000 * MS);
    assert_eq!(rig.read(0, 2), [[5; 512], [0; 512]].concat());
}

#[test]
fn what_is_given_up_gives_its_cost_back() {
    let limit = limit(Some(1000), None);
    let stats = Stats::new(Arc::new(limit), "limit".to_owned());
    let mut rig = Rig::fake(&stats);
    let ids: Vec<_> = (0..1000).map(|lba| rig.submit(0, read(lba, 1))).collect();
    let done = |stats: &Stats| stats.snapshot(OperationKind::Read);
    assert_eq!(done(&stats).operations, 11);
    // All but the last ten of those that wait.
    rig.cancel(0, &(ids[11]..ids[990]));
    assert_eq!(done(&stats).errors, 979);
    let late = rig.submit(0, read(0, 1));
    rig.pass_to(10 * MS);
    assert!(rig.result(ids[999]).is_some());
    assert!(rig.result(late).is_none());
    rig.pass_to(11 * MS);
    assert!(rig.result(late).is_some());
}

#[test]
fn others_that_wait_keep_their_delay() {
    let mut rig = Rig::fake(&Delay::new(ram(2048), 10 * MS));
    let first = rig.submit(0, read(0, 1));
    rig.pass_to(4 * MS);
    let second = rig.submit(0, read(1, 1));
    rig.cancel(0, &(first..second));
    rig.pass_to(13 * MS);
    assert!(rig.result(second).is_none());
    rig.pass_to(14 * MS);
    assert!(rig.result(second).is_some());
}
