//! `lunar fcrls`: the Link Error Status Block of a remote port of the kernel's FCoE or of a port of
//! ours, in the words of fcoe-utils.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use fcoe_utils::fc_names::FcId;
use fcoe_utils::link_errors::{KnownPort, LinkErrorsError, ask, find};
use fcoe_utils::sysfs::{ROOT, SysfsDir};

use super::fcping::parse_id;
use super::own_ports::OwnPorts;
use super::transport::PortTransport;
use crate::{VerbError, documents};

/// Read the Link Error Status Block of a remote port, as fcrls of Open-FCoE does
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("of").required(true))]
pub(crate) struct FcrlsArgs {
    /// The port, as rport-H:C-N or rport-lunar-PID-N-M; fcoeadm -t shows it as OS Device Name
    #[arg(long, value_name = "RPORT", group = "of")]
    port: Option<String>,

    /// The port, by its FC-ID in hexadecimal
    #[arg(long, value_name = "FC-ID", group = "of", value_parser = parse_id)]
    fcid: Option<FcId>,

    /// Do not print which port has the FC-ID
    #[arg(short, long)]
    quiet: bool,

    /// Another root than /sys
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    sysfs: PathBuf,
}

pub(crate) fn run(args: &FcrlsArgs) -> Result<ExitCode, VerbError> {
    let own = OwnPorts::beside(&args.sysfs);
    let port = meant(args, &own.laid_over(&args.sysfs)).map_err(VerbError::failed)?;
    let KnownPort { name, host, fc_id } = port;
    let mut transport = PortTransport::open(&host, &own)?;
    let told = ask(&mut transport, fc_id).map_err(VerbError::failed)?;
    let found = format!("found rport 0x{:06x} as {name}\n", fc_id.0);
    // As the original, which tells it only where the port was looked for.
    let is_told = args.fcid.is_some() && !args.quiet;
    let found = if is_told { &found } else { "" };
    documents::print(format!("{found}{told}").as_bytes())
}

fn meant(args: &FcrlsArgs, sysfs: &SysfsDir) -> Result<KnownPort, LinkErrorsError> {
    match (&args.port, args.fcid) {
        (Some(port), _) => find(sysfs, port, |name, _| name == port),
        (_, id) => {
            let id = id.unwrap_or_default();
            find(sysfs, &id.to_string(), |_, known| known == id)
        }
    }
}
