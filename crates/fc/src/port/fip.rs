//! The FIP machine of an N_Port: that of VN2VN, or that of a fabric.

use scsi::medium::Now;

use crate::fip::enode::{Enode, FabricLogin, FabricNotice};
use crate::fip::{Fip, FipEvent, FipStatistics};
use crate::frames::FrameSink;
use crate::wire::ethernet::{EthernetHeader, Mac, VlanTag};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// Either machine, with what an N_Port asks of both.
#[derive(Debug)]
pub(super) enum FipMachine {
    Vn2Vn(Box<Fip>),
    Fabric(Box<Enode>),
}

/// Does the same with either.
macro_rules! either {
    ($machine:expr, $fip:ident => $do:expr) => {
        match $machine {
            FipMachine::Vn2Vn($fip) => $do,
            FipMachine::Fabric($fip) => $do,
        }
    };
}

impl FipMachine {
    pub(super) fn mac(&self) -> Option<Mac> {
        either!(self, fip => fip.mac())
    }

    pub(super) const fn statistics(&self) -> FipStatistics {
        either!(self, fip => fip.statistics())
    }

    pub(super) fn resize(&mut self, max_fcoe: u16) {
        either!(self, fip => fip.resize(max_fcoe));
    }

    pub(super) fn link(&mut self, now: Now, up: bool) {
        either!(self, fip => fip.link(now, up));
    }

    pub(super) fn receive(
        &mut self,
        now: Now,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        either!(self, fip => fip.receive(now, ethernet, payload))
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        either!(self, fip => fip.next_deadline())
    }

    pub(super) fn expire(&mut self, now: Now) {
        either!(self, fip => fip.expire(now));
    }

    pub(super) fn poll(&mut self) -> Option<FipEvent> {
        either!(self, fip => fip.poll())
    }

    pub(super) fn transmit(&mut self, out: &mut impl FrameSink) {
        either!(self, fip => fip.transmit(out));
    }

    pub(super) fn records(&self) -> usize {
        either!(self, fip => fip.records())
    }

    /// The ENode of a fabric.
    pub(super) fn enode(&mut self) -> Option<&mut Enode> {
        match self {
            Self::Vn2Vn(_) => None,
            Self::Fabric(enode) => Some(enode),
        }
    }

    pub(super) const fn fabric(&self) -> Option<&Enode> {
        match self {
            Self::Vn2Vn(_) => None,
            Self::Fabric(enode) => Some(enode),
        }
    }

    /// What the fabric has granted, while there is a login.
    pub(super) fn fabric_login(&self) -> Option<FabricLogin> {
        self.fabric().and_then(Enode::login).copied()
    }

    pub(super) fn poll_notice(&mut self) -> Option<FabricNotice> {
        self.enode()?.poll_notice()
    }

    /// The tag that frames carry now; of VN2VN it is the one that was given.
    pub(super) fn found_tag(&self) -> Option<Option<VlanTag>> {
        self.fabric().map(Enode::tag)
    }

    /// Whether a port of this name is there, but without a virtual link yet.
    pub(super) fn is_linking(&self, wwpn: Wwn) -> bool {
        match self {
            Self::Vn2Vn(fip) => fip.is_linking(wwpn),
            Self::Fabric(enode) => enode.is_looking(),
        }
    }

    /// Logs out of these neighbours; in a fabric, of the fabric, by a LOGO that leaves last.
    pub(super) fn log_out(&mut self, now: Now, neighbours: &[FcId]) {
        match self {
            Self::Vn2Vn(fip) => {
                for fc_id in neighbours {
                    fip.log_out(now, *fc_id);
                }
                fip.leave();
            }
            Self::Fabric(enode) => enode.log_out(now),
        }
    }

    /// Writes what is to be sent after all that the N_Port has to say.
    pub(super) fn transmit_last(&mut self, out: &mut impl FrameSink) {
        if let Self::Fabric(enode) = self {
            enode.transmit_logo(out);
        }
    }
}
