//! Texts in and out, and what is withheld.

use rdma::iwarp::ddp::{Opcode, QueueNumber, ReadRequest, UntaggedHeader};
use rdma::test_support::{read_request, untagged};
use rdma::verbs::{Stag, Tag};

use super::withholding::Withholding;
use super::{IserSettings, keys};

fn header(opcode: Opcode) -> UntaggedHeader {
    UntaggedHeader {
        last: true,
        opcode,
        invalidate: Stag(0),
        queue: QueueNumber::of(opcode),
        msn: 1,
        offset: 0,
    }
}

fn request() -> Vec<u8> {
    let tag = Tag {
        stag: Stag(1),
        offset: 0,
    };
    let request = ReadRequest {
        sink: tag,
        size: 4096,
        source: tag,
    };
    read_request(&header(Opcode::READ_REQUEST), &request)
}

#[test]
fn a_login_is_offered_what_iser_needs_and_hears_nothing_of_it() {
    let settings = IserSettings {
        solicited_only: Some(false),
        ..IserSettings::usual()
    };
    let text = keys::offered(b"SessionType=Normal\0DataDigest=CRC32C\0", &settings);
    let expected = "SessionType=Normal\0DataDigest=CRC32C,None\0RDMAExtensions=Yes\0\
        InitiatorRecvDataSegmentLength=8192\0TargetRecvDataSegmentLength=65536\0\
        TaggedBufferForSolicitedDataOnly=No\0";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let answer = b"DataDigest=None\0RDMAExtensions=Yes\0TargetRecvDataSegmentLength=512\0";
    let heard = keys::answered(answer);
    assert_eq!(heard, b"DataDigest=None\0MaxRecvDataSegmentLength=512\0");
}

#[test]
fn a_discovery_session_is_not_assisted() {
    let text = b"InitiatorName=iqn.a\0SessionType=Discovery\0";
    assert_eq!(keys::offered(text, &IserSettings::usual()), text);
}

#[test]
fn requests_for_data_are_withheld_and_given_later_and_nothing_else_is() {
    let (request, message) = (request(), untagged(&header(Opcode::SEND), b"a message"));
    let mut withholding = Withholding::default();
    assert_eq!(withholding.pass(&request), request);
    withholding.set(true);
    let both = [&request[..], &message].concat();
    let heard: Vec<u8> = both
        .chunks(5)
        .flat_map(|piece| withholding.pass(piece))
        .collect();
    assert_eq!(heard, message);
    withholding.set(false);
    assert_eq!(withholding.pass(&message), both);
}
