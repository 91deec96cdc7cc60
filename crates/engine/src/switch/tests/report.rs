//! Members of active zones that have not logged in are listed.

use fc::fabric::zones::Zones;
use fc::fabric::{PortNumber, SwitchLogin};
use fc::wire::ethernet::Mac;
use fc::wire::names::{FcId, Wwn};

use super::super::report::{absent_ports, unseen};

#[test]
fn members_that_nothing_logged_in_has_are_listed_once() {
    let zones = Zones::parse(
        "alias disks = 50:06:01:60:bb:20:22:80 50:06:01:68:bb:20:22:80\n\
         zone a = 20:00:00:00:00:00:00:01 disks id:010100\n\
         zone b = port:cable:a node:10:00:00:00:00:00:00:01 disks port:cable:b\n\
         zone asleep = 20:00:00:00:00:00:00:09\n\
         zoneset day = a b\nactive day\n",
    );
    let zones = zones.unwrap();
    let login = SwitchLogin {
        fc_id: FcId(0x01_0100),
        wwpn: Wwn(0x5006_0168_bb20_2280),
        wwnn: Wwn(0x1000_0000_0000_0001),
        port: PortNumber(0),
        place: "cable:a".into(),
        enode: Mac([2, 0, 0, 0, 0, 1]),
        mac: Mac([0x0e, 0xfc, 0, 1, 1, 0]),
        max_payload: 2112,
        is_further: false,
    };
    let listed = |logins: &[SwitchLogin]| {
        let members = unseen(&zones, logins.iter());
        members.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let away = [
        "20:00:00:00:00:00:00:01",
        "50:06:01:60:bb:20:22:80",
        "port:cable:b",
    ];
    assert_eq!(listed(&[login]), away);
    assert_eq!(listed(&[]).len(), 7, "each of the active zones, once");
}

#[test]
fn places_where_the_switch_has_no_port_are_listed() {
    let zones = Zones::parse(
        "zone a = port:eth1 port:eth9\nzone b = port:cable:a port:eth9\n\
         zone asleep = port:eth8 port:eth1\nzoneset day = a b\nactive day\n",
    );
    let zones = zones.unwrap();
    let absent = |places: &[&str]| {
        absent_ports(&zones, places)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(absent(&["eth1", "cable:a"]), ["eth9"]);
    assert_eq!(absent(&["eth9", "eth1", "cable:a"]), [""; 0]);
}
