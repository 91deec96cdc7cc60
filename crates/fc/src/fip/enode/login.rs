//! FLOGI and LOGO: they travel inside FIP (FC-BB-6, FC-LS-2).

use std::time::Duration;

use super::fcf::{FabricKey, Fcf};
use super::{Enode, EnodeState, FabricNotice, PendingMessage};
use crate::fip::{FCOE_OVERHEAD, FipEvent, Neighbour, UnlinkReason, els};
use crate::port::config::{E_D_TOV, E_D_TOVS};
use crate::wire::els::{ClassParameters, Code, Els, Features, Logo, Reply, ServiceParameters};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, MIN_PAYLOAD, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};
use scsi::medium::Now;
use scsi::violation::Violation;

/// What a fabric has granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricLogin {
    /// Our N_Port_ID.
    pub fc_id: FcId,
    /// The address that our FCoE frames have: FC-MAP and N_Port_ID, or that of the ENode (SPMA).
    pub mac: Mac,
    /// The FCF-MAC, where all FCoE frames go.
    pub fcf: Mac,
    /// Switch_Name of the FCF.
    pub switch_name: Wwn,
    /// F_Port_Name.
    pub f_port_name: Wwn,
    /// Fabric_Name.
    pub fabric_name: Wwn,
    /// Virtual fabric; 0 for none.
    pub vf_id: u16,
    /// FC-MAP.
    pub fc_map: [u8; 3],
    /// The most bytes of payload in a frame.
    pub payload_max: u16,
    /// E_D_TOV of the fabric.
    pub e_d_tov: Duration,
    /// R_A_TOV of the fabric.
    pub r_a_tov: Duration,
}

impl FabricLogin {
    /// Which fabric it is a login to.
    pub(super) const fn fabric(&self) -> FabricKey {
        (self.fabric_name, self.vf_id, self.fc_map)
    }

    /// The F_Port, as the neighbour by which all others are reached.
    const fn f_port(&self) -> Neighbour {
        Neighbour {
            fc_id: FcId::FABRIC_F,
            mac: self.fcf,
            enode: self.fcf,
            wwpn: self.f_port_name,
            wwnn: self.fabric_name,
            payload_max: self.payload_max,
            target: Some(false),
            initiator: Some(false),
        }
    }
}

impl Enode {
    /// Sends an FLOGI, or FDISC, for the `tries`th time.
    pub(super) fn log_in(&mut self, fcf: Mac, tries: u32) {
        let ox_id = self.take_ox_id();
        let says = self.service_parameters();
        let els = match self.further {
            None => Els::Flogi(says),
            Some(_) => Els::Fdisc(says),
        };
        let request = Descriptor::Els(Encapsulated {
            kind: self.login_kind(),
            header: request_header(FcId::UNIDENTIFIED, ox_id),
            payload: &els.encode(),
        });
        // Zeros ask the fabric to provide an address.
        let is_provided = self.fcfs.get(fcf).is_none_or(|fcf| fcf.provides_mac);
        let mac = if is_provided {
            Mac::default()
        } else {
            self.config.mac
        };
        let says = [request, Descriptor::Mac(mac)];
        self.send((fcf, self.config.mac), FipOperation::ElsRequest, &says);
        let [last, _] = self.unanswered;
        self.unanswered = [Some(ox_id), last];
        self.state = EnodeState::Login {
            fcf,
            ox_id,
            until: self.now + PATIENCE,
            tries,
        };
    }

