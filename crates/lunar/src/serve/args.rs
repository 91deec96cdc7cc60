//! The options of `lunar serve` as they are typed, and what they mean to the engine.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use address::HostPort;
use clap::{ArgAction, Args};
use engine::serve::options::{
    BlockSizeOption, ChapHash, CpuList, FcoePort, IserProvider, MOST_THREADS, PollMode, RingKind,
    ServeOptions, TargetChap, TargetLimits, UnitOptions, chap_user,
};

use super::{fcoe_config, portal};
use crate::units::{Choices, choice, parse_size, parse_time};
use crate::{VerbError, client, secret};

/// Export volumes over iSCSI and FCoE until told to stop
///
/// Each ADDR becomes a LUN of one target. LUNs count from 0; a number in front, as in 3=ram:1G,
/// sets the LUN. When ready, lunar prints one line for each LUN at each portal: ADDRESS, SIZE and
/// VOLUME, separated by two spaces. The log goes to standard error; LUNAR_LOG sets its level
/// (error, warn, info, debug). SIGTERM, ^C or SIGHUP asks the initiators to log out, flushes the
/// volumes and exits with 0. A second signal, at least 1 s later, stops at once.
///
/// Addresses: ram:SIZE is a RAM disk, empty at each start (?locked: its memory is taken at once
/// and never swapped out); null:SIZE reads zeros and drops writes; file:PATH is a file,
/// file:PATH?size=SIZE creates or extends it (?sparse: without reserving space), ?direct bypasses
/// the page cache, ?sync makes every write durable, ?readonly opens it read-only; block:DEV is a
/// block device; iscsi://[USER@]HOST[:PORT]/TARGET/LUN, iser://HOST/TARGET/LUN and
/// fcoe://IFACE/WWPN/LUN are units of another target.
/// Volumes combine: stripe:CHUNK(ADDR,ADDR,...) is RAID-0, concat(ADDR,ADDR,...) appends volumes,
/// readonly(ADDR) refuses writes, limit:iops=N,rate=SIZE(ADDR) throttles, delay:TIME(ADDR) adds
/// latency, fault:read=P,write=P,flush=P(ADDR) injects errors, verify(ADDR) checks what it reads,
/// stats(ADDR) counts operations. Sizes take k, M, G, T and P, powers of 1024.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Addresses of the volumes, such as ram:1G or file:/srv/disk.img?size=10G
    #[arg(value_name = "ADDR", required = true)]
    volumes: Vec<String>,

    /// Give each volume a target of its own
    ///
    /// The targets are called NAME:0, NAME:1, and so on. Each volume is LUN 0 of its target.
    #[arg(long)]
    target_per_volume: bool,

    /// Print the ready lines as JSON, one object per LUN
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

    /// Start without volumes that cannot be opened after this time [default: none]
    ///
    /// Units of other targets are tried until then, for a gateway that starts at boot before its
    /// targets do. LUNs without their volume are not ready, and get it when it is there.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    wait: Option<Duration>,

    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Portals and names")]
struct NetworkArgs {
    /// Listen here; may be repeated [default: 127.0.0.1:3260]
    ///
    /// HOST is a name, an IPv4 address, or an IPv6 address in brackets. The default port is 3260;
    /// port 0 picks a free one. A portal that other machines can reach needs --allow, --chap or
    /// --open.
    #[arg(long, value_name = "HOST:PORT", value_parser = portal::parse)]
    listen: Vec<HostPort>,

