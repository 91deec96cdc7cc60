//! Admission: between the last request of a login and the response to it stands the decision
//! whether there may be a session (RFC 7143 §6.3.4).

use scsi::medium::Lease;
use scsi::violation::Violation;

use super::dialogue::Dialogue;
use super::stage::LoginResult;
use super::status::{LoginFault, LoginStatus, NO_RDMA_RESOURCES};
use super::{Login, LoginEvent, LoginState, identity};
use crate::auth::Hash;
use crate::parameters::{Parameters, SessionProof};
use crate::target::{AdmissionWish, InitiatorPort};

/// What is left to be sent when the session is admitted.
#[derive(Debug)]
pub(super) struct AdmissionRequest {
    pub(super) dialogue: Box<Dialogue>,
    pub(super) current: u8,
    pub(super) segment: Vec<u8>,
    pub(super) agreed: Box<LoginResult>,
}

impl<L: Lease> Login<L> {
    /// There may be a session, with this TSIH, which is not 0.
    pub fn admit(&mut self, tsih: u16) {
        let Some(AdmissionRequest {
            mut dialogue,
            current,
            segment,
            agreed,
        }) = self.asked()
        else {
            return;
        };
        dialogue.accept(&mut self.outgoing, current, tsih, &segment);
        let parameters = self.parameters(&dialogue, *agreed, tsih);
        // T5: S4 IN_LOGIN to S5 LOGGED_IN.
        self.state = LoginState::Done(Box::new(parameters));
        self.events.push_back(LoginEvent::Done);
    }

    /// There may not.
    pub fn refuse(&mut self, status: LoginStatus) {
        self.refuse_as(LoginFault::refused(status));
    }

    /// There may not, as an RDMA device has no resources for it (RFC 7145 §10.1.3.1).
    pub fn refuse_for_resources(&mut self) {
        self.refuse_as(NO_RDMA_RESOURCES);
    }

    fn refuse_as(&mut self, fault: LoginFault) {
        if let Some(mut asking) = self.asked() {
            let name = Some(asking.agreed.identity.initiator.clone());
            let user = asking.agreed.proof.as_ref().map(|proof| &*proof.user);
            self.claimed = identity::claim(name, user);
            self.fail(&mut asking.dialogue, fault);
        }
    }

    /// What is being decided; `None` where no decision was asked for, and nothing changes then.
    fn asked(&mut self) -> Option<AdmissionRequest> {
        match std::mem::replace(&mut self.state, LoginState::Closed) {
            LoginState::Asking(asking) => Some(*asking),
            state => {
                self.state = state;
                None
            }
        }
    }

    pub(super) fn ask(&mut self, asking: AdmissionRequest) {
        let first = asking.dialogue.first();
        let identity = &asking.agreed.identity;
        let proof = asking.agreed.proof.as_ref();
        if proof.is_some_and(|proof| proof.hash == Hash::Md5) {
            self.events.push_back(LoginEvent::Remark(WEAK_HASH));
        }
        let node = asking.agreed.purpose.node().cloned();
        self.events.push_back(LoginEvent::Session {
            wish: AdmissionWish {
                initiator: InitiatorPort {
                    name: identity.initiator.clone(),
                    isid: first.isid,
                },
                scope: identity.scope(self.endpoints),
                local: self.endpoints.local,
                user: proof.map(|proof| proof.user.clone()),
                tsih: first.tsih,
                cid: first.cid,
                most: node.as_ref().and_then(|node| node.login.sessions),
            },
            node,
        });
        self.state = LoginState::Asking(Box::new(asking));
    }

    fn parameters(&self, dialogue: &Dialogue, agreed: LoginResult, tsih: u16) -> Parameters {
        let first = dialogue.first();
        Parameters {
            initiator: InitiatorPort {
                name: agreed.identity.initiator,
                isid: first.isid,
            },
            initiator_alias: agreed.identity.alias,
            proof: agreed.proof.as_ref().map_or(SessionProof::None, Into::into),
            user: agreed.proof.map(|proof| proof.user),
            purpose: agreed.purpose,
            portal_group: agreed.identity.portal_group,
            tsih,
            cid: first.cid,
            endpoints: self.endpoints,
            stat_sn: dialogue.stat_sn().0,
            exp_cmd_sn: first.cmd_sn.0,
            keys: agreed.keys,
        }
    }
}

pub(super) const WEAK_HASH: Violation = Violation {
    rule: "CHAP with MD5",
    clause: "--chap-min",
};
