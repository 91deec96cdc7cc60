//! An initiator that logs in as its script says.

use iscsi::auth::Hash;
use iscsi::test_support::pdu;
use iscsi::text;
use iscsi::wire::bhs::{Bhs, Itt};
use iscsi::wire::login::LoginRequest;
use iscsi::wire::serial::{CmdSn, StatSn};

use super::{SECRET, USER};
use crate::fuzzing::script::Script;

#[derive(Debug, Default)]
pub(super) struct Initiator {
    /// The challenge that came last.
    challenge: Option<Challenge>,
    /// It has answered a challenge rightly.
    pub(super) proven: bool,
}

#[derive(Debug)]
struct Challenge {
    hash: Hash,
    identifier: u8,
    bytes: Vec<u8>,
}

/// Pairs that initiators send. `CHAP_R` without a value is computed, rightly.
const PAIRS: &[&str] = &[
    "InitiatorName=iqn.2026-11.org.test:host",
    "InitiatorName=iqn.2026-11.org.test:listed",
    "TargetName=iqn.2026-11.org.lunar:open",
    "TargetName=iqn.2026-11.org.lunar:listed",
    "TargetName=iqn.2026-11.org.lunar:guarded",
    "SessionType=Normal",
    "SessionType=Discovery",
    "AuthMethod=None",
    "AuthMethod=CHAP,None",
    "AuthMethod=CHAP",
    "CHAP_A=5",
    "CHAP_A=5,6,7,8",
    "CHAP_A=7,5",
    "CHAP_N=user",
    "CHAP_R",
    "CHAP_R=0x00",
    "CHAP_I=1",
    "CHAP_C=0x0102030405060708",
    "CHAP_C",
    "InitiatorAlias=alias",
    "HeaderDigest=CRC32C,None",
    "HeaderDigest=None",
    "DataDigest=None,CRC32C",
    "DataDigest=CRC32C",
    "MaxConnections=8",
    "InitialR2T=No",
    "InitialR2T=Yes",
    "ImmediateData=No",
    "ImmediateData=Yes",
    "MaxRecvDataSegmentLength=512",
    "MaxRecvDataSegmentLength=16777215",
    "MaxBurstLength=512",
    "MaxBurstLength=0xffffff",
    "FirstBurstLength=512",
    "FirstBurstLength=16777215",
    "DefaultTime2Wait=2",
    "DefaultTime2Retain=3600",
    "MaxOutstandingR2T=65535",
    "DataPDUInOrder=Yes",
    "DataSequenceInOrder=No",
    "ErrorRecoveryLevel=2",
    "IFMarker=Yes",
    "OFMarkInt=1~2",
    "TaskReporting=FastAbort,ResponseFence,RFC3720",
    "iSCSIProtocolLevel=2",
    "X-org.test.key=1",
    "SendTargets=All",
    "X#NodeArchitecture=test",
];

impl Initiator {
    /// A login request. Its header goes on from the last one where the script does not say
    /// otherwise.
    pub(super) fn request(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let head = script.byte();
        let mut request = LoginRequest {
            transit: head & 0x80 != 0,
            more: head & 0x40 != 0,
            current: head >> 2 & 3,
            next: head & 3,
            version_max: 0,
            version_min: 0,
            isid: [0x80, 0, 0, 0, 0, 1],
            tsih: 0,
            itt: Itt(1),
            cid: 1,
            cmd_sn: CmdSn(1),
            exp_stat_sn: StatSn(0),
        };
        let bhs = match script.byte() {
            0 => Bhs(script.array()),
            1 => {
                request.tsih = script.half();
                request.encode()
            }
            2 => {
                request.itt = Itt(script.word());
                request.encode()
            }
            _ => request.encode(),
        };
        let text = self.text(script);
        pdu(bhs, &[], &text, (false, false))
    }

    fn text(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..script.byte() & 0x1f {
            match PAIRS.get(usize::from(script.byte())) {
                Some(&"CHAP_R") => self.prove(&mut text),
                Some(&"CHAP_C") => self.reflect(&mut text),
                Some(pair) => text.extend_from_slice(pair.as_bytes()),
                None => {
                    let len = script.below(256);
                    text.extend_from_slice(script.take(len));
                    continue;
                }
            }
            text.push(0);
        }
        text
    }

    fn prove(&mut self, text: &mut Vec<u8>) {
        let Some(challenge) = &self.challenge else {
            return;
        };
        let response = challenge
            .hash
            .response(challenge.identifier, SECRET, &challenge.bytes);
        text.extend_from_slice(b"CHAP_R=");
        text.extend_from_slice(text::hex(&response).as_bytes());
        self.proven = true;
    }

    /// The target's own challenge, as if it were ours.
    fn reflect(&self, text: &mut Vec<u8>) {
        if let Some(challenge) = &self.challenge {
            text.extend_from_slice(b"CHAP_C=");
            text.extend_from_slice(text::hex(&challenge.bytes).as_bytes());
        }
    }

    /// What the target said last.
    pub(super) fn heard(&mut self, bytes: &[u8]) {
        let Ok(pairs) = text::parse(bytes) else {
            return;
        };
        let find = |key| {
            pairs
                .iter()
                .find(|pair| pair.key == key)
                .map(|pair| pair.value)
        };
        if find("CHAP_N").is_some_and(|name| name == USER) {
            panic!("the target took our name");
        }
        let challenge = || {
            Some(Challenge {
                hash: Hash::strongest(find("CHAP_A")?, Hash::Md5)?,
                identifier: find("CHAP_I")?.parse().ok()?,
                bytes: text::binary(find("CHAP_C")?, 1024)?,
            })
        };
        self.challenge = challenge().or(self.challenge.take());
    }
}
