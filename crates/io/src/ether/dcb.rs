//! What a network card has of DCB, as its driver tells and takes it: dcbnl, which is RTM_GETDCB and
//! RTM_SETDCB of rtnetlink (linux/dcbnl.h), in the dialect of IEEE.
//!
//! Most cards of 1 Gbit/s, veth and virtio have none. Where the card's firmware is the agent of
//! LLDP, settings can be read but not written.

pub(super) mod message;
mod usage;

use std::io;

use super::link;
use super::netlink::{self, NetlinkRequest};
use message::Command;
pub use message::{DcbApp, DcbEts, DcbPfc};
pub use usage::{DcbUse, NotADcbUse};

/// Whether some priority of a card has flow control of its own (PFC), as far as its driver tells.
#[must_use]
pub fn has_pfc(name: &str) -> bool {
    let pfc = read(name).ok().and_then(|dcb| dcb.pfc);
    pfc.is_some_and(|pfc| pfc.enabled != 0)
}

/// What a card has of DCB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceDcb {
    /// Which agent sets it: bits of [`Self::HOST`] and others.
    pub dcbx: u8,
    /// Traffic classes, if the driver tells.
    pub ets: Option<DcbEts>,
    /// Priority-based flow control, if the driver tells.
    pub pfc: Option<DcbPfc>,
    /// Priorities of protocols.
    pub apps: Vec<DcbApp>,
}

impl InterfaceDcb {
    /// Of `dcbx`: a program of this machine sets it.
    pub const HOST: u8 = 1;
    /// Of `dcbx`: the agent of LLDP in the card sets it.
    pub const LLD_MANAGED: u8 = 2;
    /// Of `dcbx`: in the dialect of CEE.
    pub const CEE: u8 = 4;
    /// Of `dcbx`: in the dialect of IEEE.
    pub const IEEE: u8 = 8;

    /// Whether a program of this machine sets it.
    #[must_use]
    pub const fn is_set_by_host(&self) -> bool {
        self.dcbx & Self::HOST != 0
    }
}

/// Why DCB of a card cannot be read or set.
#[derive(Debug, thiserror::Error)]
pub enum DcbError {
    /// No such interface.
    #[error("no interface {0:?}: see ip link")]
    Missing(String),
    /// It has none.
    #[error("{0}: this NIC has no DCB, or its driver does not show it (see dcb pfc show dev {0})")]
    Unsupported(String),
    /// No right to set it.
    #[error(
        "{0}: setting DCB (dcb=apply of lunar serve) needs CAP_NET_ADMIN: run as root, or grant it \
         with setcap"
    )]
    Forbidden(String),
    /// Firmware sets it.
    #[error(
        "{0}: the firmware of the NIC is the agent of DCBX, so nothing is set: turn it off there, \
         then dcb dcbx set dev {0} host ieee"
    )]
    Firmware(String),
    /// A protocol has another priority, which would have to be taken away.
    #[error(
        "{0}: protocol {1:04x}h has priority {2} already, and nothing is deleted, as that resets \
         some NICs: dcb app del dev {0} ethtype-prio {1:#06x}:{2}"
    )]
    OtherPriority(String, u16, u8),
    /// The driver took it, and then told something else.
    #[error("{0}: the driver did not take the settings of DCB: see dcb pfc show dev {0}")]
    NotTaken(String),
    /// Anything else.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl DcbError {
    fn of(name: &str, cause: io::Error) -> Self {
        let name = name.to_owned();
        match cause.raw_os_error() {
            Some(libc::ENODEV) => Self::Missing(name),
            // EINVAL: a kernel without dcbnl.
            Some(libc::EOPNOTSUPP | libc::EINVAL) => Self::Unsupported(name),
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden(name),
            _ => Self::Io(name, cause),
        }
    }
}

/// Asks for what the interface of this name has. The kernel may hold the answer back while a card
/// is being reset.
///
/// # Errors
///
/// See [`DcbError`]; [`DcbError::Unsupported`] for most interfaces.
pub fn read(name: &str) -> Result<InterfaceDcb, DcbError> {
    let failed = |cause| DcbError::of(name, cause);
    let answer = ask(message::request(Command::IeeeGet, name).map_err(failed)?).map_err(failed)?;
    let mut told = InterfaceDcb::default();
    if !message::read(&answer, &mut told) {
        let answer = ask(message::request(Command::DcbxGet, name).map_err(failed)?);
        message::read(&answer.map_err(failed)?, &mut told);
    }
    Ok(told)
}

/// Has the interface of this name have what `wanted` says, as far as that is something else than
/// it has: a setting that is written resets some cards. Nothing is taken away. Returns whether
/// anything had to be written.
///
/// # Errors
///
/// See [`DcbError`]. Only after [`DcbError::NotTaken`] something may have changed.
pub fn apply(name: &str, wanted: &InterfaceDcb) -> Result<bool, DcbError> {
    let before = read(name)?;
    let change = difference(name, &before, wanted)?;
    if change == InterfaceDcb::default() {
        return Ok(false);
    }
    if !before.is_set_by_host() {
        return Err(DcbError::Firmware(name.to_owned()));
    }
    let failed = |cause| DcbError::of(name, cause);
    let request = message::set_request(name, &change).map_err(failed)?;
    message::set_outcome(&ask(request).map_err(failed)?).map_err(failed)?;
    match difference(name, &read(name)?, wanted)? {
        rest if rest == InterfaceDcb::default() => Ok(true),
        _ => Err(DcbError::NotTaken(name.to_owned())),
    }
}

/// What of `wanted` an interface has not. The counters and what the card cannot have set are left
/// as they are.
pub(super) fn difference(
    name: &str,
    before: &InterfaceDcb,
    wanted: &InterfaceDcb,
) -> Result<InterfaceDcb, DcbError> {
    let mut change = InterfaceDcb {
        ets: wanted
            .ets
            .filter(|ets| !before.ets.is_some_and(|has| has.is_like(ets))),
        pfc: wanted
            .pfc
            .filter(|pfc| !before.pfc.is_some_and(|has| has.is_like(pfc))),
        ..InterfaceDcb::default()
    };
    for app in &wanted.apps {
        let key = (app.selector, app.protocol);
        let mut same = before
            .apps
            .iter()
            .filter(|has| (has.selector, has.protocol) == key);
        match same.next() {
            None => change.apps.push(*app),
            Some(has) if has.priority == app.priority => {}
            Some(has) => {
                let name = name.to_owned();
                return Err(DcbError::OtherPriority(name, has.protocol, has.priority));
            }
        }
    }
    Ok(change)
}

/// What the kernel answers, from `dcbmsg` on.
fn ask(request: NetlinkRequest) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    netlink::ask(&link::socket(0)?, request, |_, body| answer = body.to_vec())?;
    Ok(answer)
}
