//! Where the RDMA devices of a server come from: libraries that are opened when a portal first
//! needs them. A machine without them misses nothing else.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ::io::memory::MemoryLimit;
use ::io::rdma::{RdmaError, RdmaLibrary, RdmaListener, RegionRegistered};
use address::human_size;

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

    /// Registers the memory of locked RAM disks with the devices that are in use. What a device
    /// cannot have is copied on its way there. It blocks.
    pub(super) fn register_locked(&self, memory: &MemoryLimit) {
        let library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        let domains = library.as_ref().map(|library| library.domains());
        drop(library);
        for domain in domains.into_iter().flatten() {
            let device = &domain.device().name;
            for RegionRegistered { bytes, result } in domain.register_all(memory) {
                let size = human_size(bytes);
                match result {
                    Ok(()) => tracing::info!("{device}: a locked RAM disk of {size} is registered"),
                    Err(cause) => tracing::warn!(
                        "{device}: data of a locked RAM disk of {size} is copied: {cause}"
                    ),
                }
            }
        }
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
