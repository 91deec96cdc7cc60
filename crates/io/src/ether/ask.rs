//! Questions about an interface that a thread of its own asks: to answer them the kernel takes a
//! lock (RTNL), which whoever resets a network card may hold for hundreds of milliseconds.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::link::{self, Interface};

/// A question, or none.
#[derive(Debug, Default)]
pub(super) struct Asked(Option<Arc<Answer>>);

type Answer = Mutex<Option<io::Result<Interface>>>;

impl Asked {
    /// Asks for the interface of this name, unless an answer is waited for already.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub(super) fn ask(&mut self, name: &str) -> io::Result<()> {
        if self.0.is_some() {
            return Ok(());
        }
        let (name, answer) = (name.to_owned(), Arc::<Answer>::default());
        let left = Arc::clone(&answer);
        let thread = thread::Builder::new().name("link".to_owned());
        thread.spawn(move || {
            let told = link::look(&name);
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        })?;
        self.0 = Some(answer);
        Ok(())
    }

    /// Whether an answer is waited for, or there.
    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The answer, if it is there.
    pub(super) fn answer(&mut self) -> Option<io::Result<Interface>> {
        let answer = self.0.as_ref()?;
        let told = answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        self.0 = None;
        Some(told)
    }

    /// What was asked is known by other means.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}
