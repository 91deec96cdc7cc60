//! What an N_Port is like while a target is sought by it.

use std::time::Duration;

use block::lease::BlockLease;
use fc::fip::enode::fcf::Fcf;
use fc::fip::enode::{Enode, FabricNotice};
use fc::initiator::FcpInitiator;
use fc::remote::LoginRefusal;
use fc::wire::names::Wwn;
use runtime::n_port::{LinkProblem, NPort};

use super::{FcoeLinkEnd, TargetPortAddress};

/// How far an N_Port is, and what is in its way.
pub(super) struct PortLook {
    /// It has logged out.
    pub(super) has_left: bool,
    /// Nothing has the other end of its cable.
    pub(super) is_alone: bool,
    /// The target is heard, or the fabric that it may be in, but there is no virtual link yet.
    pub(super) is_linking: bool,
    ours: Wwn,
    barrier: Option<LinkProblem>,
    in_fabric: bool,
    /// How the target has refused our login.
    refusal: Option<LoginRefusal>,
    /// Why it has logged in to no fabric.
    no_fabric: Option<String>,
}

impl PortLook {
    /// `target` is what is sought.
    pub(super) fn at(n_port: &NPort<FcpInitiator<BlockLease>>, target: Wwn) -> Self {
        let port = n_port.port();
        let enode = port.enode();
        Self {
            has_left: n_port.has_left(),
            is_alone: n_port.is_alone(),
            // What is in the way of a login to a fabric hardly passes meanwhile.
            is_linking: port.is_linking(target) && !has_problem(enode),
            ours: port.wwpn(),
            barrier: n_port.blocking_problem(),
            in_fabric: enode.is_some(),
            refusal: port
                .find(target)
                .and_then(|remote| remote.refusal().copied()),
            no_fabric: enode.and_then(no_fabric),
        }
    }

    /// Why the target was not found in that time.
    pub(super) fn end(self, target: &TargetPortAddress, waited: Duration) -> FcoeLinkEnd {
        let place = target.place.to_string();
        match (self.barrier, self.no_fabric, self.refusal) {
            (Some(obstacle), ..) => FcoeLinkEnd::Barred(obstacle),
            (None, Some(why), _) => FcoeLinkEnd::NotInFabric { place, why },
            (None, None, Some(why)) => FcoeLinkEnd::Refused {
                wwpn: target.port_name,
                place,
                ours: self.ours,
                why,
            },
            (None, None, None) => FcoeLinkEnd::NotFound {
                wwpn: target.port_name,
                place,
                in_fabric: self.in_fabric,
                ours: self.ours,
                waited,
            },
        }
    }
}

/// Whether it was told why there is no login to a fabric. That no FCF was heard does not count any
/// more once there is one.
fn has_problem(enode: Option<&Enode>) -> bool {
    let has_problem = |enode: &Enode| match enode.problem() {
        Some(FabricNotice::NoFcf { .. } | FabricNotice::NoVlan) => {
            !enode.fcfs().iter().any(Fcf::is_usable)
        }
        problem => problem.is_some(),
    };
    enode.is_some_and(|enode| enode.login().is_none() && has_problem(enode))
}

/// Why our port has logged in to no fabric, if it has not.
fn no_fabric(enode: &Enode) -> Option<String> {
    if enode.login().is_some() {
        return None;
    }
    let told = enode.problem().map(ToString::to_string);
    Some(told.unwrap_or_else(|| "no FCF has accepted a login yet".to_owned()))
}
