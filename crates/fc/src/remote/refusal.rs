//! Why a remote port does not let us log in: what is told once its port is given up.

use std::fmt;

use super::{RemotePort, RemoteState};
use crate::wire::els::{LsRejectReason, ServicePage, reason};

/// How a login of ours was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRefusal {
    /// PLOGI, by LS_RJT.
    Plogi(LsRejectReason),
    /// PRLI, by LS_RJT.
    Prli(LsRejectReason),
    /// PRLI was accepted, but makes no image pair: the response code of its page (FC-LS-2, PRLI
    /// accept response codes), or `None` where the page for FCP is missing.
    NoPair(Option<u8>),
}

impl LoginRefusal {
    /// The LS_RJT, if it was refused by one.
    #[must_use]
    pub const fn reject(&self) -> Option<LsRejectReason> {
        match self {
            Self::Plogi(reject) | Self::Prli(reject) => Some(*reject),
            Self::NoPair(_) => None,
        }
    }
}

impl fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plogi(reject) => write!(f, "it rejects the login (PLOGI): {reject}"),
            Self::Prli(reject) => write!(f, "it rejects the process login (PRLI): {reject}"),
            Self::NoPair(None) => f.write_str("its answer to the process login (PRLI) has no FCP"),
            Self::NoPair(Some(code)) => {
                let why = no_pair(*code);
                write!(
                    f,
                    "it makes no nexus by the process login (PRLI): {why} (response code {code})"
                )
            }
        }
    }
}

/// Why a page of PRLI made no image pair.
const fn no_pair(code: u8) -> &'static str {
    match code {
        ServicePage::EXECUTED | ServicePage::CONDITIONAL => "it is not a target for this port",
        ServicePage::NO_RESOURCES => "it has not enough resources",
        ServicePage::NOT_READY => "it is not ready yet",
        ServicePage::PRECLUDED => "a nexus of these two ports is precluded",
        ServicePage::INVALID => "it does not know FCP",
        _ => "it does not say why",
    }
}

impl RemotePort {
    /// How it has refused our login last, since there was a nexus.
    #[must_use]
    pub const fn refusal(&self) -> Option<&LoginRefusal> {
        self.refusal.as_ref()
    }

    /// An LS_RJT to our request. That its own login goes first is no refusal.
    pub(super) const fn note_reject(&mut self, why: LsRejectReason) {
        match self.state {
            RemoteState::Plogi if why.reason == reason::IN_PROGRESS => {}
            RemoteState::Plogi => self.refusal = Some(LoginRefusal::Plogi(why)),
            RemoteState::Prli => self.refusal = Some(LoginRefusal::Prli(why)),
            _ => {}
        }
    }
}
