//! The states of an ENode, as in the table of [`super`].

use super::FabricLogin;
use super::fcf::FabricKey;
use crate::wire::ethernet::Mac;
use crate::wire::frame::OxId;
use scsi::medium::Now;

/// Where the ENode stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EnodeState {
    Down,
    Vlan {
        /// When the next VLAN Request is due.
        request_at: Now,
        /// When the VLANs that were told are tried.
        settled_at: Option<Now>,
        /// When no VLAN is waited for any longer.
        untagged_at: Now,
    },
    Soliciting {
        /// When the next Solicitation is due, and how many were sent.
        solicit_at: Now,
        sent: usize,
        /// When one of the FCFs is chosen.
        choose_at: Option<Now>,
        /// When the next VLAN is tried.
        leave_at: Option<Now>,
        /// The fabric of the login that was lost, while another FCF of it is heard.
        to_resume: Option<FabricKey>,
    },
    Login {
        fcf: Mac,
        ox_id: OxId,
        until: Now,
        tries: u32,
    },
    Resting {
        until: Now,
    },
    Up {
        login: FabricLogin,
        keep_alive_at: Option<Now>,
        port_keep_alive_at: Option<Now>,
    },
    /// Has logged out, until the link goes down.
    Left {
        /// The FCF and the OX_ID of a login that was under way: if it is granted, it is given back.
        asked: Option<(Mac, OxId)>,
    },
}

impl EnodeState {
    /// The FCF of the login, or of that which is under way.
    pub(super) const fn fcf(&self) -> Option<Mac> {
        match *self {
            Self::Login { fcf, .. }
            | Self::Left {
                asked: Some((fcf, _)),
            } => Some(fcf),
            Self::Up { ref login, .. } => Some(login.fcf),
            _ => None,
        }
    }

    /// The FCF and the OX_ID of a login that is under way.
    pub(super) const fn asked(&self) -> Option<(Mac, OxId)> {
        match *self {
            Self::Login { fcf, ox_id, .. } => Some((fcf, ox_id)),
            Self::Left { asked } => asked,
            _ => None,
        }
    }

    /// When something is due.
    pub(super) fn deadline(&self) -> Option<Now> {
        let times = match *self {
            Self::Down | Self::Left { .. } => [None; 3],
            Self::Vlan {
                request_at,
                settled_at,
                untagged_at,
            } => [Some(request_at), settled_at, Some(untagged_at)],
            Self::Soliciting {
                solicit_at,
                choose_at,
                leave_at,
                ..
            } => [Some(solicit_at), choose_at, leave_at],
            Self::Login { until, .. } | Self::Resting { until } => [Some(until), None, None],
            Self::Up {
                keep_alive_at,
                port_keep_alive_at,
                ..
            } => [keep_alive_at, port_keep_alive_at, None],
        };
        times.into_iter().flatten().min()
    }
}
