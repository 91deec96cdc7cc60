//! Pretend libraries of one test, and devices in them.

use std::cell::RefCell;
use std::sync::Arc;

use ::io::rdma::RdmaLibrary;
use pretend_verbs::{Count, OpenedWorld, Order};

thread_local! {
    /// What the sessions of this test's thread find.
    static LIBRARY: RefCell<Option<Arc<RdmaLibrary>>> = const { RefCell::new(None) };
}

/// A copy of the file, as each file has a world of its own.
pub(super) struct World {
    pub(super) library: Arc<RdmaLibrary>,
    opened: OpenedWorld,
}

impl World {
    /// One that the sessions of this thread are in.
    pub(super) fn new() -> Self {
        let opened = OpenedWorld::new();
        let file = opened.file().as_os_str();
        let library = RdmaLibrary::open_at(file, file).unwrap();
        LIBRARY.set(Some(Arc::clone(&library)));
        Self { library, opened }
    }

    pub(super) fn order(&self, order: Order, number: i64) {
        self.opened.order(order, number);
    }

    pub(super) fn count(&self, count: Count) -> u64 {
        self.opened.count(count)
    }
}

/// What [`super::SessionEnvironment`] has for the libraries.
pub(super) fn library(_: bool) -> Result<Arc<RdmaLibrary>, String> {
    let library = LIBRARY.with_borrow(Clone::clone);
    library.ok_or_else(|| "there is no library here".to_owned())
}
