//! The settings of LIO, and what each means for Lunar.

use crate::shell::preferences::Preference;

/// A setting.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
    pub(super) purpose: &'static str,
}

/// What a setting means here.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// The setting maps to the tree or to the preferences.
    Tree,
    /// Lunar behaves in one way, which these values describe. The first one is displayed.
    Always(&'static [&'static str]),
    /// Lunar has no counterpart, for this reason.
    Never(&'static str),
}

use Meaning::{Always, Never, Tree};

const fn setting(name: &'static str, meaning: Meaning, purpose: &'static str) -> Setting {
    Setting {
        name,
        meaning,
        purpose,
    }
}

impl From<&Preference> for Setting {
    fn from(row: &Preference) -> Self {
        setting(row.name, Tree, row.purpose)
    }
}

const NO: &[&str] = &["0"];
const YES: &[&str] = &["1"];
const SERVER: &str = "Timeouts are set for the whole server.";
const NO_CACHE: &str = "Caching is part of the address: file:PATH?sync, file:PATH?direct.";
const NO_LIMIT: &str = "The limits of commands follow from the volume.";

/// `attribute` of a portal group.
pub(super) const TPG: &[Setting] = &[
    setting("authentication", Tree, "1: CHAP is required."),
    setting(
        "cache_dynamic_acls",
        Tree,
        "Kept without effect, because Lunar does not create dynamic ACLs.",
    ),
    setting(
        "default_cmdsn_depth",
        Never("The command window is set for the whole server."),
        "",
    ),
    setting("default_erl", Always(NO), "ErrorRecoveryLevel."),
    setting(
        "demo_mode_discovery",
        Always(YES),
        "Discovery shows the target to initiators that may log in.",
    ),
    setting(
        "demo_mode_write_protect",
        Tree,
        "1: initiators without an ACL may only read.",
    ),
    setting(
        "fabric_prot_type",
        Always(NO),
        "Protection information is not supported.",
    ),
    setting("generate_node_acls", Tree, "1: every initiator may log in."),
    setting(
        "login_keys_workaround",
        Always(YES),
        "Keys are answered as old initiators expect.",
    ),
    setting(
        "login_timeout",
        Always(&["15"]),
        "Seconds that a login may take.",
    ),
    setting("netif_timeout", Never(SERVER), ""),
    setting(
        "prod_mode_write_protect",
        Always(NO),
        "Initiators with an ACL may write.",
    ),
    setting(
        "t10_pi",
        Always(NO),
        "Protection information is not supported.",
    ),
    setting(
        "tpg_enabled_sendtargets",
        Always(YES),
        "Discovery shows only targets that accept logins.",
    ),
];

/// `attribute` of an ACL.
pub(super) const ACL: &[Setting] = &[
    setting("dataout_timeout", Never(SERVER), ""),
    setting("dataout_timeout_retries", Never(SERVER), ""),
    setting("default_erl", Always(NO), "ErrorRecoveryLevel."),
    setting("nopin_response_timeout", Never(SERVER), ""),
    setting("nopin_timeout", Never(SERVER), ""),
    setting(
        "random_datain_pdu_offsets",
        Always(NO),
        "Data-In comes in order.",
    ),
    setting(
        "random_datain_seq_offsets",
        Always(NO),
        "Data-In comes in order.",
    ),
    setting("random_r2t_offsets", Always(NO), "R2Ts come in order."),
];

/// `attribute` of a volume.
pub(super) const VOLUME: &[Setting] = &[
    setting("alua_support", Never("Lunar has no ALUA groups."), ""),
    setting("block_size", Tree, "Bytes of a logical block: 512 or 4096."),
    setting("emulate_3pc", Always(YES), "EXTENDED COPY."),
    setting("emulate_caw", Always(YES), "COMPARE AND WRITE."),
    setting("emulate_dpo", Always(YES), "DPO is accepted."),
    setting("emulate_fua_read", Always(YES), "FUA of READ is accepted."),
    setting("emulate_fua_write", Always(YES), "FUA of WRITE."),
    setting(
        "emulate_model_alias",
        Never("Set product and vendor of the volume row."),
        "",
    ),
    setting("emulate_pr", Always(YES), "Persistent reservations."),
    setting(
        "emulate_rest_reord",
        Always(NO),
        "Commands are reordered as SAM allows.",
    ),
    setting(
        "emulate_rsoc",
        Always(YES),
        "REPORT SUPPORTED OPERATION CODES.",
    ),
    setting(
        "emulate_tas",
        Never("Hosts set TAS in the control mode page."),
        "",
    ),
    setting("emulate_tpu", Always(YES), "UNMAP, where the volume can."),
    setting(
        "emulate_tpws",
        Always(YES),
        "WRITE SAME with UNMAP, where the volume can.",
    ),
    setting(
        "emulate_ua_intlck_ctrl",
        Always(NO),
        "No unit attention interlock.",
    ),
    setting("emulate_write_cache", Never(NO_CACHE), ""),
    setting(
        "enforce_pr_isids",
        Always(YES),
        "Reservations belong to a nexus with its ISID.",
    ),
    setting(
        "force_pr_aptpl",
        Never("Hosts ask for APTPL when they register."),
        "",
    ),
    setting(
        "hw_block_size",
        Never("Use block_size, which is what hosts see."),
        "",
    ),
    setting("hw_max_sectors", Never(NO_LIMIT), ""),
    setting("hw_queue_depth", Never(NO_LIMIT), ""),
    setting(
        "is_nonrot",
        Never("The rotation rate follows from the volume."),
        "",
    ),
    setting("max_unmap_block_desc_count", Never(NO_LIMIT), ""),
    setting("max_unmap_lba_count", Never(NO_LIMIT), ""),
    setting("max_write_same_len", Never(NO_LIMIT), ""),
    setting("optimal_sectors", Never(NO_LIMIT), ""),
    setting("pgr_support", Always(YES), "Persistent reservations."),
    setting(
        "pi_prot_format",
        Always(NO),
        "Protection information is not supported.",
    ),
    setting(
        "pi_prot_type",
        Always(NO),
        "Protection information is not supported.",
    ),
    setting(
        "pi_prot_verify",
        Always(NO),
        "Protection information is not supported.",
    ),
    setting("queue_depth", Never(NO_LIMIT), ""),
    setting("unmap_granularity", Never(NO_LIMIT), ""),
    setting("unmap_granularity_alignment", Never(NO_LIMIT), ""),
    setting(
        "unmap_zeroes_data",
        Always(YES),
        "What is unmapped reads as zeros.",
    ),
];

