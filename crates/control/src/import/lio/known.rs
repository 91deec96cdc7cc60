//! The attributes of LIO: their defaults, and which values ask for what this program does anyway.
//!
//! The defaults are those of the kernel (`target_core_base.h`, `iscsi_target_core.h`); `*` stands
//! for a default that follows from the device.

use super::fields::Fields;
use crate::import::draft::Draft;
use crate::import::json::Json;

/// An attribute.
struct Attribute {
    name: &'static str,
    /// LIO's own value.
    default: &'static str,
    /// The value with which LIO does what this program does.
    same: Option<&'static str>,
    why: &'static str,
}

/// Which table an object's attributes are in.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    StorageObject,
    Tpg,
    NodeAcl,
    Parameter,
}

/// Names the attributes that were not taken, but for those that are done anyway.
pub(super) fn leave(draft: &mut Draft, kind: Kind, fields: &Fields<'_>) {
    for (key, value) in fields.rest() {
        leave_one(draft, kind, fields, key, value);
    }
}

/// Names one attribute, if it is not done anyway.
pub(super) fn leave_one(
    draft: &mut Draft,
    kind: Kind,
    fields: &Fields<'_>,
    key: &str,
    value: &Json,
) {
    let known = table(kind).iter().find(|known| known.name == key);
    let text = value.text().unwrap_or_default();
    let shown = fields.shown(key, value);
    match known {
        Some(known) if known.same == Some(&*text) => {}
        Some(known) if known.default == "*" || known.default == text => {
            draft.leave_default(value.line, shown, known.why);
        }
        Some(known) => draft.leave(value.line, shown, known.why),
        None => draft.leave(value.line, shown, "not known of LIO"),
    }
}

fn table(kind: Kind) -> &'static [Attribute] {
    match kind {
        Kind::StorageObject => STORAGE_OBJECT,
        Kind::Tpg => TPG,
        Kind::NodeAcl => NODE_ACL,
        Kind::Parameter => PARAMETER,
    }
}

/// Whether a login parameter has LIO's own value.
pub(super) fn is_default_parameter(name: &str, value: &str) -> bool {
    let known = PARAMETER.iter().find(|known| known.name == name);
    known.is_some_and(|known| known.default == value)
}

const fn done(name: &'static str, default: &'static str, why: &'static str) -> Attribute {
    Attribute {
        name,
        default,
        same: Some(default),
        why,
    }
}

const fn other(
    name: &'static str,
    default: &'static str,
    same: Option<&'static str>,
    why: &'static str,
) -> Attribute {
    Attribute {
        name,
        default,
        same,
        why,
    }
}

const fn left(name: &'static str, default: &'static str, why: &'static str) -> Attribute {
    other(name, default, None, why)
}

const COMMAND: &str = "this command or bit is always there";
const PROTECTION: &str = "there is no protection information (T10 PI)";
const LIMITS: &str = "the volume itself says how much it takes at once";
const THIN: &str = "the volume itself says whether it can unmap";

const STORAGE_OBJECT: &[Attribute] = &[
    done(
        "alua_support",
        "1",
        "REPORT TARGET PORT GROUPS is always answered",
    ),
    left("atomic_alignment", "*", LIMITS),
    left("atomic_granularity", "*", LIMITS),
    left("atomic_max_boundary", "*", LIMITS),
    left("atomic_max_len", "*", LIMITS),
    left("atomic_max_with_boundary", "*", LIMITS),
    left("block_size", "512", "blocks have 512 or 4096 bytes here"),
    left(
        "complete_type",
        "0",
        "which core completes a command is this program's own affair",
    ),
    done("emulate_3pc", "1", COMMAND),
    done("emulate_caw", "1", COMMAND),
    done("emulate_dpo", "1", COMMAND),
    other("emulate_fua_read", "0", Some("1"), COMMAND),
    done("emulate_fua_write", "1", COMMAND),
    done("emulate_pr", "1", COMMAND),
    done(
        "emulate_rest_reord",
        "0",
        "commands may be reordered (QUEUE ALGORITHM MODIFIER 1h)",
    ),
    done("emulate_rsoc", "1", COMMAND),
    done(
        "emulate_tas",
        "1",
        "hosts are told of aborted tasks by default, and can change it (TAS)",
    ),
    left("emulate_tpu", "0", THIN),
    left("emulate_tpws", "0", THIN),
    done(
        "emulate_ua_intlck_ctrl",
        "0",
        "unit attentions are told once (UA_INTLCK_CTRL 00b)",
    ),
    left(
        "emulate_write_cache",
        "0",
        "the volume itself says whether it has a write cache",
    ),
    done(
        "enforce_pr_isids",
        "1",
        "a registration belongs to an I_T nexus with its ISID",
    ),
    done(
        "force_pr_aptpl",
        "0",
        "whether registrations survive a power loss is the host's choice",
    ),
    left(
        "is_nonrot",
        "*",
        "MEDIUM ROTATION RATE follows from the volume",
    ),
    left("max_unmap_block_desc_count", "*", LIMITS),
    left("max_unmap_lba_count", "*", LIMITS),
    left("max_write_same_len", "*", LIMITS),
    left("optimal_sectors", "*", LIMITS),
    done("pgr_support", "1", COMMAND),
    done("pi_prot_format", "0", PROTECTION),
    done("pi_prot_type", "0", PROTECTION),
    done("pi_prot_verify", "0", PROTECTION),
    left(
        "queue_depth",
        "*",
        "how many commands a host may send follows from --connection-memory",
    ),
    left(
        "submit_type",
        "0",
        "which core begins a command is this program's own affair",
    ),
    left("unmap_granularity", "*", LIMITS),
    left("unmap_granularity_alignment", "*", LIMITS),
    left(
        "unmap_zeroes_data",
        "*",
        "blocks that are unmapped always read as zeros",
    ),
];

