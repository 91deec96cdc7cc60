//! `lunar switch`: from the command line to the engine, and from there to standard output.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use engine::switch::options::{
    DOMAINS, FastPathChoice, FcMap, LldpMode, Place, RingKind, SwitchOptions, THREADS_MAX, VLANS,
    Wwn, Zoning, place,
};
use engine::switch::{self, ReadyPort, SwitchError, SwitchOrders};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::progress_display::SAME_ORDER;
use crate::serve::args::RINGS;
use crate::units::{Choices, choice, number, parse_time};
use crate::{VerbError, log};

/// Be a Fibre Channel switch (FCF) for hosts and targets over Ethernet
///
/// Each PLACE is a port: an Ethernet interface, or cable:PATH, a cable of two sockets to a virtual
/// machine or another lunar on this host. Ports log in to the fabric (FLOGI), find each other by
/// its name server, and send their frames through it. When ready, lunar prints one line for each
/// port: PLACE, the MAC address of the switch there, MTU, VLAN, switch name and fabric name,
/// separated by two spaces. The log goes to standard error; LUNAR_LOG sets its level. SIGHUP reads
/// the zones again. SIGTERM or ^C logs all ports out and exits with 0. SIGUSR1 logs what was
/// forwarded and dropped.
///
/// Without --zones or --open no port sees another.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Ethernet interfaces and cables, such as eth1 or cable:/run/a.sock
    #[arg(value_name = "PLACE", required = true, value_parser = place)]
    places: Vec<Place>,

    /// Print the ready lines as JSON, one object per port
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    zoning: ZoningArgs,

    #[command(flatten)]
    fabric: FabricArgs,

    /// What the switch does of LLDP and DCBX
    ///
    /// An interface has one LLDP agent: where lldpad, lldpd or the firmware of the card is it, let
    /// the switch listen or be off. There is no LLDP on interfaces of VLANs and with xdp:.
    #[arg(long, value_name = "MODE", default_value = "send", value_parser = choice(LLDP_MODES))]
    lldp: LldpMode,

    /// Forward frames between interfaces in the kernel, by XDP
    ///
    /// auto does so where the privileges and interfaces allow it, for pairs of ports that the
    /// switch has let through. Such frames do not show in captures at the interface.
    #[arg(long, value_name = "WORD", default_value = "auto", value_parser = choice(FAST_PATHS))]
    fast_path: FastPathChoice,

    /// Number of cores that forward, from 1 to 16
    ///
    /// Each port lives on one of them. auto is as many as the process may run on, but not more than
    /// there are ports.
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = parse_threads)]
    threads: Threads,

    /// Kernel interface for I/O
    #[arg(long, value_name = "RING", default_value = "auto", value_parser = choice(RINGS))]
    ring: RingKind,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Zoning")]
struct ZoningArgs {
    /// Zones: which ports see each other; SIGHUP reads the file again
    ///
    /// A file with an error in it is refused with line and column. At SIGHUP the zones before it
    /// stay then.
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    zones: Option<PathBuf>,

    /// Let every port see all others
    #[arg(long)]
    open: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The fabric")]
struct FabricArgs {
    /// The upper byte of the N_Port_IDs of this fabric, from 1 to 239
    #[arg(long, value_name = "N", default_value = "1", value_parser = number(DOMAINS))]
    domain: u8,

    /// The VLAN of the fabric, from 1 to 4094; without this option there is none
    ///
    /// Its frames carry a tag, and ENodes that ask for their VLAN without a tag are told it. On the
    /// interface of a VLAN itself, such as eth1.152, the kernel adds the tag.
    #[arg(long, value_name = "VID", value_parser = number(VLANS))]
    vlan: Option<u16>,

    /// FIP priority, from 0 to 255; ENodes prefer the switch with the lowest
    #[arg(long, value_name = "N", default_value = "128", value_parser = number(0..=u8::MAX))]
    priority: u8,

    /// How often the switch advertises itself (FKA_ADV_PERIOD), from 250ms to 90s
    ///
    /// A port or switch that is silent for 2.5 times as long is taken for gone. Linux takes a time
    /// below 500ms for 8 s.
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = parse_time)]
    fka: Duration,

    /// The upper three bytes of the MAC addresses that the switch gives (FC-MAP)
    #[arg(long, value_name = "HEX", default_value = "0e:fc:00", value_parser = fc_map)]
    fc_map: FcMap,

    /// The name of the fabric; else 20:00:MAC of the first port, with the VLAN in it
    #[arg(long, value_name = "WWN", value_parser = name)]
    fabric_name: Option<Wwn>,

    /// The name of the switch; else 10:00:MAC of the first port
    #[arg(long, value_name = "WWN", value_parser = name)]
    switch_name: Option<Wwn>,

    /// Remember in this directory which N_Port_ID each port has
    ///
    /// Without it, ports get their N_Port_IDs in the order of their logins after each start, from a
    /// random one on.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Take over when the other switch of the same names falls silent
    ///
    /// Also when none was heard for 2.5 periods of --fka. Needs --switch-name, --fabric-name and a
    /// port at an interface, and zones and --state of the other switch.
    #[arg(long)]
    standby: bool,
}