    /// Take iSER on every portal, beside iSCSI
    ///
    /// iSER is iSCSI over RDMA. soft is software iWARP over TCP, on the same port as iSCSI: it
    /// needs neither a device nor a module, and copies data as iSCSI does, so it is not faster.
    /// device has the RoCE and InfiniBand devices listen that have the portals' addresses; it
    /// needs libibverbs and librdmacm, and pinned memory (ulimit -l). both takes either.
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, require_equals = true,
          default_missing_value = "soft", value_parser = choice(PROVIDERS))]
    iser: Option<IserProvider>,

    /// Whether to ask for CRC32C on iSER connections
    ///
    /// off: CRCs are used only if the initiator asks for them.
    #[arg(long, value_name = "WHEN", requires = "iser", default_value = "on",
          action = ArgAction::Set, value_parser = choice(ON_OFF))]
    iser_crc: bool,

    /// Serve as a Fibre Channel port over Ethernet; may be repeated
    ///
    /// IFACE is an Ethernet interface, or cable:PATH, a cable of two sockets to another lunar or a
    /// virtual machine on this host. The WWPN is 20:00:MAC unless wwpn=WWPN sets another, and the
    /// WWNN is 10:00:MAC (wwnn=WWNN). The port finds its peers by VN2VN (mode=vn2vn), without a
    /// switch, or logs in to the fabric of one (mode=fabric), on VLAN VID with vlan=VID, on the one
    /// that the switch names with vlan=auto; fcf=MAC|WWN or fabric=WWN chooses among several, and
    /// npiv=WWPN+WWPN adds further ports. dcb=required waits for lossless Ethernet, dcb=apply sets
    /// it. fip-resp=yes tells hosts of VN2VN that ask which VLAN the port is on.
    /// e_d_tov=100ms recovers lost frames sooner than after 2 s; initiators need the same
    /// setting. Without --listen, lunar serves FCoE only. An interface needs --allow or --open.
    #[arg(long, value_name = "IFACE[,wwpn=WWPN]")]
    fcoe: Vec<FcoePort>,

    /// Serve at the ports that the files of fcoemon describe, cfg-IFACE in this directory
    ///
    /// FCOE_ENABLE, MODE, AUTO_VLAN, DCB_REQUIRED and FIP_RESP of each file stand for --fcoe IFACE
    /// with mode=fabric, vlan=auto, dcb=required and fip-resp=yes.
    #[arg(long, value_name = "DIR")]
    fcoe_config: Option<PathBuf>,

    /// Address given to initiators by discovery; may be repeated
    ///
    /// For portals behind NAT. Without it, discovery returns every portal that can be reached.
    #[arg(long, value_name = "HOST:PORT", value_parser = portal::advertised)]
    advertise: Vec<String>,

    /// The target's iSCSI name [default: iqn.2026-11.org.lunar:HOSTNAME]
    #[arg(long, value_name = "NAME")]
    iqn: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Who may log in")]
struct AccessArgs {
    /// Let every initiator that reaches a portal log in
    #[arg(long)]
    open: bool,

    /// Let the initiator of this name or WWPN log in; may be repeated
    ///
    /// A name is a claim, not a proof. With --chap, both must match.
    #[arg(long, value_name = "IQN|WWPN")]
    allow: Vec<String>,

    /// Let this user log in by CHAP; may be repeated, with one --secret-file each
    ///
    /// @IQN binds the user to that initiator name; otherwise it may log in under any name.
    #[arg(long, value_name = "USER[@IQN]", requires = "secret_file")]
    chap: Vec<String>,

    /// The file that holds the secret of the --chap before it
    ///
    /// Its first line is the secret, 12 to 255 bytes. A file that its group or others can read
    /// or write is refused.
    #[arg(long, value_name = "FILE", requires = "chap")]
    secret_file: Vec<PathBuf>,

    /// CHAP name of this target, for initiators that authenticate it
    #[arg(long, value_name = "USER", requires_all = ["chap", "mutual_secret_file"])]
    mutual_user: Option<String>,

    /// The file that holds the secret of --mutual-user; it must differ from the initiators' secrets
    #[arg(long, value_name = "FILE", requires = "mutual_user")]
    mutual_secret_file: Option<PathBuf>,

    /// The weakest CHAP hash to accept
    #[arg(long, value_name = "HASH", requires = "chap", default_value = "md5",
          value_parser = choice(HASHES))]
    chap_min: ChapHash,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Every LUN")]
struct UnitArgs {
    /// Refuse writes
    #[arg(long)]
    readonly: bool,

