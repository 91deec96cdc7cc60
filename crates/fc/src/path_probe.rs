//! How long frames may be on the way between this port and each other one, as far as ports tell
//! each other, and which ports are lost for FIP.
//!
//! It is a VN_Port without FCP, which comes up, measures, and leaves (FC-BB-6, VN2VN):
//!
//! | what comes | what it shows |
//! |---|---|
//! | Claim Response | it is as long as both ends can take: such frames come in |
//! | LS_ACC of ECHO (FC-LS-3), as long as the frame it answers | such frames pass both ways |
//! | FIP of a port that has not answered our claim | long frames from it do not come in |
//! | solicited Advertisement | it is as long as the FCF's frames may be: such frames come in |
//! | FLOGI in an FCoE frame | its sender heard no FIP, and may have gone point-to-point |
//!
//! An ECHO of full length that has no answer is sent again; after [`TRIES`] the longest one that
//! passes is searched for by halves. Ports that log in are rejected, and their own ECHO is
//! answered.

mod echo;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use scsi::medium::Now;

use self::echo::EchoSearch;
use crate::fip::{self, Fip, FipConfig, FipEvent, Mode, Neighbour};
use crate::frames::{FrameSink, Single};
use crate::wire::els::{Els, LsRejectReason, Reply};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::fip::{Descriptor, FipOperation, Flags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// A port that measures.
#[derive(Clone, Copy, Debug)]
pub struct PathProbeConfig {
    /// The address of its ENode.
    pub mac: Mac,
    /// WWPN.
    pub wwpn: Wwn,
    /// WWNN.
    pub wwnn: Wwn,
    /// The MTU of its Ethernet port, in bytes.
    pub mtu: usize,
}

/// What is known of the way to a port and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPath {
    /// The address of its ENode.
    pub enode: Mac,
    /// Its WWPN, once it has told it.
    pub wwpn: Option<Wwn>,
    /// The longest FCoE frame that it takes, in bytes behind the Ethernet header, if it has told.
    pub max_fcoe: Option<u16>,
    /// It has answered our claim by a message of so many bytes behind the Ethernet header.
    pub answer: Option<u16>,
    /// What became of ECHO.
    pub echo: EchoResult,
}

/// What became of ECHO to a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EchoResult {
    /// There is no virtual link, so nothing was sent.
    #[default]
    Untried,
    /// It is being sent.
    Searching,
    /// Not even the shortest one was answered.
    Silent,
    /// The port does not know it.
    Refused,
    /// Up to so many bytes of payload came back.
    Passed {
        /// The longest payload that came back.
        longest: u16,
        /// The longest that both ends take.
        full: u16,
    },
}

/// What that comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathVerdict {
    /// Full frames pass both ways.
    Full,
    /// Full frames from the port do not come in.
    NarrowIn,
    /// Longer frames than these do not arrive there; the number is an MTU in bytes.
    NarrowOut(u16),
    /// Longer frames than these do not pass one of both ways; the number is an MTU in bytes.
    Narrow(u16),
    /// It is not known.
    Unknown,
}

impl fmt::Display for PathVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full frames pass both ways"),
            Self::NarrowIn => f.write_str("full frames do not come in"),
            Self::NarrowOut(mtu) => write!(f, "frames up to an MTU of {mtu} arrive there"),
            Self::Narrow(mtu) => write!(f, "frames up to an MTU of {mtu} pass there and back"),
            Self::Unknown => f.write_str("not known"),
        }
    }
}

impl PortPath {
    const fn new(enode: Mac) -> Self {
        Self {
            enode,
            wwpn: None,
            max_fcoe: None,
            answer: None,
            echo: EchoResult::Untried,
        }
    }

