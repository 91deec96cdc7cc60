//! What an N_Port in a fabric tells that is worth a line in the log.

use std::fmt;

use super::{FabricConfig, FabricLogin, FabricSeen, UnlinkReason};
use crate::wire::ct::CtReject;
use crate::wire::els::{LsRejectReason, explanation};
use crate::wire::ethernet::Mac;
use crate::wire::names::FcId;

/// News of a fabric. As text it tells what to do where there is something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FabricNotice {
    /// There is a login.
    LoggedIn {
        /// What was granted.
        login: FabricLogin,
        /// The VLAN by tag, if frames carry one.
        vlan: Option<u16>,
    },
    /// The login is over.
    LoggedOut {
        /// Why.
        why: UnlinkReason,
    },
    /// Logins are ended again and again, soon after they were made.
    Flapping {
        /// By this FCF last.
        fcf: Mac,
    },
    /// No FCF has told a VLAN.
    NoVlan,
    /// No FCF is heard at all.
    NoFcf {
        /// The VLAN by tag, if frames carry one.
        vlan: Option<u16>,
        /// Whether it was discovered.
        discovers_vlan: bool,
    },
    /// An FCF advertises, but does not answer Solicitations.
    NoSolicited {
        /// Which one.
        fcf: Mac,
        /// Bytes behind the Ethernet header that its answer is padded to.
        max_fcoe: u16,
    },
    /// An FCF takes no logins.
    Closed {
        /// Which one.
        fcf: Mac,
    },
    /// Several fabrics, of which none is configured.
    Several(Vec<FabricSeen>),
    /// None of the FCFs is the one that is configured.
    NotWanted {
        /// What is configured.
        wanted: FabricConfig,
        /// What is there.
        seen: Vec<FabricSeen>,
    },
    /// FLOGI was rejected.
    Rejected {
        /// By which FCF.
        fcf: Mac,
        /// What it said.
        reject: LsRejectReason,
    },
    /// FLOGI was not answered.
    NoAnswer {
        /// By which FCF.
        fcf: Mac,
    },
    /// A switch does not grant more than one N_Port_ID.
    NoNpiv {
        /// Which FCF.
        fcf: Mac,
    },
    /// What accepted the FLOGI is no F_Port.
    NoFabric {
        /// Its address.
        fcf: Mac,
    },
    /// The address that was granted is not a fabric-provided one.
    WrongAddress {
        /// By which FCF.
        fcf: Mac,
        /// The N_Port_ID with it.
        fc_id: FcId,
        /// The address.
        granted: Option<Mac>,
        /// What it should be.
        expected: Mac,
    },
    /// The fabric takes no frames that an N_Port could send.
    SmallFrames {
        /// Which FCF.
        fcf: Mac,
        /// Payload that it takes.
        bytes: u16,
    },
    /// A service of the fabric has rejected an extended link service.
    ServiceRejected {
        /// Which.
        request: &'static str,
        /// What it said.
        reject: LsRejectReason,
    },
    /// A service of the fabric has not answered.
    ServiceSilent {
        /// What it was asked.
        request: &'static str,
    },
    /// The name server has rejected a registration.
    RegistrationRejected {
        /// Which.
        request: &'static str,
        /// What it said.
        reject: CtReject,
        /// Whether the port is of no use without.
        is_needed: bool,
    },
    /// The name server has rejected a list of ports.
    ListRejected {
        /// Which request.
        request: &'static str,
        /// What it said.
        reject: CtReject,
    },
    /// More ports than are looked at.
    TooManyPorts,
}

impl FabricNotice {
    /// Whether something is wrong.
    #[must_use]
    pub const fn is_problem(&self) -> bool {
        !matches!(
            self,
            Self::LoggedIn { .. }
                | Self::LoggedOut {
                    why: UnlinkReason::LinkDown | UnlinkReason::LoggedOut
                }
        )
    }
}

impl fmt::Display for FabricNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn { login, vlan } => {
                let (id, fabric, fcf) = (login.fc_id, login.fabric_name, login.fcf);
                write!(f, "logged in to fabric {fabric} as {id} by FCF {fcf}")?;
                vlan.map_or(Ok(()), |vid| write!(f, " on VLAN {vid}"))
            }
            Self::LoggedOut { why } => write!(f, "left the fabric: {}", end(*why)),
            Self::NoVlan => f.write_str(
                "no FCF has answered a FIP VLAN request in 5 s: trying without a VLAN; name it \
                 with vlan=VID if the switch does not answer such requests",
            ),
            Self::NoFcf {
                vlan,
                discovers_vlan,
            } => no_fcf(f, *vlan, *discovers_vlan),
            Self::Several(seen) => {
                write!(f, "{} fabrics on this Ethernet: choose by ", seen.len())?;
                list(f, seen)
            }
            Self::NotWanted { wanted, seen } => not_wanted(f, wanted, seen),
            Self::ServiceRejected { .. }
            | Self::ServiceSilent { .. }
            | Self::RegistrationRejected { .. }
            | Self::ListRejected { .. }
            | Self::TooManyPorts => self.fmt_service(f),
            _ => self.fmt_refusal(f),
        }
    }
}

