//! What both ends go by after a Request and its Reply.

use super::{CONFIG, peer_to_peer, request};
use crate::iwarp::startup::{
    Agreed, EnhancedData, FrameKind, FrameReader, MpaRole, RtrKinds, StartupConfig, StartupError,
    StartupFrame,
};
use crate::iwarp::terminate::TerminateCode;

/// A Request with these depths.
fn asking(ird: u16, ord: u16) -> StartupFrame {
    let peer_to_peer = None;
    let enhanced = Some(EnhancedData {
        ird,
        ord,
        peer_to_peer,
    });
    StartupFrame {
        enhanced,
        ..request()
    }
}

/// A Reply with these depths.
fn answering(ird: u16, ord: u16) -> StartupFrame {
    StartupFrame {
        kind: FrameKind::Reply,
        ..asking(ird, ord)
    }
}

/// Over the wire and back.
fn carried(frame: &StartupFrame) -> StartupFrame {
    let read = FrameReader::new(frame.kind).receive(&frame.encode());
    read.unwrap().unwrap()
}

#[test]
fn two_ends_agree_upon_the_same() {
    let target = StartupConfig {
        crc: true,
        long_fpdus: true,
        ..CONFIG
    };
    let initiator = StartupConfig {
        long_fpdus: true,
        ird: 8,
        ord: 2,
        ..CONFIG
    };
    let request = carried(&initiator.request(&[1]));
    let (reply, at_target) = target.accept(&request, &[2]);
    let at_initiator = initiator.agree(&carried(&reply)).unwrap();
    assert_eq!(
        (&request.private[..], &reply.private[..]),
        (&[1][..], &[2][..])
    );
    let expected = Agreed {
        role: MpaRole::Responder,
        revision: 2,
        crc: true,
        markers: false,
        long_fpdus: true,
        ird: 2,
        ord: 8,
        rtr: false,
        refused: None,
    };
    assert_eq!(at_target, expected);
    let expected = Agreed {
        role: MpaRole::Initiator,
        ird: 8,
        ord: 2,
        ..expected
    };
    assert_eq!(at_initiator, expected);
}

#[test]
fn crcs_are_used_if_either_end_asks_and_long_fpdus_if_both_do() {
    for bits in 0..16 {
        let on = |bit: u8| bits >> bit & 1 == 1;
        let config = |crc, long_fpdus| StartupConfig {
            crc,
            long_fpdus,
            ..CONFIG
        };
        let (ours, theirs) = (config(on(0), on(1)), config(on(2), on(3)));
        let (reply, agreed) = theirs.accept(&carried(&ours.request(&[])), &[]);
        let told = ours.agree(&carried(&reply)).unwrap();
        for agreed in [agreed, told] {
            assert_eq!(agreed.crc, on(0) || on(2), "{bits:04b}");
            assert_eq!(agreed.long_fpdus, on(1) && on(3), "{bits:04b}");
        }
    }
}

#[test]
fn markers_are_sent_to_peers_that_demand_them_and_never_asked_for() {
    let demanding = StartupFrame {
        markers: true,
        ..request()
    };
    let (reply, agreed) = CONFIG.accept(&demanding, &[]);
    assert!(agreed.markers && !reply.markers);
    assert!(!CONFIG.accept(&request(), &[]).1.markers);
    assert!(!CONFIG.request(&[]).markers);
    let reply = StartupFrame {
        markers: true,
        ..answering(1, 1)
    };
    assert!(CONFIG.agree(&reply).unwrap().markers);
}

#[test]
fn a_responder_fits_its_depths_to_those_of_the_initiator() {
    // IRD and ORD of the Request; those of the Reply; those that hold here.
    let rows = [
        ((128, 1), (1, 32), (1, 32)),
        ((8, 100), (16, 8), (16, 8)),
        ((0, 0), (0, 0), (0, 0)),
        ((0x3fff, 4), (4, 0x3fff), (4, 32)),
        ((4, 0x3fff), (0x3fff, 4), (16, 4)),
    ];
    for ((ird, ord), told, holds) in rows {
        let (reply, agreed) = CONFIG.accept(&asking(ird, ord), &[]);
        let answer = carried(&reply).enhanced.unwrap();
        assert_eq!((answer.ird, answer.ord), told, "{ird}, {ord}");
        assert_eq!((agreed.ird, agreed.ord), holds, "{ird}, {ord}");
    }
}

#[test]
fn an_initiator_fits_its_depths_to_those_of_the_reply() {
    // IRD and ORD of the Reply; the ORD that holds; what the peer is told, if anything.
    let rows = [
        ((4, 16), 4, None),
        ((100, 16), 32, None),
        ((0x3fff, 1), 32, None),
        ((4, 0x3fff), 4, None),
        ((4, 17), 4, Some(TerminateCode::INSUFFICIENT_IRD)),
    ];
    for ((ird, ord), holds, refused) in rows {
        let agreed = CONFIG.agree(&answering(ird, ord)).unwrap();
        assert_eq!((agreed.ird, agreed.ord), (16, holds), "{ird}, {ord}");
        assert_eq!(agreed.refused, refused, "{ird}, {ord}");
    }
}

#[test]
fn peer_to_peer_is_answered_with_all_kinds_of_rtr() {
    let send = RtrKinds {
        send: true,
        write: false,
        read: false,
    };
    let frame = StartupFrame {
        enhanced: peer_to_peer(4, 0, send),
        ..request()
    };
    let (reply, agreed) = CONFIG.accept(&frame, &[]);
    let answer = carried(&reply).enhanced.unwrap();
    assert_eq!(answer.peer_to_peer, Some(RtrKinds::ALL));
    // An empty read may come, though the initiator has no other in mind.
    assert_eq!((answer.ird, agreed.ird, agreed.rtr), (1, 1, true));
    assert!(!CONFIG.accept(&request(), &[]).1.rtr);
}

#[test]
fn peer_to_peer_that_was_not_asked_for_is_refused() {
    let reply = StartupFrame {
        enhanced: peer_to_peer(4, 4, RtrKinds::ALL),
        ..answering(4, 4)
    };
    let agreed = CONFIG.agree(&reply).unwrap();
    assert_eq!(agreed.refused, Some(TerminateCode::NO_RTR));
}

#[test]
fn revision_1_is_answered_in_revision_1_and_trusted_with_one_read() {
    let frame = StartupFrame {
        revision: 1,
        enhanced: None,
        ..request()
    };
    let (reply, agreed) = CONFIG.accept(&frame, &[]);
    assert_eq!((reply.revision, reply.enhanced), (1, None));
    assert_eq!((agreed.revision, agreed.ird, agreed.ord), (1, 16, 1));
}

#[test]
fn a_plain_request_of_revision_2_is_answered_plainly() {
    let frame = StartupFrame {
        enhanced: None,
        ..request()
    };
    let (reply, _) = CONFIG.accept(&frame, &[]);
    assert_eq!((reply.revision, reply.enhanced), (2, None));
}

#[test]
fn a_reply_that_is_not_enhanced_is_no_answer() {
    let reply = StartupFrame {
        enhanced: None,
        ..answering(1, 1)
    };
    assert_eq!(CONFIG.agree(&reply), Err(StartupError::NotEnhanced));
}

#[test]
fn a_rejection_tells_why_and_ends_it() {
    let reply = carried(&CONFIG.reject(&request(), b"full"));
    assert!(reply.rejected && reply.kind == FrameKind::Reply);
    assert_eq!(reply.private, b"full");
    assert_eq!(CONFIG.agree(&reply), Err(StartupError::Rejected));
}
