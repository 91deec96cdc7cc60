//! `--fcoe`: what follows the interface.

use std::time::Duration;

use ::io::ether::Place;
use ::io::ether::dcb::DcbUse;
use address::{FabricOptions, FabricVlan, FcoeMode, Time};
use fc::fip::enode::FcfPin;
use fc::wire::names::Wwn;

use super::port;
use crate::inventory::{FcoePort, NotAPort};

#[test]
fn a_port_is_read_with_what_follows_it() {
    let whole = port("eth0.100,mode=vn2vn,wwpn=20:00:52:54:00:78:41:00,wwnn=0x1000525400784100");
    assert_eq!(whole.place.to_string(), "eth0.100");
    assert_eq!(whole.wwpn, Some(Wwn(0x2000_5254_0078_4100)));
    assert_eq!(whole.wwnn, Some(Wwn(0x1000_5254_0078_4100)));
    let quick = port("eth0,e_d_tov=100ms").e_d_tov;
    assert_eq!(quick, Some(Time(Duration::from_millis(100))));
    assert_eq!(
        port("cable:/run/x.sock").place,
        Place::Cable("/run/x.sock".into())
    );
    for (text, wrong) in [
        ("", NotAPort::NoInterface),
        ("cable:", NotAPort::NoInterface),
        ("eth0/1", NotAPort::NoName("eth0/1".into())),
        ("eth0,vn2vn", NotAPort::Unknown("vn2vn".into())),
        ("eth0,mode=star", NotAPort::Mode("star".into())),
        ("eth0,mode=fabric,mode=vn2vn", NotAPort::Twice("mode")),
        ("eth0,vlan=152", NotAPort::OfFabric("vlan")),
        ("eth0,fcf=000dec6d8f00", NotAPort::OfFabric("fcf")),
        ("eth0,mode=fabric,vlan=0", NotAPort::Vlan("0".into())),
        ("eth0,mode=fabric,vlan=4095", NotAPort::Vlan("4095".into())),
        ("eth0,mode=fabric,fcf=a", NotAPort::Fcf("a".into())),
        (
            "eth0,mode=fabric,fabric=a",
            NotAPort::Name("fabric", "a".into()),
        ),
        ("eth0,mode=fabric,vlan=1,vlan=2", NotAPort::Twice("vlan")),
        ("eth0,mode=vn2vn,mode=vn2vn", NotAPort::Twice("mode")),
        ("eth0,e_d_tov=0s", NotAPort::ErrorDetect("0s".into())),
        ("eth0,e_d_tov=2m", NotAPort::ErrorDetect("2m".into())),
        ("eth0,e_d_tov=100", NotAPort::ErrorDetect("100".into())),
        ("eth0,e_d_tov=1s,e_d_tov=1s", NotAPort::Twice("e_d_tov")),
        ("eth0,wwpn=20:00", NotAPort::Name("wwpn", "20:00".into())),
        (
            "eth0,wwnn=0000000000000000",
            NotAPort::Reserved("wwnn", Wwn(0)),
        ),
        (
            "eth0,wwpn=ff:ff:ff:ff:ff:ff:ff:ff",
            NotAPort::Reserved("wwpn", Wwn(u64::MAX)),
        ),
        ("eth0,npiv=2000000000000001", NotAPort::OfFabric("npiv")),
        (
            "eth0,mode=fabric,npiv=2000000000000001+x",
            NotAPort::Name("npiv", "x".into()),
        ),
        (
            "eth0,mode=fabric,npiv=2000000000000001+2000000000000001",
            NotAPort::SameName(Wwn(0x2000_0000_0000_0001)),
        ),
        (
            "eth0,mode=fabric,npiv=2000000000000001,wwpn=2000000000000001",
            NotAPort::SameName(Wwn(0x2000_0000_0000_0001)),
        ),
        (
            "cable:/run/x.sock,mode=fabric,npiv=2000000000000001",
            NotAPort::Npiv(Place::Cable("/run/x.sock".into())),
        ),
    ] {
        assert_eq!(text.parse::<FcoePort>(), Err(wrong), "{text}");
    }
}

#[test]
fn a_port_in_a_fabric_is_read_with_what_chooses_it() {
    let usual = FcoeMode::Fabric(FabricOptions::default());
    assert_eq!(port("eth0,mode=fabric").mode, usual);
    assert_eq!(port("eth0").mode, FcoeMode::Vn2Vn);
    assert_eq!(port("eth0,mode=fabric").dcb, DcbUse::Off);
    assert_eq!(port("eth0,mode=fabric,dcb=apply").dcb, DcbUse::Apply);
    let chosen = "eth0,mode=fabric,vlan=auto,fcf=00:0d:ec:6d:8f:00,fabric=20:98:00:0d:ec:6d:8f:01";
    let mac = "00:0d:ec:6d:8f:00".parse().unwrap();
    assert_eq!(
        port(chosen).mode,
        FcoeMode::Fabric(FabricOptions {
            vlan: FabricVlan::Auto,
            fcf: Some(FcfPin::Mac(mac)),
            fabric: Some(Wwn(0x2098_000d_ec6d_8f01)),
            ..FabricOptions::default()
        })
    );
    let tagged = port("eth0,vlan=152,mode=fabric").mode.tag();
    assert_eq!(tagged.map(|tag| tag.vid), Some(152));
}

#[test]
fn further_ports_of_an_enode_are_ports_of_their_own() {
    let written = port("eth0,mode=fabric,npiv=2000000000000001+2000000000000002");
    let ports: Vec<_> = written.ports().collect();
    let names: Vec<_> = ports
        .iter()
        .map(|port| (port.wwpn, port.is_further))
        .collect();
    let further = |number: u64| (Some(Wwn(0x2000_0000_0000_0000 | number)), true);
    assert_eq!(names, [(None, false), further(1), further(2)]);
    assert!(
        ports
            .iter()
            .all(|port| port.npiv.is_empty() && port.mode == written.mode)
    );
}

#[test]
fn a_port_of_vn2vn_answers_vlan_requests_if_it_is_to() {
    for (words, is_taken) in [
        ("eth0", Some(false)),
        ("eth0,fip-resp=no", Some(false)),
        ("eth0.152,mode=vn2vn,fip-resp=yes", Some(true)),
        ("cable:/run/x.sock,fip-resp=no", Some(false)),
        ("cable:/run/x.sock,fip-resp=yes", None),
        ("eth0,mode=fabric,fip-resp=yes", None),
        ("eth0,fip-resp=1", None),
        ("eth0,fip-resp=yes,fip-resp=yes", None),
    ] {
        let port = words.parse::<FcoePort>();
        assert_eq!(port.ok().map(|port| port.fip_resp), is_taken, "{words}");
    }
}