    /// What is known, for an Ethernet port of ours of this MTU.
    #[must_use]
    pub fn verdict(&self, mtu: usize) -> PathVerdict {
        let expected = self.max_fcoe.map(|theirs| theirs.min(fip::max_fcoe(mtu)));
        let comes_in = match (self.answer, expected) {
            (Some(answer), Some(expected)) => answer >= expected,
            _ => false,
        };
        match self.echo {
            EchoResult::Passed { longest, full } if longest >= full => PathVerdict::Full,
            EchoResult::Passed { longest, .. } if comes_in => {
                PathVerdict::NarrowOut(fip::fcoe_len(longest))
            }
            EchoResult::Passed { longest, .. } => PathVerdict::Narrow(fip::fcoe_len(longest)),
            EchoResult::Untried if self.answer.is_none() => PathVerdict::NarrowIn,
            _ => PathVerdict::Unknown,
        }
    }
}

/// What is known of the way from an FCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcfPath {
    /// Its FCF-MAC.
    pub mac: Mac,
    /// Its Switch_Name, if it has told it.
    pub name: Option<Wwn>,
    /// It has answered our Solicitation by an Advertisement of so many bytes behind the Ethernet
    /// header.
    pub answer: Option<u16>,
}

/// The machine.
#[derive(Debug)]
pub struct PathProbe {
    config: PathProbeConfig,
    now: Now,
    fip: Fip,
    /// By the address of the ENode.
    ports: BTreeMap<Mac, PortPath>,
    fcfs: BTreeMap<Mac, FcfPath>,
    /// Those that log in by FCoE frames, with their WWPNs.
    outside_fip: BTreeMap<Mac, Wwn>,
    searches: BTreeMap<FcId, EchoSearch>,
    next_ox_id: u16,
    /// When the next Solicitation is due.
    solicit: Option<Now>,
    /// One is to be sent.
    solicits: bool,
    /// Whether the last one asked for a short answer.
    was_short: bool,
    controls: VecDeque<Single>,
    /// The address that frames are to be received at has changed.
    moved: bool,
}

impl PathProbe {
    /// A port whose link is down. `random` are fresh random bytes.
    #[must_use]
    pub fn new(config: PathProbeConfig, now: Now, random: [u8; 8]) -> Self {
        let fip = FipConfig {
            mac: config.mac,
            wwpn: config.wwpn,
            wwnn: config.wwnn,
            max_fcoe: fip::max_fcoe(config.mtu),
            mode: Mode::Multipoint,
            target: false,
            initiator: false,
        };
        Self {
            config,
            now,
            fip: Fip::new(fip, now, random),
            ports: BTreeMap::new(),
            fcfs: BTreeMap::new(),
            outside_fip: BTreeMap::new(),
            searches: BTreeMap::new(),
            next_ox_id: 0,
            solicit: None,
            solicits: false,
            was_short: true,
            controls: VecDeque::new(),
            moved: false,
        }
    }

    /// Addresses that are to be received, besides that of the ENode and [`Self::mac`].
    #[must_use]
    pub fn groups() -> [Mac; 4] {
        let [many, two] = Fip::groups();
        [many, two, ALL_ENODES, OUTSIDE_FIP]
    }

    /// The link came up, or goes down.
    pub fn link(&mut self, now: Now, up: bool) {
        self.tick(now);
        self.fip.link(self.now, up);
        self.solicit = up.then_some(self.now);
        self.hear();
    }

    /// Leaves: other ports are told. To be followed by [`Self::link`] down once that is sent.
    pub fn leave(&mut self, now: Now) {
        self.tick(now);
        self.solicit = None;
        self.searches.clear();
        let all: Vec<_> = self.fip.neighbours().map(|one| one.fc_id).collect();
        for fc_id in all {
            self.fip.log_out(self.now, fc_id);
        }
        self.fip.leave();
        self.hear();
    }

    /// The address of the VN_Port, once it has one.
    #[must_use]
    pub fn mac(&self) -> Option<Mac> {
        self.fip.mac()
    }

    /// Whether [`Self::mac`] is another one since this was asked before.
    pub fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Whether something is still being searched for.
    #[must_use]
    pub fn is_searching(&self) -> bool {
        !self.searches.is_empty()
    }

    /// What is known of other ports, by the address of their ENodes.
    pub fn ports(&self) -> impl Iterator<Item = &PortPath> {
        self.ports.values()
    }

