//! When an agent sends, and what.

use super::rig::*;
use crate::lldp::{DcbSettings, LldpConfig, LldpMode};
use crate::tests::HeapFrames;
use crate::wire::lldp::Lldpdu;

#[test]
fn four_in_four_seconds_and_then_each_half_minute() {
    let mut agent = agent(config(1, LldpMode::Send));
    let expected = [(0, 120), (1, 120), (2, 120), (3, 120), (33, 120), (63, 120)];
    assert_eq!(times(&mut agent, s(90)), expected);
}

#[test]
fn it_begins_again_with_the_link() {
    let mut agent = agent(config(1, LldpMode::Send));
    times(&mut agent, s(10));
    agent.link(s(10), false);
    assert_eq!(agent.next_deadline(), None);
    agent.link(s(20), true);
    let expected = [(20, 120), (21, 120), (22, 120), (23, 120)];
    assert_eq!(times(&mut agent, s(50)), expected);
}

#[test]
fn a_new_neighbour_is_told_soon() {
    let mut agent = agent(config(1, LldpMode::Send));
    times(&mut agent, s(10));
    hear(&mut agent, s(15), 2, 120);
    let expected = [(15, 120), (16, 120), (17, 120), (18, 120)];
    assert_eq!(times(&mut agent, s(40)), expected);
    hear(&mut agent, s(41), 2, 120);
    assert_eq!(times(&mut agent, s(47)), [], "it is known");
}

/// Whatever is heard and changes, at most 5 are sent at once, and then one a second.
#[test]
fn neighbours_that_come_without_end_do_not_have_it_send_without_end() {
    let mut agent = agent(config(1, LldpMode::Send));
    times(&mut agent, s(10));
    let mut count = 0;
    for number in 0..1000 {
        hear(&mut agent, s(20), 2 + number, 120);
        let dcb = (number % 2 == 0).then(|| DcbSettings::fcoe(3, true));
        agent.set_dcb(s(20), dcb);
        count += times(&mut agent, s(20)).len();
    }
    assert_eq!(count, 5);
    assert!(times(&mut agent, s(30)).len() <= 10);
}

#[test]
fn what_finds_no_room_waits_and_the_newest_is_sent() {
    let mut agent = agent(config(1, LldpMode::Send));
    let mut full = HeapFrames::of(0);
    agent.expire(s(0));
    agent.transmit(&mut full);
    agent.set_dcb(s(0), Some(DcbSettings::fcoe(3, true)));
    agent.expire(s(0));
    let frames = sent(&mut agent);
    let [last] = &frames[..] else {
        panic!("{frames:x?}");
    };
    assert!(kinds(last).contains("[00, 80, c2]/11"), "{}", kinds(last));
    assert_eq!(agent.statistics().sent, 1);
}

#[test]
fn the_last_one_has_no_time_to_live_and_nothing_else() {
    let mut agent = with_dcb(1, LldpMode::Send, true);
    times(&mut agent, s(10));
    agent.shut_down(s(11));
    let last = sent(&mut agent).pop().unwrap();
    assert_eq!(Lldpdu::parse(&last).unwrap().ttl_s, 0);
    assert_eq!(kinds(&last), "");
    hear(&mut agent, s(12), 2, 120);
    agent.link(s(13), false);
    agent.link(s(14), true);
    assert_eq!(agent.next_deadline(), None);
    assert_eq!(agent.neighbours(), []);
}

#[test]
fn who_has_told_nothing_says_no_farewell() {
    let mut agent = with_dcb(1, LldpMode::Send, true);
    agent.shut_down(s(0));
    assert_eq!(sent(&mut agent).len(), 0);
}

#[test]
fn one_that_listens_says_nothing() {
    for mode in [LldpMode::Listen, LldpMode::Off] {
        let mut agent = with_dcb(1, mode, true);
        hear(&mut agent, s(1), 2, 120);
        assert_eq!(times(&mut agent, s(100)), []);
        agent.shut_down(s(100));
        assert_eq!(sent(&mut agent).len(), 0);
    }
}

#[test]
fn texts_stand_in_it_as_far_as_there_is_room() {
    let mut agent = agent(LldpConfig {
        port_description: "uplink".to_owned(),
        system_name: "é".repeat(100),
        system_description: "d".repeat(1000),
        port_id: "p".repeat(1000),
        dcb: Some(DcbSettings {
            apps: DcbSettings::fcoe(3, false).apps.repeat(1000),
            ..DcbSettings::fcoe(3, false)
        }),
        ..config(1, LldpMode::Send)
    });
    agent.expire(s(0));
    let payload = sent(&mut agent).pop().unwrap();
    let message = Lldpdu::parse(&payload).unwrap();
    assert_eq!(message.text(4), Some(&b"uplink"[..]));
    assert_eq!(message.text(5).map(<[u8]>::len), Some(128));
    assert_eq!(message.text(6).map(<[u8]>::len), Some(128));
    assert_eq!(message.port.id.len(), 128);
    assert!(kinds(&payload).ends_with("[00, 80, c2]/12"));
}

/// As tshark 4.0 and lldpd 1.0.16 read it without a complaint.
#[test]
fn an_end_that_is_willing_sends_these_bytes() {
    let mut agent = agent(LldpConfig {
        system_name: "host".to_owned(),
        dcb: Some(DcbSettings::fcoe(3, true)),
        ..config(1, LldpMode::Send)
    });
    agent.expire(s(0));
    let payload = sent(&mut agent).pop().unwrap();
    let expected: &[&[u8]] = &[
        &[0x02, 7, 4, 2, 0, 0, 0, 0, 1],
        &[0x04, 5, 5, b'e', b't', b'h', b'0'],
        &[0x06, 2, 0, 120],
        &[0x0a, 4, b'h', b'o', b's', b't'],
        &[0xfe, 25, 0x00, 0x80, 0xc2, 9, 0x80, 0, 1, 0, 0, 50, 50],
        &[0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0],
        &[0xfe, 6, 0x00, 0x80, 0xc2, 11, 0x88, 0x08],
        &[
            0xfe, 11, 0x00, 0x80, 0xc2, 12, 0, 0x61, 0x89, 0x06, 0x61, 0x89, 0x14,
        ],
        &[0, 0],
    ];
    assert_eq!(payload, expected.concat());
}
