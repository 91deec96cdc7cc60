//! The options of `lunar serve` as they are typed, and what they mean to the engine.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use engine::serve::options as engine_options;
use engine_options::{
    BlockSize, Chap, FcoePort, Limits, MOST_THREADS, Options, UnitOptions, chap_user,
};

use super::portal::{self, Place};
use super::{identity, secret};
use crate::Failure;
use crate::units::{parse_size, parse_time};

/// Export volumes over iSCSI and FCoE until told to stop
///
/// Each ADDR becomes a LUN of one target: 0, 1, and so on, or the one in front of it, as in
/// 3=ram:1G, which it keeps when others are left out. When ready, a line for each LUN at each
/// portal is printed: ADDRESS, SIZE and VOLUME, with two spaces between. Logs go to standard
/// error; LUNAR_LOG says how much (error, warn, info, debug). SIGTERM, ^C or SIGHUP asks the
/// initiators to log out, flushes the volumes and ends with 0; a second signal, at least 1 s
/// later, ends at once.
///
/// Addresses: ram:SIZE is a RAM disk, empty at each start; null:SIZE reads zeros and drops
/// writes; file:PATH is a file, file:PATH?size=SIZE makes or extends it (?sparse: without taking
/// the room), ?direct goes past the page cache, ?sync makes every write durable, ?readonly opens
/// it for reading; block:DEV is a block device. Others are made out of these:
/// iscsi://[USER@]HOST[:PORT]/TARGET/LUN and fcoe://IFACE/WWPN/LUN are units of another target,
/// stripe:CHUNK(ADDR,ADDR,...) is RAID-0, concat(ADDR,ADDR,...) is one after the other,
/// readonly(ADDR) cannot be written, limit:iops=N,rate=SIZE(ADDR) does no more a second,
/// delay:TIME(ADDR) is slower, fault:read=P,write=P,flush=P(ADDR) fails, verify(ADDR) checks what
/// it reads, stats(ADDR) counts. Sizes take k, M, G, T and P, powers of 1024.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Addresses of the volumes, such as ram:1G or file:/srv/disk.img?size=10G
    #[arg(value_name = "ADDR", required = true)]
    volumes: Vec<String>,

    /// Give each volume a target of its own
    ///
    /// The targets are called NAME:0, NAME:1, ... by number, and each volume is LUN 0 of its own.
    #[arg(long)]
    target_per_volume: bool,

    /// Print the ready lines as JSON, one object a LUN
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    access: AccessArgs,

    #[command(flatten)]
    units: UnitArgs,

    #[command(flatten)]
    machine: MachineArgs,

    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Portals and names")]
struct NetworkArgs {
    /// Listen here; may be repeated [default: 127.0.0.1:3260]
    ///
    /// HOST is a name, an IPv4 address, or an IPv6 address in brackets; port 0 picks a free one,
    /// no port means 3260. A portal that other machines can reach needs --allow, --chap or
    /// --open.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<Place>,

    /// Serve as a Fibre Channel port over Ethernet; may be repeated
    ///
    /// IFACE is an Ethernet interface, or cable:PATH, a cable of two sockets to another lunar or a
    /// virtual machine on this one. The port has the WWPN 20:00:MAC where wwpn=WWPN does not say
    /// another, the WWNN 10:00:MAC (wwnn=WWNN), and finds others by VN2VN (mode=vn2vn), without a
    /// switch. With e_d_tov=100ms lost frames are asked for again sooner than after 2 s, by
    /// initiators that say so too. The port is there beside --listen, or in place of it where that
    /// is not given. An interface needs --allow or --open.
    #[arg(long, value_name = "IFACE[,wwpn=WWPN]")]
    fcoe: Vec<FcoePort>,

    /// Tell initiators that discover to connect here; may be repeated
    ///
    /// For portals behind NAT. Without it they are told every portal that they can use.
    #[arg(long, value_name = "HOST:PORT", value_parser = super::portal::advertised)]
    advertise: Vec<String>,

    /// The target's iSCSI name [default: iqn.2026-11.org.lunar:HOSTNAME]
    #[arg(long, value_name = "NAME")]
    iqn: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Who may log in")]
struct AccessArgs {
    /// Let everybody in who reaches a portal
    #[arg(long)]
    open: bool,

