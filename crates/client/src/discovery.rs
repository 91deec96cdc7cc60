//! What is behind a portal: its targets, and their units as far as they may be looked at.
//!
//! A discovery session asks for the targets (SendTargets, RFC 7143 Appendix C). Each is then logged
//! in to and asked for its units (REPORT LUNS, SPC-5 §6.33), and in the same session each unit is
//! asked what it is, by the client that a volume has: what is told is what every other verb finds.

pub mod fcoe;

use std::time::Instant;

use block::volume::Volume as _;
use iscsi::initiator::TargetRecord;
use iscsi::initiator::config::{Auth, InitiatorPurpose};
use iscsi::initiator::error::{LoginError, SessionEnd};
use scsi::client::Facts;
use scsi::wire::lun::Lun;

use crate::open::{OpenCause, OpenOptions, portal_of, remote_settings};
use crate::remote::{
    self, InitiatorConnection, Inquiry, IserOptions, Link, RemoteError, RemoteSettings,
    RemoteVolume, SessionEnvironment, TargetPortal,
};
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
    (portal, over_iser): (&HostPort, bool),
    user: Option<&str>,
    session: &SessionOptions,
    options: &OpenOptions,
) -> Result<Vec<DiscoveredTarget>, OpenCause> {
    let iser = over_iser.then(|| IserOptions::of(session));
    let name = |target: &str| UnitAddress {
        user: user.map(str::to_owned),
        portal: portal.clone(),
        target: target.to_owned(),
        lun: 0,
        session: session.clone(),
    };
    // Any name will do to learn how sessions are to be; a discovery session has none.
    let any = name("iqn.2026-11.org.lunar:discovery");
    let found = send_targets(portal_of(&any, iser.as_ref(), options)?)?;
    let target = |found: TargetRecord| {
        let portals = found.portals.iter();
        let portals = portals.filter_map(|portal| portal.to_string().parse().ok());
        let portals: Vec<HostPort> = portals.collect();
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
            units: units(&unit, iser.as_ref(), options),
        }
    };
    Ok(found.into_iter().map(target).collect())
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
    let mut session = log_in(portal)?;
    let targets = session.targets()?;
    session.leave();
    Ok(targets)
}

fn log_in(portal: &TargetPortal) -> Result<Inquiry<InitiatorConnection>, RemoteError> {
    Inquiry::log_in(Instant::now(), |core| {
        let (name, outside) = (portal.to_string(), SessionEnvironment::default());
        InitiatorConnection::new(core.node(), portal.clone(), name, outside)
    })
}

/// The units of a target, each opened.
fn units(
    target: &UnitAddress,
    iser: Option<&IserOptions>,
    options: &OpenOptions,
) -> Result<Vec<DiscoveredUnit>, OpenCause> {
    let portal = portal_of(target, iser, options)?;
    let settings = remote_settings(target, iser, options)?;
    let scheme = if iser.is_some() {
        Address::Iser
    } else {
        Address::Iscsi
    };
    let unit = |lun| {
        let target = target.clone();
        (scheme(UnitAddress { lun, ..target }), settings.clone())
    };
    Ok(units_by(&|| log_in(&portal), unit)?)
}

/// The same by sessions that are made so. `unit` says by what a unit can be opened.
fn units_by<L: Link>(
    log_in: &dyn Fn() -> Result<Inquiry<L>, RemoteError>,
    unit: impl Fn(u16) -> (Address, RemoteSettings),
) -> Result<Vec<DiscoveredUnit>, RemoteError> {
    let mut session = log_in()?;
    let luns = match session.report_luns() {
        Ok(luns) => luns,
        Err(cause) => {
            session.put_back();
            return Err(cause);
        }
    };
    let mut session = Some(session);
    let unit = |lun: Lun| {
        let number = lun.index()?;
        let (address, settings) = unit(number);
        let facts = facts(&mut session, log_in, lun);
        let known = facts.map(|facts| RemoteVolume::known(settings, facts));
        let particulars = known.map(|known| known.particulars());
        Some(DiscoveredUnit {
            lun: number,
            address,
            particulars: particulars.map_err(OpenCause::from),
        })
    };
    let units = luns.into_iter().filter_map(unit).collect();
    session.into_iter().for_each(Inquiry::leave);
    Ok(units)
}

/// What a unit says, by the session that there is. One that ended over it has another one after it.
fn facts<L: Link>(
    session: &mut Option<Inquiry<L>>,
    log_in: &dyn Fn() -> Result<Inquiry<L>, RemoteError>,
    lun: Lun,
) -> Result<Facts, RemoteError> {
    let mut one = match session.take() {
        Some(one) => one,
        None => log_in()?,
    };
    let facts = one.facts(lun);
    if matches!(facts, Ok(_) | Err(RemoteError::Unit { .. })) {
        *session = Some(one);
    } else {
        one.put_back();
    }
    facts
}
