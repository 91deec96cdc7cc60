//! Discovery Solicitations, until there is an FCF to log in to (FC-BB-6).

use std::time::Duration;

use super::fcf::{FabricKey, FcfChoice};
use super::{Enode, EnodeConfig, EnodeState, FabricLogin, FabricNotice, SETTLING};
use crate::wire::ethernet::Mac;
use crate::wire::fip::{Descriptor, FipOperation};

impl Enode {
    /// Begins to solicit all FCFs.
    pub(super) fn solicit(&mut self) {
        self.solicit_from(Mac::ALL_FCF);
        let choose_at = self
            .fcfs
            .is_any_usable()
            .then_some(self.now + self.settling());
        let leave_at = self.config.fabric.discovers_vlan;
        self.state = EnodeState::Soliciting {
            solicit_at: self.now.saturating_add(INTERVALS[0]),
            sent: 1,
            choose_at,
            leave_at: leave_at.then_some(self.now + VLAN_PATIENCE),
            to_resume: None,
        };
    }

    /// A login was lost: goes on by another FCF of its fabric, as soon as one can be used. Where no
    /// other one is heard, all begins anew.
    pub(super) fn resume(&mut self, lost: &FabricLogin) {
        let fabric = lost.fabric();
        let is_known = self.fcfs.has_another(lost.fcf, fabric);
        let best = match self.fcfs.choose(&self.config.fabric) {
            FcfChoice::Best(mac) if mac != lost.fcf => self.fcfs.get(mac),
            _ => None,
        };
        let best = best.filter(|fcf| fcf.fabric() == fabric).map(|fcf| fcf.mac);
        // Other N_Ports of the ENode come after its FLOGI.
        if let (Some(best), None) = (best, self.further) {
            self.log_in(best, 1);
            return;
        }
        self.solicit();
        if let EnodeState::Soliciting { to_resume, .. } = &mut self.state {
            *to_resume = is_known.then_some(fabric);
        }
        if best.is_some() {
            self.may_choose(fabric);
        }
    }

    pub(super) fn solicit_from(&mut self, fcf: Mac) {
        let EnodeConfig {
            mac,
            wwnn,
            max_fcoe,
            ..
        } = self.config;
        let says = [
            Descriptor::Mac(mac),
            Descriptor::Name(wwnn),
            Descriptor::MaxFcoeSize(max_fcoe),
        ];
        self.send((fcf, mac), FipOperation::Solicitation, &says);
    }

    pub(super) fn soliciting_step(&mut self) {
        let now = self.now;
        let EnodeState::Soliciting {
            solicit_at,
            sent,
            choose_at,
            leave_at,
            ..
        } = &mut self.state
        else {
            return;
        };
        let is_due = *solicit_at <= now;
        let is_late = is_due && *sent == UNANSWERED;
        if is_due {
            *solicit_at = now + INTERVALS[(*sent).min(INTERVALS.len() - 1)];
            *sent += 1;
        }
        let chooses = choose_at.take_if(|at| *at <= now).is_some();
        let leaves = leave_at.is_some_and(|at| at <= now);
        if chooses && self.choose() {
            return;
        }
        if is_late {
            self.tell_no_fcf();
        }
        if leaves {
            self.next_vlan();
        } else if is_due {
            self.solicit_from(Mac::ALL_FCF);
        }
    }

    /// Logs in to the best FCF, if it is clear which that is, or rests if all were tried. Returns
    /// whether it does either.
    pub(super) fn choose(&mut self) -> bool {
        match self.fcfs.choose(&self.config.fabric) {
            FcfChoice::Best(fcf) => {
                self.log_in(fcf, 1);
                return true;
            }
            FcfChoice::AllTried if self.config.fabric.discovers_vlan => {
                self.has_refusal = true;
                self.next_vlan();
                return true;
            }
            FcfChoice::AllTried => {
                self.rest(REST);
                return true;
            }
            FcfChoice::None => {}
            FcfChoice::Several(fabrics) => self.tell_problem(FabricNotice::Several(fabrics)),
            FcfChoice::NotWanted(fabrics) => self.tell_problem(FabricNotice::NotWanted {
                wanted: self.config.fabric,
                seen: fabrics,
            }),
        }
        false
    }

    /// Does nothing for a while.
    pub(super) fn rest(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        self.state = EnodeState::Resting { until };
    }

    /// Begins anew after a rest, with the VLAN if the FCFs of all of them have refused.
    pub(super) fn rested(&mut self) {
        self.fcfs.try_all_again();
        if std::mem::take(&mut self.has_refusal) {
            self.look_for_fabric();
        } else {
            self.solicit();
        }
    }

    /// Tells why there is no FCF to log in to, after Solicitations without a useful answer.
    fn tell_no_fcf(&mut self) {
        if self.fcfs.is_any_usable() {
            return;
        }
        let problem = match self.fcfs.all().first() {
            Some(fcf) if fcf.is_solicited => FabricNotice::Closed { fcf: fcf.mac },
            Some(fcf) => FabricNotice::NoSolicited {
                fcf: fcf.mac,
                max_fcoe: self.config.max_fcoe,
            },
            None => FabricNotice::NoFcf {
                vlan: self.tag.map(|tag| tag.vid),
                discovers_vlan: self.config.fabric.discovers_vlan,
            },
        };
        self.tell_problem(problem);
    }

    fn settling(&self) -> Duration {
        SETTLING + self.behind()
    }

    fn behind(&self) -> Duration {
        let behind = |_| super::further::BEHIND;
        self.further.map_or(Duration::ZERO, behind)
    }

    /// An FCF of this fabric can be used.
    pub(super) fn may_choose(&mut self, fabric: FabricKey) {
        let (now, settling, behind) = (self.now, self.settling(), self.behind());
        if let EnodeState::Soliciting {
            choose_at,
            to_resume,
            ..
        } = &mut self.state
        {
            let resumes = *to_resume == Some(fabric);
            let at = now + if resumes { behind } else { settling };
            *choose_at = Some(choose_at.map_or(at, |sooner| sooner.min(at)));
        }
    }
}

/// Between Solicitations, from the first one on; the last one is repeated.
const INTERVALS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// After so many Solicitations, at 4 s, it is told that there is no FCF.
const UNANSWERED: usize = 3;

/// For an FCF in a VLAN that was discovered.
const VLAN_PATIENCE: Duration = Duration::from_secs(4);

/// After all FCFs have refused, or not answered.
pub(super) const REST: Duration = Duration::from_secs(10);
