//! What RDMA is done by: a device on the way, or software iWARP on TCP.
//!
//! Where an address does not say, a device is tried first, and software takes over where there is
//! none, or the target does not answer by it. What came of that is remembered by all sessions of
//! one address, so that a target that is silent there keeps few of them waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::io::rdma::{RdmaError, RdmaLibrary};
use address::{RdmaProvider, SessionOptions};
use scsi::medium::Now;

/// How iSER is spoken with a target.
#[derive(Clone, Debug)]
pub struct IserOptions {
    /// CRCs are asked for (RFC 5044 §4.4), by software. They are used if either end asks.
    pub crc: bool,
    /// What RDMA is done by; `None`: a device if that can be, else software.
    pub via: Option<RdmaProvider>,
    history: Arc<Mutex<ProviderHistory>>,
}

/// What came of earlier attempts.
#[derive(Debug, Default)]
struct ProviderHistory {
    /// When a device was tried in vain, where software would do.
    failed: Option<Instant>,
    /// What was told last.
    told: String,
}

/// For so long no device is tried again after one was tried in vain.
const REST: Duration = Duration::from_secs(60);

/// How long a target may take to answer by a device where software would do: a RoCE device beside
/// the target's answers within milliseconds, and a person who waits for software begins to wonder.
pub(super) const PATIENCE: Now = Now::from_secs(2);

/// The same where only a device will do, for each address: as long as TCP is given.
pub(super) const DEVICE_LIMIT: Now = Now::from_secs(5);

impl IserOptions {
    /// What an address says, or what is usual.
    #[must_use]
    pub fn of(session: &SessionOptions) -> Self {
        Self {
            crc: session.crc.unwrap_or(true),
            via: session.via.clone(),
            history: Arc::default(),
        }
    }

    /// Software iWARP that asks for CRCs.
    #[must_use]
    pub fn software() -> Self {
        Self {
            crc: true,
            via: Some(RdmaProvider::Software),
            history: Arc::default(),
        }
    }

    /// Whether a device is to be tried now.
    pub(super) fn tries_device(&self) -> bool {
        let failed = self.history().failed;
        let rests = failed.is_some_and(|at| at.elapsed() < REST);
        self.needs_device() || self.via.is_none() && !rests
    }

    /// Whether nothing but a device will do.
    pub(super) fn needs_device(&self) -> bool {
        let via = self.via.as_ref();
        via.is_some_and(|via| !matches!(via, RdmaProvider::Software))
    }

    /// The one device that will do.
    pub(super) fn device(&self) -> Option<String> {
        match &self.via {
            Some(RdmaProvider::Named(name)) => Some(name.clone()),
            _ => None,
        }
    }

    /// How long a target may take to answer by a device.
    pub(super) fn patience(&self) -> Now {
        if self.needs_device() {
            DEVICE_LIMIT
        } else {
            PATIENCE
        }
    }

    /// A device was tried in vain: software it is, for a while.
    pub(super) fn device_failed(&self, place: &str, cause: &str) {
        self.history().failed = Some(Instant::now());
        self.tell(place, format!("iSER by software iWARP: {cause}"));
    }

    /// It is done by this device.
    pub(super) fn device_found(&self, place: &str, device: &str) {
        self.history().failed = None;
        self.tell(place, format!("iSER by RDMA device {device}"));
    }

    /// Tells it once for all sessions, until there is something else to tell.
    fn tell(&self, place: &str, line: String) {
        let mut history = self.history();
        if history.told == line {
            tracing::debug!("{place}: {line}");
        } else {
            tracing::info!("{place}: {line}");
        }
        history.told = line;
    }

    fn history(&self) -> std::sync::MutexGuard<'_, ProviderHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was found of RDMA on this machine.
struct MachineLook {
    library: Option<Arc<RdmaLibrary>>,
    /// What was missing when it was looked for last, and when that was.
    missing: Option<(Instant, String)>,
}

impl MachineLook {
    fn find(&mut self, is_needed: bool) -> Result<Arc<RdmaLibrary>, RdmaError> {
        let library = match &self.library {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.library.insert(RdmaLibrary::open()?)),
        };
        if !is_needed {
            library.devices()?;
        }
        Ok(library)
    }
}

/// The libraries of this machine, or why they cannot be opened; without a device only if one
/// `is_needed`. What is missing may come at any time: it is looked for at each attempt that needs
/// it, and once a minute where software would do.
pub(super) fn machine(is_needed: bool) -> Result<Arc<RdmaLibrary>, String> {
    static LOOK: Mutex<MachineLook> = Mutex::new(MachineLook {
        library: None,
        missing: None,
    });
    let mut look = LOOK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, cause)) = &look.missing
        && !is_needed
        && at.elapsed() < REST
    {
        return Err(cause.clone());
    }
    let found = look.find(is_needed).map_err(|error| error.to_string());
    look.missing = match &found {
        Ok(_) => None,
        Err(cause) => Some((Instant::now(), cause.clone())),
    };
    found
}
