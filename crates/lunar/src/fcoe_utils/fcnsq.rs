//! `lunar fcnsq`: queries of a fabric's name server by the kernel's FCoE or a port of ours, in the
//! words of fcoe-utils.

use std::path::Path;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use fcoe_utils::fc_names::{FcId, Wwn};
use fcoe_utils::local_port::find;
use fcoe_utils::name_server::NameQuery;
use fcoe_utils::sysfs::ROOT;

use super::fcping::{parse_id, parse_wwn};
use super::own_ports::OwnPorts;
use super::transport::PortTransport;
use crate::{VerbError, documents};

/// Ask a fabric's name server by FCoE of the kernel or lunar, as fcnsq of Open-FCoE does
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("query").required(true))]
pub(crate) struct FcnsqArgs {
    /// The local port: hostN or lunar-PID-N, which fcoeadm -i shows as OS Device Name, or its
    /// interface, MAC address, WWPN or FC-ID
    #[arg(value_name = "HOST")]
    host: String,

    /// Which WWPN an FC-ID has (GPN_ID)
    #[arg(long, value_name = "FC-ID", group = "query", value_parser = parse_id)]
    gpn: Option<FcId>,

    /// Which WWNN an FC-ID has (GNN_ID)
    #[arg(long, value_name = "FC-ID", group = "query", value_parser = parse_id)]
    gnn: Option<FcId>,

    /// The symbolic name of the port of an FC-ID (GSPN_ID)
    #[arg(long, value_name = "FC-ID", group = "query", value_parser = parse_id)]
    gspn: Option<FcId>,

    /// The symbolic name of a node (GSNN_NN)
    #[arg(long, value_name = "WWNN", group = "query", value_parser = parse_wwn)]
    gsnn: Option<Wwn>,

    /// Print the answer alone, and no errors
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &FcnsqArgs) -> Result<ExitCode, VerbError> {
    match ask(args) {
        Ok((label, told)) if !args.quiet => {
            documents::print(format!("{label}: {told}\n").as_bytes())
        }
        Ok((_, told)) => documents::print(format!("{told}\n").as_bytes()),
        Err(_) if args.quiet => Ok(ExitCode::FAILURE),
        Err(failure) => Err(failure),
    }
}

fn ask(args: &FcnsqArgs) -> Result<(&'static str, String), VerbError> {
    let own = OwnPorts::beside(Path::new(ROOT));
    let host = host(&args.host, &own)?;
    let mut transport = PortTransport::open(&host, &own)?;
    let (name, query) = match (args.gpn, args.gnn, args.gspn) {
        (Some(id), ..) => ("gpn_id", NameQuery::PortName(id)),
        (_, Some(id), _) => ("gnn_id", NameQuery::NodeName(id)),
        (.., Some(id)) => ("gspn_id", NameQuery::SymbolicPortName(id)),
        _ => {
            let node = args.gsnn.unwrap_or_default();
            ("gsnn_nn", NameQuery::SymbolicNodeName(node))
        }
    };
    let told = query.text(&mut transport);
    told.map_err(|cause| VerbError::failed(format!("{name} {cause}")))
}

/// Which port is meant: `hostN` is one of the kernel, without more ado.
fn host(meant: &str, own: &OwnPorts) -> Result<String, VerbError> {
    let digits = meant.strip_prefix("host").unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Ok(meant.to_owned());
    }
    let found = find(&own.laid_over(Path::new(ROOT)), meant);
    found.map(|port| port.host).map_err(VerbError::failed)
}
