//! fcrls: the Link Error Status Block of another port, by RLS (FC-LS-3), as FC-BB-6 defines it for
//! FCoE.

use fc::wire::els::{Code, Els, Reply};
use fc::wire::names::FcId;

use crate::sysfs::SysfsDir;
use crate::transport::FcTransport;

/// A remote port that a host of the kernel, or a port of this program, knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPort {
    /// `rport-H:C-N`, or `rport-lunar-PID-N-M`.
    pub name: String,
    /// The host that knows it: `hostH`, or `lunar-PID-N`.
    pub host: String,
    /// Its address.
    pub fc_id: FcId,
}

/// Why a port's counters are not known.
#[derive(Debug, thiserror::Error)]
pub enum LinkErrorsError {
    /// No host knows it.
    #[error("{0} is not a rport: fcoeadm -t shows targets, /sys/class/fc_remote_ports all")]
    Unknown(String),
    /// It is not logged in.
    #[error("rport {0} {1}: must be Online")]
    NotOnline(FcId, String),
    /// No answer came.
    #[error("{0}: no answer to RLS: {1}")]
    Io(FcId, #[source] std::io::Error),
    /// The answer is none.
    #[error("{0}: unknown response to RLS")]
    Malformed(FcId),
}

/// The port that has this name or address, and is online.
///
/// # Errors
/// [`LinkErrorsError::Unknown`], [`LinkErrorsError::NotOnline`].
pub fn find(
    sysfs: &SysfsDir,
    meant: &str,
    is_meant: impl Fn(&str, FcId) -> bool,
) -> Result<KnownPort, LinkErrorsError> {
    let ports = sysfs.child("class/fc_remote_ports").children("rport-");
    let mut known = ports.iter().filter_map(|dir| {
        let fc_id = FcId(dir.number("port_id")? as u32);
        is_meant(&dir.name(), fc_id).then_some((dir, fc_id))
    });
    let unknown = || LinkErrorsError::Unknown(meant.to_owned());
    let (dir, fc_id) = known.next().ok_or_else(unknown)?;
    let state = dir.text("port_state").unwrap_or_default();
    if state != "Online" {
        return Err(LinkErrorsError::NotOnline(fc_id, state));
    }
    let name = dir.name();
    let host = host_of(&name).ok_or_else(unknown)?;
    Ok(KnownPort { name, host, fc_id })
}

/// The host in the name of a remote port.
pub(crate) fn host_of(rport: &str) -> Option<String> {
    let (host, _) = rport.strip_prefix("rport-")?.rsplit_once('-')?;
    if host.starts_with("lunar-") {
        return Some(host.to_owned());
    }
    let number = host.split(':').next().unwrap_or_default();
    Some(format!("host{number}"))
}

/// Asks a port, and gives what fcrls prints: counters, or why they are refused.
///
/// # Errors
/// [`LinkErrorsError::Io`], [`LinkErrorsError::Malformed`].
pub fn ask(transport: &mut impl FcTransport, port: FcId) -> Result<String, LinkErrorsError> {
    let request = Els::Rls(port).encode();
    let answer = transport.els(port, &request, ANSWER_MAX);
    let answer = answer.map_err(|cause| LinkErrorsError::Io(port, cause))?;
    let malformed = |_| LinkErrorsError::Malformed(port);
    if let Reply::Reject(why) = Reply::parse(Code::RLS, &answer).map_err(malformed)? {
        return Ok(format!(
            "RLS request rejected (LS_RJT), check reason code below:\n\
             \tReason Code  = 0x{:02x}, {}.\n\tExplain Code = 0x{:02x}, {}.\n",
            why.reason,
            word(REASONS, why.reason),
            why.explanation,
            word(EXPLANATIONS, why.explanation)
        ));
    }
    let mut out = "RLS request accepted (LS_ACC), dumping status counters:\n".to_owned();
    let words = answer[4..].chunks_exact(4).map(|word| {
        let word = word.first_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(word)
    });
    for (label, count) in COUNTERS.iter().zip(words) {
        out.push_str(&format!("\t{label:<36} = {count}\n"));
    }
    Ok(out)
}

/// LS_ACC with six words, and some spare.
const ANSWER_MAX: usize = 64;

const COUNTERS: [&str; 6] = [
    "Link Failure Count",
    "Virtual Link Failure Count",
    "Missed Discovery Advertisement Count",
    "Symbol Error During Carrier Count",
    "Errored Block Count",
    "Frame Check Sequence Error Count",
];

fn word(words: &[(u8, &'static str)], code: u8) -> &'static str {
    let known = words.iter().find(|(known, _)| *known == code);
    known.map_or("N/A", |(_, word)| word)
}

/// Reasons of LS_RJT (FC-LS-3, LS_RJT reason codes). The original has those of CT here.
const REASONS: &[(u8, &str)] = &[
    (0x01, "Invalid command code"),
    (0x03, "Logical error"),
    (0x05, "Logical busy"),
    (0x07, "Protocol error"),
    (0x09, "Unable to perform command request"),
    (0x0b, "Command not supported"),
    (0x0e, "Command already in progress"),
    (0xff, "Vendor specific"),
];

/// What LS_RJT adds (FC-LS-3, reason code explanations).
const EXPLANATIONS: &[(u8, &str)] = &[
    (0x00, "No additional explanation"),
    (0x17, "invalid OX_ID-RX_ID combination"),
    (0x19, "Request already in progress"),
    (0x1e, "N_Port login required"),
    (0x29, "insufficient resources"),
    (0x2a, "unable to supply requested data"),
    (0x2c, "Request not supported"),
    (0x2d, "Invalid payload length"),
];
