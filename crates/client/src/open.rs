//! From addresses to volumes.

mod leaves;

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use address::{
    Address, BlockAddress, ByteRate, FcoeAddress, FileAddress, Host, ItemCount, SessionOptions,
    Size, Time, UnitAddress,
};
use block::device::{DeviceOptions, DeviceVolume};
use block::fault::FaultVolume;
use block::file::{FileOptions, FileVolume, ReservedPlaces, UndoLog};
pub use block::identity::Details;
use block::limit::{Delay, Limit, LimitRates};
use block::null::Null;
use block::parts::NamedPart;
use block::ram::Ram;
use block::readonly::Readonly;
use block::stats::Stats;
use block::verify::VerifyVolume;
use block::volume::Volume;
use block::{concat, stripe};
use io::memory::MemoryLimit;
use iscsi::initiator::config::{
    Auth, Digest, HASHES, InitiatorChap, InitiatorConfig, Misconfigured, Mutual,
};
pub use leaves::{Growth, LeafReuse, OpenLeaves};
use scsi::client::UnitWishes;
use scsi::wire::lun::Lun;
use zeroize::Zeroizing;

use crate::remote::{
    IserOptions, RemoteError, RemoteSettings, RemoteVolume, SessionEnvironment, TargetPortAddress,
    TargetPortal, TransportAddress,
};
use runtime::n_port::IdlePorts;
use runtime::secret::{self, SECRET_BYTES, SecretError};

/// What holds for every volume that is opened, whatever its address says.
#[derive(Clone)]
pub struct OpenOptions {
    /// Bytes in a logical block, 512 or 4096; `None`: each volume's own.
    pub block_size: Option<u32>,
    /// Nothing can be written.
    pub read_only: bool,
    /// No file is created or extended; what is read only is never.
    pub as_is: bool,
    /// Files keep their identity in an extended attribute from now on: they are to be served. So
    /// their block size must not depend on the kernel either.
    pub keep_identity: bool,
    /// Where no file may be that is a volume.
    pub reserved: ReservedPlaces,
    /// Where it is noted which files were created or extended, so that it can be undone.
    pub undo: Option<UndoLog>,
    /// What all RAM volumes take their memory from.
    pub memory: Arc<MemoryLimit>,
    /// InitiatorName, by which remote units know us whose address has no `?initiator=`.
    pub initiator: String,
    /// What proves the user of an `iscsi://user@…` address.
    pub secret: Option<Zeroizing<Vec<u8>>>,
    /// What the target of an `iscsi://…?mutual` address has to prove.
    pub mutual_secret: Option<Zeroizing<Vec<u8>>>,
    /// N_Ports that have asked what a unit is, for its users.
    pub ports: IdlePorts,
    /// How long a remote unit may be away whose address does not say; see [`REPLACEMENT`].
    pub replacement: Duration,
    /// Until when a remote unit is tried again that cannot be opened; `None`: it is not.
    pub wait_until: Option<Instant>,
    /// Volumes that are open, with which an address of the same unit goes on.
    pub reuse: Option<LeafReuse>,
}

impl OpenOptions {
    /// Each volume as it is, with the secrets of the environment variables `LUNAR_SECRET` and
    /// `LUNAR_MUTUAL_SECRET`, and RAM volumes that take what memory is available.
    ///
    /// # Errors
    ///
    /// When the kernel does not say how much that is.
    pub fn new(initiator: String) -> std::io::Result<Self> {
        Ok(Self {
            block_size: None,
            read_only: false,
            as_is: false,
            keep_identity: false,
            reserved: ReservedPlaces::default(),
            undo: None,
            memory: Arc::new(MemoryLimit::new(io::limits::memory_for_volumes()?)),
            initiator,
            secret: secret("LUNAR_SECRET"),
            mutual_secret: secret("LUNAR_MUTUAL_SECRET"),
            ports: IdlePorts::default(),
            replacement: REPLACEMENT,
            wait_until: None,
            reuse: None,
        })
    }
}

/// Without the secrets.
impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("block_size", &self.block_size)
            .field("read_only", &self.read_only)
            .field("memory", &self.memory)
            .field("initiator", &self.initiator)
            .finish_non_exhaustive()
    }
}

/// A secret in the environment; an empty one is none.
pub fn secret(variable: &str) -> Option<Zeroizing<Vec<u8>>> {
    let secret = std::env::var_os(variable).filter(|secret| !secret.is_empty());
    secret.map(|secret| secret.into_encoded_bytes().into())
}

