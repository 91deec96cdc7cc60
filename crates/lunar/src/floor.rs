//! `lunar floor`: bare TCP or Ethernet, without a protocol above it.

use std::process::{self, Command, ExitCode};
use std::{io, slice, thread};

use address::{HostPort, ParseError, PortalAddress};
use bench::floor::{
    self, CONNECTIONS_MAX, FloorPeer, FloorServer, LocalFloor, ServerLifetime, ether,
};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::client::own_program;
use crate::measuring::{LoadArgs, Measurement};
use crate::progress_display::stop_on_signal;
use crate::serve::portal;
use crate::{VerbError, documents};

/// Measure bare TCP or Ethernet, as a baseline for storage protocols
///
/// Moves the same bytes in pieces of the same size and at the same depth, from and to random places
/// in memory, but without iSCSI. With local, lunar starts the other end as a process on this
/// machine; otherwise run lunar floor --listen on another machine.
///
/// With fcoe://IFACE it measures frames of the size that Fibre Channel uses, first received, then
/// sent; run lunar floor --listen fcoe://IFACE --open at the other end.
#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// The other end: local, its address, or the Ethernet interface that leads to it
    #[arg(
        value_name = "local|HOST[:PORT]|fcoe://IFACE",
        required_unless_present_any = ["listen", "relay"]
    )]
    place: Option<String>,

    #[command(flatten)]
    load: LoadArgs,

    /// Run as the other end until stopped, and print the address
    ///
    /// Anyone who can reach it can make it move meaningless data, in up to --size bytes of memory.
    /// Each connection takes 1 MiB in addition to its data. Any address except loopback needs
    /// --open, as does an interface.
    #[arg(long, value_name = "HOST:PORT|fcoe://IFACE", value_parser = listen,
          conflicts_with_all = MEASURING_OPTIONS)]
    listen: Option<FloorListen>,

    /// Relay frames between two Ethernet ports until stopped, as the baseline for a switch
    ///
    /// Run lunar floor --listen behind one of them, and lunar floor fcoe://IFACE behind the other.
    /// An interface needs --open.
    #[arg(long, num_args = 2, value_names = ["fcoe://IFACE", "fcoe://IFACE"],
          value_parser = relayed, conflicts_with_all = MEASURING_OPTIONS,
          conflicts_with_all = ["listen", "size"])]
    relay: Vec<ether::Place>,

    /// Let anyone who can reach --listen or --relay use this floor
    #[arg(long)]
    open: bool,

    /// End with standard input
    #[arg(long, hide = true, requires = "listen")]
    with_input: bool,

    /// Make the other end spin instead of sleeping
    #[arg(long)]
    spin: bool,

    /// Add a CRC to each frame and check it, as Fibre Channel does; for fcoe://IFACE
    #[arg(long)]
    crc: bool,

    /// Print JSON, with histograms and throughput over time
    #[arg(long)]
    json: bool,
}

/// What only the end that measures has a use for.
const MEASURING_OPTIONS: [&str; 14] = [
    "place",
    "rw",
    "rwmixread",
    "bs",
    "iodepth",
    "numjobs",
    "runtime",
    "ramp_time",
    "randseed",
    "sweep",
    "preset",
    "spin",
    "crc",
    "json",
];

/// Memory that data lies in, where nothing is said.
const SIZE: u64 = 512 << 20;

