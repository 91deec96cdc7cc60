//! Target nodes of one server that negotiate differently.

use super::*;
use crate::parameters::Operational;
use crate::target::NodeLogin;

/// What an initiator offers that leaves all to the target.
const OFFER: &str = "HeaderDigest=None,CRC32C DataDigest=None,CRC32C InitialR2T=No \
    ImmediateData=Yes MaxBurstLength=16776192 FirstBurstLength=262144 MaxOutstandingR2T=16 \
    DefaultTime2Wait=0 DataPDUInOrder=No DataSequenceInOrder=No";

/// Node `a` negotiates with these values, and `b` as the server does.
fn with(login: NodeLogin) -> Arc<TargetConfig> {
    let plain = node('b', NodeAccess::default());
    let a = TargetNode {
        login,
        ..TargetNode::clone(&node('a', NodeAccess::default()))
    };
    config(vec![Arc::new(a), plain])
}

fn strict() -> NodeLogin {
    NodeLogin {
        header_digest: Some(true),
        data_digest: Some(false),
        initial_r2t: Some(true),
        immediate_data: Some(true),
        data_segment: Some(16_384),
        max_burst: Some(65_536),
        first_burst: Some(8192),
        time2wait: Some(5),
        outstanding_r2t: Some(2),
        pdu_in_order: Some(true),
        sequence_in_order: Some(true),
        sessions: Some(3),
    }
}

impl Peer {
    /// One request of node `letter`, the response to it, and the keys.
    #[track_caller]
    fn negotiates(config: &Arc<TargetConfig>, letter: char, keys: &str) -> (String, Operational) {
        let mut peer = Self::new(config);
        let target = format!("TargetName=iqn.2026-11.org.lunar:{letter}");
        peer.send("O>F", &format!("{INITIATOR} {target} {keys}"));
        peer.asks();
        let (response, parameters) = peer.admitted(1);
        (response, parameters.keys)
    }
}

#[test]
fn two_nodes_of_one_server_answer_one_offer_each_in_its_way() {
    let config = with(strict());
    let (strict, keys) = Peer::negotiates(&config, 'a', OFFER);
    assert_eq!(
        strict,
        "O>F: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=16384 HeaderDigest=CRC32C \
         DataDigest=None InitialR2T=Yes ImmediateData=Yes MaxBurstLength=65536 \
         MaxOutstandingR2T=2 DefaultTime2Wait=5 DataPDUInOrder=Yes DataSequenceInOrder=Yes \
         FirstBurstLength=8192"
    );
    assert!(keys.header_digest && !keys.data_digest && keys.initial_r2t);
    let (plain, keys) = Peer::negotiates(&config, 'b', OFFER);
    assert_eq!(
        plain,
        "O>F: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 HeaderDigest=None \
         DataDigest=None InitialR2T=No ImmediateData=Yes MaxBurstLength=1048576 \
         MaxOutstandingR2T=8 DefaultTime2Wait=0 DataPDUInOrder=No DataSequenceInOrder=No \
         FirstBurstLength=262144"
    );
    assert!(!keys.header_digest && !keys.initial_r2t);
}

#[test]
fn a_session_asks_for_its_place_among_those_of_its_node() {
    for (letter, most) in [('a', Some(3)), ('b', None)] {
        let mut peer = Peer::new(&with(strict()));
        let target = format!("TargetName=iqn.2026-11.org.lunar:{letter}");
        peer.send("O>F", &format!("{INITIATOR} {target} HeaderDigest=CRC32C"));
        if letter == 'a' {
            // It is told what else the node wants.
            peer.recv();
            peer.send(
                "O>F",
                "DefaultTime2Wait=5 MaxBurstLength=65536 FirstBurstLength=8192",
            );
        }
        match peer.event() {
            Some(LoginEvent::Session { wish, .. }) => assert_eq!(wish.most, most),
            event => panic!("{event:?}"),
        }
    }
}

#[test]
fn discovery_goes_by_the_server_even_where_it_names_the_node() {
    let mut peer = Peer::new(&with(strict()));
    peer.send(
        "O>F",
        &format!("{INITIATOR} {TARGET} SessionType=Discovery HeaderDigest=None"),
    );
    peer.asks();
    assert_eq!(
        peer.admitted(1).0,
        "O>F: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 HeaderDigest=None"
    );
}

/// RFC 7143 §6.2: a proposal of the target's own, and the initiator's answer to it.
#[test]
fn what_an_initiator_leaves_out_the_target_proposes() {
    let mut peer = Peer::new(&with(NodeLogin {
        header_digest: Some(true),
        immediate_data: Some(false),
        max_burst: Some(65_536),
        first_burst: Some(8192),
        initial_r2t: Some(false),
        ..NodeLogin::default()
    }));
    peer.opens(
        "O>F",
        "MaxOutstandingR2T=1",
        "O: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 MaxOutstandingR2T=1 \
         HeaderDigest=CRC32C ImmediateData=No MaxBurstLength=65536",
    );
    // What the target says decides on immediate data, so that need not be answered.
    peer.send("O>F", "HeaderDigest=CRC32C MaxBurstLength=32768");
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    assert_eq!(response, "O>F:");
    let keys = parameters.keys;
    assert!(keys.header_digest && !keys.immediate_data && keys.initial_r2t);
    assert_eq!(keys.max_burst, 32_768);
}

#[test]
fn an_initiator_that_goes_on_offering_is_not_interrupted() {
    let mut peer = Peer::new(&with(strict()));
    peer.opens(
        "O",
        "InitialR2T=No",
        "O: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=16384 InitialR2T=Yes",
    );
    peer.send(
        "O>F",
        "HeaderDigest=CRC32C DefaultTime2Wait=9 MaxBurstLength=4096",
    );
    peer.asks();
    let (_, parameters) = peer.admitted(1);
    assert_eq!(
        (parameters.keys.max_burst, parameters.keys.first_burst),
        (4096, 4096)
    );
}

#[test]
fn a_digest_that_is_asked_for_and_not_had_ends_the_login() {
    for answers in ["", "HeaderDigest=None", "HeaderDigest=Reject"] {
        let mut peer = Peer::new(&with(NodeLogin {
            header_digest: Some(true),
            ..NodeLogin::default()
        }));
        peer.opens(
            "O>F",
            "",
            "O: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 HeaderDigest=CRC32C",
        );
        peer.exchange("O>F", answers, "reject 0200");
        peer.closes();
    }
}

/// What it offered does not hold what the node needs: a second proposal would be a renegotiation.
#[test]
fn an_offer_that_the_node_does_not_allow_ends_the_login() {
    let mut peer = Peer::new(&with(NodeLogin {
        data_digest: Some(true),
        ..NodeLogin::default()
    }));
    peer.send("O>F", &format!("{INITIATOR} {TARGET} DataDigest=None"));
    assert_eq!(peer.recv(), "reject 0200");
    peer.breaks("a key at a value that the target does not allow");
}

#[test]
fn a_login_without_negotiation_ends_where_the_defaults_are_not_allowed() {
    let mut peer = Peer::new(&with(NodeLogin {
        immediate_data: Some(false),
        ..NodeLogin::default()
    }));
    peer.send("S>F", &format!("{INITIATOR} {TARGET}"));
    assert_eq!(peer.recv(), "reject 0200");
    peer.breaks("a key at a value that the target does not allow");
}
