//! A host made up for tests: it says on its end of a cable what an ENode says (FC-BB-6).
//!
//! The feature `testing` opens it to tests of whole programs.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use ::io::ether::{EtherOptions, EtherPort, Place};
use fc::tests::{EnodeFrames, login};
use fc::wire::ct::CtHeader;
use fc::wire::els::{Code, Els, Reply};
use fc::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use fc::wire::fcoe;
use fc::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use fc::wire::frame::{FrameType, OxId, RCtl};
use fc::wire::names::{FcId, Wwn};

/// How long a test waits for what a busy machine does within a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host.
#[derive(Debug)]
pub struct Enode {
    ether: EtherPort,
    /// Frames that have come in.
    incoming: VecDeque<(EthernetHeader, Vec<u8>)>,
    /// What it sends; the address of the switch in it is right once that is known.
    pub frames: EnodeFrames,
    /// Its N_Port_ID, once it is logged in.
    pub fc_id: FcId,
    /// Of its next exchange.
    ox_id: u16,
}

/// Ethernet.
impl Enode {
    /// A host at the other end of the cable of a switch, or at an interface.
    ///
    /// # Panics
    /// If it cannot be had.
    #[must_use]
    pub fn plug(place: &Place, vid: Option<u16>) -> Self {
        let mut ether = EtherPort::open(place, &EtherOptions::default()).expect("a free end");
        ether.join(Mac::ALL_ENODE.0).expect("a group");
        let vlan = vid.map(|vid| VlanTag {
            priority: 3,
            dei: false,
            vid,
        });
        let frames = EnodeFrames::new(Mac(ether.mac()), Mac::ALL_FCF);
        Self {
            ether,
            incoming: VecDeque::new(),
            frames: EnodeFrames { vlan, ..frames },
            fc_id: FcId::UNIDENTIFIED,
            ox_id: 7,
        }
    }

    /// The address that it was granted.
    const fn vn_mac(&self) -> Mac {
        Mac::of_port(Mac::FC_MAP, self.fc_id)
    }

    /// The name of its VN_Port.
    #[must_use]
    pub const fn wwpn(&self) -> Wwn {
        self.frames.wwpn
    }

    /// Sends a frame, when the cable takes it.
    pub fn put(&mut self, frame: &[u8]) {
        while self.flood_with(frame, 1) == 0 {
            thread::yield_now();
        }
        while !self.flush() {
            thread::yield_now();
        }
    }

    /// Sends a frame up to `most` times, as often as the cable takes it now. Returns how often that
    /// was.
    pub fn flood_with(&mut self, frame: &[u8], most: usize) -> usize {
        for count in 0..most {
            let Some(slot) = self.ether.slot(frame.len()) else {
                self.flush();
                return count;
            };
            slot.copy_from_slice(frame);
            self.ether.commit(frame.len());
        }
        self.flush();
        most
    }

    /// Whether all that was sent has left.
    pub fn flush(&mut self) -> bool {
        self.ether.flush().expect("a cable")
    }

