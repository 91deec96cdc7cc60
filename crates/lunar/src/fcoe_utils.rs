//! The programs of fcoe-utils as verbs. They also work by the names of these programs: a symbolic
//! link `fcoeadm` to lunar is `lunar fcoeadm`.

pub(crate) mod fcnsq;
pub(crate) mod fcoeadm;
pub(crate) mod fcping;
pub(crate) mod fcrls;
pub(crate) mod fipvlan;
mod own_ports;
mod transport;

use std::io::{Error, ErrorKind};

use crate::VerbError;

/// The programs whose names stand for a verb.
pub(crate) const PROGRAMS: &[&str] = &["fcoeadm", "fipvlan", "fcping", "fcnsq", "fcrls"];

/// Why no requests can be sent by a host.
fn no_device(host: &str, cause: &Error) -> VerbError {
    let device = format!("/dev/bsg/fc_{host}");
    VerbError::failed(match cause.kind() {
        ErrorKind::NotFound => format!(
            "no such port: {device} is missing: fcoeadm -i shows hosts, and modprobe bsg makes \
             their devices"
        ),
        ErrorKind::PermissionDenied => format!("{device}: no right to send: run as root"),
        _ => format!("{device}: {cause}"),
    })
}