pub(crate) fn run(args: &FloorArgs) -> Result<ExitCode, VerbError> {
    let place = args.place.as_deref().unwrap_or(LOCAL);
    let ethernet = interface(place).map_err(|cause| {
        VerbError::usage(format!(
            "{place:?} is not an Ethernet port for a floor: {cause}"
        ))
    })?;
    if let Some(interface) = ethernet {
        return measure_frames(args, &interface);
    }
    if args.open && args.listen.is_none() && args.relay.is_empty() {
        return Err(VerbError::usage(
            "--open goes with --listen or --relay: omit it",
        ));
    }
    if let [one, other] = &args.relay[..] {
        return relay([one, other], args);
    }
    let words = args.load.words()?;
    let size = words.size.unwrap_or(SIZE);
    match &args.listen {
        Some(FloorListen::Tcp(listen)) => {
            let room = words.size.unwrap_or(floor::room(SIZE, CONNECTIONS_MAX));
            return answer(listen, room, args);
        }
        Some(FloorListen::Ether(listen)) => {
            // An end of a cable has one port only.
            let is_alone = listen.interface().is_none();
            let words = format!("{FCOE}{listen}");
            open_on_request(args, is_alone, &words, CABLE)?;
            return answer_frames(listen, size);
        }
        None if args.crc => {
            let only = "--crc applies to frames only: give fcoe://IFACE, or omit --crc";
            return Err(VerbError::usage(only.to_owned()));
        }
        None => {}
    }
    let end = FloorEnd::reach(place, (size, words.jobs), args.spin)?;
    let measured = Measurement::run(&stop_on_signal(), words.runtime, |outcome, watch| {
        floor::rows(end.place, &words, size, outcome, watch)
    });
    measured.tell(args.json, None)
}

/// Measures frames from the other end of the interface, and to it.
fn measure_frames(args: &FloorArgs, place: &ether::Place) -> Result<ExitCode, VerbError> {
    let words = args.load.frames()?;
    let size = words.size.unwrap_or(SIZE);
    floor::has_room(size).map_err(VerbError::failed)?;
    let frames = ether::FloorRequest {
        place,
        crc: args.crc,
        size,
    };
    let measured = Measurement::run(&stop_on_signal(), words.runtime, |outcome, watch| {
        ether::rows(frames, &words, outcome, watch)
    });
    measured.tell(args.json, None)
}

