//! Frames between VN_Ports: the checks in their order, and what is rewritten.

use std::sync::Arc;

use super::rig::{
    fcf, fcoe_frame, fcoe_with, host, ms, open, port_config, quiet, receive, switch, tag, told, vn,
};
use crate::fabric::zones::Zones;
use crate::fabric::{
    DropReason, Forwarding, PairDrops, PortNumber, Switch, SwitchConfig, SwitchPortConfig,
    UndeliveredFrame, Verdict,
};
use crate::wire::ethernet::{EthernetHeader, FCOE, Mac};
use crate::wire::fcoe;
use crate::wire::names::FcId;

const A: FcId = FcId(0x01_0100);
const B: FcId = FcId(0x01_0101);
const C: FcId = FcId(0x01_0102);

/// A and C are at port 0, B is at port 1.
fn busy(config: &SwitchConfig) -> Switch {
    let mut switch = quiet(super::rig::switch_of(1, config, 2));
    for (host, fc_id) in [(host(0, 1), A), (host(1, 2), B), (host(0, 3), C)] {
        assert_eq!(host.log_in(&mut switch, 1), fc_id);
    }
    switch
}

const TO_PORT_1: Verdict = Verdict::Forward(Forwarding {
    egress: PortNumber(1),
    s_id: A,
    d_id: B,
    header: EthernetHeader::new(fcf(1, 1), vn(B), FCOE),
    start: 14,
});

#[test]
fn addresses_are_rewritten_and_nothing_else() {
    let mut switch = busy(&open());
    let mut frame = fcoe_frame(0, A, B, 2112);
    let Verdict::Forward(forwarding) = receive(&mut switch, 2, 0, &mut frame) else {
        panic!();
    };
    let mut slot = vec![0; forwarding.len(frame.len())];
    assert_eq!(forwarding.write(&frame, &mut slot), frame.len());
    let (header, _) = EthernetHeader::parse(&slot).unwrap();
    assert_eq!((header.dst, header.src), (vn(B), fcf(1, 1)));
    assert_eq!(slot[12..], frame[12..]);
}

#[test]
fn ingress_may_be_egress() {
    let mut switch = busy(&open());
    let mut frame = fcoe_frame(0, A, C, 100);
    let Verdict::Forward(forwarding) = receive(&mut switch, 2, 0, &mut frame) else {
        panic!();
    };
    assert_eq!(forwarding.egress, PortNumber(0));
    let header = forwarding.header;
    assert_eq!((header.dst, header.src), (vn(C), fcf(1, 0)));
}

