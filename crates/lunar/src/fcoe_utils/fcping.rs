//! `lunar fcping`: ECHO to a port by the kernel's FCoE or a port of ours, in the words of
//! fcoe-utils.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use fcoe_utils::fc_names::{FcId, Wwn};
use fcoe_utils::local_port::{LocalPort, fc_id, find, of_mac};
use fcoe_utils::name_server::NameQuery;
use fcoe_utils::ping::{EchoOutcome, EchoSizes, Pings, SIZE, SIZE_MAX, SIZE_MIN, hex_dump};
use fcoe_utils::sysfs::ROOT;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

use super::own_ports::OwnPorts;
use super::transport::{PortTransport, neighbour};
use crate::units::number;
use crate::{VerbError, documents};

/// Send ECHO to a port by FCoE of the kernel or lunar, as fcping of Open-FCoE does
///
/// Ends after -c ECHOs, or when it is interrupted, with a line about all of them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(group = ArgGroup::new("target").required(true))]
pub(crate) struct FcpingArgs {
    /// The local port: an interface, hostN, lunar-PID-N, a MAC address, WWPN or FC-ID
    #[arg(short = 'h', long, value_name = "PORT")]
    hba: String,

    /// The port to ask, by its FC-ID in hexadecimal
    #[arg(short = 'F', long, value_name = "FC-ID", group = "target", value_parser = parse_id)]
    fcid: Option<FcId>,

    /// The port to ask, by its WWPN, or by its MAC address
    #[arg(short = 'P', long, value_name = "WWPN", group = "target", value_parser = parse_wwpn)]
    wwpn: Option<Wwn>,

    /// The port to ask, by the WWNN of its node
    #[arg(short = 'N', long, value_name = "WWNN", group = "target", value_parser = parse_wwn)]
    wwnn: Option<Wwn>,

    /// How many ECHOs to send; without it, until interrupted
    #[arg(short, long, value_name = "N", value_parser = number(1..=u32::MAX))]
    count: Option<u32>,

    /// Bytes of data in each
    #[arg(short, long, value_name = "N", default_value_t = SIZE)]
    #[arg(value_parser = number(SIZE_MIN..=SIZE_MAX))]
    size: u32,

    /// Seconds between two of them
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// Send the next one as soon as the last one is answered
    #[arg(short, long, conflicts_with = "interval")]
    flood: bool,

    /// Print only what is wrong, the lines at the start, and the line about all
    #[arg(short, long)]
    quiet: bool,

    /// Dump what comes back
    #[arg(short = 'x', long)]
    hex: bool,

    /// Another root than /sys
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    sysfs: PathBuf,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

pub(super) fn parse_id(text: &str) -> Result<FcId, String> {
    fc_id(text).ok_or_else(|| "an FC-ID has up to 6 hexadecimal digits, as in 0x2701ef".to_owned())
}

pub(super) fn parse_wwn(text: &str) -> Result<Wwn, String> {
    text.parse()
        .map_err(|wrong: fcoe_utils::fc_names::NotAWwn| wrong.to_string())
}

fn parse_wwpn(text: &str) -> Result<Wwn, String> {
    text.parse().map(of_mac).or_else(|_| parse_wwn(text))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.001..=86_400.0).contains(seconds));
    let seconds = seconds.ok_or("give seconds from 0.001 to 86400")?;
    Ok(Duration::from_secs_f64(seconds))
}

pub(crate) fn run(args: &FcpingArgs) -> Result<ExitCode, VerbError> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGQUIT] {
        let caught = signal_hook::flag::register(signal, Arc::clone(&ended));
        caught.map_err(VerbError::signals)?;
    }
    let own = OwnPorts::beside(&args.sysfs);
    let sysfs = own.laid_over(&args.sysfs);
    let from = find(&sysfs, &args.hba).map_err(VerbError::failed)?;
    let mut transport = PortTransport::open(&from.host, &own)?;
    let to = target(args, &mut transport)?;
    let sizes = EchoSizes::new(&sysfs, &from, to, args.size);
    documents::print(head(&from, to, sizes).as_bytes())?;
    let mut pings = Pings::new(to, sizes.used());
    echoes(args, &mut pings, &mut transport, &ended)?;
    documents::print(format!("{}\n", pings.summary()).as_bytes())?;
    if pings.is_success() {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

/// Asks the name server where only a name is given. A port that has none knows its neighbours.
fn target(args: &FcpingArgs, transport: &mut PortTransport<'_>) -> Result<FcId, VerbError> {
    let (query, name) = match (args.fcid, args.wwpn, args.wwnn) {
        (Some(id), ..) => return Ok(id),
        (_, Some(wwpn), _) => (NameQuery::IdOfPort(wwpn), format!("wwpn 0x{:X}", wwpn.0)),
        (.., wwnn) => {
            let wwnn = wwnn.unwrap_or_default();
            (NameQuery::IdOfNode(wwnn), format!("wwnn 0x{:X}", wwnn.0))
        }
    };
    let failed = |cause: &dyn std::fmt::Display| {
        VerbError::failed(format!("cannot find fcid of destination @ {name}: {cause}"))
    };
    match transport.without_fabric() {
        Some(port) => neighbour(port, args.wwpn, args.wwnn)
            .ok_or_else(|| failed(&"no neighbour has it: lunar ls shows those there are")),
        None => query.id(transport).map_err(|cause| failed(&cause)),
    }
}

fn head(from: &LocalPort, to: FcId, sizes: EchoSizes) -> String {
    let told = sizes.told(from.fc_id, to);
    let (id, host) = (from.fc_id.0, &from.host);
    format!(
        "{told}Sending FC ELS ECHO from 0x{id:06x} (fc_{host}) to 0x{:X}:\n",
        to.0
    )
}

fn echoes(
    args: &FcpingArgs,
    pings: &mut Pings,
    transport: &mut PortTransport<'_>,
    ended: &AtomicBool,
) -> Result<(), VerbError> {
    let begun = Instant::now();
    let mut sent = 0;
    loop {
        let outcome = pings.ping(transport, || begun.elapsed());
        sent += 1;
        documents::print(told(args, &outcome).as_bytes())?;
        let is_over = || ended.load(Relaxed) || args.count == Some(sent);
        if outcome.is_last || is_over() {
            return Ok(());
        }
        if !args.flood {
            pause(args.interval, ended);
        }
        if ended.load(Relaxed) {
            return Ok(());
        }
    }
}

/// What is printed about one.
fn told(args: &FcpingArgs, outcome: &EchoOutcome) -> String {
    let mut lines = String::new();
    if !args.quiet || !outcome.is_accepted {
        lines = format!("{}\n", outcome.line);
    }
    if let Some(answer) = outcome.answer.as_ref().filter(|_| args.hex) {
        lines.push_str(&hex_dump(answer));
    }
    lines
}

/// Waits so long, or until it is interrupted: a signal does not end a sleep.
fn pause(interval: Duration, ended: &AtomicBool) {
    let until = Instant::now() + interval;
    while let Some(left) = until.checked_duration_since(Instant::now())
        && !ended.load(Relaxed)
    {
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}
