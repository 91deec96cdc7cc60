//! `iscsi://…` and `fcoe://…`: a logical unit behind another target, as a volume.
//!
//! When it is opened, a session logs in and asks the unit what it is; the first core that attaches
//! the volume takes that session over. Each other core has a session of its own, by an ISID of its
//! own, which is made when it is first needed.
//!
//! | layer | module |
//! |---|---|
//! | the volume's handle: the application client ([`scsi::client`]), and when to reconnect | `handle`, `reconnect` |
//! | a link, which owns the socket: iSCSI, or FCP at a shared N_Port | `link`, `connection`, `fcoe` |
//! | the protocol machine, which knows PDUs or exchanges | [`iscsi::initiator`], [`fc::initiator`] |
//!
//! | beside them | module |
//! |---|---|
//! | failover and load over several handles (`?sessions=N`) | `multi_session` |
//! | writes with unknown outcome | `indeterminate_writes` |
//! | a link that one thread waits for: to open a unit, to discover, to log out | `inquiry` |
//! | what RDMA is done by | `provider` |
//! | what is told of units and sessions | `details` |
//! | why a unit cannot be used | `error` |
//!
//! # When a connection is lost
//!
//! It is made again, by the same InitiatorName and ISID to the same portal, so that the target ends
//! the old nexus before the new one carries a command (RFC 7143 §6.3.5): only then what was under
//! way is sent once more. Attempts follow an exponential backoff with jitter.
//! After [`RemoteSettings::replacement`] without a session everything that waits fails; what is
//! asked for later waits as long again.
//!
//! A target may send us to another portal each time. Should that be in another portal group, the
//! old nexus may live on, and nothing that can be asked for stops a write that is on its way to it:
//! then what had no answer is not sent again, but fails, and all cores leave its blocks alone until
//! the old nexus is dead.
//!
//! An operation that was in flight when sessions ended, sixteen times in turn, may be why: it
//! fails. One whose command is late counts four times.
//!
//! If another unit stands in the place of the first, or a smaller one, the volume is gone for good.
//!
//! # What it promises
//!
//! What the unit says of itself, and not more. Writes that the target held in its cache when it was
//! reset are told by the next flush, which fails.

mod connection;
mod details;
#[cfg(test)]
mod device_tests;
mod error;
mod fcoe;
mod handle;
mod indeterminate_writes;
mod inquiry;
mod link;
mod multi_session;
mod provider;
mod reconnect;
mod session;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::io::rdma::RdmaLibrary;
use block::identity::{DetailGroup, Details};
use block::volume::{CoreContext, Handle, Volume};
use iscsi::initiator::config::{InitiatorConfig, InitiatorPurpose};
pub use runtime::n_port::IdlePorts;
use scsi::client::{Cache, Facts, UnitWishes};
use scsi::medium::Traits;
use scsi::wire::designator;
use scsi::wire::lun::Lun;

pub(crate) use self::connection::InitiatorConnection;
pub use self::error::RemoteError;
pub(crate) use self::fcoe::FcoeLink;
pub use self::fcoe::TargetPortAddress;
use self::handle::RemoteHandle;
use self::indeterminate_writes::AllIndeterminateWrites;
pub(crate) use self::inquiry::{Inquiry, LIMIT};
pub(crate) use self::link::Link;
pub use self::link::{DeviceLinkEnd, FcoeLinkEnd, LinkEnd};
use self::multi_session::MultiSessionHandle;
pub use self::provider::IserOptions;
use self::session::RestingConnection;

/// How a remote unit is reached.
#[derive(Clone, Debug)]
pub struct RemoteSettings {
    /// By which transport, and where.
    pub way: TransportAddress,
    /// Which unit.
    pub lun: Lun,
    /// How long commands wait for a lost session to be replaced before they fail.
    pub replacement: Duration,
    /// How many sessions each core has; one at least, [`address::SESSIONS_MAX`] at the most.
    pub sessions: u16,
    /// What is wanted of the unit by each session.
    pub wishes: UnitWishes,
    /// How it reaches beyond this process; the simulator has another world there.
    pub outside: SessionEnvironment,
}

impl RemoteSettings {
    /// The unit as an address names it, for the log.
    fn name(&self) -> String {
        let lun = self.lun;
        match &self.way {
            TransportAddress::Iscsi(portal) => format!("{}://{portal}/{lun}", portal.scheme()),
            TransportAddress::Fcoe(target) => {
                format!("fcoe://{}/{}/{lun}", target.place, target.port_name)
            }
        }
    }

    /// A connection to this portal, which goes on with a session that rests, if there is one.
    fn connection(
        &self,
        core: &CoreContext,
        portal: &TargetPortal,
        resting: Option<RestingConnection>,
    ) -> InitiatorConnection {
        let portal = portal.clone();
        let mut link = InitiatorConnection::new(core.node(), portal, self.name(), self.outside);
        resting.into_iter().for_each(|one| link.take_up(one));
        link
    }
}

/// A transport, and what it has to know.
#[derive(Clone, Debug)]
pub enum TransportAddress {
    /// iSCSI over TCP.
    Iscsi(Box<TargetPortal>),
    /// FCP over Ethernet.
    Fcoe(Box<TargetPortAddress>),
}