    fn service_parameters(&self) -> ServiceParameters {
        let size = self.config.max_fcoe.saturating_sub(FCOE_OVERHEAD as u16);
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 10,
            // In an FLOGI: more than one N_Port_ID may be asked for.
            features: Features::CONTINUOUS_OFFSET,
            receive_size: size,
            total_sequences: 0,
            relative_offset: 0,
            e_d_tov: 0,
            wwpn: self.config.wwpn,
            wwnn: self.config.wwnn,
            class_3: ClassParameters {
                options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
                receive_size: size,
                ..ClassParameters::default()
            },
        }
    }

    /// No answer came in time.
    pub(super) fn flogi_unanswered(&mut self, fcf: Mac, tries: u32) {
        if tries < TRIES {
            self.log_in(fcf, tries + 1);
        } else {
            self.refused(fcf, FabricNotice::NoAnswer { fcf });
        }
    }

    /// This FCF is of no use for now: the next one.
    fn refused(&mut self, fcf: Mac, why: FabricNotice) {
        self.tell_problem(why);
        self.fcfs.tried(fcf);
        if !self.choose() {
            self.solicit();
        }
    }

    /// Logs out, as what the services of the fabric said makes the login useless. The next FCF is
    /// tried, or this one again after a rest.
    pub fn give_up(&mut self, now: Now) {
        self.tick(now);
        if let Some(login) = self.login().copied() {
            let fcf = login.fcf;
            let logo = self.logo(fcf, login.fc_id, login.mac);
            self.outgoing.push(logo);
            self.release(UnlinkReason::LoggedOut);
            self.ended(Some(fcf));
            self.fcfs.tried(fcf);
            self.solicit();
        }
    }

    /// The fabric has logged us out by a LOGO from FFFFFEh.
    pub fn logged_out(&mut self, now: Now) {
        self.tick(now);
        if let Some(fcf) = self.login().map(|login| login.fcf) {
            self.fcfs.doubt(fcf);
            self.lost(UnlinkReason::LoggedOut);
        }
    }

    /// Logs out, for good until the link goes down. The LOGO leaves by [`Self::transmit_logo`];
    /// that of a login which is granted only later, by [`Self::transmit`].
    pub fn log_out(&mut self, now: Now) {
        self.tick(now);
        self.is_leaving = true;
        if let Some(login) = self.login().copied() {
            let logo = self.logo(login.fcf, login.fc_id, login.mac);
            self.pending_logo.push(logo);
        } else if self.state != EnodeState::Down {
            let asked = self.state.asked();
            self.state = EnodeState::Left { asked };
        }
    }

    fn logo(&mut self, fcf: Mac, fc_id: FcId, mac: Mac) -> PendingMessage {
        let ox_id = self.take_ox_id();
        let logo = Logo {
            fc_id,
            wwpn: self.config.wwpn,
        };
        let logo = Els::Logo(logo).encode();
        let request = Descriptor::Els(Encapsulated {
            kind: DescriptorType::LOGO,
            header: request_header(fc_id, ox_id),
            payload: &logo,
        });
        let says = [request, Descriptor::Mac(mac)];
        PendingMessage {
            dst: fcf,
            src: self.config.mac,
            bytes: fip::encode(FipOperation::ElsRequest, self.addressing(fcf), &says),
            least: 0,
        }
    }

    /// An FCF asks by LOGO only. What it is answered is not waited for.
    pub(super) fn els_request(
        &mut self,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let els = els::encapsulated(message)?;
        let Some(login) = self.login().copied() else {
            return Ok(());
        };
        let is_ours = els.header.d_id == login.fc_id && els.kind == DescriptorType::LOGO;
        if ethernet.src != login.fcf || !is_ours {
            return Ok(());
        }
        let exchange = (els.header.ox_id, RxId::UNASSIGNED);
        let ports = (login.fc_id, els.header.s_id);
        let header = FrameHeader::new((RCtl::ELS_REPLY, FrameType::ELS), ports, exchange);
        let reply = Descriptor::Els(Encapsulated {
            kind: DescriptorType::LOGO,
            header: FrameHeader {
                f_ctl: FCtl::REPLY,
                ..header
            },
            payload: &Reply::Accept.encode(),
        });
        let says = [reply, Descriptor::Mac(login.mac)];
        self.send((login.fcf, self.config.mac), FipOperation::ElsReply, &says);
        self.logged_out(self.now);
        Ok(())
    }

    /// The answer to our FLOGI. That to a LOGO is not waited for.
    pub(super) fn els_reply(
        &mut self,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let els = els::encapsulated(message)?;
        if self.is_flogi_of_enode(&els) {
            self.flogi_answered(ethernet, &els);
            return Ok(());
        }
        let Some((fcf, ox_id)) = self.state.asked() else {
            self.late_answer(ethernet, &els);
            return Ok(());
        };
        let is_answer = els.kind == self.login_kind() && els.header.ox_id == ox_id;
        if ethernet.src != fcf || ethernet.dst != self.config.mac || !is_answer {
            return Ok(());
        }
        let Some(of) = self.fcfs.get(fcf).copied() else {
            return Ok(());
        };
        self.unanswered[0] = None;
        let reply = Reply::parse(Code::FLOGI, els.payload);
        if self.is_leaving {
            self.state = EnodeState::Left { asked: None };
            if let Ok(Reply::Login(_)) = reply {
                self.give_back(&of, els.header.d_id, granted_mac(message));
            }
            return Ok(());
        }
        match reply {
            Ok(Reply::Login(parameters)) => {
                let (fc_id, mac) = (els.header.d_id, granted_mac(message));
                match self.granted(&of, fc_id, mac, &parameters) {
                    Ok(login) => self.logged_in(&of, login),
                    Err(why) => {
                        self.give_back(&of, fc_id, mac);
                        self.refused(fcf, why);
                    }
                }
                Ok(())
            }
            Ok(Reply::Reject(reject)) if self.awaits_flogi(reject) => {
                self.await_flogi(fcf);
                Ok(())
            }
            Ok(Reply::Reject(reject)) => {
                self.refused(fcf, FabricNotice::Rejected { fcf, reject });
                Ok(())
            }
            _ => Err(NO_REPLY),
        }
    }

    /// A request that was given up before the login has come after it: the FCF has begun the login
    /// anew, and knows nothing more of what was registered.
    fn late_answer(&mut self, ethernet: &EthernetHeader, els: &Encapsulated<'_>) {
        let Some(login) = self.login() else {
            return;
        };
        let [_, given_up] = self.unanswered;
        let is_it = els.kind == self.login_kind() && Some(els.header.ox_id) == given_up;
        let is_from_it = (ethernet.src, ethernet.dst) == (login.fcf, self.config.mac);
        let is_granted = matches!(Reply::parse(Code::FLOGI, els.payload), Ok(Reply::Login(_)));
        if is_it && is_from_it && is_granted {
            self.unanswered = [None; 2];
            self.logged_out(self.now);
        }
    }

    /// What an LS_ACC grants, or why that is of no use.
    fn granted(
        &self,
        fcf: &Fcf,
        fc_id: FcId,
        mac: Option<Mac>,
        says: &ServiceParameters,
    ) -> Result<FabricLogin, FabricNotice> {
        let expected = fcf.mac_of_port(fc_id, self.config.mac);
        if !says.features.has(Features::F_PORT) {
            return Err(FabricNotice::NoFabric { fcf: fcf.mac });
        }
        if !is_n_port(fc_id) || mac != Some(expected) {
            return Err(FabricNotice::WrongAddress {
                fcf: fcf.mac,
                fc_id,
                granted: mac,
                expected,
            });
        }
        let ours = self.config.max_fcoe.saturating_sub(FCOE_OVERHEAD as u16);
        let payload_max = says.receive_size.min(ours) & !3;
        if payload_max < MIN_PAYLOAD {
            return Err(FabricNotice::SmallFrames {
                fcf: fcf.mac,
                bytes: says.receive_size,
            });
        }
        let e_d_tov = time(says.e_d_tov_ms(), E_D_TOV);
        let e_d_tov = e_d_tov.clamp(*E_D_TOVS.start(), *E_D_TOVS.end());
        Ok(FabricLogin {
            fc_id,
            mac: expected,
            fcf: fcf.mac,
            switch_name: fcf.switch_name,
            f_port_name: says.wwpn,
            fabric_name: fcf.fabric_name,
            vf_id: fcf.vf_id,
            fc_map: fcf.fc_map,
            payload_max,
            e_d_tov,
            r_a_tov: time(says.r_a_tov_ms(), R_A_TOV).clamp(e_d_tov * 2, MAX_R_A_TOV),
        })
    }

    /// An N_Port_ID that is not used would stay ours, and others would be told of it.
    fn give_back(&mut self, fcf: &Fcf, fc_id: FcId, mac: Option<Mac>) {
        if is_n_port(fc_id) {
            let mac = mac.unwrap_or_else(|| fcf.mac_of_port(fc_id, self.config.mac));
            let logo = self.logo(fcf.mac, fc_id, mac);
            self.outgoing.push(logo);
        }
    }

    fn logged_in(&mut self, fcf: &Fcf, login: FabricLogin) {
        let now = self.now;
        let keeps = fcf.wants_keep_alives;
        let speaks_for_enode = self.further.is_none();
        self.fcf_bucket = super::TokenBucket::default();
        self.state = EnodeState::Up {
            login,
            keep_alive_at: (keeps && speaks_for_enode).then(|| now.saturating_add(fcf.period)),
            port_keep_alive_at: keeps.then(|| now.saturating_add(super::keep_alive::PORT_PERIOD)),
        };
        self.backoff.begun(now);
        if !self.backoff.is_flapping() {
            self.tell_login();
        }
        self.events.push_back(FipEvent::Claimed(login.fc_id));
        self.events.push_back(FipEvent::Found(login.f_port()));
    }

    pub(super) fn tell_login(&mut self) {
        if let Some(login) = self.login().copied() {
            let vlan = self.tag.map(|tag| tag.vid);
            self.tell(FabricNotice::LoggedIn { login, vlan });
        }
    }
}

