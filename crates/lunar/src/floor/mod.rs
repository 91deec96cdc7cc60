//! `lunar floor`: bare TCP or Ethernet, without a protocol above it.

pub(crate) mod args;
mod frames;

use std::process::{self, Command, ExitCode};
use std::{io, slice, thread};

use args::{FCOE, FloorArgs, FloorListen};
use bench::floor::{self, CONNECTIONS_MAX, FloorServer, LocalFloor, NoRoom, ServerLifetime};
use bench::run::begun;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::measuring::{self, StatusLine, typed};
use crate::serve::portal::{self, ListenAddress};
use crate::{VerbError, documents};

/// Memory that data lies in, where nothing is said.
const SIZE: u64 = 512 << 20;

pub(crate) fn run(args: &FloorArgs) -> Result<ExitCode, VerbError> {
    let place = args.place.as_deref().unwrap_or(LOCAL);
    let interface = args::interface(place).map_err(|cause| {
        VerbError::usage(format!(
            "{place:?} is not an Ethernet port for a floor: {cause}"
        ))
    })?;
    if let Some(interface) = interface {
        return frames::run(args, &interface);
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
            return frames::answer(listen, size);
        }
        None if args.crc => {
            let only = "--crc applies to frames only: give fcoe://IFACE, or omit --crc";
            return Err(VerbError::usage(only.to_owned()));
        }
        None => {}
    }
    let end = FloorEnd::reach(place, (size, words.jobs), args.spin)?;
    let mut line = StatusLine::new(words.runtime);
    let mut outcome = begun(typed());
    let ended = measuring::watched(&mut line, |watch| {
        floor::rows(end.place(), &words, size, &mut outcome, watch)
    })?;
    measuring::tell(&outcome, args.json, None)?;
    ended.exit()
}

/// Is the other end until the process is ended.
fn answer(listen: &ListenAddress, size: u64, args: &FloorArgs) -> Result<ExitCode, VerbError> {
    let failed = |cause: io::Error| VerbError::failed(format!("--listen {listen}: {cause}"));
    let addresses = portal::listen(slice::from_ref(listen))?;
    let is_alone = addresses.iter().all(|address| address.ip().is_loopback());
    open_on_request(args, is_alone, &listen.to_string(), "127.0.0.1")?;
    floor::has_room(size).map_err(no_room)?;
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

fn no_room(cause: NoRoom) -> VerbError {
    VerbError::failed(cause.to_string())
}

/// The other end of a floor.
pub(crate) enum FloorEnd {
    /// A process that was started for it.
    Local(LocalFloor),
    /// On another machine, or started by another user.
    Far(floor::FloorPeer),
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
            floor::has_room(size).map_err(no_room)?;
            let started = LocalFloor::start(&mut own(floor::room(size, connections))?, spin);
            let failed = |cause| {
                VerbError::failed(format!("cannot start the other end of the floor: {cause}"))
            };
            return started.map(Self::Local).map_err(failed);
        }
        let parsed: Result<ListenAddress, String> = args::tcp(place);
        let parsed = parsed.map_err(|cause| {
            VerbError::usage(format!(
                "{place:?} is not the address of a floor: {cause}, or local"
            ))
        })?;
        let addresses = parsed.addresses().map_err(VerbError::failed)?;
        let address = addresses.first().copied();
        let address =
            address.ok_or_else(|| VerbError::failed(format!("{place} has no address")))?;
        let far = floor::FloorPeer::far(address, spin).map_err(|cause| {
            let way_out = "start lunar floor --listen there";
            VerbError::failed(format!(
                "cannot reach a floor at {place}: {cause}: {way_out}"
            ))
        });
        far.map(Self::Far)
    }

    pub(crate) fn place(&self) -> floor::FloorPeer {
        match self {
            Self::Local(local) => local.place(),
            Self::Far(place) => *place,
        }
    }
}

/// This very program as the other end, which ends when we do.
fn own(size: u64) -> Result<Command, VerbError> {
    let own = std::env::current_exe()
        .map_err(|cause| VerbError::failed(format!("cannot find the lunar executable: {cause}")))?;
    let mut command = Command::new(own);
    // Each job has whole blocks, which may be a little more.
    let size = size.saturating_add(SPARE).to_string();
    command.args([
        "floor",
        "--listen",
        "127.0.0.1:0",
        "--with-input",
        "--size",
        &size,
    ]);
    Ok(command)
}

const SPARE: u64 = 64 << 20;
