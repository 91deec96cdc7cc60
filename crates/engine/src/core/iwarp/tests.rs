//! What is answered to the private data of a Request (InfiniBand Annex A12, as Linux sends it).

use rdma::iwarp::startup::MpaRole;
use rdma::verbs::QueuePair as _;

use super::*;

/// Bytes of a frame before its private data.
const FRAME_LEN: usize = 20;

/// Accepts a Request of a revision, with this private data of the consumer.
fn accept(revision: u8, private: &[u8]) -> IwarpAccepted {
    let offer = IwarpOffer::new(&IserPortals::default(), 1460, &[7; 64]);
    let initiator = StartupConfig {
        crc: true,
        long_fpdus: false,
        ird: 4,
        ord: 1,
    };
    let mut request = initiator.request(private);
    if revision == 1 {
        request.revision = 1;
        request.enhanced = None;
    }
    let accepted = IwarpStartup::new(offer).receive(&request.encode());
    accepted.expect("a Request").expect("all of it")
}

/// The private data of the Reply, without that of the enhanced startup.
fn answered(accepted: &IwarpAccepted) -> Vec<u8> {
    let reply = FrameReader::new(FrameKind::Reply).receive(&accepted.reply);
    reply.expect("a Reply").expect("all of it").private
}

/// A peer that sends none is of another kind, and LIO does not invalidate for it either.
#[test]
fn none_is_answered_with_none_and_nothing_is_invalidated() {
    for revision in [1, 2] {
        let accepted = accept(revision, &[]);
        assert_eq!(answered(&accepted), [0; 0], "revision {revision}");
        assert!(!accepted.stream.limits().can_invalidate);
        assert_eq!(accepted.stream.agreed().role, MpaRole::Responder);
    }
    assert_eq!(accept(1, &[]).reply.len(), FRAME_LEN);
}

#[test]
fn who_bears_invalidation_gets_it_and_is_told() {
    for (private, told, can_invalidate) in [
        ([0x80, 0, 0, 0], [0x80, 0, 0, 0], true),
        ([0xc0, 0, 0, 0], [0xc0, 0, 0, 0], false),
        ([0x40, 0, 0, 0], [0xc0, 0, 0, 0], false),
    ] {
        let accepted = accept(2, &private);
        assert_eq!(answered(&accepted), told);
        assert_eq!(accepted.stream.limits().can_invalidate, can_invalidate);
    }
}

/// Less than a header of Annex A12 says nothing.
#[test]
fn what_is_too_short_to_be_a_header_invalidates_nothing() {
    let accepted = accept(2, &[0x80, 0, 0]);
    assert!(!accepted.stream.limits().can_invalidate);
    assert_eq!(answered(&accepted), [0xc0, 0, 0, 0]);
}