    /// Let this initiator name, or the port of this WWPN, in; may be repeated
    ///
    /// A name is a claim, not a proof: together with --chap both must hold.
    #[arg(long, value_name = "IQN|WWPN")]
    allow: Vec<String>,

    /// Let this user in by CHAP; may be repeated, with one --secret-file each
    ///
    /// With @IQN under that initiator name alone: else each user may log in under any name.
    #[arg(long, value_name = "USER[@IQN]", requires = "secret_file")]
    chap: Vec<String>,

    /// The file that holds the secret of the --chap before it
    ///
    /// Its first line is the secret, 12 to 255 bytes. A file that its group or others can read
    /// or write is refused.
    #[arg(long, value_name = "FILE", requires = "chap")]
    secret_file: Vec<PathBuf>,

    /// Our own CHAP name, for initiators that ask who we are
    #[arg(long, value_name = "USER", requires_all = ["chap", "mutual_secret_file"])]
    mutual_user: Option<String>,

    /// The file that holds our own secret; it must differ from the initiators'
    #[arg(long, value_name = "FILE", requires = "mutual_user")]
    mutual_secret_file: Option<PathBuf>,

    /// The weakest CHAP hash that will do
    #[arg(long, value_name = "HASH", requires = "chap", default_value = "md5")]
    chap_min: HashArg,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Every LUN")]
struct UnitArgs {
    /// Refuse writes
    #[arg(long)]
    readonly: bool,

    /// Say that the medium can be removed; it can be ejected and loaded
    #[arg(long)]
    removable: bool,

    /// Offer COMPARE AND WRITE, ORWRITE and reservations on units of other targets too
    ///
    /// They hold in this server alone: nothing else may use those units.
    #[arg(long)]
    sole_gateway: bool,

    /// Bytes in a logical block [default: 512, for block: the device's own]
    ///
    /// With 512, a physical block of 4096 is reported.
    #[arg(long, value_name = "OCTETS")]
    block_size: Option<BlockSizeArg>,

    /// Vendor that INQUIRY reports, up to 8 characters [default: LUNAR]
    #[arg(long, value_name = "TEXT")]
    vendor: Option<String>,

    /// Product that INQUIRY reports, up to 16 characters [default: VOLUME]
    #[arg(long, value_name = "TEXT")]
    product: Option<String>,

    /// Unit serial number of a LUN, up to 36 characters; may be repeated
    ///
    /// LUN= may be left out where there is one ADDR. Without this option a serial number follows
    /// from the file or device itself, however it is addressed; a RAM disk gets a new one each
    /// start.
    #[arg(long, value_name = "LUN=TEXT")]
    serial: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
struct MachineArgs {
    /// How many cores serve, up to 1024
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = parse_threads)]
    threads: Threads,

    /// How the kernel is asked
    #[arg(long, value_name = "RING", default_value = "auto")]
    ring: RingArg,

    /// When to spin in place of sleeping
    #[arg(long, value_name = "WHEN", default_value = "adaptive")]
    poll: PollArg,

    /// How much memory all RAM disks may take [default: by what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Where persistent reservations are kept
    ///
    /// Without it: $STATE_DIRECTORY, else /var/lib/lunar as root, else $XDG_STATE_HOME/lunar.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// How long a login may take
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_time)]
    login_timeout: Duration,

    /// Silence after which an initiator is asked for a sign of life
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    nop_interval: Duration,

    /// Silence after that question after which it is dropped
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    nop_timeout: Duration,

    /// Connections that have not logged in, at once
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_count)]
    max_logins: usize,

    /// Sessions, at once
    #[arg(long, value_name = "N", default_value = "16384", value_parser = parse_count)]
    max_sessions: usize,

    /// How much unprocessed data one connection may hold
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_small_size)]
    connection_memory: u32,
}

/// `--chap-min`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum HashArg {
    Md5,
    Sha1,
    Sha256,
    #[value(name = "sha3-256")]
    Sha3,
}

/// `--block-size`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum BlockSizeArg {
    #[value(name = "512")]
    B512,
    #[value(name = "4096")]
    B4096,
}

/// `--ring`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RingArg {
    /// io_uring where the kernel has it, else epoll
    Auto,
    /// io_uring, or fail
    Uring,
    /// epoll
    Epoll,
}

impl RingArg {
    /// How it is typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        }
    }
}

/// `--poll`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PollArg {
    /// Never
    Never,
    /// For as long as it pays
    Adaptive,
    /// Always; each core is used up
    Always,
}

