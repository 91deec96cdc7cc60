//! CT requests of several frames, and those of ports without a login.

use super::rig::{CT, Rig, id, login, told};
use crate::fabric::PortNumber;
use crate::fabric::servers::{PortLogin, ServerFrame};
use crate::wire::ct::{CtCode, CtHeader, CtService};
use crate::wire::els::{Code, Els, Logo};
use crate::wire::frame::RCtl;
use crate::wire::names::{FcId, Wwn};

/// A request of so many bytes that no service knows.
fn request(len: usize) -> Vec<u8> {
    let header = CtHeader::request(CtService::NAME_SERVER, CtCode(0x7777));
    let mut bytes = header.encode().to_vec();
    bytes.resize(len, 0);
    bytes
}

/// Reason and explanation of each reject.
fn rejects(rig: &mut Rig) -> Vec<(u8, u8)> {
    let sent = rig.sent().into_iter();
    let why = sent.map(|sent| {
        let (header, _) = CtHeader::parse(&sent.payload).unwrap();
        assert_eq!(header.code, CtCode::REJECT);
        (header.why.reason, header.why.explanation)
    });
    why.collect()
}

const TO: FcId = FcId::DIRECTORY;

fn rig(ports: std::ops::Range<u32>) -> Rig {
    let mut rig = Rig::new(ports.clone());
    ports.for_each(|number| rig.log_in(number, TO));
    rig
}

#[test]
fn a_request_without_a_login_is_answered_with_a_logo() {
    let mut rig = Rig::new([1]);
    rig.sends((id(1), TO), CT, &request(3000), 2112);
    let sent = rig.sent_one();
    assert_eq!(sent.header.r_ctl, RCtl::ELS_REQUEST);
    let logo = Logo {
        fc_id: TO,
        wwpn: Wwn(0x20fc_0200_0000_0001),
    };
    assert_eq!(Els::parse(&sent.payload), Ok(Els::Logo(logo)));
    // Of the F_Port controller, too.
    rig.sends((id(1), FcId::FABRIC_F), CT, &request(16), 2112);
    assert_eq!(Code(rig.sent_one().payload[0]), Code::LOGO);
}

#[test]
fn a_request_comes_in_frames() {
    let mut rig = rig(0..1);
    for len in [16, 2112, 2113, 8192] {
        rig.sends((id(0), TO), CT, &request(len), 1024);
        assert_eq!(rejects(&mut rig), [(0x0b, 0)], "{len}");
    }
    rig.sends((id(0), TO), CT, &request(8193), 1024);
    assert_eq!(rejects(&mut rig), [(0x04, 0)]);
    rig.sends((id(0), TO), CT, &request(1 << 20), 1024);
    assert_eq!(rejects(&mut rig), [(0x04, 0)]);
    assert_eq!(rig.servers.reassembly.next_deadline(), None);
}

#[test]
fn a_lost_frame_ends_a_request() {
    let mut rig = rig(0..1);
    let frames = rig.frames((id(0), TO), CT, &request(4000), 1000);
    for lost in 0..3 {
        for (at, frame) in frames.iter().enumerate() {
            if at != lost {
                rig.comes(frame);
            }
        }
        assert!(rig.sent().is_empty());
    }
    // Without its end it is kept for E_D_TOV after its first frame, whatever comes meanwhile.
    rig.comes(&frames[0]);
    rig.pass(1000);
    rig.comes(&frames[1]);
    rig.pass(999);
    rig.comes(&frames[2]);
    rig.pass(1);
    rig.comes(&frames[3]);
    assert!(rig.sent().is_empty());
    assert_eq!(rig.servers.reassembly.next_deadline(), None);
}

#[test]
fn a_request_that_is_aborted_or_repeated_begins_anew() {
    let mut rig = rig(0..1);
    let frames = rig.frames((id(0), TO), CT, &request(2000), 1000);
    rig.comes(&frames[0]);
    let mut abort = frames[0].clone();
    abort.header.r_ctl = RCtl::ABTS;
    abort.header.kind = crate::wire::frame::FrameType::BLS;
    rig.comes(&abort);
    assert_eq!(rig.sent_one().header.r_ctl, RCtl::BA_ACC);
    rig.comes(&frames[1]);
    assert!(rig.sent().is_empty());
    for frame in [&frames[0], &frames[0], &frames[1]] {
        rig.comes(frame);
    }
    assert_eq!(rejects(&mut rig).len(), 1);
}

