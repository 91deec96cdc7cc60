//! Questions that threads ask.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use super::super::link::Interface;
use super::super::link_query::LinkQuery;
use super::{LONG, SHORT};

/// Held while the kernel does not answer.
static RTNL: Mutex<()> = Mutex::new(());

static ASKED: AtomicU32 = AtomicU32::new(0);

/// An interface whose number is how many were asked for.
fn look(_: &str) -> io::Result<Interface> {
    let index = ASKED.fetch_add(1, Relaxed) as i32 + 1;
    drop(RTNL.lock());
    Ok(Interface {
        index,
        ..Interface::default()
    })
}

#[test]
fn threads_do_not_gather_while_the_kernel_is_silent() {
    let mut asked = LinkQuery::by("va", look);
    let rtnl = RTNL.lock();
    for _ in 0..100 {
        asked.forget();
        asked.ask().unwrap();
    }
    assert!(asked.is_open() && asked.answer().is_none());
    drop(rtnl);
    let deadline = Instant::now() + LONG;
    let told = loop {
        if let Some(told) = asked.answer() {
            break told.unwrap();
        }
        assert!(Instant::now() < deadline, "no answer");
        std::thread::sleep(SHORT);
    };
    // The first one may tell what was before the last question.
    assert_eq!((told.index, ASKED.load(Relaxed)), (2, 2));
    assert!(!asked.is_open());
}
