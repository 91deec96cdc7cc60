//! Queries about an interface, made by a separate thread: the kernel answers them under a lock
//! (RTNL), which the reset of a network card may hold for hundreds of milliseconds.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::link::{self, Interface};
use crate::cpu;

/// A question that may be asked again and again. There is one thread for it at the most, however
/// often that happens while the kernel does not answer.
#[derive(Debug)]
pub(super) struct LinkQuery {
    name: String,
    look: InterfaceLookup,
    /// Where the thread leaves its answer, until that was taken.
    thread: Option<Arc<LinkReply>>,
    wanted: WantedReply,
}

/// How the kernel is asked for the interface of a name.
type InterfaceLookup = fn(&str) -> io::Result<Interface>;

type LinkReply = Mutex<Option<io::Result<Interface>>>;

/// Which answer is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WantedReply {
    #[default]
    None,
    /// That of the thread.
    Next,
    /// That of another thread, as the question was forgotten since this one began.
    Another,
}

impl LinkQuery {
    /// Nothing is asked yet about the interface of this name.
    pub(super) fn about(name: &str) -> Self {
        Self::by(name, link::look)
    }

    pub(super) fn by(name: &str, look: InterfaceLookup) -> Self {
        Self {
            name: name.to_owned(),
            look,
            thread: None,
            wanted: WantedReply::None,
        }
    }

    /// Asks for the interface, unless an answer is waited for already.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub(super) fn ask(&mut self) -> io::Result<()> {
        if self.wanted != WantedReply::None {
            return Ok(());
        }
        // An answer that has come to what was forgotten.
        self.take();
        self.wanted = match self.thread {
            Some(_) => WantedReply::Another,
            None => {
                self.thread = Some(self.start()?);
                WantedReply::Next
            }
        };
        Ok(())
    }

    fn start(&self) -> io::Result<Arc<LinkReply>> {
        let (name, look, answer) = (self.name.clone(), self.look, Arc::<LinkReply>::default());
        let left = Arc::clone(&answer);
        cpu::spawn_helper("link", move || {
            let told = look(&name);
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        })?;
        Ok(answer)
    }

    /// Whether an answer is waited for, or there.
    pub(super) fn is_open(&self) -> bool {
        self.wanted != WantedReply::None
    }

    /// The answer, if it is there.
    pub(super) fn answer(&mut self) -> Option<io::Result<Interface>> {
        let told = self.take()?;
        match mem::take(&mut self.wanted) {
            WantedReply::None => None,
            WantedReply::Next => Some(told),
            WantedReply::Another => self.ask().err().map(Err),
        }
    }

    /// What the thread has left, with which it ends.
    fn take(&mut self) -> Option<io::Result<Interface>> {
        let answer = self.thread.as_ref()?;
        let told = answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        self.thread = None;
        Some(told)
    }

    /// What was asked is known by other means.
    pub(super) fn forget(&mut self) {
        self.wanted = WantedReply::None;
    }
}