/// Whether an N_Port can have this address.
fn is_n_port(fc_id: FcId) -> bool {
    fc_id != FcId::UNIDENTIFIED && !fc_id.is_well_known()
}

fn request_header(s_id: FcId, ox_id: OxId) -> FrameHeader {
    let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
    let ports = (s_id, FcId::FABRIC_F);
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        ..FrameHeader::new(kind, ports, (ox_id, RxId::UNASSIGNED))
    }
}

/// The address behind the LS_ACC.
fn granted_mac(message: &FipMessage<'_>) -> Option<Mac> {
    message
        .descriptors()
        .find_map(|descriptor| match descriptor {
            Ok(Descriptor::Mac(mac)) => Some(mac),
            _ => None,
        })
}

/// A time that a fabric tells, of which 0 says nothing.
fn time(ms: u32, usual: Duration) -> Duration {
    match ms {
        0 => usual,
        ms => Duration::from_millis(ms.into()),
    }
}

/// How long an answer to FLOGI is waited for, and how often it is sent.
const PATIENCE: Duration = E_D_TOV;
const TRIES: u32 = 3;

/// The default of R_A_TOV (FC-FS-3), and how much of a longer one is believed.
const R_A_TOV: Duration = Duration::from_secs(10);
const MAX_R_A_TOV: Duration = Duration::from_secs(120);

const NO_REPLY: Violation = Violation {
    rule: "a response to FLOGI that is neither LS_ACC nor LS_RJT, or is truncated",
    clause: "FC-LS-2",
};
