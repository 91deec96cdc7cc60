//! A world for a test: a copy of the file, opened, that takes orders.

use std::path::{Path, PathBuf};

use libloading::Library;
use tempfile::TempDir;

use crate::orders::{Count, Order};

/// A copy of the pretend libraries, which is a world of its own.
pub struct OpenedWorld {
    file: PathBuf,
    order: extern "C" fn(u32, i64),
    count: extern "C" fn(u32) -> u64,
    _place: TempDir,
}

impl OpenedWorld {
    /// Copies the file, which cargo has put beside the tests.
    ///
    /// # Panics
    ///
    /// When it is not there.
    #[must_use]
    pub fn new() -> Self {
        let tests = std::env::current_exe().expect("the path of the tests");
        let place = tempfile::tempdir().expect("a place for a copy");
        let file = place.path().join("libpretend.so");
        let built = tests.with_file_name("libpretend_verbs.so");
        std::fs::copy(built, &file).expect("the pretend libraries, built");
        // SAFETY: nothing runs as it is opened.
        let library = unsafe { Library::new(&file) }.expect("the pretend libraries, opened");
        // SAFETY: declared so in `orders.rs`.
        let (order, count) = unsafe {
            let order = *library.get(b"pretend_order").expect("what takes orders");
            (order, *library.get(b"pretend_count").expect("what counts"))
        };
        // It stays open, as what users have of it are addresses.
        std::mem::forget(library);
        Self {
            file,
            order,
            count,
            _place: place,
        }
    }

    /// The file, to be opened in place of both libraries.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Gives an order, with its number.
    pub fn order(&self, order: Order, number: i64) {
        (self.order)(order as u32, number);
    }

    /// What there is of something.
    #[must_use]
    pub fn count(&self, count: Count) -> u64 {
        (self.count)(count as u32)
    }
}

impl Default for OpenedWorld {
    fn default() -> Self {
        Self::new()
    }
}
