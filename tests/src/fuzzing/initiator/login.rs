//! A target that logs an initiator in as it should, with keys of the script's choice.

use iscsi::auth::Hash;
use iscsi::text::{binary, hex, number};
use iscsi::wire::bhs::{Bhs, Stamps};
use iscsi::wire::login::{LoginRequest, LoginResponse};

use super::super::script::Script;
use super::target::Target;
use super::watch::Watch;
use super::{SECRET, THEIRS};

/// The answer to the last login request.
pub(super) fn answer(target: &mut Target, watch: &Watch, script: &mut Script<'_>) -> Vec<u8> {
    let (bhs, text) = watch.login();
    let request = LoginRequest::decode(bhs);
    let text = String::from_utf8_lossy(text);
    let mut reply = String::new();
    let mut transit = request.transit;
    for pair in text.split('\0') {
        if let Some((key, value)) = pair.split_once('=') {
            reply_to(key, value, script, &mut reply);
        }
    }
    if let Some(value) = value_of(&text, "CHAP_R") {
        transit &= value == hex(&Hash::Sha256.response(9, SECRET, &[1; 32]));
        prove(&text, &mut reply);
    }
    respond(target, &request, transit, reply.as_bytes())
}

fn reply_to(key: &str, value: &str, script: &mut Script<'_>, reply: &mut String) {
    let first = value.split(',').next().unwrap_or_default();
    let value = match key {
        "CHAP_A" => "7\0CHAP_I=9\0CHAP_C=0x".to_owned() + &"01".repeat(32),
        "MaxRecvDataSegmentLength" => script.pick(&["512", "1024", "8192"]).to_owned(),
        "MaxBurstLength" | "FirstBurstLength" if script.flag() => "512".to_owned(),
        "InitialR2T" if script.flag() => "Yes".to_owned(),
        "ImmediateData" if script.flag() => "No".to_owned(),
        "HeaderDigest" | "DataDigest" if value.contains(',') => {
            script.pick(&["None", "CRC32C"]).to_owned()
        }
        "RDMAExtensions" if script.byte() > 250 => "No".to_owned(),
        "TargetRecvDataSegmentLength" => script.pick(&["512", "1024", "65536"]).to_owned(),
        "MaxOutstandingUnexpectedPDUs" | "TaggedBufferForSolicitedDataOnly" if script.flag() => {
            "NotUnderstood".to_owned()
        }
        "TaggedBufferForSolicitedDataOnly"
        | "InitiatorName"
        | "InitiatorAlias"
        | "SessionType"
        | "TargetName" => return,
        _ if key.starts_with("CHAP_") => return,
        _ => first.to_owned(),
    };
    reply.push_str(&format!("{key}={value}\0"));
}

fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.filter(|pair| pair.0 == key).map(|pair| pair.1).next()
}

/// Mutual CHAP, if it is asked for.
fn prove(text: &str, reply: &mut String) {
    let identifier = value_of(text, "CHAP_I").and_then(number);
    let challenge = value_of(text, "CHAP_C").and_then(|value| binary(value, 1024));
    if let (Some(identifier), Some(challenge)) = (identifier, challenge) {
        let response = Hash::Sha256.response(identifier as u8, THEIRS, &challenge);
        reply.push_str(&format!("CHAP_N=them\0CHAP_R={}\0", hex(&response)));
    }
}

fn respond(target: &mut Target, request: &LoginRequest, transit: bool, text: &[u8]) -> Vec<u8> {
    let response = LoginResponse {
        transit,
        more: false,
        current: request.current,
        next: if transit { request.next } else { 0 },
        version_max: 0,
        version_active: 0,
        isid: request.isid,
        tsih: 1,
        itt: request.itt,
        stamps: Stamps {
            stat_sn: target.next_stat_sn(),
            exp_cmd_sn: request.cmd_sn,
            max_cmd_sn: request.cmd_sn.plus(3),
        },
        status: 0,
    };
    let bhs: Bhs = response.encode();
    target.bytes(bhs, text)
}