/// Where a target of iSCSI is, and how sessions with it are.
#[derive(Clone, Debug)]
pub struct TargetPortal {
    /// A host name or an address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The two ends of a session and its parameters. The last two bytes of the ISID are those of
    /// the core.
    pub config: InitiatorConfig,
    /// Over iSER, and how; `None`: over TCP alone.
    pub iser: Option<IserOptions>,
}

impl TargetPortal {
    /// As addresses have it.
    const fn scheme(&self) -> &'static str {
        if self.iser.is_some() { "iser" } else { "iscsi" }
    }

    /// The same for the session of this number.
    fn of_session(&self, number: u16) -> Self {
        let mut portal = self.clone();
        portal.config.isid[4..].copy_from_slice(&number.to_be_bytes());
        portal
    }
}

/// `HOST:PORT/TARGET`, with an IPv6 address in brackets.
impl fmt::Display for TargetPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&host_port(&self.host, self.port))?;
        match &self.config.purpose {
            InitiatorPurpose::Normal(target) => write!(f, "/{target}"),
            InitiatorPurpose::Discovery => Ok(()),
        }
    }
}

/// `HOST:PORT`, with an IPv6 address in brackets.
fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// What sessions need of the world, beside a ring.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnvironment {
    /// Connects to a host and port within a time. It blocks.
    pub connect: fn(&str, u16, Duration) -> io::Result<OwnedFd>,
    /// Finds the addresses of a host, with a port. It blocks.
    pub resolve: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    /// The libraries for devices of RDMA, or why there are none, with the way out; whether nothing
    /// but a device will do.
    pub rdma: fn(bool) -> Result<Arc<RdmaLibrary>, String>,
    /// Fills memory with chance.
    pub random: fn(&mut [u8]) -> io::Result<()>,
}

impl Default for SessionEnvironment {
    fn default() -> Self {
        Self {
            connect: ::io::tcp::connect,
            resolve: ::io::tcp::resolve,
            rdma: provider::machine,
            random: |bytes| getrandom::fill(bytes).map_err(io::Error::other),
        }
    }
}

/// A logical unit behind another target.
#[derive(Debug)]
pub struct RemoteVolume {
    shared: Arc<SharedUnit>,
    facts: Facts,
    /// What the session was like that asked for them, if one did.
    session: Vec<DetailGroup>,
    /// What [`Volume::traits`] told last.
    told: Mutex<Traits>,
    /// Sessions that were given to cores.
    sessions: AtomicU16,
}

/// The number of the first session of the first core, which is the last part of its ISID.
const FIRST_SESSION: u16 = 1;

/// What all sessions with one unit have in common.
#[derive(Debug)]
struct SharedUnit {
    settings: RemoteSettings,
    /// The portal where the target was found, which may have redirected the login.
    found: Option<(String, u16)>,
    /// The sessions by which it was opened, for the first core.
    resting: Mutex<Vec<Option<RestingConnection>>>,
    /// What the unit is and can do now.
    now: Mutex<Traits>,
    /// What it may hold unflushed, whichever core wrote it, by the place of the session that did.
    caches: Vec<Arc<Cache>>,
    /// What may still change after it was told as failed.
    doubts: Arc<AllIndeterminateWrites>,
    /// Commands that were sent again, by all sessions.
    retries: Arc<AtomicU64>,
}

impl SharedUnit {
    /// The session that rests for a `place` among those from `number` on: they have the ISIDs of
    /// the first core.
    fn resting(&self, number: u16, place: u16) -> Option<RestingConnection> {
        let mut resting = lock(&self.resting);
        let rests = resting.get_mut(usize::from(place));
        let rests = rests.filter(|_| number == FIRST_SESSION)?.take();
        rests.filter(|resting| !resting.is_stale())
    }

    /// A session was told what the unit is now.
    fn is_now(&self, facts: &Facts) {
        lock(&self.now).clone_from(&facts.traits);
    }
}

/// Sessions that no core has taken up log out.
impl Drop for SharedUnit {
    fn drop(&mut self) {
        let TransportAddress::Iscsi(portal) = &self.settings.way else {
            return;
        };
        let now = Instant::now();
        let asked = now
            .checked_sub(LIMIT.saturating_sub(FAREWELL))
            .unwrap_or(now);
        let resting = std::mem::take(&mut *lock(&self.resting));
        for resting in resting.into_iter().flatten() {
            let link = |core: &CoreContext| self.settings.connection(core, portal, Some(resting));
            if let Ok(inquiry) = Inquiry::new(asked, link) {
                inquiry.leave_since(asked);
            }
        }
    }
}

/// How long all logouts of a volume that was never used may take: where a change of what is served
/// is given up, a core waits for them.
const FAREWELL: Duration = Duration::from_secs(1);