/// A volume that cannot be opened, although its address is right. The text names the address, the
/// cause and, where there is one, the way out.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {cause}")]
pub struct OpenError {
    /// The address; within a wrapper that of the volume that could not be opened.
    pub address: String,
    /// What keeps it from being opened.
    #[source]
    pub cause: OpenCause,
}

/// Why a volume cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenCause {
    /// The volume itself cannot.
    #[error(transparent)]
    Volume(#[from] block::VolumeError),
    /// The unit at the other end cannot be used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A file that an address names for a secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// An address with a user, and nothing to prove it by.
    #[error(
        "no secret for user {0}: name a file that holds it, as in iscsi://…?secret-file=FILE, or \
         set the environment variable LUNAR_SECRET"
    )]
    NoSecret(String),
    /// A target that has to authenticate itself, and nothing to compare that with.
    #[error(
        "no mutual secret for the target: name a file that holds it, as in \
         iscsi://…?mutual-secret-file=FILE, or set the environment variable LUNAR_MUTUAL_SECRET"
    )]
    NoMutualSecret,
    /// What the sessions shall be cannot work.
    #[error(transparent)]
    Session(#[from] Misconfigured),
    /// The address means something that this version does not have.
    #[error(
        "this version of lunar does not support \"{0}\" yet; it supports {built}",
        built = address::built().join(", ")
    )]
    NotBuilt(&'static str),
    /// A row of a configuration, outside of the daemon that has it.
    #[error(
        "{0} is the name of a volume of lunar daemon, which is known to its configuration alone: \
         give the address of the volume"
    )]
    Row(String),
}

/// Opens the volume that an address names. Nothing is half-started when that fails.
///
/// # Errors
///
/// When a volume cannot be opened, or is of a kind that is not built yet.
pub fn volume(address: &Address, options: &OpenOptions) -> Result<Arc<dyn Volume>, OpenError> {
    let cannot_open = |cause| OpenError {
        address: address.to_string(),
        cause,
    };
    let volume = match address {
        Address::Readonly(inner) => {
            let options = OpenOptions {
                read_only: true,
                ..options.clone()
            };
            volume(inner, &options)?
        }
        wrapper if !wrapper.inner().is_empty() => {
            let parts = open_inner(wrapper, options)?;
            wrap(wrapper, parts).map_err(cannot_open)?
        }
        leaf => {
            let open = || open_leaf(leaf, options);
            let opened = match &options.reuse {
                Some(reuse) => reuse.leaf(leaf, options, open),
                None => open(),
            };
            opened.map_err(cannot_open)?
        }
    };
    let read_only = options.read_only || leaves::is_read_only(address);
    Ok(if read_only && !volume.traits().read_only {
        Arc::new(Readonly::new(volume))
    } else {
        volume
    })
}

/// The volumes inside a wrapper, unless nothing can be made of them.
fn open_inner(wrapper: &Address, options: &OpenOptions) -> Result<Vec<NamedPart>, OpenError> {
    if !address::built().contains(&wrapper.name()) {
        return Err(OpenError {
            address: wrapper.to_string(),
            cause: OpenCause::NotBuilt(wrapper.name()),
        });
    }
    let part = |inner: &Address| {
        let volume = volume(inner, options)?;
        let name = inner.to_string();
        Ok(NamedPart { name, volume })
    };
    wrapper.inner().iter().map(part).collect()
}

/// The volume that a wrapper makes of those inside it.
fn wrap(wrapper: &Address, parts: Vec<NamedPart>) -> Result<Arc<dyn Volume>, OpenCause> {
    Ok(match wrapper {
        Address::Stripe { chunk, .. } => Arc::new(stripe::open(chunk.0, parts)?),
        Address::Concat(_) => Arc::new(concat::open(parts)?),
        filter => open_filter(filter, only(parts, filter)?)?,
    })
}

/// The volume around one other.
fn open_filter(
    filter: &Address,
    NamedPart { name, volume }: NamedPart,
) -> Result<Arc<dyn Volume>, OpenCause> {
    Ok(match filter {
        Address::Limit {
            iops, rate, burst, ..
        } => {
            let rates = LimitRates {
                iops: iops.map(|ItemCount(n)| n),
                bytes: rate.map(|ByteRate(n)| n),
                burst: burst.map_or(LimitRates::BURST, |Time(time)| time),
            };
            Arc::new(Limit::new(volume, rates))
        }
        Address::Delay { time, .. } => Arc::new(Delay::new(volume, *time)),
        Address::Fault { faults, .. } => Arc::new(FaultVolume::new(volume, *faults)),
        Address::Verify(_) => Arc::new(VerifyVolume::new(volume, name)),
        Address::Stats(_) => Arc::new(Stats::new(volume, name)),
        other => return Err(OpenCause::NotBuilt(other.name())),
    })
}