    /// Report a removable medium, which can be ejected and loaded
    #[arg(long)]
    removable: bool,

    /// Offer COMPARE AND WRITE, ORWRITE and reservations on remote units too
    ///
    /// They are enforced by this server only: no other host may use those units.
    #[arg(long)]
    sole_gateway: bool,

    /// Bytes in a logical block [default: 512, for block: the device's own]
    ///
    /// With 512, the units report a physical block of 4096.
    #[arg(long, value_name = "BYTES", value_parser = choice(BLOCK_SIZES))]
    block_size: Option<BlockSizeOption>,

    /// Vendor that INQUIRY reports, up to 8 characters [default: LUNAR]
    #[arg(long, value_name = "TEXT")]
    vendor: Option<String>,

    /// Product that INQUIRY reports, up to 16 characters [default: VOLUME]
    #[arg(long, value_name = "TEXT")]
    product: Option<String>,

    /// Unit serial number of a LUN, up to 36 characters; may be repeated
    ///
    /// With a single ADDR, LUN= can be omitted. By default the serial number follows from the file
    /// or device itself, whatever its address; a RAM disk gets a new one at each start.
    #[arg(long, value_name = "LUN=TEXT")]
    serial: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
struct MachineArgs {
    /// Number of cores that serve, from 1 to 1024
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = parse_threads)]
    threads: Threads,

    /// Pin each thread to a CPU of this list, such as 0,2-5 [default: none]
    ///
    /// There are as many threads as CPUs. A session lives where its packets come in.
    #[arg(long, value_name = "CPUS")]
    pin: Option<CpuList>,

    /// Kernel interface for I/O
    #[arg(long, value_name = "RING", default_value = "auto", value_parser = choice(RINGS))]
    ring: RingKind,

    /// When to spin instead of sleeping
    #[arg(long, value_name = "WHEN", default_value = "adaptive", value_parser = choice(POLLS))]
    poll: PollMode,

    /// Have the kernel poll network cards for this long before a thread sleeps [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    busy_poll: Option<Duration>,

    /// Memory for all RAM disks together [default: from available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Directory for persistent reservations
    ///
    /// By default $STATE_DIRECTORY, else /var/lib/lunar for root, else $XDG_STATE_HOME/lunar.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Time limit for a login
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_time)]
    login_timeout: Duration,

    /// Idle time after which an initiator is pinged (NOP-In)
    ///
    /// One that answers and has no commands is pinged after up to four times as long. It is also
    /// the interval of TCP keepalive.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    nop_interval: Duration,

    /// Time without an answer to the ping after which an initiator is dropped
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    nop_timeout: Duration,

    /// Connections at once that have not logged in yet
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_count)]
    max_logins: usize,

    /// Sessions at once
    #[arg(long, value_name = "N", default_value = "16384", value_parser = parse_count)]
    max_sessions: usize,

    /// Unprocessed data that one connection may hold
    ///
    /// It bounds how many commands an initiator may send ahead, and FirstBurstLength.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_small_size)]
    connection_memory: u32,
}

/// `--iser`.
const PROVIDERS: &Choices<IserProvider> = &[
    (
        "soft",
        Some("Software iWARP, over TCP"),
        IserProvider::Software,
    ),
    (
        "device",
        Some("RoCE and InfiniBand devices"),
        IserProvider::Device,
    ),
    ("both", Some("Either"), IserProvider::Both),
];

/// `--iser-crc`.
const ON_OFF: &Choices<bool> = &[("on", None, true), ("off", None, false)];

/// `--chap-min`, and `--chap-hash` of `ls`.
pub(crate) const HASHES: &Choices<ChapHash> = &[
    ("md5", None, ChapHash::Md5),
    ("sha1", None, ChapHash::Sha1),
    ("sha256", None, ChapHash::Sha256),
    ("sha3-256", None, ChapHash::Sha3),
];

/// `--block-size`.
const BLOCK_SIZES: &Choices<BlockSizeOption> = &[
    ("512", None, BlockSizeOption::B512),
    ("4096", None, BlockSizeOption::B4096),
];

