//! The kernel's FCoE, on this machine and on others.

use crate::diagnosis::readings::Readings;
use crate::diagnosis::{Finding, Remedy};

/// Where libfcoe takes orders.
const PARAMETERS: &str = "/sys/module/libfcoe/parameters";

pub(super) fn kernel_port(readings: &Readings) -> Vec<Finding> {
    let found = readings.kernel_port.iter().map(|port| {
        let on = &port.interface;
        let state = if port.is_point_to_point {
            ", which has gone point-to-point and ignores every FCF,"
        } else {
            ""
        };
        Finding {
            rule: "kernel-port",
            place: readings.interface.clone(),
            what: format!(
                "the kernel has an FCoE port on {on}{state} with the names that Lunar would have"
            ),
            remedy: Some(Remedy::here(format!("echo {on} > {PARAMETERS}/destroy"))),
        }
    });
    found.collect()
}

/// Linux that has heard no FIP sends FLOGI in FCoE frames. Two that hear each other's log in to
/// each other and ignore every FCF until their links go down.
pub(super) fn point_to_point(readings: &Readings) -> Vec<Finding> {
    let Some(path) = &readings.path else {
        return Vec::new();
    };
    let has_fcf = !path.fcfs.is_empty();
    let no_fcf = if has_fcf { "" } else { NO_FCF };
    let found = path.outside_fip.iter().map(|(mac, wwpn)| Finding {
        rule: "point-to-point",
        place: mac.to_string(),
        what: format!(
            "the port {wwpn} logs in outside of FIP, so it goes point-to-point with the next one \
             that does and then ignores every FCF{no_fcf}"
        ),
        remedy: Some(Remedy::at("its machine".to_owned(), begun_anew(has_fcf))),
    });
    found.collect()
}

/// What goes before what mends Linux where it is to be in a fabric.
const NO_FCF: &str = ", of which none is heard here: if there is to be one, start it first (lunar \
                      switch), and run this again for the command";

/// How Linux hears FIP again: its link has to go down, or where there is no FCF to be heard, it has
/// to be told that there is none.
fn begun_anew(has_fcf: bool) -> String {
    if has_fcf {
        return "ip link set IFACE down && ip link set IFACE up".to_owned();
    }
    let [destroy, create] = ["destroy", "create_vn2vn"].map(|one| format!("{PARAMETERS}/{one}"));
    format!("echo IFACE > {destroy} && echo IFACE > {create}")
}