fn open_leaf(leaf: &Address, options: &OpenOptions) -> Result<Arc<dyn Volume>, OpenCause> {
    let block_size = options.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
    Ok(match leaf {
        Address::Ram(ram) => {
            let open = if ram.locked { Ram::locked } else { Ram::new };
            Arc::new(open(ram.size.0, block_size, &options.memory)?)
        }
        Address::Null(Size(size)) => Arc::new(Null::new(*size, block_size)?),
        Address::File(file) => Arc::new(FileVolume::open(&file_options(file, options))?),
        Address::Block(device) => Arc::new(DeviceVolume::open(&device_options(device, options))?),
        Address::Iscsi(unit) | Address::Iser(unit) => {
            let over_iser = matches!(leaf, Address::Iser(_));
            let iser = over_iser.then(|| IserOptions::of(&unit.session));
            let settings = remote_settings(unit, iser.as_ref(), options)?;
            Arc::new(open_remote(leaf, &settings, options.wait_until)?)
        }
        Address::Fcoe(unit) => {
            let settings = fcoe_settings(unit, &options.ports, options.replacement);
            Arc::new(open_remote(leaf, &settings, options.wait_until)?)
        }
        Address::Row(name) => return Err(OpenCause::Row(name.clone())),
        other => return Err(OpenCause::NotBuilt(other.name())),
    })
}

