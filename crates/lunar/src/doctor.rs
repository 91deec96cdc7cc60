//! `lunar doctor`: why frames of Fibre Channel are lost at an interface, and what mends it.

mod report;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use address::{ParseError, PortalAddress};
use bench::floor::ether::{self, Place};
use clap::Args;
use runtime::diagnosis::readings::{BlastReading, Hop, PathReadings};
use runtime::diagnosis::survey::{Survey, SurveyPhase};
use runtime::diagnosis::{judge, probe};
use runtime::n_port::NoPort;

use crate::progress_display::{INTERRUPTED, stop_on_signal};
use crate::units::parse_time;
use crate::{VerbError, documents};

/// Find out why frames are lost at an Ethernet interface, and print what mends it
///
/// Looks at the interface's MTU, queueing discipline, rings, flow control and counters, at those of
/// the interfaces below it, and at the kernel's own FCoE; then measures, as a port of its own, how
/// long frames may be to each other port and back, and hears by LLDP what the neighbor does of flow
/// control. Each finding says what is wrong, where, and the
/// command that mends it. Nothing is changed.
///
/// Where lunar floor --listen fcoe://IFACE --open runs at the other end, frames go both ways as
/// fast as they can for a second, and those that are lost are counted by place.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The interface
    #[arg(value_name = "fcoe://IFACE")]
    place: String,

    /// How long to listen for other ports, and measure the way to them; 0s sends nothing at all
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    listen: Duration,

    /// How long to send as many frames as possible, if a floor answers; 0s calls none
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    blast: Duration,

    /// Print one JSON object, with all that was read
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, VerbError> {
    let place = interface(&args.place)?;
    let stop = stop_on_signal();
    let examined = examine(args, &place, &stop)?;
    if stop.load(Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let findings = judge(&examined.readings);
    if args.json {
        report::print_json(&examined, &findings)?;
    } else if !findings.is_empty() {
        documents::print(report::text(&findings).as_bytes())?;
    } else if examined.unmeasured.is_none() {
        documents::print(report::all_is_well(&examined.readings).as_bytes())?;
    }
    match examined.unmeasured {
        Some(cause) => Err(VerbError::failed(format!("not measured: {cause}"))),
        None if findings.is_empty() => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::FAILURE),
    }
}

/// The interface that is meant.
fn interface(text: &str) -> Result<Place, VerbError> {
    let wrong = |why: String| VerbError::usage(format!("{text:?} is not an interface: {why}"));
    match text.parse() {
        Ok(PortalAddress::Fcoe(place)) => match place.interface() {
            // Those of XDP are the same interface.
            Some(name) => Ok(Place::Interface(name.to_owned())),
            None => Err(wrong(
                "a cable has no settings that could be wrong: give fcoe://IFACE".to_owned(),
            )),
        },
        Ok(_) => Err(wrong(WAY_OUT.to_owned())),
        Err(_) if !text.contains("://") => Err(wrong(WAY_OUT.to_owned())),
        Err(error) => Err(wrong(ParseError::one_line(&error))),
    }
}

const WAY_OUT: &str = "give fcoe://IFACE, as in fcoe://eth0";

/// What was read, and why something was not.
struct Examined {
    readings: runtime::diagnosis::Readings,
    unmeasured: Option<String>,
}

/// Looks before, during and after what is sent.
fn examine(args: &DoctorArgs, place: &Place, stop: &AtomicBool) -> Result<Examined, VerbError> {
    let name = place.interface().unwrap_or_default();
    let failed = |cause: std::io::Error| VerbError::failed(format!("{name}: {cause}"));
    let survey = Survey::begin(name).map_err(failed)?;
    let mut survey =
        survey.ok_or_else(|| VerbError::failed(format!("no interface {name:?}: see ip link")))?;
    let is_up = survey
        .readings()
        .hops
        .first()
        .is_some_and(|own| own.link.is_up);
    let sends = is_up && !args.listen.is_zero();
    let (path, mut unmeasured) = if sends {
        measured(place, &survey.readings().hops, args.listen, stop)
    } else {
        (None, None)
    };
    survey.ends(SurveyPhase::Before).map_err(failed)?;
    // Where no port can be, no frame can be sent.
    let may_blast = sends && unmeasured.is_none() && !args.blast.is_zero();
    let blast = if may_blast {
        let blasted = ether::blast(place, args.blast, stop);
        blasted.unwrap_or_else(|cause| {
            unmeasured = Some(cause.to_string());
            None
        })
    } else {
        None
    };
    survey.ends(SurveyPhase::During).map_err(failed)?;
    if blast.is_some() {
        wait(AFTER, stop);
        survey.ends(SurveyPhase::After).map_err(failed)?;
    }
    let readings = survey.finish(path, blast.map(reading));
    Ok(Examined {
        readings,
        unmeasured,
    })
}

/// What a port of ours measures, or why there can be none. What the rules find themselves is left
/// out.
fn measured(
    place: &Place,
    hops: &[Hop],
    time: Duration,
    stop: &AtomicBool,
) -> (Option<PathReadings>, Option<String>) {
    match probe::measure(place, hops, time, stop) {
        Ok(mut path) => {
            let unheard = path.unheard.take();
            (Some(path), unheard.map(|cause| format!("LLDP: {cause}")))
        }
        Err(NoPort::Kernel(..) | NoPort::Narrow(_)) => (None, None),
        Err(cause) => (None, Some(cause.to_string())),
    }
}

fn reading(totals: ether::BlastTotals) -> BlastReading {
    BlastReading {
        received: totals.received,
        lost_in: totals.lost_in,
        sent: totals.sent,
        lost_out: totals.lost_out,
        ring_full: totals.ring_full,
    }
}

fn wait(time: Duration, stop: &AtomicBool) {
    let begin = Instant::now();
    while begin.elapsed() < time && !stop.load(Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}

/// How long frames are counted after the blast.
const AFTER: Duration = Duration::from_secs(1);