/// `--ring`.
pub(crate) const RINGS: &Choices<RingKind> = &[
    (
        "auto",
        Some("io_uring where the kernel has it, else epoll"),
        RingKind::Auto,
    ),
    ("uring", Some("io_uring, or fail"), RingKind::Uring),
    ("epoll", Some("epoll"), RingKind::Epoll),
];

/// `--poll`.
pub(crate) const POLLS: &Choices<PollMode> = &[
    ("never", Some("Never"), PollMode::Never),
    (
        "adaptive",
        Some("While it is likely to save a wakeup"),
        PollMode::Adaptive,
    ),
    (
        "always",
        Some("Always: this takes all of each core"),
        PollMode::Always,
    ),
];

/// `--threads`; `None` is `auto`.
type Threads = Option<NonZeroUsize>;

impl ServeArgs {
    /// What the engine is to do. Reads the secret files and resolves
    /// where to listen; opens nothing else.
    pub(crate) fn into_options(mut self) -> Result<ServeOptions, VerbError> {
        if let Some(dir) = &self.network.fcoe_config {
            self.network.fcoe.extend(fcoe_config::ports(dir)?);
        }
        let iqn = self.network.iqn.unwrap_or_else(client::default_name);
        let state_dir = self.machine.state_dir.or_else(client::state_dir);
        let mut options = ServeOptions::new(self.volumes, iqn, state_dir);
        if !self.network.listen.is_empty() || !self.network.fcoe.is_empty() {
            options.listen = portal::listen(&self.network.listen)?;
        }
        options.target_per_volume = self.target_per_volume;
        if self.network.iser == Some(IserProvider::Device) && !self.network.iser_crc {
            let fault = "--iser-crc is of software iWARP, which --iser=device does not take: \
                         give --iser=both, or leave --iser-crc out";
            return Err(VerbError::usage(fault));
        }
        options.iser = self.network.iser;
        options.iser_crc = self.network.iser_crc;
        options.fcoe = self.network.fcoe;
        options.advertise = self.network.advertise;
        options.open = self.access.open;
        options.chap = self.access.chap()?;
        options.allow = self.access.allow;
        options.units = self.units.into();
        options.threads = self.machine.threads;
        options.pin = self.machine.pin;
        options.ring = self.machine.ring;
        options.poll = self.machine.poll;
        options.busy_poll = self.machine.busy_poll;
        options.memory_limit = self.machine.memory_limit;
        options.wait = self.wait.unwrap_or_default();
        options.limits = self.limits.into();
        Ok(options)
    }
}

impl AccessArgs {
    fn chap(&self) -> Result<Option<TargetChap>, VerbError> {
        if self.chap.len() != self.secret_file.len() {
            return Err(VerbError::usage(format!(
                "{} --chap but {} --secret-file: give each user one file, in the same order",
                self.chap.len(),
                self.secret_file.len()
            )));
        }
        if self.chap.is_empty() {
            return Ok(None);
        }
        let users = self.chap.iter().zip(&self.secret_file);
        let users = users.map(|(user, file)| Ok(chap_user(user, secret::read(file)?)));
        let mutual = self.mutual_user.iter().zip(&self.mutual_secret_file);
        let mut mutual = mutual.map(|(user, file)| Ok((user.clone(), secret::read(file)?)));
        Ok(Some(TargetChap {
            users: users.collect::<Result<_, VerbError>>()?,
            mutual: mutual.next().transpose()?,
            minimum: self.chap_min,
        }))
    }
}

impl From<UnitArgs> for UnitOptions {
    fn from(args: UnitArgs) -> Self {
        Self {
            readonly: args.readonly,
            removable: args.removable,
            sole_gateway: args.sole_gateway,
            block_size: args.block_size,
            vendor: args.vendor,
            product: args.product,
            serials: args.serial,
        }
    }
}

impl From<LimitArgs> for TargetLimits {
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
    u32::try_from(parse_size(text)?).map_err(|_| "give a size below 4G".to_owned())
}
