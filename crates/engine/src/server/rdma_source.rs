//! Where the RDMA devices of a server come from: libraries that are opened when a portal first
//! needs them. A machine without them misses nothing else.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ::io::rdma::{RdmaError, RdmaLibrary, RdmaListener};

/// The libraries of RDMA devices, opened once for all portals of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RdmaSource {
    library: Arc<Mutex<Option<Arc<RdmaLibrary>>>>,
}

impl RdmaSource {
    /// These libraries, in place of those of the system.
    #[must_use]
    pub fn of(library: Arc<RdmaLibrary>) -> Self {
        Self {
            library: Arc::new(Mutex::new(Some(library))),
        }
    }

    /// Listens on a portal by the devices that have its address.
    pub(super) fn listen(&self, portal: SocketAddr) -> Result<RdmaListener, RdmaError> {
        RdmaListener::listen(&self.library()?, portal)
    }

    /// What was not there may be installed by now: it is looked for each time.
    fn library(&self) -> Result<Arc<RdmaLibrary>, RdmaError> {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        match &*library {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::clone(library.insert(RdmaLibrary::open()?))),
        }
    }
}
