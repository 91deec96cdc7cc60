//! Logins over RDMA, and what becomes of the keys of iSER over TCP (RFC 7145 §6).

use rdma::iwarp::startup::MpaRole;
use rdma::iwarp::stream::Stream;
use rdma::test_support::{agreed, sent};
use rdma::verbs::{Completion, QueuePair as _, SendHeader, Work};
use scsi::medium::Lease as _;

use super::captures::captured;
use super::*;
use crate::datamover::iser::IserMover;
use crate::parameters::{IserKeys, Operational, TaskReporting};
use crate::target::NodeLogin;
use crate::wire::iser::{AdvertisedBuffers, ControlMessage, Hello, IserHeader};

/// The operational part of what ib_iser says, from a capture.
const IB_ISER: &str = "DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No OFMarker=No \
    ErrorRecoveryLevel=0 InitialR2T=No ImmediateData=Yes MaxBurstLength=16776192 \
    FirstBurstLength=262144 MaxOutstandingR2T=1 MaxConnections=1 DataPDUInOrder=Yes \
    DataSequenceInOrder=Yes InitiatorRecvDataSegmentLength=262144 \
    TargetRecvDataSegmentLength=8192 RDMAExtensions=Yes";

/// A target to which an initiator comes over RDMA.
fn over_rdma() -> Peer {
    Peer::default().over_rdma()
}

/// One request with these keys, and what it leads to.
fn negotiated(mut peer: Peer, keys: &str) -> (String, Parameters) {
    peer.send("O>F", &format!("{INITIATOR} {TARGET} {keys}"));
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    let answer = response.strip_prefix("O>F: TargetPortalGroupTag=1");
    (answer.unwrap().trim_start().to_owned(), parameters)
}

/// What a session over RDMA has where nothing but RDMAExtensions was negotiated.
fn bare() -> Operational {
    Operational {
        transport: Transport::Iser {
            data_segment: 65_536,
        },
        iser: IserKeys {
            rdma_extensions: true,
            ..IserKeys::default()
        },
        ..Operational::default()
    }
}

#[test]
fn a_captured_initiator_logs_in() {
    let name = "iqn.2026-01.test:lio";
    let lio = TargetNode::new(name.into(), NodeAccess::default());
    let mut peer = Peer::new(&config(vec![Arc::new(lio)])).over_rdma();
    (peer.next.itt, peer.next.cid, peer.next.cmd_sn) = (Itt(0), 0, CmdSn(0));
    peer.next.isid = [0, 2, 0x3d, 0, 0, 2];
    peer.send_bytes(&captured(
        "43870000 000001be 00023d00 00020000 00000000 00000000 00000000 00000000 \
         00000000 00000000 00000000 00000000",
        &format!(
            "InitiatorName=iqn.2026-01.test:initiator InitiatorAlias=ini TargetName={name} \
             SessionType=Normal {IB_ISER}"
        ),
    ));
    assert_eq!(peer.asks().1.as_deref(), Some(name));
    let (response, parameters) = peer.admitted(1);
    assert_eq!(
        response,
        "O>F: TargetPortalGroupTag=1 DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No \
         OFMarker=No ErrorRecoveryLevel=0 InitialR2T=Yes ImmediateData=Yes \
         MaxBurstLength=1048576 MaxOutstandingR2T=1 MaxConnections=1 DataPDUInOrder=Yes \
         DataSequenceInOrder=Yes InitiatorRecvDataSegmentLength=8192 \
         TargetRecvDataSegmentLength=8192 RDMAExtensions=Yes FirstBurstLength=262144"
    );
    let expected = Operational {
        max_burst: 1 << 20,
        first_burst: 262_144,
        time2retain: 0,
        ..bare()
    };
    assert_eq!(parameters.keys, expected);
    assert!(parameters.keys.iser.offset_skips_unsolicited());
}

#[test]
fn lengths_of_iser_take_the_place_of_the_data_segment_length() {
    let (answer, parameters) = negotiated(
        over_rdma(),
        "RDMAExtensions=Yes TargetRecvDataSegmentLength=1048576 \
         InitiatorRecvDataSegmentLength=512 MaxRecvDataSegmentLength=1",
    );
    assert_eq!(
        answer,
        "RDMAExtensions=Yes TargetRecvDataSegmentLength=65536 \
         InitiatorRecvDataSegmentLength=512",
        "nothing is declared, and what the initiator declared is not looked at"
    );
    let keys = parameters.keys;
    assert_eq!(
        (keys.own_data_segment, keys.peer_data_segment),
        (65_536, 512)
    );
}

