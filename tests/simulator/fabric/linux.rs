//! The ENode of a Linux kernel (6.1: `fcoe_ctlr`, `fc_lport`, `fc_disc`, `fc_rport`), by what is
//! known of its habits.
//!
//! - An Advertisement has five descriptors, each once. An FCF is told apart by its address, names
//!   and FC-MAP; what it says later counts only until it can be used.
//! - FCFs that are not solicited are solicited. Two seconds after the first that can be used, one
//!   is chosen, and none if they differ in fabric or FC-MAP.
//! - FLOGI is sent four times, each 2 s later, then all begins anew.
//! - Clear Virtual Links makes it forget all FCFs and solicit, and any of them does before one was
//!   chosen.
//! - FCoE is taken from the FCF that was chosen alone, to the address whose lower half is the D_ID.

use std::collections::VecDeque;
use std::time::Duration;

use fc::fip::max_fcoe;
use fc::frames::FrameSink;
use fc::tests::{HeapFrames, Machine};
use fc::wire::els::{ClassParameters, Code, Els, Features, Reply, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fcoe;
use fc::wire::fip::{Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;

use super::frames::{els, fip_frame};

mod fcf;
mod local_port;

use fcf::LinuxFcf;
use local_port::LocalPort;

/// An ENode with one VN_Port.
pub(crate) struct Linux {
    mac: Mac,
    wwpn: Wwn,
    wwnn: Wwn,
    mtu: usize,
    now: Now,
    is_up: bool,
    fcfs: Vec<LinuxFcf>,
    /// When one of them is chosen.
    select_at: Option<Now>,
    /// The one that was.
    selected: Option<LinuxFcf>,
    login: Login,
    pub(super) local_port: LocalPort,
    ox_ids: u16,
    out: VecDeque<Vec<u8>>,
}

/// What stands with the fabric.
#[derive(Clone, Copy, Debug)]
enum Login {
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

impl Linux {
    pub(crate) fn new(mac: Mac, mtu: usize, (wwpn, wwnn): (Wwn, Wwn)) -> Self {
        Self {
            mac,
            wwpn,
            wwnn,
            mtu,
            now: Now::ZERO,
            is_up: false,
            fcfs: Vec::new(),
            select_at: None,
            selected: None,
            login: Login::None,
            local_port: LocalPort::default(),
            ox_ids: 0,
            out: VecDeque::new(),
        }
    }

    /// Its N_Port_ID and address, while it is logged in.
    pub(crate) const fn granted(&self) -> Option<(FcId, Mac)> {
        match self.login {
            Login::Up { fc_id, mac, .. } => Some((fc_id, mac)),
            _ => None,
        }
    }

    /// Forgets all that it knows.
    fn reset(&mut self) {
        self.fcfs.clear();
        self.select_at = None;
        self.selected = None;
        self.login = Login::None;
        self.local_port = LocalPort::default();
    }

    /// And begins again.
    fn begin_anew(&mut self) {
        self.reset();
        self.solicit(Mac::ALL_FCF);
    }

    fn solicit(&mut self, dst: Mac) {
        let parts = [
            Descriptor::Mac(self.mac),
            Descriptor::Name(self.wwnn),
            Descriptor::MaxFcoeSize(max_fcoe(self.mtu)),
        ];
        self.say(dst, FipOperation::Solicitation, &parts);
    }

    fn say(&mut self, dst: Mac, operation: FipOperation, parts: &[Descriptor<'_>]) {
        let ends = (self.mac, dst);
        let frame = fip_frame(ends, operation, Flags::FPMA, parts);
        self.out.push_back(frame);
    }

    const fn take_ox_id(&mut self) -> OxId {
        self.ox_ids = (self.ox_ids + 1) % 0x1000;
        OxId(self.ox_ids)
    }

    fn parameters(&self) -> ServiceParameters {
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 10,
            features: Features::CONTINUOUS_OFFSET,
            receive_size: max_fcoe(self.mtu) - fcoe_overhead(),
            total_sequences: 255,
            relative_offset: 31,
            e_d_tov: 2000,
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            class_3: ClassParameters {
                options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
                receive_size: max_fcoe(self.mtu) - fcoe_overhead(),
                ..ClassParameters::default()
            },
        }
    }

    fn advertised(&mut self, ethernet: &EthernetHeader, message: &FipMessage<'_>) {
        let Some(new) = LinuxFcf::read(self.now, ethernet, message) else {
            return;
        };
        let same = self.fcfs.iter().position(|fcf| fcf.is_same(&new));
        let is_first = self.fcfs.is_empty();
        let at = match same {
            Some(at) => at,
            None if self.fcfs.len() >= FCFS => return,
            None => {
                self.fcfs.push(new);
                self.fcfs.len() - 1
            }
        };
        let fcf = &mut self.fcfs[at];
        fcf.hear(&new);
        let (is_solicited, is_usable) = (fcf.is_solicited(), fcf.is_usable());
        if !is_solicited {
            self.solicit(new.mac);
        }
        if is_first {
            self.solicit(Mac::ALL_FCF);
        }
        if is_usable && self.selected.is_none() && self.select_at.is_none() {
            self.select_at = Some(self.now + START_DELAY);
        }
    }

    /// One FCF, if all that can be used are of one fabric.
    fn select(&mut self) {
        self.select_at = None;
        let mut usable = self.fcfs.iter().filter(|fcf| fcf.is_usable());
        let Some(first) = usable.next() else {
            return;
        };
        if usable.any(|fcf| !fcf.is_of_fabric(first)) {
            return;
        }
        let usable = self.fcfs.iter().filter(|fcf| fcf.is_usable());
        self.selected = usable.min_by_key(|fcf| fcf.priority).copied();
        self.flogi(1);
    }

    fn flogi(&mut self, tries: u32) {
        let Some(fcf) = self.selected else {
            return;
        };
        let ox_id = self.take_ox_id();
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let ids = (FcId::UNIDENTIFIED, FcId::FABRIC_F);
        let parameters = ServiceParameters {
            total_sequences: 0,
            relative_offset: 0,
            e_d_tov: 0,
            ..self.parameters()
        };
        let request = Descriptor::Els(Encapsulated {
            kind: DescriptorType::FLOGI,
            header: FrameHeader {
                f_ctl: FCtl::REQUEST,
                ..FrameHeader::new(kind, ids, (ox_id, RxId::UNASSIGNED))
            },
            payload: &Els::Flogi(parameters).encode(),
        });
        let parts = [request, Descriptor::Mac(Mac::default())];
        self.say(fcf.mac, FipOperation::ElsRequest, &parts);
        self.login = Login::Asked {
            ox_id,
            until: self.now + E_D_TOV,
            tries,
        };
    }

    /// The answer to FLOGI: the link service first, the address second.
    fn answered(&mut self, ethernet: &EthernetHeader, message: &FipMessage<'_>) {
        let (Login::Asked { ox_id, .. }, Some(fcf)) = (self.login, self.selected) else {
            return;
        };
        let Some(els) = els(message).filter(|els| els.header.ox_id == ox_id) else {
            return;
        };
        let second = message.descriptors().nth(1);
        let reply = Reply::parse(Code::FLOGI, els.payload);
        match (reply, second) {
            _ if ethernet.src != fcf.mac => {}
            (Ok(Reply::Login(_)), Some(Ok(Descriptor::Mac(mac)))) if !mac.is_multicast() => {
                let keeps = fcf.keeps_alive;
                self.login = Login::Up {
                    fc_id: els.header.d_id,
                    mac,
                    enode_at: keeps.then(|| self.now + fcf.period),
                    port_at: keeps.then(|| self.now + PORT_PERIOD),
                };
                self.begin_services();
            }
            // Another FLOGI is sent when its time has come.
            _ => {}
        }
    }

    fn cleared(&mut self, message: &FipMessage<'_>) {
        let (Some(fcf), Some((fc_id, mac))) = (self.selected, self.granted()) else {
            return self.begin_anew();
        };
        let (mut from_mac, mut from_name, mut ports) = (None, None, Vec::new());
        for descriptor in message.descriptors().flatten() {
            match descriptor {
                Descriptor::Mac(mac) => from_mac = Some(mac),
                Descriptor::Name(name) => from_name = Some(name),
                Descriptor::VxPort { mac, fc_id, wwpn } => ports.push((mac, fc_id, wwpn)),
                _ => {}
            }
        }
        let is_its = from_mac == Some(fcf.mac) && from_name == Some(fcf.switch_name);
        if is_its && (ports.is_empty() || ports.contains(&(mac, fc_id, self.wwpn))) {
            self.begin_anew();
        }
    }

    fn age(&mut self) {
        let now = self.now;
        self.fcfs.retain(|fcf| fcf.until() > now);
        let is_there = |selected: LinuxFcf| self.fcfs.iter().any(|fcf| fcf.is_same(&selected));
        if self.selected.is_some_and(|selected| !is_there(selected)) {
            self.begin_anew();
        }
    }

    fn keep_alive(&mut self) {
        let (now, Some(fcf)) = (self.now, self.selected) else {
            return;
        };
        let Login::Up {
            fc_id,
            mac,
            enode_at,
            port_at,
        } = &mut self.login
        else {
            return;
        };
        let enode = enode_at.take_if(|at| *at <= now).is_some();
        let port = port_at.take_if(|at| *at <= now).is_some();
        let (fc_id, vn_mac, wwpn) = (*fc_id, *mac, self.wwpn);
        if enode {
            *enode_at = Some(now + fcf.period);
        }
        if port {
            *port_at = Some(now + PORT_PERIOD);
        }
        if enode {
            self.say(
                fcf.mac,
                FipOperation::KeepAlive,
                &[Descriptor::Mac(self.mac)],
            );
        }
        if port {
            let mac = vn_mac;
            let vx_port = Descriptor::VxPort { mac, fc_id, wwpn };
            let parts = [Descriptor::Mac(self.mac), vx_port];
            let ends = (vn_mac, fcf.mac);
            let frame = fip_frame(ends, FipOperation::KeepAlive, Flags::FPMA, &parts);
            self.out.push_back(frame);
        }
    }

    fn flogi_due(&mut self) {
        match self.login {
            Login::Asked { until, tries, .. } if until <= self.now => {
                if tries > RETRIES {
                    self.begin_anew();
                } else {
                    self.flogi(tries + 1);
                }
            }
            _ => {}
        }
    }
}

impl Machine for Linux {
    fn link(&mut self, now: Now, up: bool) {
        self.now = now;
        if self.is_up == up {
            return;
        }
        self.is_up = up;
        self.reset();
        self.out.clear();
        if up {
            self.solicit(Mac::ALL_FCF);
        }
    }

    fn receive(&mut self, now: Now, frame: &[u8]) {
        self.now = now;
        let Ok((header, payload)) = EthernetHeader::parse(frame) else {
            return;
        };
        if header.ethertype == ethernet::FCOE {
            return self.fcoe(&header, payload);
        }
        let Ok(message) = FipMessage::parse(payload) else {
            return;
        };
        match message.operation {
            FipOperation::Advertisement => self.advertised(&header, &message),
            FipOperation::ElsReply => self.answered(&header, &message),
            FipOperation::ClearVirtualLinks => self.cleared(&message),
            _ => {}
        }
    }

    fn transmit(&mut self, out: &mut HeapFrames) {
        while let Some(frame) = self.out.front()
            && let Some(slot) = out.slot(frame.len())
        {
            slot.copy_from_slice(frame);
            out.commit(frame.len());
            self.out.pop_front();
        }
    }

    fn next_deadline(&self) -> Option<Now> {
        if !self.is_up {
            return None;
        }
        let fcfs = self.fcfs.iter().map(LinuxFcf::until).min();
        let login = match self.login {
            Login::None => [None, None],
            Login::Asked { until, .. } => [Some(until), None],
            Login::Up {
                enode_at, port_at, ..
            } => [enode_at, port_at],
        };
        let others = [fcfs, self.select_at, self.local_port.next_deadline()];
        others.into_iter().chain(login).flatten().min()
    }

    fn expire(&mut self, now: Now) {
        self.now = now;
        self.age();
        if self.select_at.is_some_and(|at| at <= now) {
            self.select();
        }
        self.flogi_due();
        self.keep_alive();
        self.services_due();
    }

    fn own_mac(&self) -> Option<Mac> {
        self.granted().map(|(_, mac)| mac)
    }
}

/// Bytes of an FCoE frame behind the Ethernet header that are not payload.
const fn fcoe_overhead() -> u16 {
    let header = EthernetHeader::new(Mac::BROADCAST, Mac::BROADCAST, ethernet::FCOE);
    (fcoe::frame_len(&header, 0) - header.len()) as u16
}

/// From the first FCF that can be used to the choice.
const START_DELAY: Duration = Duration::from_secs(2);

const E_D_TOV: Duration = Duration::from_secs(2);

/// How often something is sent again.
const RETRIES: u32 = 3;

/// Between keep alives of the VN_Port.
const PORT_PERIOD: Duration = Duration::from_secs(90);

/// FCFs that are kept.
const FCFS: usize = 20;