    /// Frames that come in, until `wanted` finds what it looks for in one of them, or for so long.
    fn hear_for<T>(
        &mut self,
        limit: Duration,
        wanted: impl Fn(&EthernetHeader, &[u8]) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            self.take();
            while let Some((header, payload)) = self.incoming.pop_front() {
                if let Some(found) = wanted(&header, &payload) {
                    return Some(found);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn take(&mut self) {
        let incoming = &mut self.incoming;
        self.ether.receive(|frame, tci| {
            let (mut header, payload) = EthernetHeader::parse(frame).expect("an Ethernet frame");
            header.vlan = header.vlan.or(tci.map(VlanTag::decode));
            incoming.push_back((header, payload.to_vec()));
        });
    }

    /// What becomes readable when something comes in.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let fd = self.ether.waited().as_fd();
        let mut list = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        let none = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        rustix::event::poll(&mut list, Some(&none)).expect("poll") == 0
    }

    /// Frames of other ports that are there now.
    pub fn drain(&mut self) -> usize {
        self.take();
        let frames = self.incoming.drain(..);
        frames
            .filter(|(header, _)| header.ethertype == ethernet::FCOE)
            .count()
    }

    /// Whole frames of FCoE that are there now: their S_ID and D_ID.
    pub fn drain_pairs(&mut self) -> Vec<(FcId, FcId)> {
        self.take();
        let frames = self.incoming.drain(..);
        let fcoe = frames.filter(|(header, _)| header.ethertype == ethernet::FCOE);
        let pair = |(_, payload): (_, Vec<u8>)| {
            let header = fcoe::decode(&payload).expect("a whole frame").header;
            (header.s_id, header.d_id)
        };
        fcoe.map(pair).collect()
    }
}

/// FIP.
impl Enode {
    fn hear_fip<T>(
        &mut self,
        operation: FipOperation,
        wanted: impl Fn(&EthernetHeader, &FipMessage<'_>) -> Option<T>,
    ) -> T {
        let heard = self.hear_for(PATIENCE, fip_of(operation, wanted));
        heard.unwrap_or_else(|| panic!("no {operation:?}"))
    }

    /// Finds the switch, and logs in to it.
    pub fn log_in(&mut self) {
        self.solicit();
        // Of the same number it would be a copy of the one before.
        self.ox_id += 1;
        let flogi = self.frames.flogi(self.ox_id);
        self.put(&flogi);
        self.fc_id = self.hear_fip(FipOperation::ElsReply, |_, message| {
            let mut descriptors = descriptors(message);
            let Some(Descriptor::Els(els)) = descriptors.next() else {
                panic!("no ELS comes first")
            };
            let reply = Reply::parse(Code::FLOGI, els.payload);
            assert!(matches!(reply, Ok(Reply::Login(_))), "{reply:?}");
            let granted = Mac::of_port(Mac::FC_MAP, els.header.d_id);
            assert_eq!(descriptors.next(), Some(Descriptor::Mac(granted)));
            Some(els.header.d_id)
        });
        let own = self.vn_mac();
        self.ether.join(own.0).expect("an address");
    }

    /// Finds the switch.
    pub fn solicit(&mut self) {
        let solicitation = self.frames.solicitation(2158);
        let tag = self.frames.vlan;
        let solicited = |header: &EthernetHeader, message: &FipMessage<'_>| {
            assert_eq!(header.vlan, tag);
            let wanted = Flags::AVAILABLE.with(Flags::SOLICITED);
            message.flags.has(wanted).then_some(header.src)
        };
        // The link at the other end may not be up yet.
        let mut tries = (0..PATIENCE.as_secs()).map(|_| {
            self.put(&solicitation);
            let advertisement = fip_of(FipOperation::Advertisement, solicited);
            self.hear_for(Duration::from_secs(1), advertisement)
        });
        self.frames.fcf = tries.find_map(|fcf| fcf).expect("an FCF");
    }

    /// The VLANs that the switch tells when it is asked without a tag.
    pub fn vlans(&mut self) -> Vec<u16> {
        let request = self.frames.vlan_request();
        self.put(&request);
        self.hear_fip(FipOperation::VlanNotification, |header, message| {
            assert_eq!(header.vlan, None);
            let vlans = descriptors(message).filter_map(|descriptor| match descriptor {
                Descriptor::Vlan(vid) => Some(vid),
                _ => None,
            });
            Some(vlans.collect())
        })
    }

    /// Logs out, and waits for the answer.
    pub fn log_out(&mut self) {
        let logo = self.frames.logo(self.fc_id, 2);
        self.put(&logo);
        self.hear_fip(FipOperation::ElsReply, |_, _| Some(()));
    }

    /// The switch says that all logins are over.
    pub fn hears_the_end(&mut self) {
        self.hear_fip(FipOperation::ClearVirtualLinks, |_, message| {
            let is_port = |one: &Descriptor<'_>| matches!(one, Descriptor::VxPort { .. });
            let ports = descriptors(message).filter(is_port).count();
            (ports == 0).then_some(())
        });
    }
}

/// FCoE.
impl Enode {
    /// Asks the fabric controller to tell of changes (SCR).
    pub fn register_for_changes(&mut self) {
        let scr = Els::Scr(3).encode();
        let frame = self.frame(
            (RCtl::ELS_REQUEST, FrameType::ELS),
            FcId::FABRIC_CONTROLLER,
            &scr,
        );
        self.put(&frame);
    }

    /// A frame to another port, by the switch.
    pub fn send(&mut self, to: FcId, payload: &[u8]) {
        let frame = self.frame((RCtl::ELS_REQUEST, FrameType::FCP), to, payload);
        self.put(&frame);
    }

    /// The same, as often as the cable takes it now. Returns how often that was.
    pub fn flood(&mut self, to: FcId, payload: &[u8], most: usize) -> usize {
        let frame = self.frame((RCtl::ELS_REQUEST, FrameType::FCP), to, payload);
        self.flood_with(&frame, most)
    }

    fn frame(&self, kind: (RCtl, FrameType), to: FcId, payload: &[u8]) -> Vec<u8> {
        self.frames.fcoe(kind, (self.fc_id, to), 7, payload)
    }

    /// Logs in to a service of the fabric (PLOGI).
    pub fn log_in_to(&mut self, service: FcId) {
        let plogi = Els::Plogi(login(self.frames.wwpn, self.frames.wwnn)).encode();
        let answer = self.exchange((RCtl::ELS_REQUEST, FrameType::ELS), service, &plogi);
        let reply = Reply::parse(Code::PLOGI, &answer);
        assert!(matches!(reply, Ok(Reply::Login(_))), "{reply:?}");
    }

    /// A request by the common transport, which may be longer than a frame, and what it is answered
    /// with.
    pub fn ask(&mut self, service: FcId, request: &[u8]) -> (CtHeader, Vec<u8>) {
        let kind = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
        let answer = self.exchange(kind, service, request);
        let (header, payload) = CtHeader::parse(&answer).expect("a CT_IU");
        (header, payload.to_vec())
    }

    /// A new exchange with a service: the sequence that it is answered with.
    fn exchange(&mut self, kind: (RCtl, FrameType), to: FcId, request: &[u8]) -> Vec<u8> {
        self.ox_id += 1;
        let ox_id = self.ox_id;
        let frames = self
            .frames
            .sequence(kind, (self.fc_id, to), ox_id, request, 2112);
        for frame in &frames {
            self.put(frame);
        }
        let mut answer = Vec::new();
        loop {
            let (payload, is_last) = self.next_of(to, OxId(ox_id));
            answer.extend(payload);
            if is_last {
                return answer;
            }
        }
    }

    /// The next frame of an exchange with a service, and whether it is the last one.
    fn next_of(&mut self, from: FcId, ox_id: OxId) -> (Vec<u8>, bool) {
        let heard = self.hear_for(PATIENCE, |header, payload| {
            let frame = fcoe::decode(payload).ok()?;
            let is_its = header.ethertype == ethernet::FCOE
                && (frame.header.s_id, frame.header.ox_id) == (from, ox_id);
            let is_last = frame.header.f_ctl.end_sequence();
            is_its.then(|| (frame.payload.to_vec(), is_last))
        });
        heard.unwrap_or_else(|| panic!("no answer of {from}"))
    }

    /// The next frame of another port: its S_ID and payload.
    pub fn next_frame(&mut self) -> (FcId, Vec<u8>) {
        self.frame_within(PATIENCE).expect("a frame")
    }

    /// The same, if one comes within that time.
    pub fn frame_within(&mut self, limit: Duration) -> Option<(FcId, Vec<u8>)> {
        let (own, EnodeFrames { fcf, vlan, .. }) = (self.vn_mac(), self.frames);
        self.hear_for(limit, |header, payload| {
            if header.ethertype != ethernet::FCOE {
                return None;
            }
            assert_eq!((header.dst, header.src, header.vlan), (own, fcf, vlan));
            let frame = fcoe::decode(payload).expect("a whole frame");
            Some((frame.header.s_id, frame.payload.to_vec()))
        })
    }
}

/// LLDP.
impl Enode {
    /// It hears LLDP, too.
    pub fn listen_to_lldp(&mut self) {
        self.ether.join(Mac::NEAREST_BRIDGE.0).expect("a group");
    }

    /// The next LLDPDU.
    pub fn next_lldp(&mut self) -> (EthernetHeader, Vec<u8>) {
        self.lldp_within(PATIENCE).expect("an LLDPDU")
    }

    /// The same, if one comes within that time.
    pub fn lldp_within(&mut self, limit: Duration) -> Option<(EthernetHeader, Vec<u8>)> {
        self.hear_for(limit, |header, payload| {
            let is_lldp = header.ethertype == ethernet::LLDP;
            is_lldp.then(|| (*header, payload.to_vec()))
        })
    }
}

/// All descriptors of a message that is right.
fn descriptors<'a>(message: &FipMessage<'a>) -> impl Iterator<Item = Descriptor<'a>> {
    let all = message.descriptors();
    all.map(|descriptor| descriptor.expect("a descriptor"))
}

/// Finds in messages of one kind what is looked for.
fn fip_of<T>(
    operation: FipOperation,
    wanted: impl Fn(&EthernetHeader, &FipMessage<'_>) -> Option<T>,
) -> impl Fn(&EthernetHeader, &[u8]) -> Option<T> {
    move |header, payload| {
        let message = FipMessage::parse(payload);
        let is_fip = header.ethertype == ethernet::FIP;
        let message = message.ok().filter(|_| is_fip)?;
        let is_it = message.operation == operation;
        is_it.then(|| wanted(header, &message)).flatten()
    }
}
