//! Zone files: one that hangs holds up nothing that comes after it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ::io::ring::{AnyRing, Ring, RingKind};

use super::super::options::Zoning;
use super::super::orders::{OrderSender, SwitchOrder, SwitchOrders};
use super::super::zone_file::{ReadError, ZoneReads, read_zones};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_file_that_hangs_is_waited_for_by_one_thread() {
    let (reads, path) = (ZoneReads::default(), Path::new("/srv/zones"));
    let (answer, hung) = channel::<u32>();
    let first = reads.begin(path, move |_| hung.recv().unwrap()).unwrap();
    let late = first.wait(Instant::now(), Duration::from_millis(10));
    assert!(matches!(late, Err(ReadError::Late(..))), "{late:?}");
    let second = reads.begin(path, |_| panic!("a second thread"));
    let Err::<_, ReadError>(refused) = second.map(drop) else {
        panic!("a second thread");
    };
    assert!(refused.to_string().starts_with("/srv/zones: it is still"));
    let other = reads.begin(Path::new("/srv/others"), |_| 2).unwrap();
    assert_eq!(other.wait(Instant::now(), PATIENCE).unwrap(), 2);
    answer.send(1).unwrap();
    assert_eq!(first.wait(Instant::now(), PATIENCE).unwrap(), 1);
    let third = reads.begin(path, |_| 3).unwrap();
    assert_eq!(third.wait(Instant::now(), PATIENCE).unwrap(), 3);
}

#[test]
fn threads_that_hang_are_counted() {
    let reads = ZoneReads::default();
    let path = |number: usize| format!("/srv/{number}");
    let (answers, pending): (Vec<_>, Vec<_>) = (0..64)
        .map(|number| {
            let (answer, hung) = channel::<()>();
            let begun = reads.begin(path(number).as_ref(), move |_| hung.recv());
            (answer, begun.unwrap())
        })
        .unzip();
    let refused = reads.begin(path(64).as_ref(), |_| ()).map(drop);
    assert!(matches!(refused, Err(ReadError::Crowded(_))), "{refused:?}");
    drop(answers);
    for one in pending {
        assert!(one.wait(Instant::now(), PATIENCE).unwrap().is_err());
    }
    reads.begin(path(64).as_ref(), |_| ()).unwrap();
}

/// Else zones that were read before could be given after those of a later SIGHUP.
#[test]
fn zones_are_given_before_their_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zones");
    fs::write(&path, "default deny\n").unwrap();
    let (ring, _) = AnyRing::open(RingKind::Epoll).unwrap();
    let (sender, heard) = OrderSender::new(ring.waker());
    let orders = SwitchOrders::new(sender, &Zoning::File(path.clone()));
    for round in 0..100 {
        orders.read_zones();
        let again = loop {
            match orders.reads.begin(&path, |_| ()) {
                Ok(again) => break again,
                Err(_) => thread::yield_now(),
            }
        };
        let given = heard.try_recv();
        assert!(matches!(given, Ok(SwitchOrder::SetZones(_))), "{round}");
        again.wait(Instant::now(), PATIENCE).unwrap();
    }
}

/// It is almost surely half written, and would cut all pairs.
#[test]
fn a_zone_file_without_a_statement_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zones");
    for text in ["", "\n \n", "# the zones of the lab\n\n  # to be written\n"] {
        fs::write(&path, text).unwrap();
        let refused = read_zones(&path).unwrap_err().to_string();
        assert!(refused.contains("default deny"), "{text:?}: {refused}");
    }
    fs::write(&path, "# none\ndefault deny\n").unwrap();
    assert!(!read_zones(&path).unwrap().permits());
}