#[test]
fn without_rdma_extensions_there_is_no_session() {
    for keys in [
        IB_ISER.trim_end_matches(" RDMAExtensions=Yes"),
        "RDMAExtensions=No",
    ] {
        let mut peer = over_rdma();
        peer.opens("O>F", keys, "reject 0200");
        peer.breaks("a login over RDMA without RDMAExtensions=Yes");
    }
    let mut peer = over_rdma();
    peer.opens("S>F", "AuthMethod=None", "reject 0200");
    assert_eq!(peer.closes().clause, "RFC 7145 §6.3");
}

#[test]
fn rdma_extensions_may_come_in_a_later_request() {
    let mut peer = over_rdma();
    peer.passes_security();
    peer.exchange("O", "ImmediateData=Yes", "O: ImmediateData=Yes");
    peer.send("O>F", "RDMAExtensions=Yes");
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    assert_eq!(response, "O>F: RDMAExtensions=Yes");
    assert_eq!(parameters.keys, bare());
}

#[test]
fn a_discovery_needs_no_rdma_extensions() {
    let mut peer = over_rdma();
    peer.send(
        "O>F",
        &format!(
            "{INITIATOR} SessionType=Discovery HeaderDigest=None DataDigest=None \
             DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No OFMarker=No \
             ErrorRecoveryLevel=0 MaxRecvDataSegmentLength=32768"
        ),
    );
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    assert_eq!(
        response,
        "O>F: TargetPortalGroupTag=1 HeaderDigest=None DataDigest=None DefaultTime2Wait=2 \
         DefaultTime2Retain=0 IFMarker=No OFMarker=No ErrorRecoveryLevel=0"
    );
    assert_eq!(
        parameters.keys.peer_data_segment, 8192,
        "ib_iser declares 32768 and has a receive of 8192 bytes"
    );
}

#[test]
fn a_discovery_may_declare_shorter_data_segments() {
    let declared = "SessionType=Discovery MaxRecvDataSegmentLength";
    for (length, counts) in [("512", 512), ("8192", 8192), ("16777215", 8192)] {
        let mut peer = over_rdma();
        peer.send("O>F", &format!("{INITIATOR} {declared}={length}"));
        peer.asks();
        let keys = peer.admitted(1).1.keys;
        assert_eq!(
            (keys.peer_data_segment, keys.own_data_segment),
            (counts, 8192)
        );
    }
    let mut peer = over_rdma();
    peer.send("O>F", &format!("{INITIATOR} {declared}=511"));
    assert_eq!(peer.recv(), "reject 0200");
    peer.breaks("a declared value out of bounds");
}

#[test]
fn a_login_over_rdma_leads_to_no_session_over_tcp() {
    let mut peer = over_rdma();
    let keys = format!("{INITIATOR} {TARGET} RDMAExtensions=Yes");
    peer.send("O>F", &keys);
    peer.asks();
    peer.admitted(1);
    assert!(peer.login.into_session(Duration::ZERO).is_none());
}

#[test]
fn keys_of_iser_are_irrelevant_to_a_discovery() {
    let mut peer = over_rdma();
    peer.send(
        "O>F",
        &format!(
            "{INITIATOR} SessionType=Discovery RDMAExtensions=Yes MaxAHSLength=512 \
             TargetRecvDataSegmentLength=512 InitiatorRecvDataSegmentLength=512"
        ),
    );
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    assert_eq!(
        response,
        "O>F: TargetPortalGroupTag=1 RDMAExtensions=Irrelevant \
         TargetRecvDataSegmentLength=Irrelevant InitiatorRecvDataSegmentLength=Irrelevant"
    );
    assert_eq!(parameters.keys.iser, IserKeys::default());
}

#[test]
fn over_tcp_there_is_no_iser() {
    let (answer, parameters) = negotiated(
        Peer::default(),
        "RDMAExtensions=Yes TargetRecvDataSegmentLength=65536 \
         InitiatorRecvDataSegmentLength=8192 MaxOutstandingUnexpectedPDUs=1 MaxAHSLength=512 \
         TaggedBufferForSolicitedDataOnly=No iSERHelloRequired=Yes",
    );
    assert_eq!(
        answer,
        "MaxRecvDataSegmentLength=262144 RDMAExtensions=No \
         TargetRecvDataSegmentLength=Irrelevant InitiatorRecvDataSegmentLength=Irrelevant",
        "declarations are not answered"
    );
    assert_eq!(parameters.keys.iser, IserKeys::default());
    assert_eq!(parameters.keys.transport, Transport::Tcp);
}