/// `parameter` of a portal group: text keys of RFC 7143 §13.
pub(super) const PARAMETER: &[Setting] = &[
    setting(
        "AuthMethod",
        Never("CHAP is required wherever an ACL has credentials: set auth."),
        "",
    ),
    setting(
        "DataDigest",
        Tree,
        "CRC32C: every PDU has it. None: none has. Both: the initiator chooses.",
    ),
    setting("DataPDUInOrder", Tree, "No: PDUs may come in any order."),
    setting(
        "DataSequenceInOrder",
        Tree,
        "No: sequences may come in any order.",
    ),
    setting(
        "DefaultTime2Retain",
        Always(NO),
        "Tasks end with their connection.",
    ),
    setting(
        "DefaultTime2Wait",
        Tree,
        "Seconds that an initiator waits before it comes back.",
    ),
    setting(
        "ErrorRecoveryLevel",
        Always(NO),
        "A session recovers as a whole.",
    ),
    setting(
        "FirstBurstLength",
        Tree,
        "Bytes of unsolicited data, at most.",
    ),
    setting(
        "HeaderDigest",
        Tree,
        "CRC32C: every PDU has it. None: none has. Both: the initiator chooses.",
    ),
    setting("IFMarker", Always(&["No"]), "Markers are not supported."),
    setting(
        "IFMarkInt",
        Always(&["Reject"]),
        "Markers are not supported.",
    ),
    setting("ImmediateData", Tree, "Yes: commands may bring data."),
    setting(
        "InitialR2T",
        Tree,
        "Yes: data comes only when it is asked for.",
    ),
    setting(
        "MaxBurstLength",
        Tree,
        "Bytes of a solicited burst, at most.",
    ),
    setting(
        "MaxConnections",
        Always(YES),
        "A session has one connection.",
    ),
    setting(
        "MaxOutstandingR2T",
        Tree,
        "Outstanding R2Ts of a command, at most.",
    ),
    setting(
        "MaxRecvDataSegmentLength",
        Tree,
        "Bytes of data in a PDU, at most.",
    ),
    setting(
        "MaxXmitDataSegmentLength",
        Never("The initiator declares it."),
        "",
    ),
    setting("OFMarker", Always(&["No"]), "Markers are not supported."),
    setting(
        "OFMarkInt",
        Always(&["Reject"]),
        "Markers are not supported.",
    ),
    setting(
        "TargetAlias",
        Tree,
        "A name that initiators may show to users.",
    ),
];

/// `auth`: CHAP of an ACL, or of initiators without one.
pub(super) const AUTH: &[Setting] = &[
    setting("mutual_password", Tree, "The secret of the target."),
    setting("mutual_userid", Tree, "The user name of the target."),
    setting("password", Tree, "The secret of the initiator."),
    setting("userid", Tree, "The user name of the initiator."),
];

const DISCOVERY_CHAP: &str =
    "Discovery needs no CHAP, because it shows only targets that the initiator may log in to.";

/// `discovery_auth` of `/iscsi`.
pub(super) const DISCOVERY: &[Setting] = &[
    setting("enable", Always(NO), "Discovery does not require CHAP."),
    setting("mutual_password", Never(DISCOVERY_CHAP), ""),
    setting("mutual_userid", Never(DISCOVERY_CHAP), ""),
    setting("password", Never(DISCOVERY_CHAP), ""),
    setting("userid", Never(DISCOVERY_CHAP), ""),
];
