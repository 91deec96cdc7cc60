//! A host made up for tests: it says on its end of a cable what an ENode says (FC-BB-6).

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use ::io::ether::{EtherOptions, EtherPort, Place};
use fc::wire::els::{ClassParameters, Code, Els, Features, Logo, Reply, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use fc::wire::fcoe::{self, Eof, Sof};
use fc::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags,
};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};

/// How long a test waits for what a busy machine does within a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// The upper half of a WWPN of these hosts; the lower is the MAC address.
const WWPN: u64 = 0x2000 << 48;

/// A host.
pub(super) struct Enode {
    ether: EtherPort,
    /// Frames that have come in.
    incoming: VecDeque<(EthernetHeader, Vec<u8>)>,
    /// The address of the switch, once it is known.
    fcf: Mac,
    /// Its N_Port_ID, once it is logged in.
    pub(super) fc_id: FcId,
    tag: Option<VlanTag>,
}

impl Enode {
    /// A host at the other end of the cable of a switch.
    pub(super) fn plug(place: &Place, vid: Option<u16>) -> Self {
        let mut ether = EtherPort::open(place, &EtherOptions::default()).unwrap();
        ether.join(Mac::ALL_ENODE.0).unwrap();
        Self {
            ether,
            incoming: VecDeque::new(),
            fcf: Mac::ALL_FCF,
            fc_id: FcId::UNIDENTIFIED,
            tag: vid.map(|vid| VlanTag {
                priority: 3,
                dei: false,
                vid,
            }),
        }
    }

    fn mac(&self) -> Mac {
        Mac(self.ether.mac())
    }

    /// Its own address, and the one that it was granted.
    fn vn_mac(&self) -> Mac {
        Mac::of_port(Mac::FC_MAP, self.fc_id)
    }

    pub(super) fn wwpn(&self) -> Wwn {
        wwpn(self.mac())
    }

    /// Sends a frame, when the cable takes it.
    fn put(&mut self, frame: &[u8]) {
        while self.flood_with(frame, 1) == 0 {
            thread::yield_now();
        }
        while !self.flush() {
            thread::yield_now();
        }
    }