#[test]
fn there_are_no_digests_whatever_was_offered() {
    for offered in ["CRC32C", "CRC32C,None", "None"] {
        let (answer, parameters) = negotiated(
            over_rdma(),
            &format!("RDMAExtensions=Yes HeaderDigest={offered} DataDigest={offered}"),
        );
        assert_eq!(
            answer,
            "RDMAExtensions=Yes HeaderDigest=None DataDigest=None"
        );
        assert_eq!(parameters.keys, bare());
    }
}

#[test]
fn what_a_node_wants_of_tcp_does_not_bind_iser() {
    let login = NodeLogin {
        header_digest: Some(true),
        data_digest: Some(true),
        initial_r2t: Some(false),
        data_segment: Some(512),
        immediate_data: Some(false),
        ..NodeLogin::default()
    };
    let strict = TargetNode {
        login,
        ..(*node('a', NodeAccess::default())).clone()
    };
    let peer = Peer::new(&config(vec![Arc::new(strict)])).over_rdma();
    let keys = "RDMAExtensions=Yes HeaderDigest=None InitialR2T=No ImmediateData=Yes";
    let (answer, parameters) = negotiated(peer, keys);
    assert_eq!(
        answer,
        "RDMAExtensions=Yes HeaderDigest=None InitialR2T=Yes ImmediateData=No"
    );
    let expected = Operational {
        immediate_data: false,
        ..bare()
    };
    assert_eq!(parameters.keys, expected);
}

/// The end of a task would be told before its reads are over.
#[test]
fn fast_abort_is_not_agreed_upon() {
    for (offered, answer) in [
        ("FastAbort,ResponseFence,RFC3720", "ResponseFence"),
        ("FastAbort,RFC3720", "RFC3720"),
        ("FastAbort", "Reject"),
    ] {
        let keys = format!("RDMAExtensions=Yes TaskReporting={offered}");
        let (told, parameters) = negotiated(over_rdma(), &keys);
        assert_eq!(told, format!("RDMAExtensions=Yes TaskReporting={answer}"));
        assert_ne!(parameters.keys.task_reporting, TaskReporting::FastAbort);
    }
}

/// Unsolicited Data-Out would find no receive, and the Base Offset no agreement.
#[test]
fn unsolicited_data_out_cannot_be_agreed_upon() {
    for initial_r2t in [None, Some(false), Some(true)] {
        let mut willing = (*node('a', NodeAccess::default())).clone();
        willing.login.initial_r2t = initial_r2t;
        for (offered, answer) in [
            ("", ""),
            (" InitialR2T=No", " InitialR2T=Yes"),
            (" InitialR2T=Yes", " InitialR2T=Yes"),
        ] {
            let peer = Peer::new(&config(vec![Arc::new(willing.clone())])).over_rdma();
            let keys = format!("RDMAExtensions=Yes{offered}");
            let (told, parameters) = negotiated(peer, &keys);
            assert_eq!(told, format!("RDMAExtensions=Yes{answer}"));
            assert!(parameters.keys.initial_r2t);
        }
    }
}

#[test]
fn limits_are_declared_to_an_initiator_that_declares_its_own() {
    let declared = "MaxOutstandingUnexpectedPDUs=0 MaxAHSLength=4294967295 \
         TaggedBufferForSolicitedDataOnly=No iSERHelloRequired=Yes";
    let keys = format!("RDMAExtensions=Yes {declared}");
    let (answer, parameters) = negotiated(over_rdma(), &keys);
    assert_eq!(
        answer,
        "RDMAExtensions=Yes MaxOutstandingUnexpectedPDUs=16 MaxAHSLength=256"
    );
    let iser = parameters.keys.iser;
    assert_eq!(iser.unexpected_pdus, Some(0));
    assert_eq!(iser.ahs_length, Some(u32::MAX));
    assert!(iser.hello_required && !iser.offset_skips_unsolicited());
}

#[test]
fn declarations_out_of_bounds_end_the_login() {
    for wrong in [
        "MaxOutstandingUnexpectedPDUs=1",
        "MaxAHSLength=4294967296",
        "TaggedBufferForSolicitedDataOnly=yes",
        "iSERHelloRequired=1",
    ] {
        let mut peer = over_rdma();
        peer.opens("O>F", &format!("RDMAExtensions=Yes {wrong}"), "reject 0200");
        peer.breaks("a declared value out of bounds");
    }
}

/// Two ends of software iWARP, the first one the target's.
fn ends() -> (Stream<HeapLease>, Stream<HeapLease>) {
    let end = |role| Stream::new(agreed(role), &rdma::test_support::config());
    (end(MpaRole::Responder), end(MpaRole::Initiator))
}

