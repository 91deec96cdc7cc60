//! open-iscsi against LIO, from captures: the initiator's requests as they were sent, header in
//! hexadecimal, text with blanks in place of nulls.

use super::*;
use crate::test_support::nulls;
use crate::text;

/// T, I, C, flags, lengths | ISID, TSIH | ITT, CID | CmdSN, ExpStatSN | reserved.
pub(super) fn captured(header: &str, text: &str) -> Vec<u8> {
    let digits: String = header.split_whitespace().collect();
    let bytes = text::binary(&format!("0x{digits}"), BHS_LEN).unwrap();
    let bhs = Bhs(*bytes.first_chunk().unwrap());
    let mut data = nulls(text);
    data.push(0);
    assert_eq!(
        data.len(),
        bhs.data_len() as usize,
        "the text is as long as the header says"
    );
    data.resize(data.len().next_multiple_of(4), 0);
    [&bhs.0[..], &data[..]].concat()
}

fn lio() -> Arc<TargetConfig> {
    let node = TargetNode::new("iqn.2026-01.test:lio".into(), chap());
    config(vec![Arc::new(node)])
}

/// What the capture's target chose: identifier, challenge, and first StatSN.
fn with_choices_of_the_capture(peer: &mut Peer) {
    let mut random = [0; 64];
    let challenge = text::binary("0x9438366a6fcecea0778f51a304a33567", 16).unwrap();
    random[1..17].copy_from_slice(&challenge);
    random[60..].copy_from_slice(&0x21a6_2ea4_u32.to_be_bytes());
    peer.login = Login::new(Duration::ZERO, lio(), endpoints(), random);
    peer.next.itt = Itt(0);
    peer.next.cmd_sn = CmdSn(0);
}

/// Mutual CHAP, both digests: each of the four requests fits what we answer, and our proof is the
/// one that LIO gave.
#[test]
fn mutual_chap_and_digests() {
    let mut peer = Peer::new(&lio());
    with_choices_of_the_capture(&mut peer);
    peer.send_bytes(&captured(
        "43000000 0000007f 00023d00 00010000 00000000 00000000 00000000 00000000 \
         00000000 00000000 00000000 00000000",
        "InitiatorName=iqn.2026-01.test:initiator InitiatorAlias=ini \
         TargetName=iqn.2026-01.test:lio SessionType=Normal AuthMethod=CHAP",
    ));
    assert_eq!(peer.recv(), "S: TargetPortalGroupTag=1 AuthMethod=CHAP");
    peer.send_bytes(&captured(
        "43000000 00000009 00023d00 00010000 00000000 00000000 00000000 21a62ea5 \
         00000000 00000000 00000000 00000000",
        "CHAP_A=5",
    ));
    assert_eq!(
        peer.recv(),
        "S: CHAP_A=5 CHAP_I=0 CHAP_C=0x9438366a6fcecea0778f51a304a33567"
    );
    peer.send_bytes(&captured(
        "43810000 0000006c 00023d00 00010000 00000000 00000000 00000000 21a62ea6 \
         00000000 00000000 00000000 00000000",
        "CHAP_N=user1 CHAP_R=0xd078448b5e79f93e0ba0f0234d2c7528 CHAP_I=136 \
         CHAP_C=0xe667ae77635de43e6c7cdb0e18c21d53",
    ));
    assert_eq!(
        peer.recv(),
        "S>O: CHAP_N=tuser1 CHAP_R=0xf9e18804af33a32375b8931e0e755aed"
    );
    peer.send_bytes(&captured(
        "43870000 0000013b 00023d00 00010000 00000000 00000000 00000000 21a62ea7 \
         00000000 00000000 00000000 00000000",
        "HeaderDigest=CRC32C DataDigest=CRC32C DefaultTime2Wait=2 DefaultTime2Retain=0 \
         IFMarker=No OFMarker=No ErrorRecoveryLevel=0 InitialR2T=No ImmediateData=Yes \
         MaxBurstLength=16776192 FirstBurstLength=262144 MaxOutstandingR2T=1 MaxConnections=1 \
         DataPDUInOrder=Yes DataSequenceInOrder=Yes MaxRecvDataSegmentLength=262144",
    ));
    assert!(matches!(peer.event(), Some(LoginEvent::Remark(_))));
    let Some(LoginEvent::Session { wish, .. }) = peer.event() else {
        panic!("not asked")
    };
    assert_eq!((wish.tsih, wish.cid), (0, 0));
    let (_, parameters) = peer.admitted(1);
    assert!(parameters.keys.header_digest && parameters.keys.data_digest);
    assert_eq!(
        parameters.stat_sn, 0x21a6_2ea8,
        "as the capture's target went on"
    );
}

/// Everything in one request.
#[test]
fn a_discovery() {
    let node = TargetNode {
        name: "iqn.2026-01.test:lio".into(),
        ..(*node('a', only(&[]))).clone()
    };
    let mut peer = Peer::new(&config(vec![Arc::new(node)]));
    (peer.next.itt, peer.next.isid[5], peer.next.cmd_sn) = (Itt(0), 0, CmdSn(1));
    peer.send_bytes(&captured(
        "43870000 000000e8 00023d00 00000000 00000000 00000000 00000001 00000000 \
         00000000 00000000 00000000 00000000",
        "InitiatorName=iqn.2026-01.test:initiator InitiatorAlias=ini SessionType=Discovery \
         HeaderDigest=None DataDigest=None DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No \
         OFMarker=No ErrorRecoveryLevel=0 MaxRecvDataSegmentLength=32768",
    ));
    assert!(matches!(
        peer.event(),
        Some(LoginEvent::Session { node: None, .. })
    ));
    let (_, parameters) = peer.admitted(1);
    assert_eq!(parameters.keys.peer_data_segment, 32_768);
}

#[test]
fn a_login_may_move_to_another_core() {
    fn moves<T: Send>(_: &T) {}
    moves(&Peer::new(&lio()).login);
}
