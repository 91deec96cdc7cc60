use super::rig::{Lan, alone, config, frames, ms, port, told};
use crate::fip::{Fip, max_fcoe};
use crate::wire::ethernet::{self, VlanTag};
use crate::wire::names::FcId;

#[test]
fn a_port_alone_probes_twice_claims_and_beacons() {
    let mut fip = port(config(0x4100));
    assert_eq!(
        alone(&mut fip, ms(1500)),
        [
            "4100 > all ProbeRequest 004100",
            "4100 > all ProbeRequest 004100",
            "4100 > all ClaimNotification 004100",
            "vn:4100 > all Beacon 004100",
            "vn:4100 > all Beacon 004100",
        ]
    );
    assert_eq!(told(&mut fip), ["claimed 004100"]);
    assert_eq!(fip.fc_id(), Some(FcId(0x4100)));
    assert_eq!(fip.mac().unwrap().to_string(), "0e:fd:00:00:41:00");
}

#[test]
fn waits_are_those_of_the_standard() {
    let mut fip = port(config(0x4100));
    let mut times = Vec::new();
    while let Some(at) = fip.next_deadline().filter(|at| *at < ms(30_000)) {
        times.push(at);
        fip.expire(at);
    }
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(times[0] < ms(100));
    assert_eq!(waits[..4], [ms(100), ms(400), ms(400), ms(400)]);
    assert_eq!(waits.len(), 4 + 3);
    assert!(
        waits[4..]
            .iter()
            .all(|wait| (ms(8000)..ms(8100)).contains(wait))
    );
    assert_ne!(waits[4], waits[5], "by lot");
}

#[test]
fn two_ports_find_each_other() {
    let mut lan = Lan::of(&[config(1)]);
    lan.run(ms(1000));
    lan.trace();
    lan.add(config(2), 2);
    lan.run(ms(2500));
    assert_eq!(
        lan.trace(),
        [
            "0002 > all ProbeRequest 000002",
            "0002 > all ProbeRequest 000002",
            "0002 > all ClaimNotification 000002",
            "0001 > 0002 ClaimResponse 000001, 2172 bytes",
            "1: claimed 000002",
            "0001 > 0002 ElsRequest FLOGI 000001 > 000002 0000",
            "1: found 000001",
            "0002 > 0001 ElsReply LS_ACC 000002 > 000001 0000",
            "0: found 000002",
        ]
    );
    let found: Vec<_> = lan.ports[1].neighbours().collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].wwpn, config(1).wwpn);
    assert_eq!(found[0].wwnn, config(1).wwnn);
    assert_eq!(found[0].enode, config(1).mac);
    assert_eq!(found[0].mac.to_string(), "0e:fd:00:00:00:01");
    assert_eq!(found[0].payload_max, 2112);
    assert_eq!(
        (found[0].target, found[0].initiator),
        (Some(true), Some(false))
    );
}

#[test]
fn on_a_vlan_all_is_tagged() {
    let tag = VlanTag {
        priority: 3,
        dei: false,
        vid: 100,
    };
    let mut fip = Fip::new(config(1), ms(0), [7; 8]).tagged(Some(tag));
    fip.link(ms(0), true);
    fip.expire(ms(100));
    let frame = frames(&mut fip).remove(0);
    let (header, _) = ethernet::EthernetHeader::parse(&frame).unwrap();
    assert_eq!((header.vlan, frame.len()), (Some(tag), 68));
}

#[test]
fn frames_are_as_long_as_both_ends_and_the_mtu_allow() {
    assert_eq!(max_fcoe(1500), 1498);
    assert_eq!(max_fcoe(2157), 2154);
    assert_eq!(max_fcoe(2158), 2158);
    assert_eq!(max_fcoe(9000), 2158);
    let mut lan = Lan::of(&[config(1)]);
    let mut small = config(2);
    small.max_fcoe = max_fcoe(1500);
    lan.add(small, 2);
    lan.run(ms(2000));
    let padded = |line: &String| line.ends_with("bytes");
    let padded: Vec<_> = lan.trace().into_iter().filter(padded).collect();
    assert!(!padded.is_empty());
    assert!(
        padded.iter().all(|line| line.ends_with(", 1512 bytes")),
        "{padded:?}"
    );
    for port in &lan.ports {
        let payloads: Vec<_> = port.neighbours().map(|who| who.payload_max).collect();
        assert_eq!(payloads, [1452]);
    }
}

/// The response is as long as the frames to come: where those do not pass, nor does it, and the
/// port that claims does not learn of the other one.
#[test]
fn a_path_too_narrow_makes_no_link() {
    let mut lan = Lan::of(&[config(1)]);
    lan.run(ms(1000));
    lan.add(config(2), 2);
    lan.run_with(ms(60_000), |line| !line.ends_with("bytes"));
    assert_eq!(lan.ports[1].neighbours().count(), 0);
}
