//! `lunar fcnsq`: queries of a fabric's name server by the kernel's FCoE, in the words of
//! fcoe-utils.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use fcoe_utils::fc_names::{FcId, Wwn};
use fcoe_utils::name_server::NameQuery;
use fcoe_utils::transport::KernelHost;

use super::fcping::{parse_id, parse_wwn};
use super::no_device;
use crate::{VerbError, documents};

/// Ask a fabric's name server by FCoE of the kernel, as fcnsq of Open-FCoE does
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("query").required(true))]
pub(crate) struct FcnsqArgs {
    /// The local port, as hostN; fcoeadm -i shows it as OS Device Name
    #[arg(value_name = "HOST", value_parser = host)]
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

/// A name that leads nowhere else below /dev/bsg.
fn host(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("host").unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number
        .then(|| text.to_owned())
        .ok_or_else(|| "a host is host and a number, as in host5".to_owned())
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
    let opened = KernelHost::open(&args.host);
    let mut transport = opened.map_err(|cause| no_device(&args.host, &cause))?;
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