impl FabricNotice {
    /// Why an FCF is of no use.
    fn fmt_refusal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { fcf, reject } => {
                let hint = hint(*reject);
                write!(f, "FCF {fcf} rejects the login (FLOGI): {reject}{hint}")
            }
            Self::Flapping { fcf } => write!(
                f,
                "FCF {fcf} ends each login within 10 s: it is tried again after up to 10 s, which \
                 is logged when a login has lasted for 10 s"
            ),
            Self::NoSolicited { fcf, max_fcoe } => write!(
                f,
                "FCF {fcf} advertises, but does not answer a Solicitation: its answer has \
                 {max_fcoe} bytes, so look whether the MTU is as large everywhere on the way \
                 (lunar doctor)"
            ),
            Self::Closed { fcf } => write!(
                f,
                "FCF {fcf} takes no logins now: it is a standby, or has no room for another one"
            ),
            Self::NoNpiv { fcf } => write!(
                f,
                "FCF {fcf} grants an ENode one N_Port_ID alone: turn on NPIV at the switch, or \
                 leave npiv= out"
            ),
            Self::NoAnswer { fcf } => {
                write!(
                    f,
                    "FCF {fcf} advertises, but does not answer a login (FLOGI)"
                )
            }
            Self::NoFabric { fcf } => {
                write!(f, "{fcf} accepts a login (FLOGI), but is not an F_Port")
            }
            Self::WrongAddress {
                fcf,
                fc_id,
                granted,
                expected,
            } => {
                write!(f, "FCF {fcf} grants N_Port_ID {fc_id} with ")?;
                match granted {
                    Some(mac) => write!(f, "the MAC address {mac}")?,
                    None => f.write_str("no MAC address")?,
                }
                write!(f, " instead of {expected}; the login is not used")
            }
            Self::SmallFrames { fcf, bytes } => {
                write!(
                    f,
                    "FCF {fcf} takes {bytes} bytes of payload: 256 are needed"
                )
            }
            _ => Ok(()),
        }
    }

    /// What services of the fabric do not do.
    fn fmt_service(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceRejected { request, reject } => {
                write!(f, "the fabric rejects {request}: {reject}")
            }
            Self::ServiceSilent { request } => {
                write!(f, "the fabric does not answer {request}")
            }
            Self::RegistrationRejected {
                request,
                reject,
                is_needed,
            } => {
                let (reason, more) = (reject.reason, reject.explanation);
                write!(
                    f,
                    "the name server rejects {request} ({reason:02x}h/{more:02x}h)"
                )?;
                let end = ", without which other ports do not find this one";
                f.write_str(if *is_needed { end } else { "" })
            }
            Self::ListRejected { request, reject } => {
                let (reason, more) = (reject.reason, reject.explanation);
                write!(
                    f,
                    "the name server rejects {request} ({reason:02x}h/{more:02x}h): ports that are \
                     known stay, others are looked for again later"
                )
            }
            _ => f.write_str(
                "the fabric shows more than 4,096 ports: the rest is left out; zones would help",
            ),
        }
    }
}

/// What to do where no FCF is heard.
fn no_fcf(f: &mut fmt::Formatter<'_>, vlan: Option<u16>, discovers_vlan: bool) -> fmt::Result {
    f.write_str("no FCF is heard")?;
    match (vlan, discovers_vlan) {
        (Some(vid), true) => write!(
            f,
            " on VLAN {vid}, which an FCF has told: is that VLAN allowed at the switch port?"
        ),
        (Some(vid), false) => write!(
            f,
            " on VLAN {vid}: is the switch up, and is that its VLAN (vlan=auto asks for it)?"
        ),
        (None, true) => f.write_str(
            ", neither on a VLAN nor without: is the switch up? Ports that find each other \
             without a switch need mode=vn2vn",
        ),
        (None, false) => f.write_str(
            ": is the switch up, and is its FCoE on a VLAN (vlan=auto asks for it)? Ports that \
             find each other without a switch need mode=vn2vn",
        ),
    }
}

fn not_wanted(
    f: &mut fmt::Formatter<'_>,
    wanted: &FabricConfig,
    seen: &[FabricSeen],
) -> fmt::Result {
    f.write_str("no FCF with")?;
    if let Some(fcf) = wanted.fcf {
        write!(f, " fcf={fcf}")?;
    }
    if let Some(fabric) = wanted.fabric {
        write!(f, " fabric={fabric}")?;
    }
    f.write_str("; there is ")?;
    list(f, seen)
}

fn list(f: &mut fmt::Formatter<'_>, seen: &[FabricSeen]) -> fmt::Result {
    for (at, one) in seen.iter().enumerate() {
        let between = if at == 0 { "" } else { "; " };
        write!(f, "{between}{one}")?;
    }
    Ok(())
}

/// Why a login is over.
const fn end(why: UnlinkReason) -> &'static str {
    match why {
        UnlinkReason::Silent => "its FCF has been silent for 2.5 periods",
        UnlinkReason::Cleared => "its FCF has cleared the virtual link",
        UnlinkReason::LoggedOut => "logged out",
        UnlinkReason::Restarted => "its FCF is another one now",
        UnlinkReason::LinkDown => "the link is down",
        _ => "it is gone",
    }
}

/// What to do where a fabric rejects the name of a port.
const fn hint(reject: LsRejectReason) -> &'static str {
    match reject.explanation {
        explanation::PORT_NAME => {
            ": another port may have this WWPN, or the switch does not allow it"
        }
        _ => "",
    }
}
