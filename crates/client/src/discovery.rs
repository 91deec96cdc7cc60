//! What is behind a portal: its targets, and their units as far as they may be looked at.
//!
//! A discovery session asks for the targets (SendTargets, RFC 7143 Appendix C). Each is then logged
//! in to and asked for its units (REPORT LUNS, SPC-5 §6.33), and in the same session each unit is
//! asked what it is, by the client that a volume has: what is told is what every other verb finds.

pub mod fcoe;

use block::volume::Volume as _;
use iscsi::initiator::config::{Auth, InitiatorPurpose};
use iscsi::initiator::error::{LoginError, SessionEnd};
use iscsi::initiator::{InitiatorEvent, TargetRecord};
use scsi::client::Facts;
use scsi::wire::lun::Lun;

use crate::open::{OpenCause, OpenOptions, portal_of, remote_settings};
use crate::remote::blocking_session::BlockingSession;
use crate::remote::command_channel;
use crate::remote::{self, RemoteError, RemoteVolume, TargetPortal};
use address::{Address, HostPort, SessionOptions, UnitAddress};
use block::identity::Details;

/// A target.
#[derive(Debug)]
pub struct DiscoveredTarget {
    /// Its name.
    pub name: String,
    /// Where it is, by what the portal said: `HOST:PORT`.
    pub portals: Vec<String>,
    /// Its units, or why it does not tell.
    pub units: Result<Vec<DiscoveredUnit>, OpenCause>,
}

/// A logical unit of a target.
#[derive(Debug)]
pub struct DiscoveredUnit {
    /// Its number.
    pub lun: u16,
    /// By what it can be opened.
    pub address: Address,
    /// What it says of itself, or why it does not.
    pub particulars: Result<Details, OpenCause>,
}

/// Asks a portal for its targets, and those for their units. `user` is the CHAP name where a target
/// wants to know, with the secret of `session`, else of `options`.
///
/// # Errors
///
/// When the portal does not answer, or does not let us in. What single targets refuse is told with
/// them.
pub fn discover(
    portal: &HostPort,
    user: Option<&str>,
    session: &SessionOptions,
    options: &OpenOptions,
) -> Result<Vec<DiscoveredTarget>, OpenCause> {
    let name = |target: &str| UnitAddress {
        user: user.map(str::to_owned),
        portal: portal.clone(),
        target: target.to_owned(),
        lun: 0,
        session: session.clone(),
    };
    // Any name will do to learn how sessions are to be; a discovery session has none.
    let found = send_targets(portal_of(
        &name("iqn.2026-11.org.lunar:discovery"),
        options,
    )?)?;
    let target = |found: TargetRecord| {
        let portals: Vec<HostPort> = found.portals.iter().filter_map(host_port).collect();
        let there = match portals.first() {
            Some(first) if !portals.contains(portal) => first,
            _ => portal,
        };
        let unit = UnitAddress {
            portal: there.clone(),
            ..name(&found.name)
        };
        let told = if portals.is_empty() {
            vec![portal.to_string()]
        } else {
            portals.iter().map(ToString::to_string).collect()
        };
        DiscoveredTarget {
            name: found.name,
            portals: told,
            units: units(&unit, options),
        }
    };
    Ok(found.into_iter().map(target).collect())
}

fn host_port(portal: &iscsi::initiator::portal::ReportedPortal) -> Option<HostPort> {
    let (host, port) = (&portal.host, portal.port);
    let text = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    text.parse().ok()
}

/// Tries CHAP first, if configured, because a target that requires it logs each attempt without
/// it. Many targets do not use CHAP for discovery and refuse unknown users, so the second attempt
/// is without it.
fn send_targets(mut portal: TargetPortal) -> Result<Vec<TargetRecord>, RemoteError> {
    portal.config.purpose = InitiatorPurpose::Discovery;
    let told = ask_for_targets(&portal);
    if !is_about_proof(&told) || !matches!(portal.config.auth, Auth::Chap(_)) {
        return told;
    }
    portal.config.auth = Auth::default();
    ask_for_targets(&portal).or(told)
}

/// Whether the proof may be why a login failed.
fn is_about_proof<T>(told: &Result<T, RemoteError>) -> bool {
    matches!(
        told,
        Err(RemoteError::Session(remote::LinkEnd::Session(
            SessionEnd::Login(
                LoginError::Refused { .. }
                    | LoginError::Lost { .. }
                    | LoginError::Key { .. }
                    | LoginError::Chap(_)
            )
        )))
    )
}

fn ask_for_targets(portal: &TargetPortal) -> Result<Vec<TargetRecord>, RemoteError> {
    let mut talk = BlockingSession::log_in(portal)?;
    talk.send_targets();
    let targets = loop {
        match talk.event()? {
            InitiatorEvent::Targets(targets) => break targets,
            InitiatorEvent::TargetsRefused(_) => break Vec::new(),
            _ => {}
        }
    };
    talk.leave();
    Ok(targets)
}

/// The units of a target, each opened.
fn units(target: &UnitAddress, options: &OpenOptions) -> Result<Vec<DiscoveredUnit>, OpenCause> {
    let (portal, settings) = (
        portal_of(target, options)?,
        remote_settings(target, options)?,
    );
    let mut talk = BlockingSession::log_in(&portal)?;
    let luns = command_channel::report_luns(&mut talk)?;
    let mut talk = Some(talk);
    let unit = |lun: Lun| {
        let number = lun.index()?;
        let facts = facts(&mut talk, &portal, lun);
        let known = facts.map(|facts| RemoteVolume::known(settings.clone(), facts));
        Some(DiscoveredUnit {
            lun: number,
            address: Address::Iscsi(UnitAddress {
                lun: number,
                ..target.clone()
            }),
            particulars: known
                .map(|known| known.particulars())
                .map_err(OpenCause::from),
        })
    };
    let units = luns.into_iter().filter_map(unit).collect();
    talk.into_iter().for_each(BlockingSession::leave);
    Ok(units)
}

/// What a unit says, by the session that there is. One that ended over it has another one after it.
fn facts(
    talk: &mut Option<BlockingSession>,
    portal: &TargetPortal,
    lun: Lun,
) -> Result<Facts, RemoteError> {
    let mut one = match talk.take() {
        Some(one) => one,
        None => BlockingSession::log_in(portal)?,
    };
    let facts = command_channel::facts(&mut one, lun);
    if matches!(facts, Ok(_) | Err(RemoteError::Unit { .. })) {
        *talk = Some(one);
    }
    facts
}
