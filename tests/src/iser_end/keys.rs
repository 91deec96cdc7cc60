//! Texts of a login: the keys of iSER are added to what the initiator offers, and taken out of what
//! it is answered (RFC 7145 §6).

use super::IserSettings;

/// InitiatorRecvDataSegmentLength.
pub(super) const DATA_SEGMENT: u32 = 8192;

/// What is offered in place of a text. Digests are offered with the way out of them, as there are
/// none over RDMA (RFC 7145 §6.1).
pub(super) fn offered(text: &[u8], settings: &IserSettings) -> Vec<u8> {
    let own = pairs(text).map(|pair| match pair.split_once('=') {
        Some((key @ ("HeaderDigest" | "DataDigest"), "CRC32C")) => format!("{key}=CRC32C,None"),
        Some(("ImmediateData", _)) if !settings.immediate_data => "ImmediateData=No".to_owned(),
        _ => pair,
    });
    let mut added = Vec::new();
    if !is_of_discovery(text) {
        added.push("RDMAExtensions=Yes".to_owned());
        added.push(format!("InitiatorRecvDataSegmentLength={DATA_SEGMENT}"));
        let longest = settings.data_segment;
        added.push(format!("TargetRecvDataSegmentLength={longest}"));
        if let Some(only) = settings.solicited_only {
            let only = if only { "Yes" } else { "No" };
            added.push(format!("TaggedBufferForSolicitedDataOnly={only}"));
        }
        if settings.hello {
            added.push("iSERHelloRequired=Yes".to_owned());
        }
    }
    joined(own.chain(added))
}

/// Whether a login is one of a discovery session.
pub(super) fn is_of_discovery(text: &[u8]) -> bool {
    pairs(text).any(|pair| pair == "SessionType=Discovery")
}

/// What the initiator is answered.
pub(super) fn answered(text: &[u8]) -> Vec<u8> {
    let pairs = pairs(text).filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        match key {
            "TargetRecvDataSegmentLength" => Some(format!("MaxRecvDataSegmentLength={value}")),
            _ if OF_ISER.contains(&key) => None,
            _ => Some(pair),
        }
    });
    joined(pairs)
}

fn pairs(text: &[u8]) -> impl Iterator<Item = String> {
    let pairs = text
        .split(|byte| *byte == 0)
        .filter(|pair| !pair.is_empty());
    pairs.map(|pair| String::from_utf8_lossy(pair).into_owned())
}

fn joined(pairs: impl Iterator<Item = String>) -> Vec<u8> {
    pairs
        .flat_map(|pair| format!("{pair}\0").into_bytes())
        .collect()
}

/// Keys that an initiator of iSCSI over TCP does not know.
const OF_ISER: [&str; 4] = [
    "RDMAExtensions",
    "InitiatorRecvDataSegmentLength",
    "MaxOutstandingUnexpectedPDUs",
    "MaxAHSLength",
];