/// What has come to an end as messages.
fn messages(from: &mut Stream<HeapLease>, to: &mut Stream<HeapLease>) -> Vec<Vec<u8>> {
    let bytes = sent(from);
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        rest = &rest[to.receive(rest)..];
        while let Some(completion) = to.poll() {
            if let Completion::Received { bytes, .. } = completion {
                messages.push(bytes);
            }
        }
    }
    messages
}

fn message(header: IserHeader, pdu: &[u8]) -> Vec<u8> {
    [&header.encode()[..], pdu].concat()
}

const CONTROL: IserHeader = IserHeader::Control(AdvertisedBuffers {
    write: None,
    read: None,
});

#[test]
fn requests_and_responses_are_messages() {
    let (mut ours, mut theirs) = ends();
    let mut peer = over_rdma();
    let names = format!("{INITIATOR} {TARGET}");
    for (head, text) in [("S>O", &*names), ("O>F", "RDMAExtensions=Yes")] {
        let header = SendHeader::new(&[&CONTROL.encode()]).unwrap();
        let pdu = peer.request(head, text);
        theirs.post(Work::Send {
            header,
            data: Some(HeapLease::from_bytes(pdu)),
            invalidate: None,
        });
        for message in messages(&mut theirs, &mut ours) {
            assert!(peer.login.receive_message(Duration::ZERO, &message));
        }
        if head == "O>F" {
            assert!(!peer.login.post(&mut ours), "nothing before admission");
            peer.asks();
            peer.login.admit(1);
        }
        assert!(peer.login.post(&mut ours));
        let responses = messages(&mut ours, &mut theirs);
        assert_eq!(responses.len(), 1);
        let (header, rest) = IserHeader::split(&responses[0]).unwrap();
        let pdu = ControlMessage::split(rest).unwrap();
        let expected = match head {
            "S>O" => "S>O: TargetPortalGroupTag=1",
            _ => "O>F: RDMAExtensions=Yes",
        };
        assert_eq!(header, CONTROL);
        assert_eq!(trace(&LoginResponse::decode(&pdu.bhs), pdu.data), expected);
    }
    let session = peer.login.into_session_over::<IserMover<_>>(Duration::ZERO);
    assert_eq!(session.unwrap().parameters().keys, bare());
}

#[test]
fn a_text_may_go_without_its_padding() {
    let mut peer = over_rdma();
    let mut pdu = peer.request("S>O", &format!("{INITIATOR} {TARGET}a"));
    assert_eq!(pdu.pop(), Some(0), "padded");
    let len = Bhs(*pdu.first_chunk().unwrap()).data_len() as usize;
    pdu.truncate(BHS_LEN + len);
    assert!(
        peer.login
            .receive_message(Duration::ZERO, &message(CONTROL, &pdu))
    );
    assert_eq!(peer.recv(), "reject 0203");
}

#[test]
fn messages_that_are_no_login_end_it() {
    let hello = IserHeader::Hello(Hello {
        max_version: 10,
        min_version: 10,
        ird: 1,
    });
    let ping = Bhs::new(Opcode::NopOut).0;
    let table = [
        (vec![0x10; 27], "a message shorter than an iSER header"),
        (message(hello, &[]), "an iSER Hello during login"),
        (
            message(CONTROL, &[0x43; 47]),
            "a message shorter than a PDU's header",
        ),
        (
            message(CONTROL, &[&ping[..], &[0; 4]].concat()),
            "a PDU whose lengths are not that of its message",
        ),
        (
            message(CONTROL, &ping),
            "a PDU other than a Login Request before login",
        ),
    ];
    for (message, rule) in table {
        let mut peer = over_rdma();
        assert!(peer.login.receive_message(Duration::ZERO, &message));
        assert_eq!(peer.recv(), "");
        peer.breaks(rule);
        assert!(
            !peer.login.receive_message(Duration::ZERO, &[]),
            "it is over"
        );
    }
}

#[test]
fn messages_after_the_last_request_are_the_sessions() {
    let mut peer = over_rdma();
    let names = format!("{INITIATOR} {TARGET} RDMAExtensions=Yes");
    let request = peer.request("O>F", &names);
    assert!(
        peer.login
            .receive_message(Duration::ZERO, &message(CONTROL, &request))
    );
    peer.asks();
    for early in [message(CONTROL, &request), vec![0]] {
        assert!(!peer.login.receive_message(Duration::ZERO, &early));
    }
    peer.admitted(1);
}

#[test]
fn without_resources_for_rdma_the_login_is_refused() {
    let mut peer = over_rdma();
    let keys = format!("{INITIATOR} {TARGET} RDMAExtensions=Yes");
    peer.send("O>F", &keys);
    peer.asks();
    peer.login.refuse(status::OUT_OF_RESOURCES);
    assert_eq!(peer.recv(), "reject 0302");
    peer.closes();
}