const LLDP_MODES: &Choices<LldpMode> = &[
    (
        "send",
        Some("Tell neighbors of PFC and FCoE at priority 3, and hear them"),
        LldpMode::Send,
    ),
    (
        "listen",
        Some("Only hear neighbors, and log what DCBX comes to"),
        LldpMode::Listen,
    ),
    ("off", Some("Neither"), LldpMode::Off),
];

/// What `--fast-path` may be.
const FAST_PATHS: &Choices<FastPathChoice> = &[
    (
        "auto",
        Some("In the kernel where it can"),
        FastPathChoice::Auto,
    ),
    ("off", Some("All frames in user space"), FastPathChoice::Off),
];

/// `--threads`; `None` is `auto`.
type Threads = Option<NonZeroUsize>;

fn parse_threads(text: &str) -> Result<Threads, String> {
    if text == "auto" {
        return Ok(None);
    }
    let threads = text.parse().ok();
    let threads = threads.filter(|threads: &NonZeroUsize| threads.get() <= THREADS_MAX);
    let threads = threads.map(Some);
    threads.ok_or_else(|| format!("give a number from 1 to {THREADS_MAX}, or auto"))
}

fn fc_map(text: &str) -> Result<FcMap, String> {
    let map = text.parse::<FcMap>();
    map.map_err(|cause| cause.to_string())
}

fn name(text: &str) -> Result<Wwn, String> {
    let name = text.parse::<Wwn>();
    name.map_err(|cause| cause.to_string())
}

impl From<SwitchArgs> for SwitchOptions {
    fn from(args: SwitchArgs) -> Self {
        let SwitchArgs { zoning, fabric, .. } = args;
        Self {
            domain: fabric.domain,
            vlan: fabric.vlan,
            priority: fabric.priority,
            fka: fabric.fka,
            fc_map: fabric.fc_map,
            fabric_name: fabric.fabric_name,
            switch_name: fabric.switch_name,
            zoning: match zoning.zones {
                Some(file) => Zoning::File(file),
                None if zoning.open => Zoning::Open,
                None => Zoning::Closed,
            },
            state: fabric.state,
            standby: fabric.standby,
            lldp: args.lldp,
            fast_path: args.fast_path,
            ring: args.ring,
            threads: args.threads,
            ..Self::new(args.places)
        }
    }
}

pub(crate) fn run(args: SwitchArgs) -> Result<ExitCode, VerbError> {
    let json = args.json;
    let options = SwitchOptions::from(args);
    options.validate().map_err(VerbError::usage)?;
    log::start();
    let ready = |ports: &[_], orders| {
        heed_signals(orders)?;
        print(ports, json);
        Ok(())
    };
    switch::run(&options, ready).map_err(|error| failure(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &SwitchError) -> VerbError {
    VerbError {
        line: error.to_string(),
        code: error.exit_code(),
    }
}

/// Passes signals on as orders until the process ends: SIGTERM and SIGINT stop the switch, and end
/// it at once when they come again later. Before it is ready, they end the process as usual.
fn heed_signals(orders: SwitchOrders) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    let pass_on = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match signal {
                SIGHUP => orders.read_zones(),
                SIGUSR1 => orders.tell(),
                _ if first.is_some_and(|first| first.elapsed() >= SAME_ORDER) => {
                    log::flush();
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                _ => {
                    first.get_or_insert_with(Instant::now);
                    orders.stop();
                }
            }
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(pass_on)?;
    Ok(())
}

/// Says on standard output that everything is ready. A reader that has gone away does not keep a
/// switch from switching.
fn print(ports: &[ReadyPort], json: bool) {
    let lines: String = ports.iter().map(|port| line(port, json) + "\n").collect();
    let mut out = io::stdout().lock();
    if let Err(cause) = out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!("the ready lines cannot be printed: {cause}");
    }
}

fn line(port: &ReadyPort, json: bool) -> String {
    if json {
        // A struct of strings and numbers always has a JSON form.
        return serde_json::to_string(port).unwrap_or_default();
    }
    let vlan = match port.vlan {
        Some(vlan) => format!("VLAN {vlan}"),
        None => "no VLAN".to_owned(),
    };
    format!(
        "{}  {}  MTU {}  {vlan}  switch {}  fabric {}",
        port.place, port.mac, port.mtu, port.switch_name, port.fabric_name
    )
}
