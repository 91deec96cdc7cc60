//! Members of zones that are not there: a typing error in a zone file is no error of it.

use std::collections::HashSet;

use fc::fabric::SwitchLogin;
use fc::fabric::zones::{MemberIdentifier, Zones};

/// The members of the active zones that nothing logged in has, in order. The time that it takes
/// grows with members and logins, and not with their product.
pub(super) fn unseen<'a>(
    zones: &'a Zones,
    logins: impl Iterator<Item = &'a SwitchLogin>,
) -> Vec<&'a MemberIdentifier> {
    let mut there = HashSet::new();
    for login in logins {
        there.extend([
            MemberIdentifier::Port(login.wwpn),
            MemberIdentifier::Node(login.wwnn),
            MemberIdentifier::Id(login.fc_id),
            MemberIdentifier::Place(login.place.clone()),
        ]);
    }
    zones
        .members()
        .filter(|member| !there.contains(*member))
        .collect()
}

/// The places that the active zones have as members (`port:`), and where the switch has no port.
pub(super) fn absent_ports<'a>(
    zones: &'a Zones,
    places: &'a [&str],
) -> impl Iterator<Item = &'a str> {
    let members = zones.members().filter_map(|member| match member {
        MemberIdentifier::Place(place) => Some(&**place),
        _ => None,
    });
    members.filter(|place| !places.contains(place))
}
