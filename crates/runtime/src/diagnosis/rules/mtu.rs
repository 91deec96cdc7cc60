//! Whether full frames pass: at the interface, in this machine, behind it, at the other end.

use fc::fip::max_fcoe;
use fc::path_probe::{FcfPath, PathVerdict, PortPath};
use fc::port::config::payload_max;
use fc::wire::frame::{MAX_PAYLOAD, MIN_PAYLOAD};

use super::at;
use crate::diagnosis::readings::{Hop, HopPlace, PathReadings, Readings};
use crate::diagnosis::{Finding, Remedy};
use crate::n_port::problems::MTU;

/// Bytes behind the Ethernet header of the longest FCoE frame, with 2,112 bytes of payload.
const FULL: u32 = 2158;

/// Interfaces that are too narrow. Those below come first: an upper one cannot be wider.
pub(super) fn own(readings: &Readings) -> Vec<Finding> {
    let is_narrow = readings.mtu() < FULL;
    let least = if is_narrow {
        MTU
    } else {
        readings.mtu().min(MTU)
    };
    let below = readings.hops.iter();
    let below = below.filter(|hop| {
        let carries_all = matches!(hop.place, HopPlace::Below | HopPlace::Bonded);
        carries_all && hop.link.mtu < least
    });
    let own = readings.hops.iter().take(1).filter(|_| is_narrow);
    below.rev().chain(own).map(narrow).collect()
}

fn narrow(hop: &Hop) -> Finding {
    let (name, mtu) = (&hop.link.name, hop.link.mtu);
    let payload = payload_max(mtu as usize);
    let what = if mtu >= FULL {
        format!("an MTU of {mtu} is smaller than that of the interface that it carries")
    } else if payload < MIN_PAYLOAD {
        format!(
            "an MTU of {mtu} is too small for the {MIN_PAYLOAD} bytes of payload that every Fibre \
             Channel port needs"
        )
    } else {
        format!("an MTU of {mtu} limits frames to {payload} of {MAX_PAYLOAD} bytes of payload")
    };
    at(hop, "mtu", what, format!("ip link set {name} mtu {MTU}"))
}

/// Frames that the two ends could take, and that are lost in between.
pub(super) fn path(readings: &Readings) -> Vec<Finding> {
    let Some(path) = readings
        .path
        .as_ref()
        .filter(|_| !is_narrow_below(readings))
    else {
        return Vec::new();
    };
    let ports = path.ports.iter().filter_map(|port| lost(path, port));
    let fcfs = path.fcfs.iter().filter_map(lost_from);
    let mut lost = ports.chain(fcfs);
    let suspects = suspects(readings);
    if suspects.is_empty() {
        return lost
            .map(|(peer, what)| unknown_place(readings, &peer, &what))
            .collect();
    }
    let Some((_, what)) = lost.next() else {
        return Vec::new();
    };
    suspects
        .into_iter()
        .map(|hop| in_between(hop, &what))
        .collect()
}

/// Whether all frames pass an interface that is too narrow for those of the upper one: that is told
/// (see [`own`]), and what is lost behind it is its effect.
fn is_narrow_below(readings: &Readings) -> bool {
    let least = readings.mtu().min(FULL);
    let mut below = readings.hops.iter().filter(|hop| hop.place.is_certain());
    below.any(|hop| hop.link.mtu < least)
}

/// A port with what is lost on the way to it or from it.
fn lost(path: &PathReadings, port: &PortPath) -> Option<(String, String)> {
    let peer = name(port);
    let what = match port.verdict(path.mtu) {
        PathVerdict::Full | PathVerdict::Unknown => return None,
        PathVerdict::NarrowIn => format!("full frames from {peer} do not come in"),
        PathVerdict::NarrowOut(mtu) => {
            format!("frames longer than an MTU of {mtu} do not arrive at {peer}")
        }
        PathVerdict::Narrow(mtu) => {
            format!("frames longer than an MTU of {mtu} do not pass to {peer} and back")
        }
    };
    Some((peer, what))
}

/// An FCF answers by an Advertisement as long as the longest frame that it sends. One that is too
/// long for what is in between does not come at all.
fn lost_from(fcf: &FcfPath) -> Option<(String, String)> {
    if fcf.answer.is_some() {
        return None;
    }
    let peer = fcf_name(fcf);
    let what = format!("full frames from {peer} do not come in");
    Some((peer, what))
}

/// Interfaces of this machine that are not on every path, and too narrow for full frames.
fn suspects(readings: &Readings) -> Vec<&Hop> {
    let least = readings.mtu().min(FULL);
    let bridged = readings.hops.iter();
    let bridged = bridged.filter(|hop| !hop.place.is_certain() && hop.link.mtu < least);
    bridged.collect()
}

fn in_between(hop: &Hop, lost: &str) -> Finding {
    let (name, mtu) = (&hop.link.name, hop.link.mtu);
    let what = format!("{lost}, and this interface in between has an MTU of {mtu}");
    at(
        hop,
        "path-mtu",
        what,
        format!("ip link set {name} mtu {MTU}"),
    )
}

fn unknown_place(readings: &Readings, peer: &str, what: &str) -> Finding {
    let between = format!(
        "each bridge, switch and host between {} and {peer}",
        readings.interface
    );
    Finding {
        rule: "path-mtu",
        place: readings.interface.clone(),
        what: format!("{what}: an MTU in between is too small"),
        remedy: Some(Remedy::at(between, format!("ip link set PORT mtu {MTU}"))),
    }
}

/// Ports and FCFs that take no full frames, though this interface does.
pub(super) fn peer(readings: &Readings) -> Vec<Finding> {
    let Some(path) = readings.path.as_ref().filter(|_| readings.mtu() >= FULL) else {
        return Vec::new();
    };
    let found = path.ports.iter().filter_map(|port| {
        let size = port.max_fcoe.filter(|size| u32::from(*size) < FULL)?;
        let payload = payload_max(usize::from(size));
        Some(Finding {
            rule: "peer-mtu",
            place: name(port),
            what: format!("it takes frames of {payload} of {MAX_PAYLOAD} bytes of payload"),
            remedy: Some(Remedy::at(
                "its machine".to_owned(),
                format!("ip link set IFACE mtu {MTU}"),
            )),
        })
    });
    let fcfs = path.fcfs.iter().filter_map(|fcf| limited(path, fcf));
    found.chain(fcfs).collect()
}

/// An FCF whose own limit is less than a full frame.
fn limited(path: &PathReadings, fcf: &FcfPath) -> Option<Finding> {
    let answer = fcf.answer.filter(|answer| *answer < max_fcoe(path.mtu))?;
    Some(Finding {
        rule: "peer-mtu",
        place: fcf_name(fcf),
        what: format!("it sends frames of an MTU of {answer} at the most"),
        remedy: Some(Remedy::at(
            "its switch".to_owned(),
            format!("ip link set PORT mtu {MTU}"),
        )),
    })
}

fn fcf_name(fcf: &FcfPath) -> String {
    format!("the FCF {}", fcf.mac)
}

/// A port as it is known: by its WWPN, or by its address.
fn name(port: &PortPath) -> String {
    let wwpn = port.wwpn.map(|wwpn| wwpn.to_string());
    wwpn.unwrap_or_else(|| port.enode.to_string())
}
