//! `lunar dcb`: who is at the other end of a link, and whether it carries FCoE without loss.

mod report;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use address::{ParseError, PortalAddress};
use bench::floor::ether::Place;
use clap::Args;
use runtime::lldp;

use crate::progress_display::stop_on_signal;
use crate::units::number;
use crate::{VerbError, documents, log};
use report::DcbReport;

/// Show LLDP neighbors and the DCB settings of both ends of a link
///
/// FCoE needs Ethernet that loses no frames, which both ends of a link agree on by DCBX, a part of
/// LLDP: priority-based flow control (PFC) for the priority of FCoE. lunar listens for what the
/// other end sends, reads the settings of the network card, and says what comes of both. It sends
/// and changes nothing.
#[derive(Debug, Args)]
pub(crate) struct DcbArgs {
    /// The network interface, as eth0 or fcoe://eth0, or a cable, as cable:PATH
    #[arg(value_name = "IFACE")]
    interface: String,

    /// How long to listen; a switch sends each 30 s, most often
    ///
    /// ^C ends it sooner, with what was heard.
    #[arg(long, value_name = "N", default_value_t = 35, value_parser = number(1_u64..=3600))]
    seconds: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DcbArgs) -> Result<ExitCode, VerbError> {
    let place = interface(&args.interface).map_err(VerbError::usage)?;
    log::start();
    let stop = stop_on_signal();
    let time = Duration::from_secs(args.seconds);
    let view = lldp::listen(&place, time, &stop).map_err(VerbError::failed)?;
    let report = DcbReport::of(&place.to_string(), &view);
    if args.json {
        return documents::print_json(&report);
    }
    documents::print(text::written(&report).as_bytes())
}

/// What was meant: an interface, or a cable.
fn interface(text: &str) -> Result<Place, String> {
    let name = text.strip_prefix(FCOE).unwrap_or(text);
    if name.contains("://") {
        return Err(format!(
            "{text} is not an interface: name one, such as eth0"
        ));
    }
    match format!("{FCOE}{name}").parse() {
        Ok(PortalAddress::Fcoe(place)) => Ok(place),
        Ok(_) => Err(format!(
            "{text} is not an interface: name one, such as eth0"
        )),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

const FCOE: &str = "fcoe://";