/// Is the other end until the process is ended.
fn answer(listen: &HostPort, size: u64, args: &FloorArgs) -> Result<ExitCode, VerbError> {
    let failed = |cause: io::Error| VerbError::failed(format!("--listen {listen}: {cause}"));
    let addresses = portal::listen(slice::from_ref(listen))?;
    let is_alone = addresses.iter().all(|address| address.ip().is_loopback());
    open_on_request(args, is_alone, &listen.to_string(), "127.0.0.1")?;
    floor::has_room(size).map_err(VerbError::failed)?;
    let listener = FloorServer::new(&addresses, size).map_err(failed)?;
    let address = listener.address().map_err(failed)?;
    documents::print(format!("{address}\n").as_bytes())?;
    heed_end()?;
    let lives = if args.with_input {
        ServerLifetime::WithInput
    } else {
        ServerLifetime::On
    };
    listener.run(lives).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Is the other end until a signal ends it.
fn answer_frames(place: &ether::Place, size: u64) -> Result<ExitCode, VerbError> {
    floor::has_room(size).map_err(VerbError::failed)?;
    let failed = |cause: String| VerbError::failed(format!("--listen: {cause}"));
    let listener = ether::FloorResponder::new(place, size);
    let mut listener = listener.map_err(|cause| failed(cause.to_string()))?;
    let stop = stop_on_signal();
    documents::print(format!("{FCOE}{place}\n").as_bytes())?;
    let answered = listener.run(&stop);
    answered.map_err(|cause| failed(format!("{FCOE}{place}: {cause}")))?;
    Ok(ExitCode::SUCCESS)
}

/// Relays frames until a signal ends it.
fn relay(places: [&ether::Place; 2], args: &FloorArgs) -> Result<ExitCode, VerbError> {
    let failed = |cause: String| VerbError::failed(format!("--relay: {cause}"));
    if places[0] == places[1] {
        return Err(VerbError::usage(format!(
            "--relay {FCOE}{} twice would send frames back: give two ports",
            places[0]
        )));
    }
    if let Some(exposed) = places.iter().find(|place| place.interface().is_some())
        && !args.open
    {
        return Err(VerbError::usage(format!(
            "--relay {FCOE}{exposed} can be reached by other machines: give --open to relay for \
             all of them, or relay between two cables"
        )));
    }
    let mut relay = ether::FloorRelay::new(places).map_err(|cause| failed(cause.to_string()))?;
    let stop = stop_on_signal();
    let [one, other] = places;
    documents::print(format!("{FCOE}{one}  {FCOE}{other}\n").as_bytes())?;
    let relayed = relay.run(&stop);
    relayed.map_err(|cause| failed(cause.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Where the other end listens.
#[derive(Clone, Debug)]
enum FloorListen {
    Tcp(HostPort),
    Ether(ether::Place),
}

fn listen(text: &str) -> Result<FloorListen, String> {
    match interface(text)? {
        Some(place) => Ok(FloorListen::Ether(place)),
        None => tcp(text).map(FloorListen::Tcp),
    }
}

fn relayed(text: &str) -> Result<ether::Place, String> {
    let place = interface(text)?;
    place.ok_or_else(|| "a relay is between two Ethernet ports, as in fcoe://eth1".to_owned())
}

/// The default port of a floor; the iSCSI port is left to targets.
const PORT: u16 = 4000;

/// A place for TCP, with the default port added if the text has none.
fn tcp(text: &str) -> Result<HostPort, String> {
    portal::parse(&format!("{text}:{PORT}")).or_else(|_| portal::parse(text))
}

/// The Ethernet port that is meant, if one is.
fn interface(text: &str) -> Result<Option<ether::Place>, String> {
    if !text.starts_with(FCOE) {
        return Ok(None);
    }
    match text.parse() {
        Ok(PortalAddress::Fcoe(place)) => Ok(Some(place)),
        Ok(_) => Ok(None),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

const FCOE: &str = "fcoe://";

/// Refuses a place that other machines reach, unless it is to be open to them.
fn open_on_request(
    args: &FloorArgs,
    is_alone: bool,
    listen: &str,
    instead: &str,
) -> Result<(), VerbError> {
    if is_alone || args.open {
        return Ok(());
    }
    Err(VerbError::usage(format!(
        "--listen {listen} can be reached by other machines: give --open to let all of them use \
         the memory and CPU time of this one, or listen on {instead}"
    )))
}

/// The end of a cable.
const CABLE: &str = "fcoe://cable:PATH";

/// A signal is how it ends.
fn heed_end() -> Result<(), VerbError> {
    let signals = Signals::new([SIGTERM, SIGINT]);
    let mut signals = signals.map_err(VerbError::signals)?;
    thread::spawn(move || {
        signals.forever().next();
        process::exit(0);
    });
    Ok(())
}

/// The other end of a floor, which ends with this if it was started for it.
pub(crate) struct FloorEnd {
    pub(crate) place: FloorPeer,
    _local: Option<LocalFloor>,
}

/// The word for the other end on this machine.
const LOCAL: &str = "local";

impl FloorEnd {
    /// Starts it, for data of this many bytes and this many connections, if it is to be here, else
    /// says where it is.
    pub(crate) fn reach(
        place: &str,
        (size, connections): (u64, u32),
        spin: bool,
    ) -> Result<Self, VerbError> {
        if place == LOCAL {
            floor::has_room(size).map_err(VerbError::failed)?;
            let started = LocalFloor::start(&mut own(floor::room(size, connections))?, spin);
            let local = started.map_err(|cause| {
                VerbError::failed(format!("cannot start the other end of the floor: {cause}"))
            })?;
            return Ok(Self {
                place: local.place(),
                _local: Some(local),
            });
        }
        let listens = tcp(place).map_err(|cause| {
            VerbError::usage(format!(
                "{place:?} is not the address of a floor: {cause}, or local"
            ))
        })?;
        let addresses = portal::addresses(&listens).map_err(VerbError::failed)?;
        let nowhere = || VerbError::failed(format!("{place} has no address"));
        let address = *addresses.first().ok_or_else(nowhere)?;
        let far = FloorPeer::far(address, spin).map_err(|cause| {
            VerbError::failed(format!(
                "cannot reach a floor at {place}: {cause}: start lunar floor --listen there"
            ))
        })?;
        Ok(Self {
            place: far,
            _local: None,
        })
    }
}

/// This very program as the other end, which ends when we do.
fn own(size: u64) -> Result<Command, VerbError> {
    let mut command = Command::new(own_program()?);
    // Each job has whole blocks, which may be a little more.
    let size = size.saturating_add(SPARE).to_string();
    command.args(["floor", "--listen", "127.0.0.1:0", "--with-input"]);
    command.args(["--size", &size]);
    Ok(command)
}

const SPARE: u64 = 64 << 20;
