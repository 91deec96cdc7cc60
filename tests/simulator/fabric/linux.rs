//! The ENode of a Linux kernel (6.1: `fcoe_ctlr`, `fc_lport`, `fc_disc`, `fc_rport`), by what is
//! known of its habits.
//!
//! - An Advertisement has five descriptors, each once. An FCF is told apart by its address, names
//!   and FC-MAP; what it says later counts only until it can be used.
//! - FCFs that are not solicited are solicited. Two seconds after the first that can be used, one
//!   is chosen, and none if they differ in fabric or FC-MAP.
//! - FLOGI is sent four times, each 2 s later, then all begins anew.
//! - Clear Virtual Links of the FCF that was chosen makes it forget all FCFs and solicit. Before
//!   one was chosen that of any does, but then it does not solicit: it waits for an Advertisement.
//! - Until it has heard FIP it is in AUTO mode: 8 s after its link came up it sends FLOGI as FCoE,
//!   and one that hears another's goes into point-to-point mode until its link goes down.
//! - Further VN_Ports log in by FDISC once the first one is logged in, and begin anew with it.
//! - FCoE is taken from the FCF that was chosen alone, to the address whose lower half is the D_ID.

use std::collections::VecDeque;
use std::time::Duration;

use fc::fip::max_fcoe;
use fc::frames::FrameSink;
use fc::tests::{HeapFrames, Machine, frame};
use fc::wire::els::{ClassParameters, Els, Features, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fcoe;
use fc::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use fc::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;

use super::frames::fip_frame;

mod fcf;
mod local_port;
mod login;
mod vn_port;

use fcf::LinuxFcf;
pub(crate) use vn_port::VnPort;

/// An ENode.
pub(crate) struct Linux {
    mac: Mac,
    mtu: usize,
    now: Now,
    is_up: bool,
    mode: Mode,
    fcfs: Vec<LinuxFcf>,
    /// When one of them is chosen.
    select_at: Option<Now>,
    /// The one that was.
    selected: Option<LinuxFcf>,
    /// Its VN_Port; while something is done for a further one, that.
    port: VnPort,
    /// Those that were made by `vport_create`.
    further: Vec<VnPort>,
    ox_ids: u16,
    out: VecDeque<Vec<u8>>,
}

/// What it takes the Ethernet for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It has heard no FIP, and sends an FLOGI without FIP then.
    Auto(Now),
    /// There are FCFs.
    Fip,
    /// There is one other port.
    PointToPoint,
}

impl Linux {
    /// With VN_Ports of these names.
    pub(crate) fn new(mac: Mac, mtu: usize, names: (Wwn, Wwn), further: &[(Wwn, Wwn)]) -> Self {
        let further = further.iter().map(|names| VnPort::new(*names, true));
        Self {
            mac,
            mtu,
            now: Now::ZERO,
            is_up: false,
            mode: Mode::Fip,
            fcfs: Vec::new(),
            select_at: None,
            selected: None,
            port: VnPort::new(names, false),
            further: further.collect(),
            ox_ids: 0,
            out: VecDeque::new(),
        }
    }

    /// A VN_Port: the first one, or a further one.
    pub(crate) fn vn_port(&self, number: usize) -> &VnPort {
        match number.checked_sub(1) {
            None => &self.port,
            Some(further) => &self.further[further],
        }
    }

    const fn granted(&self) -> Option<(FcId, Mac)> {
        self.port.granted()
    }

    /// Whether it has taken another kernel for all that there is.
    pub(crate) fn is_point_to_point(&self) -> bool {
        self.mode == Mode::PointToPoint
    }

    /// FLOGI without FIP, if it is time.
    fn flogi_without_fip(&mut self) {
        let Mode::Auto(at) = self.mode else {
            return;
        };
        if at > self.now {
            return;
        }
        self.mode = Mode::Auto(self.now + AGAIN);
        let ethernet = EthernetHeader::new(self.mac, FLOGI_MAC, ethernet::FCOE);
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let ids = (FcId::UNIDENTIFIED, FcId::FABRIC_F);
        let header = FrameHeader::request(kind, ids, self.take_ox_id());
        let payload = Els::Flogi(self.parameters()).encode();
        let delimiters = (fcoe::Sof::I3, fcoe::Eof::T);
        self.out
            .push_back(frame(&ethernet, delimiters, &header, &payload));
    }

    /// Does something for each VN_Port.
    fn each_port(&mut self, mut act: impl FnMut(&mut Self)) {
        act(self);
        for at in 0..self.further.len() {
            self.as_further(at, &mut act);
        }
    }

    fn as_further(&mut self, at: usize, act: impl FnOnce(&mut Self)) {
        std::mem::swap(&mut self.port, &mut self.further[at]);
        act(self);
        std::mem::swap(&mut self.port, &mut self.further[at]);
    }

    /// Does something for the VN_Port of which this is so.
    fn for_port(&mut self, is_it: impl Fn(&VnPort) -> bool, act: impl FnOnce(&mut Self)) {
        if is_it(&self.port) {
            act(self);
        } else if let Some(at) = self.further.iter().position(is_it) {
            self.as_further(at, act);
        }
    }