    /// What is known of FCFs.
    pub fn fcfs(&self) -> impl Iterator<Item = &FcfPath> {
        self.fcfs.values()
    }

    /// Ports that log in outside of FIP, as Linux does that heard none: address and WWPN.
    pub fn outside_fip(&self) -> impl Iterator<Item = (Mac, Wwn)> {
        self.outside_fip.iter().map(|(mac, wwpn)| (*mac, *wwpn))
    }

    /// Takes a whole Ethernet frame. `vlan` is the identifier of the VLAN that it came by, if its
    /// tag was taken away on the way. Frames of a VLAN, and those that break a rule, are passed
    /// over.
    pub fn receive(&mut self, now: Now, bytes: &[u8], vlan: Option<u16>) {
        self.tick(now);
        let tag = vlan.map(VlanTag::decode);
        let Ok((header, payload)) = EthernetHeader::parse_received(bytes, tag) else {
            return;
        };
        if header.vid() != 0 || header.src == self.config.mac {
            return;
        }
        match header.ethertype {
            ethernet::FIP => {
                self.observe(&header, payload);
                // What it refuses was observed all the same.
                let _ = self.fip.receive(self.now, &header, payload);
                self.hear();
            }
            ethernet::FCOE => {
                if let Ok(frame) = fcoe::decode(payload) {
                    self.fcoe(&header, &frame);
                }
            }
            _ => {}
        }
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let searches = self.searches.values().map(EchoSearch::deadline).min();
        let deadlines = [self.fip.next_deadline(), searches, self.solicit];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.tick(now);
        if self.fip.next_deadline().is_some_and(|at| at <= self.now) {
            self.fip.expire(self.now);
            self.hear();
        }
        if self.solicit.is_some_and(|at| at <= self.now) {
            self.solicits = true;
            self.was_short = !self.was_short;
            self.solicit = Some(self.now.saturating_add(SOLICITATION_PERIOD));
        }
        self.expire_searches();
    }

    /// Writes what is to be sent, as far as there is room.
    pub fn transmit(&mut self, out: &mut impl FrameSink) {
        self.fip.transmit(out);
        if self.solicits {
            let frame = self.solicitation();
            let Some(slot) = out.slot(frame.len()) else {
                return;
            };
            slot[..frame.len()].copy_from_slice(&frame);
            out.commit(frame.len());
            self.solicits = false;
        }
        while let Some(next) = self.controls.front() {
            if !next.put(out) {
                return;
            }
            self.controls.pop_front();
        }
    }

    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    /// What FIP has come to.
    fn hear(&mut self) {
        while let Some(event) = self.fip.poll() {
            match event {
                FipEvent::Claimed(_) => self.moved = true,
                FipEvent::Released(_) => {
                    self.moved = true;
                    self.searches.clear();
                    self.controls.clear();
                }
                FipEvent::Found(neighbour) => self.found(&neighbour),
                FipEvent::Lost(fc_id, _) => self.give_up(fc_id),
            }
        }
    }

    /// A frame of Fibre Channel: an answer to ours, a request, or one that Linux sends without FIP.
    fn fcoe(&mut self, ethernet: &EthernetHeader, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        if ethernet.dst == OUTSIDE_FIP && header.d_id == FcId::FABRIC_F {
            self.note_outside_fip(ethernet.src, frame);
            return;
        }
        let is_ours = self.fip.mac() == Some(ethernet.dst)
            && self.fip.fc_id() == Some(header.d_id)
            && ethernet.src == Mac::of_port(Mac::VN2VN_FC_MAP, header.s_id);
        match (header.kind, header.r_ctl) {
            (FrameType::ELS, RCtl::ELS_REPLY) if is_ours => self.echoed(frame),
            (FrameType::ELS, RCtl::ELS_REQUEST) if is_ours => self.asked(frame),
            _ => {}
        }
    }