/// One port cannot take the place of another's request, however many it begins.
#[test]
fn a_port_that_begins_many_requests_evicts_only_its_own() {
    let mut rig = rig(0..18);
    let frames: Vec<_> = (0..15)
        .map(|number| rig.frames((id(number), TO), CT, &request(2000), 1000))
        .collect();
    frames.iter().for_each(|frames| rig.comes(&frames[0]));
    let own: Vec<_> = (0..1000)
        .map(|_| rig.frames((id(17), TO), CT, &request(2000), 1000))
        .collect();
    own.iter().for_each(|frames| rig.comes(&frames[0]));
    // 15 and 1 are 16: the last of its own has a place.
    own.iter().for_each(|frames| rig.comes(&frames[1]));
    assert_eq!(rejects(&mut rig).len(), 1);
    frames.iter().for_each(|frames| rig.comes(&frames[1]));
    assert_eq!(rejects(&mut rig).len(), 15);
}

#[test]
fn a_port_with_two_requests_makes_room_for_one_that_has_none() {
    let mut rig = rig(0..18);
    let begin = |rig: &mut Rig, number| {
        let frames = rig.frames((id(number), TO), CT, &request(2000), 1000);
        rig.comes(&frames[0]);
        frames
    };
    let all: Vec<_> = (0..16).map(|at| begin(&mut rig, at / 2)).collect();
    let late = begin(&mut rig, 17);
    for frames in all.iter().chain([&late]) {
        rig.comes(&frames[1]);
    }
    let answered = rig.sent().into_iter().map(|sent| sent.header.d_id);
    let answered: Vec<_> = answered.collect();
    // The first one of the first port made room.
    assert_eq!(answered.len(), 16);
    assert_eq!(answered.iter().filter(|to| **to == id(0)).count(), 1);
    assert!(answered.contains(&id(17)));
}

/// The first frame of a request comes.
fn begins(rig: &mut Rig, number: u32) -> Vec<ServerFrame> {
    let frames = rig.frames((id(number), TO), CT, &request(2000), 1000);
    rig.comes(&frames[0]);
    frames
}

/// A sender behind one port of the switch makes up as many ENodes as it likes.
#[test]
fn enodes_behind_one_port_of_the_switch_make_room_for_those_behind_others() {
    let mut rig = Rig::new([1, 2]);
    let crowd = 32..48;
    for number in crowd.clone() {
        let port = PortNumber(0);
        let login = PortLogin {
            port,
            ..login(number)
        };
        rig.servers.logged_in(rig.now, login);
        rig.log_in(number, TO);
    }
    let others: Vec<_> = [1, 2]
        .into_iter()
        .inspect(|number| rig.log_in(*number, TO))
        .collect();
    let _: Vec<_> = crowd
        .clone()
        .map(|number| begins(&mut rig, number))
        .collect();
    for number in others {
        let frames = begins(&mut rig, number);
        // It is not taken away again.
        let _: Vec<_> = crowd
            .clone()
            .map(|number| begins(&mut rig, number))
            .collect();
        rig.comes(&frames[1]);
        assert_eq!(rig.sent_one().header.d_id, id(number));
    }
}

#[test]
fn a_port_that_is_gone_leaves_nothing() {
    let mut rig = rig(0..1);
    let frames = rig.frames((id(0), TO), CT, &request(2000), 1000);
    rig.comes(&frames[0]);
    rig.servers.logged_out(rig.now, id(0));
    assert_eq!(rig.servers.next_deadline(), None);
}

#[test]
fn headers_that_are_wrong() {
    let mut rig = rig(0..1);
    rig.sends((id(0), TO), CT, &request(16)[..15], 2112);
    assert!(rig.sent().is_empty());
    assert_eq!(rig.events().len(), 1);
    let mut bytes = request(16);
    bytes[0] = 2;
    rig.sends((id(0), TO), CT, &bytes, 2112);
    assert_eq!(rejects(&mut rig), [(0x02, 0)]);
    let sent = rig.ct(0, TO, &request(16));
    assert_eq!(sent.frames, 1);
    // The login is still there.
    let logo = Logo {
        fc_id: id(0),
        wwpn: super::rig::wwpn(0),
    };
    assert_eq!(told(&rig.els(0, TO, &Els::Logo(logo))), "LS_ACC");
}