    fn flood_with(&mut self, frame: &[u8], most: usize) -> usize {
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

    fn header(&self, dst: Mac, ethertype: u16) -> EthernetHeader {
        EthernetHeader {
            vlan: self.tag,
            ..EthernetHeader::new(self.mac(), dst, ethertype)
        }
    }

    fn say(&mut self, header: EthernetHeader, bytes: &[u8]) {
        let mut frame = vec![0; (header.len() + bytes.len()).max(ethernet::MIN_LEN)];
        header.put(&mut frame)[..bytes.len()].copy_from_slice(bytes);
        self.put(&frame);
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
            let (mut header, payload) = EthernetHeader::parse(frame).unwrap();
            header.vlan = header.vlan.or(tci.map(VlanTag::decode));
            incoming.push_back((header, payload.to_vec()));
        });
    }

    fn hear_fip<T>(
        &mut self,
        operation: FipOperation,
        wanted: impl Fn(&EthernetHeader, &FipMessage<'_>) -> Option<T>,
    ) -> T {
        let heard = self.hear_for(PATIENCE, fip_of(operation, wanted));
        heard.unwrap_or_else(|| panic!("no {operation:?}"))
    }

    /// Finds the switch, and logs in to it.
    pub(super) fn log_in(&mut self) {
        self.solicit();
        let bytes = flogi_message(self.mac());
        let header = self.header(self.fcf, ethernet::FIP);
        self.say(header, &bytes);
        self.fc_id = self.hear_fip(FipOperation::ElsReply, |_, message| {
            let mut descriptors = message.descriptors().map(Result::unwrap);
            let Some(Descriptor::Els(els)) = descriptors.next() else {
                panic!("no ELS comes first")
            };
            let reply = Reply::parse(Code::FLOGI, els.payload).unwrap();
            assert!(matches!(reply, Reply::Login(_)), "{reply:?}");
            let granted = Mac::of_port(Mac::FC_MAP, els.header.d_id);
            assert_eq!(descriptors.next(), Some(Descriptor::Mac(granted)));
            Some(els.header.d_id)
        });
        let own = self.vn_mac();
        self.ether.join(own.0).unwrap();
    }

    /// Finds the switch.
    pub(super) fn solicit(&mut self) {
        let Wwn(name) = self.wwpn();
        let descriptors = [
            Descriptor::Mac(self.mac()),
            Descriptor::Name(Wwn(name ^ WWPN | 0x1000 << 48)),
            Descriptor::MaxFcoeSize(2158),
        ];
        let bytes = fip::encode(FipOperation::Solicitation, Flags::FPMA, &descriptors);
        let header = self.header(Mac::ALL_FCF, ethernet::FIP);
        let tag = self.tag;
        let solicited = |header: &EthernetHeader, message: &FipMessage<'_>| {
            assert_eq!(header.vlan, tag);
            let wanted = Flags::AVAILABLE.with(Flags::SOLICITED);
            message.flags.has(wanted).then_some(header.src)
        };
        // The link at the other end may not be up yet.
        let mut tries = (0..PATIENCE.as_secs()).map(|_| {
            self.say(header, &bytes);
            let advertisement = fip_of(FipOperation::Advertisement, solicited);
            self.hear_for(Duration::from_secs(1), advertisement)
        });
        self.fcf = tries.find_map(|fcf| fcf).unwrap();
    }

    /// The VLANs that the switch tells when it is asked without a tag.
    pub(super) fn vlans(&mut self) -> Vec<u16> {
        let bytes = fip::encode(
            FipOperation::VlanRequest,
            Flags::FPMA,
            &[Descriptor::Mac(self.mac())],
        );
        let header = EthernetHeader::new(self.mac(), Mac::ALL_FCF, ethernet::FIP);
        self.say(header, &bytes);
        self.hear_fip(FipOperation::VlanNotification, |header, message| {
            assert_eq!(header.vlan, None);
            let descriptors = message.descriptors().map(Result::unwrap);
            let vlans = descriptors.filter_map(|descriptor| match descriptor {
                Descriptor::Vlan(vid) => Some(vid),
                _ => None,
            });
            Some(vlans.collect())
        })
    }

    /// Logs out, and waits for the answer.
    pub(super) fn log_out(&mut self) {
        let logo = Els::Logo(Logo {
            fc_id: self.fc_id,
            wwpn: self.wwpn(),
        });
        let request = Descriptor::Els(Encapsulated {
            kind: DescriptorType::LOGO,
            header: FrameHeader {
                f_ctl: FCtl::REQUEST,
                ..FrameHeader::new(
                    (RCtl::ELS_REQUEST, FrameType::ELS),
                    (self.fc_id, FcId::FABRIC_F),
                    (OxId(2), RxId::UNASSIGNED),
                )
            },
            payload: &logo.encode(),
        });
        let own = Descriptor::Mac(self.vn_mac());
        let bytes = fip::encode(FipOperation::ElsRequest, Flags::FPMA, &[request, own]);
        let header = self.header(self.fcf, ethernet::FIP);
        self.say(header, &bytes);
        self.hear_fip(FipOperation::ElsReply, |_, _| Some(()));
    }

    /// Asks the fabric controller to tell of changes (SCR).
    pub(super) fn register_for_changes(&mut self) {
        let frame = self.frame_of(
            FrameType::ELS,
            FcId::FABRIC_CONTROLLER,
            &Els::Scr(3).encode(),
        );
        self.put(&frame);
    }

    /// A frame to another port, by the switch.
    pub(super) fn send(&mut self, to: FcId, payload: &[u8]) {
        let frame = self.frame(to, payload);
        self.put(&frame);
    }

    /// The same, as often as the cable takes it now. Returns how often that was.
    pub(super) fn flood(&mut self, to: FcId, payload: &[u8], most: usize) -> usize {
        let frame = self.frame(to, payload);
        self.flood_with(&frame, most)
    }

    /// Whether all that was sent has left.
    pub(super) fn flush(&mut self) -> bool {
        self.ether.flush().unwrap()
    }

    fn frame(&self, to: FcId, payload: &[u8]) -> Vec<u8> {
        self.frame_of(FrameType::FCP, to, payload)
    }

    fn frame_of(&self, kind: FrameType, to: FcId, payload: &[u8]) -> Vec<u8> {
        let ethernet = EthernetHeader {
            src: self.vn_mac(),
            ..self.header(self.fcf, ethernet::FCOE)
        };
        let header = FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new(
                (RCtl::ELS_REQUEST, kind),
                (self.fc_id, to),
                (OxId(7), RxId::UNASSIGNED),
            )
        };
        let mut frame = vec![0; fcoe::frame_len(&ethernet, payload.len())];
        let fill = |bytes: &mut [u8]| bytes.copy_from_slice(payload);
        fcoe::encode(
            &mut frame,
            &ethernet,
            (Sof::I3, Eof::T),
            &header,
            payload.len(),
            fill,
        );
        frame
    }

    /// The next frame of another port: its S_ID and payload.
    pub(super) fn next_frame(&mut self) -> (FcId, Vec<u8>) {
        self.frame_within(PATIENCE).unwrap()
    }

    /// The same, if one comes within that time.
    pub(super) fn frame_within(&mut self, limit: Duration) -> Option<(FcId, Vec<u8>)> {
        let (own, fcf, tag) = (self.vn_mac(), self.fcf, self.tag);
        self.hear_for(limit, |header, payload| {
            if header.ethertype != ethernet::FCOE {
                return None;
            }
            assert_eq!((header.dst, header.src, header.vlan), (own, fcf, tag));
            let frame = fcoe::decode(payload).unwrap();
            Some((frame.header.s_id, frame.payload.to_vec()))
        })
    }

    /// It hears LLDP, too.
    pub(super) fn listen_to_lldp(&mut self) {
        self.ether.join(Mac::NEAREST_BRIDGE.0).unwrap();
    }

    /// The next LLDPDU.
    pub(super) fn next_lldp(&mut self) -> (EthernetHeader, Vec<u8>) {
        self.lldp_within(PATIENCE).unwrap()
    }

    /// The same, if one comes within that time.
    pub(super) fn lldp_within(&mut self, limit: Duration) -> Option<(EthernetHeader, Vec<u8>)> {
        self.hear_for(limit, |header, payload| {
            let is_lldp = header.ethertype == ethernet::LLDP;
            is_lldp.then(|| (*header, payload.to_vec()))
        })
    }

    /// Frames of other ports that are there now.
    pub(super) fn drain(&mut self) -> usize {
        self.take();
        let frames = self.incoming.drain(..);
        frames
            .filter(|(header, _)| header.ethertype == ethernet::FCOE)
            .count()
    }

    /// The switch says that all logins are over.
    pub(super) fn hears_the_end(&mut self) {
        self.hear_fip(FipOperation::ClearVirtualLinks, |_, message| {
            let descriptors = message.descriptors().map(Result::unwrap);
            let is_port = |one: &Descriptor<'_>| matches!(one, Descriptor::VxPort { .. });
            let ports = descriptors.filter(is_port).count();
            (ports == 0).then_some(())
        });
    }

    /// What becomes readable when something comes in.
    pub(super) fn is_quiet(&self) -> bool {
        let fd = self.ether.waited().as_fd();
        let mut list = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        let none = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        rustix::event::poll(&mut list, Some(&none)).unwrap() == 0
    }
}