/// `--threads`; `None` is `auto`.
type Threads = Option<NonZeroUsize>;

impl ServeArgs {
    /// What the engine is to do. Reads the secret files and resolves
    /// where to listen; opens nothing else.
    pub(crate) fn into_options(self) -> Result<Options, Failure> {
        let iqn = self.network.iqn.unwrap_or_else(identity::default_name);
        let state_dir = match self.machine.state_dir {
            Some(dir) => Some(dir),
            None => identity::state_dir(),
        };
        let mut options = Options::new(self.volumes, iqn, state_dir);
        if !self.network.listen.is_empty() || !self.network.fcoe.is_empty() {
            options.listen = portal::listen(&self.network.listen)?;
        }
        options.target_per_volume = self.target_per_volume;
        options.fcoe = self.network.fcoe;
        options.advertise = self.network.advertise;
        options.open = self.access.open;
        options.chap = self.access.chap()?;
        options.allow = self.access.allow;
        options.units = self.units.into();
        options.threads = self.machine.threads;
        options.ring = self.machine.ring.into();
        options.poll = self.machine.poll.into();
        options.memory_limit = self.machine.memory_limit;
        options.limits = self.limits.into();
        Ok(options)
    }
}

impl AccessArgs {
    fn chap(&self) -> Result<Option<Chap>, Failure> {
        if self.chap.len() != self.secret_file.len() {
            return Err(Failure::usage(format!(
                "{} --chap but {} --secret-file: give each user one file, in the same order",
                self.chap.len(),
                self.secret_file.len()
            )));
        }
        if self.chap.is_empty() {
            return Ok(None);
        }
        let users = self.chap.iter().zip(&self.secret_file);
        let users: Result<_, Failure> = users
            .map(|(user, file)| Ok(chap_user(user, secret::read(file)?)))
            .collect();
        let mutual = self
            .mutual_user
            .as_ref()
            .zip(self.mutual_secret_file.as_ref());
        let mutual = mutual.map(|(user, file)| Ok((user.clone(), secret::read(file)?)));
        Ok(Some(Chap {
            users: users?,
            mutual: mutual.transpose()?,
            minimum: self.chap_min.into(),
        }))
    }
}

impl From<UnitArgs> for UnitOptions {
    fn from(args: UnitArgs) -> Self {
        Self {
            readonly: args.readonly,
            removable: args.removable,
            sole_gateway: args.sole_gateway,
            block_size: args.block_size.map(Into::into),
            vendor: args.vendor,
            product: args.product,
            serials: args.serial,
        }
    }
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        Self {
            login_timeout: args.login_timeout,
            nop_interval: args.nop_interval,
            nop_timeout: args.nop_timeout,
            logins: args.max_logins,
            sessions: args.max_sessions,
            held_bytes: args.connection_memory,
            ..Self::default()
        }
    }
}

impl From<HashArg> for engine_options::ChapHash {
    fn from(arg: HashArg) -> Self {
        match arg {
            HashArg::Md5 => Self::Md5,
            HashArg::Sha1 => Self::Sha1,
            HashArg::Sha256 => Self::Sha256,
            HashArg::Sha3 => Self::Sha3,
        }
    }
}

impl From<BlockSizeArg> for BlockSize {
    fn from(arg: BlockSizeArg) -> Self {
        match arg {
            BlockSizeArg::B512 => Self::B512,
            BlockSizeArg::B4096 => Self::B4096,
        }
    }
}

impl From<RingArg> for engine_options::RingChoice {
    fn from(arg: RingArg) -> Self {
        match arg {
            RingArg::Auto => Self::Auto,
            RingArg::Uring => Self::Uring,
            RingArg::Epoll => Self::Epoll,
        }
    }
}

impl From<PollArg> for engine_options::PollMode {
    fn from(arg: PollArg) -> Self {
        match arg {
            PollArg::Never => Self::Never,
            PollArg::Adaptive => Self::Adaptive,
            PollArg::Always => Self::Always,
        }
    }
}

fn parse_threads(text: &str) -> Result<Threads, String> {
    if text == "auto" {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| format!("give a number from 1 to {MOST_THREADS}, or auto"))
}

fn parse_count(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "give a whole number, such as 100".to_owned())
}

fn parse_small_size(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "less than 4G is needed".to_owned())
}