impl RemoteVolume {
    /// Asks the unit what it is. It blocks, for half a minute and what a last connection takes.
    ///
    /// # Errors
    ///
    /// When there is no such unit, or it cannot be used.
    pub fn open(settings: RemoteSettings) -> Result<Self, RemoteError> {
        match settings.way.clone() {
            TransportAddress::Iscsi(portal) => Self::open_iscsi(settings, &portal),
            TransportAddress::Fcoe(target) => Self::open_fcoe(settings, *target),
        }
    }

    fn open_iscsi(settings: RemoteSettings, portal: &TargetPortal) -> Result<Self, RemoteError> {
        let asked = Instant::now();
        let first = portal.of_session(FIRST_SESSION);
        let mut inquiry = Inquiry::log_in(asked, |core| settings.connection(core, &first, None))?;
        let facts = match inquiry.probe(&settings) {
            Ok(facts) => facts,
            Err(cause) => {
                inquiry.leave_since(asked);
                return Err(cause);
            }
        };
        let session = inquiry.link.particulars(settings.sessions);
        let found = inquiry.link.place();
        let sessions = multi_session::log_in_others(&settings, (portal, &found), inquiry, asked)?;
        let resting = sessions.into_iter().map(Inquiry::rest).collect();
        Ok(Self::new(settings, facts, session, (Some(found), resting)))
    }

    fn open_fcoe(settings: RemoteSettings, target: TargetPortAddress) -> Result<Self, RemoteError> {
        let (asked, name) = (Instant::now(), settings.name());
        let mut inquiry = Inquiry::log_in(asked, |core| FcoeLink::new(core, target, name))?;
        let facts = inquiry.probe(&settings);
        let session = inquiry.link.particulars();
        inquiry.leave_since(asked);
        Ok(Self::new(settings, facts?, session, (None, Vec::new())))
    }

    fn new(
        settings: RemoteSettings,
        facts: Facts,
        session: Vec<DetailGroup>,
        (found, resting): (Option<(String, u16)>, Vec<Option<RestingConnection>>),
    ) -> Self {
        let traits = &facts.traits;
        Self {
            shared: Arc::new(SharedUnit {
                caches: (0..settings.sessions).map(|_| Arc::default()).collect(),
                settings,
                found,
                resting: Mutex::new(resting),
                now: Mutex::new(traits.clone()),
                doubts: Arc::default(),
                retries: Arc::default(),
            }),
            session,
            told: Mutex::new(traits.clone()),
            sessions: AtomicU16::new(FIRST_SESSION),
            facts,
        }
    }

    /// A unit that need not be asked, as it is known what it is.
    #[must_use]
    pub fn known(settings: RemoteSettings, facts: Facts) -> Self {
        Self::new(settings, facts, Vec::new(), (None, Vec::new()))
    }

    /// What the unit said of itself when it was opened.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
}

impl Volume for RemoteVolume {
    fn traits(&self) -> Traits {
        lock(&self.told).clone()
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let shared = &self.shared;
        let facts = &Facts {
            traits: self.traits(),
            ..self.facts.clone()
        };
        let number = self.sessions.fetch_add(shared.settings.sessions, SeqCst);
        let portal = match &shared.settings.way {
            TransportAddress::Iscsi(portal) => portal,
            TransportAddress::Fcoe(target) => {
                let link = FcoeLink::new(core, (**target).clone(), shared.settings.name());
                let link = link.using(details::unit_status(shared.settings.lun, facts));
                let handle = RemoteHandle::new(shared, facts, (number, 0), core, link);
                return Ok(Box::new(handle));
            }
        };
        let first = core.next_node();
        let handle = |place| {
            let resting = shared.resting(number, place);
            let portal = portal.of_session(number.wrapping_add(place));
            let mut link = shared.settings.connection(core, &portal, resting);
            if let Some(found) = &shared.found {
                link.go_to(found.clone());
            }
            RemoteHandle::new(shared, facts, (number, place), core, link)
        };
        Ok(match shared.settings.sessions {
            1 => Box::new(handle(0)),
            sessions => {
                let handles = (0..sessions).map(handle).collect();
                let doubts = Arc::clone(&shared.doubts);
                Box::new(MultiSessionHandle::new(handles, number, first, doubts))
            }
        })
    }

    fn particulars(&self) -> Details {
        let designator = &self.facts.identity.designator;
        let known = !designator.is_empty();
        let identity = known.then(|| format!("unit {}", designator::text(designator)));
        let mut groups = vec![details::of_unit(&self.facts)];
        groups.extend_from_slice(&self.session);
        Details {
            groups,
            ..Details::new(self.traits(), identity)
        }
    }

    fn retries(&self) -> Option<u64> {
        Some(self.shared.retries.load(SeqCst))
    }

    fn can_grow(&self) -> bool {
        true
    }

    fn refresh(&self) -> io::Result<bool> {
        let mut told = lock(&self.told);
        // The last one to be told has had a while to report it.
        if told.write_cache {
            self.shared.caches.iter().for_each(|cache| cache.is_known());
        }
        let now = lock(&self.shared.now);
        let news = Traits {
            blocks: now.blocks.max(told.blocks),
            write_cache: now.write_cache,
            read_only: now.read_only,
            ..told.clone()
        };
        let has_news = *told != news;
        *told = news;
        Ok(has_news)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
