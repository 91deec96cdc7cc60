//! `lunar ls`: what is behind portals, as a table.

mod fcoe;
mod switch;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use address::{
    Address, FcoeMode, FcoePortal, HostPort, ParseError, PortalAddress, SessionOptions,
    normalise_iscsi_name,
};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use client::discovery::fcoe::look;
use client::discovery::{DiscoveredTarget, DiscoveredUnit, discover};
use client::open::{Details, OpenCause};
use engine::serve::options::ChapHash;
use serde::Serialize;

use crate::client::open_options;
use crate::serve::args::HASHES;
use crate::units::{bare_table, choice, human_size, lines, without_codes};
use crate::{VerbError, documents, log};

/// What is said of a port or a switch that has told what cannot be parsed.
pub(crate) const GARBLED: &str =
    "cannot be read: is it of another version? lunar --version tells this one's";

/// List the targets of portals and their units
///
/// lunar asks each portal for its targets, logs in to each target, and asks it for its units. A
/// target that refuses the login is listed with the reason. The addresses in the last column work
/// with all other verbs.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// HOST, HOST:PORT, iscsi://HOST, iser://HOST or fcoe://IFACE; IPv6 addresses in brackets
    ///
    /// fcoe://IFACE?mode=fabric logs in to a fabric, and lists its switches and all its ports. The
    /// word switch alone stands for the Fibre Channel switches that run on this machine.
    #[arg(value_name = "PORTAL", default_value = "127.0.0.1")]
    portals: Vec<String>,

    /// CHAP user, for targets that require authentication
    ///
    /// The secret is read from --secret-file, else from the environment variable LUNAR_SECRET.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,

    /// The file that holds the secret of --user
    ///
    /// Its first line is the secret, 12 to 255 bytes. A file that its group or others can read or
    /// write is refused.
    #[arg(long, value_name = "FILE", requires = "user")]
    secret_file: Option<PathBuf>,

    /// The only hash to offer for CHAP, for targets that mistake the others; tgtd needs md5
    ///
    /// By default all are offered, the strongest first.
    #[arg(long, value_name = "HASH", requires = "user", value_parser = choice(HASHES))]
    chap_hash: Option<ChapHash>,

    /// The iSCSI name of this initiator
    ///
    /// Without it the name is iqn.2026-11.org.lunar:HOSTNAME:initiator.
    #[arg(long, value_name = "IQN", value_parser = initiator_name)]
    initiator: Option<String>,

    /// Print one JSON object per target, and one per Fibre Channel port
    #[arg(long)]
    json: bool,
}

/// What stands for the switches of this machine.
const SWITCH: &str = "switch";

/// A target, as `--json` prints it.
#[derive(Serialize)]
struct TargetReport<'a> {
    target: &'a str,
    portals: &'a [String],
    /// Why it does not tell its units.
    error: Option<String>,
    units: Vec<UnitReport>,
}

#[derive(Serialize)]
struct UnitReport {
    lun: u16,
    address: String,
    size_bytes: Option<u64>,
    block_size: Option<u32>,
    read_only: Option<bool>,
    vendor: Option<String>,
    product: Option<String>,
    revision: Option<String>,
    identity: Option<String>,
    /// Why it does not tell.
    error: Option<String>,
}

pub(crate) fn run(args: &LsArgs) -> Result<ExitCode, VerbError> {
    let is_switch = |text: &&String| *text == SWITCH;
    let portals = args.portals.iter().filter(|text| !is_switch(text));
    let portals = portals.map(|text| LsPortal::parse(text));
    let portals: Vec<_> = portals.collect::<Result<_, _>>()?;
    let options = open_options()?;
    log::start();
    let session = SessionOptions {
        secret_file: args.secret_file.clone(),
        chap_hash: args.chap_hash,
        initiator: args.initiator.clone(),
        ..SessionOptions::default()
    };
    let (mut targets, mut ethernets) = (Vec::new(), Vec::new());
    let mut failed = Vec::new();
    for portal in &portals {
        let found = match portal {
            LsPortal::Fcoe(portal) => look(portal).map(|found| {
                failed.extend(fcoe::missing(portal, &found));
                ethernets.push((&portal.place, found));
            }),
            LsPortal::Host(host, over_iser) => {
                let over_iser = *over_iser;
                let found = discover((host, over_iser), args.user.as_deref(), &session, &options);
                found.map(|found| {
                    if found.is_empty() {
                        let name = session.initiator.as_ref().unwrap_or(&options.initiator);
                        failed.push(format!("{host} reports no targets to {name}"));
                    }
                    targets.extend(found);
                })
            }
        };
        if let Err(cause) = found {
            failed.push(format!("{portal}: {}", told(&cause)));
        }
    }
    if args.portals.iter().any(|text| is_switch(&text)) {
        failed.extend(switch::list(args.json)?);
    }
    if args.json {
        print_json(&targets)?;
        for (place, found) in &ethernets {
            print_json(&found.targets)?;
            fcoe::print_ports((&place.to_string(), place.interface()), found)?;
        }
    } else if !targets.is_empty() || !ethernets.is_empty() {
        let mut text = String::new();
        if !targets.is_empty() {
            text += &table(&targets);
        }
        for (place, found) in &ethernets {
            text += &fcoe::tables(place.interface(), found);
        }
        documents::print(text.as_bytes())?;
    }
    if failed.is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(VerbError::failed(failed.join("\nlunar: ")))
    }
}