    /// A request.
    fn asked(&mut self, frame: &ReceivedFrame<'_>) {
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Echo(data)) => Reply::Echo(data),
            _ => Reply::Reject(LsRejectReason::NOT_SUPPORTED),
        };
        let exchange = (frame.header.ox_id, RxId::UNASSIGNED);
        let kind = (RCtl::ELS_REPLY, FCtl::REPLY);
        self.send(frame.header.s_id, kind, exchange, reply.encode());
    }

    /// Sends a link service to a VN2VN port.
    fn send(
        &mut self,
        to: FcId,
        (r_ctl, f_ctl): (RCtl, FCtl),
        exchange: (OxId, RxId),
        payload: Vec<u8>,
    ) {
        let Some((fc_id, mac)) = self.fip.fc_id().zip(self.fip.mac()) else {
            return;
        };
        if self.controls.len() >= QUEUE {
            return;
        }
        let dst = Mac::of_port(Mac::VN2VN_FC_MAP, to);
        let header = FrameHeader::new((r_ctl, FrameType::ELS), (fc_id, to), exchange);
        self.controls.push_back(Single {
            ethernet: EthernetHeader::new(mac, dst, ethernet::FCOE),
            header: FrameHeader { f_ctl, ..header },
            payload,
        });
    }

    /// Discovery Solicitation of an ENode, to all FCFs (FC-BB-6). Each other one asks for a short
    /// answer: an FCF whose full frames are lost would not be known before it advertises itself to
    /// all, which may take 90 s.
    fn solicitation(&self) -> Vec<u8> {
        let own = self.fip_size();
        let size = if self.was_short { SHORT.min(own) } else { own };
        let descriptors = [
            Descriptor::Mac(self.config.mac),
            Descriptor::Name(self.config.wwnn),
            Descriptor::MaxFcoeSize(size),
        ];
        let message =
            crate::wire::fip::encode(FipOperation::Solicitation, Flags::FPMA, &descriptors);
        let header = EthernetHeader::new(self.config.mac, ALL_FCFS, ethernet::FIP);
        let mut frame = vec![0; (header.len() + message.len()).max(ethernet::MIN_LEN)];
        header.put(&mut frame)[..message.len()].copy_from_slice(&message);
        frame
    }

    /// The most bytes of an answer that the interface takes.
    fn fip_size(&self) -> u16 {
        fip::max_fcoe(self.config.mtu)
    }

    fn found(&mut self, neighbour: &Neighbour) {
        if let Some(port) = self.port(neighbour.enode) {
            port.wwpn = Some(neighbour.wwpn);
            port.echo = EchoResult::Searching;
            self.search(neighbour);
        }
    }

    /// The entry of an ENode, which may be a new one. `None` if there are too many.
    fn port(&mut self, enode: Mac) -> Option<&mut PortPath> {
        if self.ports.len() >= PORTS_MAX && !self.ports.contains_key(&enode) {
            return None;
        }
        let port = self.ports.entry(enode);
        Some(port.or_insert_with(|| PortPath::new(enode)))
    }
}

/// All-FCF-MACs and All-ENode-MACs.
const ALL_FCFS: Mac = Mac([0x01, 0x10, 0x18, 0x01, 0x00, 0x02]);
const ALL_ENODES: Mac = Mac([0x01, 0x10, 0x18, 0x01, 0x00, 0x01]);

/// Where an FLOGI goes in an FCoE frame: the FC-MAP of fabrics with the address FFFFFE.
const OUTSIDE_FIP: Mac = Mac::of_port(Mac::FC_MAP, FcId::FABRIC_F);

/// FCFs answer within 100 ms.
const SOLICITATION_PERIOD: Duration = Duration::from_secs(1);

/// Bytes of a short answer, behind the Ethernet header. No path is so narrow, and no FCF takes so
/// little.
const SHORT: u16 = 512;

/// ENodes, FCFs, and ports outside of FIP that are remembered, of each. Others are passed over.
const PORTS_MAX: usize = 256;

/// Link services that wait to be sent. What is beyond that is lost, as it could be on the Ethernet.
const QUEUE: usize = 512;

/// So often an ECHO of full length is sent before it counts as lost.
pub const TRIES: u8 = 3;
