//! A VN_Port of a Linux ENode: its names, and what stands with the fabric.

use fc::wire::ethernet::Mac;
use fc::wire::frame::OxId;
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;

use super::local_port::LocalPort;

/// A VN_Port.
pub(crate) struct VnPort {
    pub(super) wwpn: Wwn,
    pub(super) wwnn: Wwn,
    pub(super) is_further: bool,
    pub(super) login: Login,
    pub(crate) local_port: LocalPort,
}

impl VnPort {
    pub(super) fn new((wwpn, wwnn): (Wwn, Wwn), is_further: bool) -> Self {
        Self {
            wwpn,
            wwnn,
            is_further,
            login: Login::None,
            local_port: LocalPort::default(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.login = Login::None;
        self.local_port = LocalPort::default();
    }

    /// Its N_Port_ID and address, while it is logged in.
    pub(crate) const fn granted(&self) -> Option<(FcId, Mac)> {
        match self.login {
            Login::Up { fc_id, mac, .. } => Some((fc_id, mac)),
            _ => None,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        let login = match self.login {
            Login::None => [None, None],
            Login::Asked { until, .. } => [Some(until), None],
            Login::Up {
                enode_at, port_at, ..
            } => [enode_at, port_at],
        };
        let all = login.into_iter().flatten();
        all.chain(self.local_port.next_deadline()).min()
    }
}

/// What stands with the fabric.
#[derive(Clone, Copy, Debug)]
pub(super) enum Login {
    None,
    Asked {
        ox_id: OxId,
        until: Now,
        tries: u32,
    },
    Up {
        fc_id: FcId,
        mac: Mac,
        enode_at: Option<Now>,
        port_at: Option<Now>,
    },
}