/// Why a portal was not listed. This verb has an option for the secret, where addresses have a
/// parameter.
fn told(cause: &OpenCause) -> String {
    match cause {
        OpenCause::NoSecret(user) => format!(
            "no secret for user {user}: give --secret-file FILE, or set the environment variable \
             LUNAR_SECRET"
        ),
        other => other.to_string(),
    }
}

/// The value of `--initiator`.
fn initiator_name(text: &str) -> Result<String, String> {
    normalise_iscsi_name(text).map_err(|cause| {
        format!(
            "{cause}: write a name such as iqn.2026-11.org.example:host, or an eui. or naa. name"
        )
    })
}

/// A portal.
enum LsPortal {
    Fcoe(FcoePortal),
    /// Of iSCSI, and whether over iSER.
    Host(HostPort, bool),
}

impl LsPortal {
    fn parse(text: &str) -> Result<Self, VerbError> {
        let wrong = |error: ParseError| {
            let plain = || ParseError::to_string(&error);
            VerbError::usage(misplaced(text).unwrap_or_else(plain))
        };
        if let Some(portal) = FcoePortal::parse(text) {
            return portal.map(Self::Fcoe).map_err(wrong);
        }
        match text.parse().map_err(wrong)? {
            PortalAddress::Iscsi(host) => Ok(Self::Host(host, false)),
            PortalAddress::Iser(host) => Ok(Self::Host(host, true)),
            PortalAddress::Fcoe(place) => Ok(Self::Fcoe(FcoePortal {
                place,
                mode: FcoeMode::Vn2Vn,
            })),
        }
    }
}

/// As it was, more or less, typed.
impl fmt::Display for LsPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fcoe(portal) => portal.fmt(f),
            Self::Host(host, false) => host.fmt(f),
            Self::Host(host, true) => PortalAddress::Iser(host.clone()).fmt(f),
        }
    }
}

/// What to write instead of an address that is valid for other verbs but is not a portal.
fn misplaced(text: &str) -> Option<String> {
    if text.starts_with("cable:") {
        return Some(format!(
            "{text}: a cable carries Fibre Channel: write fcoe://{text}"
        ));
    }
    let is_volume = !text.contains("://") && text.parse::<Address>().is_ok();
    is_volume.then(|| format!("{text} is a volume, not a portal: try lunar info '{text}'"))
}

fn print_json(targets: &[DiscoveredTarget]) -> Result<ExitCode, VerbError> {
    for target in targets {
        let units = target.units.as_ref();
        documents::print_json(&TargetReport {
            target: &target.name,
            portals: &target.portals,
            error: units.err().map(words),
            units: units.map_or_else(|_| Vec::new(), |units| units.iter().map(report).collect()),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(unit: &DiscoveredUnit) -> UnitReport {
    let particulars = unit.particulars.as_ref();
    let traits = particulars.ok().map(|particulars| &particulars.traits);
    let said = |key| Some(said(particulars.ok()?, key)?.to_owned());
    UnitReport {
        lun: unit.lun,
        address: unit.address.to_string(),
        size_bytes: traits.map(|traits| traits.blocks * u64::from(traits.block_size)),
        block_size: traits.map(|traits| traits.block_size),
        read_only: traits.map(|traits| traits.read_only),
        vendor: said("vendor"),
        product: said("product"),
        revision: said("revision"),
        identity: particulars.ok().and_then(|told| told.identity.clone()),
        error: particulars.err().map(words),
    }
}

/// An error as users read it.
fn words(cause: &impl ToString) -> String {
    without_codes(&cause.to_string())
}

/// What a unit says of itself under this name.
fn said<'a>(told: &'a Details, key: &str) -> Option<&'a str> {
    let unit = told.groups.iter().find(|group| group.heading == "unit")?;
    let (_, value) = unit.values.iter().find(|(name, _)| *name == key)?;
    Some(value.trim())
}

/// A row a unit, and one for each target without any that can be seen.
fn table(targets: &[DiscoveredTarget]) -> String {
    let mut table = bare_table(["TARGET", "PORTALS", "LUN", "SIZE", "ADDRESS"]);
    for target in targets {
        let portals = target.portals.join(", ");
        let mut row = |lun: &str, size: &str, address: &str| {
            table.add_row([&target.name, &portals, lun, size, address]);
        };
        match &target.units {
            Err(cause) => row("-", "-", &format!("not logged in: {}", words(cause))),
            Ok(units) if units.is_empty() => row("-", "-", "no units"),
            Ok(units) => {
                for unit in units {
                    let (size, address) = size_and_address(unit);
                    row(&unit.lun.to_string(), &size, &address);
                }
            }
        }
    }
    lines(&table)
}

fn size_and_address(unit: &DiscoveredUnit) -> (String, String) {
    match &unit.particulars {
        Ok(told) => {
            let bytes = told.traits.blocks * u64::from(told.traits.block_size);
            (human_size(bytes), unit.address.to_string())
        }
        Err(cause) => ("-".to_owned(), words(cause)),
    }
}