const TPG: &[Attribute] = &[
    left(
        "cache_dynamic_acls",
        "0",
        "an initiator's state is kept by its name, listed or not",
    ),
    left(
        "default_cmdsn_depth",
        "64",
        "how many commands a host may send follows from --connection-memory",
    ),
    done("default_erl", "0", "ErrorRecoveryLevel is 0"),
    left(
        "demo_mode_discovery",
        "1",
        "SendTargets shows an initiator only what it may log in to",
    ),
    done("fabric_prot_type", "0", PROTECTION),
    left(
        "login_keys_workaround",
        "1",
        "keys are declared in the phase in which they are asked for",
    ),
    left(
        "login_timeout",
        "15",
        "the time for a login is not set for each target",
    ),
    left(
        "netif_timeout",
        "2",
        "an interface that goes away ends no session by itself",
    ),
    done("t10_pi", "0", PROTECTION),
    other(
        "tpg_enabled_sendtargets",
        "1",
        Some("1"),
        "SendTargets shows what may be logged in to",
    ),
];

const NOP: &str = "NOP-Ins are sent as --nop-interval says, the same for every target";
const RETRY: &str = "data that does not come ends the session, as ErrorRecoveryLevel is 0";

const NODE_ACL: &[Attribute] = &[
    left("dataout_timeout", "3", RETRY),
    left("dataout_timeout_retries", "5", RETRY),
    done("default_erl", "0", "ErrorRecoveryLevel is 0"),
    left("nopin_response_timeout", "30", NOP),
    left("nopin_timeout", "15", NOP),
    done("random_datain_pdu_offsets", "0", "data is sent in order"),
    done("random_datain_seq_offsets", "0", "data is sent in order"),
    done("random_r2t_offsets", "0", "data is asked for in order"),
];

const TIME: &str = "a lost session keeps nothing (0 here)";
const MARKER: &str = "RFC 7143 §13.25 has no markers any more";
const OWN: &str = "LIO's default; this program chooses its own";

const PARAMETER: &[Attribute] = &[
    done(
        "AuthMethod",
        "CHAP,None",
        "follows from whether the group has CHAP",
    ),
    done(
        "DataDigest",
        "CRC32C,None",
        "whether there are digests is the initiator's choice",
    ),
    left("DataPDUInOrder", "Yes", OWN),
    left("DataSequenceInOrder", "Yes", OWN),
    other("DefaultTime2Retain", "20", Some("0"), TIME),
    left("DefaultTime2Wait", "2", OWN),
    done(
        "ErrorRecoveryLevel",
        "0",
        "a session that breaks a rule ends, and comes back",
    ),
    left("FirstBurstLength", "65536", OWN),
    done(
        "HeaderDigest",
        "CRC32C,None",
        "whether there are digests is the initiator's choice",
    ),
    done("IFMarkInt", "Reject", MARKER),
    done("IFMarker", "No", MARKER),
    done(
        "ImmediateData",
        "Yes",
        "immediate data is taken where an initiator offers it",
    ),
    left("InitialR2T", "Yes", OWN),
    left("MaxBurstLength", "262144", OWN),
    done("MaxConnections", "1", "a session has one connection"),
    left("MaxOutstandingR2T", "1", OWN),
    left("MaxRecvDataSegmentLength", "8192", OWN),
    left(
        "MaxXmitDataSegmentLength",
        "262144",
        "how much is sent at once is what the initiator declares",
    ),
    done("OFMarkInt", "Reject", MARKER),
    done("OFMarker", "No", MARKER),
    done(
        "TargetAlias",
        "LIO Target",
        "LIO's default says nothing of the target",
    ),
    left(
        "cmd_completion_affinity",
        "-1",
        "which core completes a command is this program's own affair",
    ),
];