/// Opens a remote unit, and tries again until then: after a power cut a target may start later than
/// its gateway. The log has each cause once. It blocks.
fn open_remote(
    address: &Address,
    settings: &RemoteSettings,
    wait_until: Option<Instant>,
) -> Result<RemoteVolume, RemoteError> {
    let mut pause = FIRST_PAUSE;
    let mut last = String::new();
    loop {
        let cause = match RemoteVolume::open(settings.clone()) {
            Err(cause) if cause.may_pass() => cause,
            opened => return opened,
        };
        let next = Instant::now() + pause;
        let Some(until) = wait_until.filter(|until| next < *until) else {
            return Err(cause);
        };
        let said = cause.to_string();
        if said != last {
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            tracing::warn!("cannot open {address} yet: {said}; trying for {left} s more");
            last = said;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Between two attempts to open a remote unit: short at first, as it may be a matter of which of
/// two programs starts first, and no longer than what it costs to find a target that is there.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The one volume that a wrapper stands around, as the grammar has it.
fn only(parts: Vec<NamedPart>, around: &Address) -> Result<NamedPart, OpenCause> {
    let one = parts.into_iter().next();
    one.ok_or(OpenCause::NotBuilt(around.name()))
}

fn file_options(file: &FileAddress, options: &OpenOptions) -> FileOptions {
    let read_only = file.read_only || options.read_only;
    FileOptions {
        path: file.path.clone(),
        size: file.size.map(|Size(size)| size),
        sparse: file.sparse,
        direct: file.direct,
        sync: file.sync,
        read_only,
        as_is: read_only || options.as_is,
        keep_identity: options.keep_identity && !options.read_only,
        reserved: options.reserved.clone(),
        undo: options.undo.clone(),
        block_size: options.block_size,
        lasting_block_size: options.keep_identity,
    }
}

/// How a remote unit is reached; over iSER if there is something to say of that.
pub fn remote_settings(
    unit: &UnitAddress,
    iser: Option<&IserOptions>,
    options: &OpenOptions,
) -> Result<RemoteSettings, OpenCause> {
    Ok(RemoteSettings {
        way: TransportAddress::Iscsi(Box::new(portal_of(unit, iser, options)?)),
        lun: Lun::from_index(unit.lun),
        replacement: time(unit.session.replacement, options.replacement),
        sessions: unit.session.sessions.unwrap_or(1),
        wishes: UnitWishes {
            key: unit.session.key,
            write_cache: unit.session.write_cache,
        },
        outside: SessionEnvironment::default(),
    })
}

/// The same over Ethernet.
pub fn fcoe_settings(
    unit: &FcoeAddress,
    ports: &IdlePorts,
    replacement: Duration,
) -> RemoteSettings {
    let wishes = &unit.options;
    RemoteSettings {
        way: TransportAddress::Fcoe(Box::new(TargetPortAddress::new(unit, ports))),
        lun: Lun::from_index(unit.lun),
        replacement: time(wishes.replacement, replacement),
        sessions: 1,
        wishes: UnitWishes {
            key: wishes.key,
            write_cache: wishes.write_cache,
        },
        outside: SessionEnvironment::default(),
    }
}

/// How long a unit may be away.
fn time(replacement: Option<Time>, usual: Duration) -> Duration {
    replacement.map_or(usual, |Time(time)| time)
}

/// Where its target is, and how sessions with that are.
pub fn portal_of(
    unit: &UnitAddress,
    iser: Option<&IserOptions>,
    options: &OpenOptions,
) -> Result<TargetPortal, OpenCause> {
    let mut isid = [0; 6];
    // Of the random kind (RFC 7143 §11.12.5); the last two bytes are each session's own.
    getrandom::fill(&mut isid[1..4])
        .map_err(|cause| RemoteError::Connect(std::io::Error::other(cause.to_string())))?;
    isid[0] = 0x80;
    let initiator = unit.session.initiator.as_ref();
    let initiator = initiator.unwrap_or(&options.initiator);
    let mut config = InitiatorConfig::normal(initiator, isid, &unit.target);
    // We can come back at once; a target that cannot have us so soon asks for more.
    config.offer.keys.time2wait = 0;
    if let Some(user) = &unit.user {
        config.auth = Auth::Chap(credentials(user, &unit.session, options)?);
    }
    if let Some(wanted) = unit.session.digests {
        let digest = if wanted {
            Digest::Require
        } else {
            Digest::Never
        };
        (config.offer.header_digest, config.offer.data_digest) = (digest, digest);
    }
    if let Some(Time(limit)) = unit.session.timeout {
        let times = &mut config.times;
        times.command = limit;
        // What is done about a late command is not given longer than the command.
        (times.abort, times.reset) = (times.abort.min(limit), times.reset.min(limit));
    }
    config.check()?;
    Ok(TargetPortal {
        host: match &unit.portal.host {
            Host::Name(name) => name.clone(),
            Host::V4(address) => address.to_string(),
            Host::V6(address, None) => address.to_string(),
            Host::V6(address, Some(zone)) => format!("{address}%{zone}"),
        },
        port: unit.portal.port,
        config,
        iser: iser.cloned(),
    })
}

/// What proves the user of an address, and its target.
pub fn credentials(
    user: &str,
    session: &SessionOptions,
    options: &OpenOptions,
) -> Result<InitiatorChap, OpenCause> {
    let usual = ("LUNAR_SECRET", options.secret.as_ref());
    let secret = proof(session.secret_file.as_deref(), usual)?;
    let mutual = session.mutual.then(|| {
        let file = session.mutual_secret_file.as_deref();
        let usual = ("LUNAR_MUTUAL_SECRET", options.mutual_secret.as_ref());
        let secret = proof(file, usual)?;
        let secret = secret.ok_or(OpenCause::NoMutualSecret)?;
        Ok::<_, OpenCause>(Mutual { name: None, secret })
    });
    Ok(InitiatorChap {
        user: user.to_owned(),
        secret: secret.ok_or_else(|| OpenCause::NoSecret(user.to_owned()))?,
        mutual: mutual.transpose()?,
        hashes: session
            .chap_hash
            .map_or_else(|| HASHES.to_vec(), |hash| vec![hash]),
    })
}

/// The secret in the file that an address names, else that of all addresses, from a variable of the
/// environment.
fn proof(
    file: Option<&Path>,
    (variable, usual): (&'static str, Option<&Secret>),
) -> Result<Option<Secret>, SecretError> {
    match (file, usual) {
        (Some(file), _) => secret::read(file).map(Some),
        (None, Some(usual)) if !SECRET_BYTES.contains(&usual.len()) => {
            Err(SecretError::Variable(variable))
        }
        (None, usual) => Ok(usual.cloned()),
    }
}

type Secret = Zeroizing<Vec<u8>>;

/// How long a remote unit may be away: as long as open-iscsi gives a session to come back.
pub const REPLACEMENT: Duration = Duration::from_secs(120);

fn device_options(device: &BlockAddress, options: &OpenOptions) -> DeviceOptions {
    DeviceOptions {
        path: device.device.clone(),
        read_only: device.read_only || options.read_only,
        block_size: options.block_size,
    }
}

/// For volumes that have no block size of their own.
const DEFAULT_BLOCK_SIZE: u32 = 512;

#[cfg(test)]
pub mod tests;