fn wwpn(Mac([a, b, c, d, e, f]): Mac) -> Wwn {
    Wwn(WWPN | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The frame by which a host logs in at an FCF.
pub(super) fn flogi(host: Mac, fcf: Mac) -> Vec<u8> {
    let header = EthernetHeader::new(host, fcf, ethernet::FIP);
    let bytes = flogi_message(host);
    let mut frame = vec![0; header.len() + bytes.len()];
    header.put(&mut frame).copy_from_slice(&bytes);
    frame
}

fn flogi_message(host: Mac) -> Vec<u8> {
    let request = Descriptor::Els(Encapsulated {
        kind: DescriptorType::FLOGI,
        header: FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new(
                (RCtl::ELS_REQUEST, FrameType::ELS),
                (FcId::UNIDENTIFIED, FcId::FABRIC_F),
                (OxId(1), RxId::UNASSIGNED),
            )
        },
        payload: &Els::Flogi(login(host)).encode(),
    });
    let none = Descriptor::Mac(Mac::default());
    fip::encode(FipOperation::ElsRequest, Flags::FPMA, &[request, none])
}

fn login(host: Mac) -> ServiceParameters {
    let Wwn(name) = wwpn(host);
    ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 10,
        features: Features::CONTINUOUS_OFFSET,
        receive_size: 2112,
        total_sequences: 0,
        relative_offset: 0,
        e_d_tov: 0,
        wwpn: Wwn(name),
        wwnn: Wwn(name ^ WWPN | 0x1000 << 48),
        class_3: ClassParameters {
            options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
            ..ClassParameters::default()
        },
    }
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