    /// Forgets all that it knows.
    fn reset(&mut self) {
        self.fcfs.clear();
        self.select_at = None;
        self.selected = None;
        self.port.reset();
        self.further.iter_mut().for_each(VnPort::reset);
    }

    /// And begins again; a further VN_Port by itself.
    fn begin_anew(&mut self) {
        if self.port.is_further {
            self.port.reset();
            self.log_in(1);
        } else {
            self.reset();
            self.solicit(Mac::ALL_FCF);
        }
    }

    fn solicit(&mut self, dst: Mac) {
        let parts = [
            Descriptor::Mac(self.mac),
            Descriptor::Name(self.port.wwnn),
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
            wwpn: self.port.wwpn,
            wwnn: self.port.wwnn,
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
        self.log_in(1);
    }

    fn cleared(&mut self, ethernet: &EthernetHeader, message: &FipMessage<'_>) {
        let Some(fcf) = self.selected else {
            // The next Advertisement has it begin.
            return self.reset();
        };
        if ethernet.src != fcf.mac {
            return;
        }
        let Some((fc_id, mac)) = self.granted() else {
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
        if !is_its {
            return;
        }
        if ports.is_empty() || ports.contains(&(mac, fc_id, self.port.wwpn)) {
            return self.begin_anew();
        }
        for at in 0..self.further.len() {
            self.as_further(at, |linux| {
                let granted = linux.granted();
                let its = granted.map(|(fc_id, mac)| (mac, fc_id, linux.port.wwpn));
                if its.is_some_and(|its| ports.contains(&its)) {
                    linux.begin_anew();
                }
            });
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
            self.mode = Mode::Auto(now + AUTO);
            self.solicit(Mac::ALL_FCF);
        }
    }

    fn receive(&mut self, now: Now, frame: &[u8]) {
        self.now = now;
        let Ok((header, payload)) = EthernetHeader::parse(frame) else {
            return;
        };
        if self.is_point_to_point() {
            return;
        }
        if header.dst == FLOGI_MAC {
            self.mode = Mode::PointToPoint;
            return self.reset();
        }
        if header.ethertype == ethernet::FCOE {
            let [.., a, b, c] = header.dst.0;
            let d_id = FcId::from_bytes([a, b, c]);
            let is_its = |port: &VnPort| port.granted().is_some_and(|granted| granted.0 == d_id);
            return self.for_port(is_its, |linux| linux.fcoe(&header, payload));
        }
        let Ok(message) = FipMessage::parse(payload) else {
            return;
        };
        self.mode = Mode::Fip;
        match message.operation {
            FipOperation::Advertisement => self.advertised(&header, &message),
            FipOperation::ElsReply => self.els_replied(&header, &message),
            FipOperation::ClearVirtualLinks => self.cleared(&header, &message),
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
        let ports = self.further.iter().chain([&self.port]);
        let ports = ports.filter_map(VnPort::next_deadline);
        let auto = match self.mode {
            Mode::Auto(at) => Some(at),
            Mode::Fip | Mode::PointToPoint => None,
        };
        let others = [fcfs, self.select_at, auto].into_iter().flatten();
        others.chain(ports).min()
    }

    fn expire(&mut self, now: Now) {
        self.now = now;
        self.flogi_without_fip();
        self.age();
        if self.select_at.is_some_and(|at| at <= now) {
            self.select();
        }
        self.each_port(|linux| {
            linux.flogi_due();
            linux.keep_alive();
            linux.services_due();
        });
    }

    fn own_mac(&self) -> Option<Mac> {
        self.granted().map(|(_, mac)| mac)
    }

    fn owns(&self, dst: Mac) -> bool {
        let ports = self.further.iter().chain([&self.port]);
        let mut macs = ports.filter_map(|port| Some(port.granted()?.1));
        macs.any(|mac| mac == dst) || dst == FLOGI_MAC && matches!(self.mode, Mode::Auto(_))
    }
}

/// Bytes of an FCoE frame behind the Ethernet header that are not payload.
const fn fcoe_overhead() -> u16 {
    let header = EthernetHeader::new(Mac::BROADCAST, Mac::BROADCAST, ethernet::FCOE);
    (fcoe::frame_len(&header, 0) - header.len()) as u16
}

/// From link up to the third FLOGI, which is the first that is sent without FIP.
const AUTO: Duration = Duration::from_secs(8);

/// Between those that follow.
const AGAIN: Duration = Duration::from_secs(4);

/// Where they are sent.
pub(super) const FLOGI_MAC: Mac = Mac::of_port(Mac::FC_MAP, FcId::FABRIC_F);

/// From the first FCF that can be used to the choice.
const START_DELAY: Duration = Duration::from_secs(2);

const E_D_TOV: Duration = Duration::from_secs(2);

/// How often something is sent again.
const RETRIES: u32 = 3;

/// FCFs that are kept.
const FCFS: usize = 20;