/// A frame that would pass, with one thing wrong.
fn spoilt(spoil: impl FnOnce(&mut Vec<u8>)) -> DropReason {
    let mut switch = busy(&open());
    let mut frame = fcoe_frame(0, A, B, 64);
    spoil(&mut frame);
    match receive(&mut switch, 2, 0, &mut frame) {
        Verdict::Dropped(reason) => {
            let (_, _, counters) = switch.counters().next().unwrap();
            assert_eq!(counters.dropped(reason), 1);
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_check_has_its_reason() {
    use DropReason::{Class, Crc, Malformed, NotForUs, NotLoggedIn, Spoofed};
    assert_eq!(spoilt(|frame| frame[5] ^= 1), NotForUs, "another address");
    assert_eq!(spoilt(|frame| frame[13] ^= 1), NotForUs, "no FCoE");
    assert_eq!(spoilt(|frame| frame.truncate(13)), NotForUs);
    assert_eq!(spoilt(|frame| frame.truncate(59)), Malformed);
    assert_eq!(spoilt(|frame| frame[14] = 0x10), Malformed, "a version");
    assert_eq!(spoilt(|frame| frame[27] = 0x28), Class, "SOFf");
    assert_eq!(spoilt(|frame| frame[14 + 14 + 24 + 64 + 4] = 0x49), Class);
    assert_eq!(spoilt(|frame| frame[60] ^= 1), Crc);
    assert_eq!(spoilt(|frame| frame[11] ^= 1), Spoofed, "a source address");
    assert_eq!(spoilt(|frame| *frame = fcoe_frame(0, B, A, 64)), Spoofed);
    let stranger = FcId(0x01_0200);
    assert_eq!(
        spoilt(|frame| *frame = fcoe_frame(0, stranger, A, 64)),
        NotLoggedIn
    );
    let domain = FcId(0x02_0100);
    assert_eq!(
        spoilt(|frame| *frame = fcoe_frame(0, domain, A, 64)),
        NotLoggedIn
    );
    let reason = spoilt(|frame| *frame = fcoe_frame(0, A, stranger, 64));
    assert_eq!(reason, DropReason::NoSuchPort);
    let reason = spoilt(|frame| *frame = fcoe_frame(0, A, FcId::BROADCAST, 64));
    assert_eq!(reason, DropReason::NoSuchPort);
}

#[test]
fn ports_that_share_no_zone_do_not_hear_each_other() {
    let zones = "zone one = 20:00:02:00:00:00:00:01 port:eth1\n\
                 zone two = 20:00:02:00:00:00:00:03 node:10:00:02:00:00:00:00:63\n\
                 zoneset all = one two\n\
                 active all";
    let config = SwitchConfig {
        zones: Arc::new(Zones::parse(zones).unwrap()),
        ..SwitchConfig::default()
    };
    let mut switch = busy(&config);
    let mut pass =
        |port, from, to| receive(&mut switch, 2, port, &mut fcoe_frame(port, from, to, 8));
    let zoned = Verdict::Dropped(DropReason::Zoned);
    assert_eq!(pass(0, A, B), TO_PORT_1);
    assert!(matches!(pass(1, B, A), Verdict::Forward(_)));
    assert_eq!(pass(0, A, C), zoned);
    assert_eq!(pass(1, B, C), zoned);
    assert_eq!(pass(0, C, B), zoned);
    assert_eq!(
        pass(0, C, FcId::DIRECTORY),
        Verdict::Taken,
        "with no regard to zones"
    );
    switch.set_zones(ms(3), Arc::new(Zones::open()));
    let mut frame = fcoe_frame(0, A, C, 8);
    assert!(matches!(
        receive(&mut switch, 4, 0, &mut frame),
        Verdict::Forward(_)
    ));
    switch.set_zones(ms(5), Arc::new(Zones::closed()));
    let mut frame = fcoe_frame(0, A, C, 8);
    assert_eq!(receive(&mut switch, 6, 0, &mut frame), zoned);
}

#[test]
fn a_port_that_is_gone_is_not_reached() {
    let mut switch = busy(&open());
    let snapshot = switch.forwarding();
    super::rig::ask(&mut switch, 2, 1, &host(1, 2).logo(B, 9));
    let frame = || fcoe_frame(0, A, B, 8);
    let verdict = receive(&mut switch, 3, 0, &mut frame());
    assert_eq!(verdict, Verdict::Dropped(DropReason::NoSuchPort));
    // Whoever holds an older table forwards by that.
    assert_eq!(snapshot.forward(PortNumber(0), &frame()), TO_PORT_1);
    let verdict = switch.forwarding().forward(PortNumber(0), &frame());
    assert_eq!(verdict, Verdict::Dropped(DropReason::NoSuchPort));
}

#[test]
fn what_is_longer_than_the_egress_takes_is_dropped() {
    let mut switch = Switch::new(&open(), ms(0), [1; 8]);
    for (number, mtu) in [(0, 2500), (1, 1500)] {
        let config = SwitchPortConfig {
            mtu,
            ..port_config(1, number)
        };
        let port = switch.add_port(config);
        switch.link(ms(0), port, true);
    }
    host(0, 1).log_in(&mut switch, 1);
    host(1, 2).log_in(&mut switch, 1);
    let told: Vec<_> = switch.logins().map(|login| login.max_payload).collect();
    assert_eq!(told, [2112, 1452]);
    let mut pass = |len| receive(&mut switch, 2, 0, &mut fcoe_frame(0, A, B, len));
    assert_eq!(pass(1452), TO_PORT_1);
    assert_eq!(pass(1456), Verdict::Dropped(DropReason::TooLong));
}

/// A frame may be in the queue of its egress meanwhile.
#[test]
fn a_frame_that_waits_is_checked_again() {
    let mut switch = busy(&open());
    let may = |switch: &Switch, s_id, d_id| {
        let port = PortNumber(1);
        switch.still_allows(port, (s_id, d_id), ms(1000))
    };
    assert_eq!(may(&switch, A, B), Ok(()));
    assert_eq!(may(&switch, A, C), Err(DropReason::NoSuchPort), "elsewhere");
    switch.set_zones(ms(3), Arc::new(Zones::closed()));
    assert_eq!(may(&switch, A, B), Err(DropReason::Zoned));
    switch.set_zones(ms(4), Arc::new(Zones::open()));
    super::rig::ask(&mut switch, 5, 0, &host(0, 1).logo(A, 9));
    assert_eq!(may(&switch, A, B), Err(DropReason::NotLoggedIn));
    super::rig::ask(&mut switch, 6, 1, &host(1, 2).logo(B, 9));
    assert_eq!(may(&switch, C, B), Err(DropReason::NoSuchPort));
}

/// Other zones are no other login.
#[test]
fn a_frame_from_before_a_login_does_not_leave() {
    let mut switch = busy(&open());
    switch.set_zones(ms(3), Arc::new(Zones::open()));
    let may = |switch: &Switch, at| switch.still_allows(PortNumber(1), (A, B), ms(at));
    assert_eq!(may(&switch, 3), Ok(()));
    super::rig::ask(&mut switch, 5, 0, &host(0, 1).flogi(9));
    assert_eq!(may(&switch, 5), Err(DropReason::NotLoggedIn));
    assert_eq!(may(&switch, 6), Ok(()));
}

/// The kernel takes tags out of what it receives.
#[test]
fn a_tag_that_was_taken_out_counts_as_if_it_stood_there() {
    let mut switch = Switch::new(&open(), ms(0), [1; 8]);
    let config = SwitchPortConfig {
        tag: Some(tag(5)),
        ..port_config(1, 0)
    };
    let port = switch.add_port(config);
    switch.link(ms(0), port, true);
    let flogi = host(0, 1).flogi(1);
    switch.receive_tagged(ms(1), port, &flogi, Some(tag(6)));
    assert_eq!(switch.logins().count(), 0, "of another VLAN");
    switch.receive_tagged(ms(1), port, &flogi, Some(tag(5)));
    assert_eq!(switch.logins().count(), 1);
    let to_itself = fcoe_frame(0, A, A, 30);
    let verdict = switch.receive_tagged(ms(2), port, &to_itself, Some(tag(5)));
    let Verdict::Forward(forwarding) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(forwarding.header.vlan, Some(tag(5)));
    let not_for_us = Verdict::Dropped(DropReason::NotForUs);
    assert_eq!(switch.receive(ms(2), port, &to_itself), not_for_us);
    let twice = fcoe_with(Some(tag(5)), 0, (A, A), 30);
    let verdict = switch.receive_tagged(ms(2), port, &twice, Some(tag(5)));
    assert_eq!(verdict, not_for_us);
}

/// Three ports: without a tag, and in two VLANs.
#[test]
fn tags_come_go_and_change() {
    let mut switch = Switch::new(&open(), ms(0), [1; 8]);
    let tags = [None, Some(tag(5)), Some(tag(6))];
    for (number, tag) in (0..).zip(tags) {
        let config = SwitchPortConfig {
            tag,
            ..port_config(1, number)
        };
        let port = switch.add_port(config);
        switch.link(ms(0), port, true);
    }
    let ids = [(0, A), (1, B), (2, C)];
    for (port, fc_id) in ids {
        let mut flogi = host(port, port + 1).flogi(1);
        if let Some(tag) = tags[usize::from(port)] {
            let [high, low] = tag.encode().to_be_bytes();
            flogi.splice(12..12, [0x81, 0, high, low]);
        }
        receive(&mut switch, 1, port, &mut flogi);
        assert!(told(&mut switch)[1].ends_with(&format!("{fc_id:?}")));
    }
    for (from, s_id) in ids {
        for (to, d_id) in ids {
            let was = tags[usize::from(from)];
            let mut frame = fcoe_with(was, from, (s_id, d_id), 30);
            let verdict = receive(&mut switch, 2, from, &mut frame);
            let Verdict::Forward(forwarding) = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!(forwarding.egress, PortNumber(to.into()));
            let mut slot = vec![0; forwarding.len(frame.len())];
            let len = forwarding.write(&frame, &mut slot);
            assert_eq!(len, slot.len());
            let (header, bytes) = EthernetHeader::parse(&slot).unwrap();
            let expected = EthernetHeader {
                vlan: tags[usize::from(to)],
                ..EthernetHeader::new(fcf(1, to), vn(d_id), FCOE)
            };
            assert_eq!(header, expected, "{from} to {to}");
            assert_eq!(fcoe::decode(bytes).unwrap().payload, [0x5a; 30]);
        }
    }
    let untagged = &mut fcoe_frame(1, B, A, 30);
    let verdict = receive(&mut switch, 3, 1, untagged);
    assert_eq!(verdict, Verdict::Dropped(DropReason::NotForUs));
    let priority_tagged = &mut fcoe_with(Some(tag(0)), 0, (A, B), 30);
    let verdict = receive(&mut switch, 3, 0, priority_tagged);
    assert!(matches!(verdict, Verdict::Forward(_)), "{verdict:?}");
}

/// So that one who makes up addresses does not fill the memory.
#[test]
fn drops_are_counted_by_pair_in_64_rows() {
    let mut switch = busy(&open());
    for number in 0..100 {
        for _ in 0..=number % 2 {
            receive(
                &mut switch,
                2,
                0,
                &mut fcoe_frame(0, A, FcId(0x01_1000 + number), 8),
            );
        }
    }
    receive(&mut switch, 2, 0, &mut fcoe_frame(0, A, B, 8));
    let mut congested = fcoe_frame(0, A, B, 8);
    receive(&mut switch, 2, 0, &mut congested);
    let undelivered = UndeliveredFrame {
        ingress: PortNumber(0),
        s_id: A,
        d_id: B,
        bytes: congested.len() as u64,
    };
    switch.count_undelivered(DropReason::Congested, &undelivered);
    let (number, place, counters) = switch.counters().next().unwrap();
    assert_eq!((number, place), (PortNumber(0), "eth0"));
    assert_eq!(counters.dropped(DropReason::NoSuchPort), 150);
    assert_eq!(counters.dropped(DropReason::Congested), 1);
    let bytes = congested.len() as u64;
    assert_eq!((counters.forwarded_frames, counters.taken), (2, 2));
    assert_eq!(counters.forwarded_bytes, 2 * bytes, "it never goes down");
    let undelivered = (counters.undelivered_frames, counters.undelivered_bytes);
    assert_eq!(undelivered, (1, bytes));
    assert_eq!(counters.pairs().count(), 64);
    let row = |d_id, reason, frames| PairDrops {
        s_id: A,
        d_id,
        reason,
        frames,
    };
    let rows: Vec<_> = counters.pairs().collect();
    assert!(rows.contains(&&row(B, DropReason::Congested, 1)));
    assert!(rows.contains(&&row(FcId(0x01_1000 + 99), DropReason::NoSuchPort, 2)));
    let old = |row: &&PairDrops| row.d_id == FcId(0x01_1000);
    assert!(!rows.into_iter().any(|row| old(&row)), "the oldest went");
}

/// FIP for others, and groups of no FCoE, are not frames of this switch.
#[test]
fn what_is_for_nobody_here_is_counted() {
    let mut switch = switch();
    let mut frame = fcoe_frame(0, A, B, 8);
    frame[..6].copy_from_slice(&Mac::BROADCAST.0);
    let verdict = receive(&mut switch, 1, 0, &mut frame);
    assert_eq!(verdict, Verdict::Dropped(DropReason::NotForUs));
    let verdict = switch.receive(ms(1), PortNumber(9), &frame);
    assert_eq!(
        verdict,
        Verdict::Dropped(DropReason::NotForUs),
        "no such port"
    );
}
