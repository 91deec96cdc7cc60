//! Our N_Port in the place of either of two kernels: fed with what the other one sent, it sends
//! what the kernel sent, as far as a target alone, or an initiator alone, has a reason to.

use std::collections::VecDeque;
use std::time::Duration;

use fc::initiator::{Data, FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent};
use fc::port::{Fc4Layer, Port, PortConfig, PortEvent};
use fc::remote::RemoteId;
use fc::target::{self, FcpTarget};
use fc::tests::{command, good, sent};
use fc::wire::els::{Code, FcpParameters};
use fc::wire::ethernet::{self, Mac};
use fc::wire::fcoe::{self, ReceivedFrame};
use fc::wire::frame::{FrameType, OxId, RCtl};
use scsi::medium::{HeapLease, Lease, Now};

use crate::frames;

const MTU_2500: &str = include_str!("fcoe-vn2vn-mtu2500.hex");

/// Bring-up, and INQUIRY in all its forms.
const LAST: u32 = 62;

const TARGET: [u8; 6] = [0x52, 0x54, 0, 0x78, 0x41, 0];
const INITIATOR: [u8; 6] = [0x52, 0x54, 0, 0xeb, 0xd1, 0];

/// A captured frame, and when it came.
struct Captured {
    at: Now,
    bytes: Vec<u8>,
}

/// What was captured of the port on an ENode.
fn captured(enode: [u8; 6]) -> Vec<Captured> {
    let vn_port = [0x0e, 0xfd, 0, 0, enode[4], enode[5]];
    let mut all = Vec::new();
    for (title, bytes) in frames(MTU_2500) {
        let (number, rest) = title.split_once(": ").unwrap();
        let (seconds, _) = rest.split_once(" s").unwrap();
        // The port that is fed starts at 1 s.
        let at = Duration::from_secs_f64(1.0 + seconds.parse::<f64>().unwrap());
        let from = &bytes[6..12];
        if number.parse::<u32>().unwrap() <= LAST && (from == enode || from == vn_port) {
            all.push(Captured { at, bytes });
        }
    }
    all
}

fn frame(bytes: &[u8]) -> Option<ReceivedFrame<'_>> {
    let (ethernet, payload) = ethernet::EthernetHeader::parse(bytes).unwrap();
    (ethernet.ethertype == ethernet::FCOE).then(|| fcoe::decode(payload).unwrap())
}

/// Our port, and what it has sent by FCoE.
struct Player<F: Fc4Layer> {
    port: Port<F>,
    sent: Vec<Vec<u8>>,
}

impl<F: Fc4Layer> Player<F> {
    fn new(enode: [u8; 6], fc4: F) -> Self {
        let config = PortConfig::new(Mac(enode), 2500);
        let mut port = Port::new(&config, fc4, Duration::ZERO, [7; 8]);
        // Its first probe follows within 100 ms, as the kernel's.
        let begin = captured(enode)[0].at - Duration::from_millis(100);
        port.link(begin, true);
        let sent = Vec::new();
        Self { port, sent }
    }

    /// What is due before a frame, then the frame; `serve` does what is asked for.
    fn hear(&mut self, heard: &Captured, mut serve: impl FnMut(&mut Port<F>)) {
        while let Some(due) = self.port.next_deadline().filter(|due| *due <= heard.at) {
            self.port.expire(due);
            self.send();
        }
        self.port.receive(heard.at, &heard.bytes, None);
        serve(&mut self.port);
        self.send();
    }

    fn frames(&self) -> Vec<ReceivedFrame<'_>> {
        self.sent.iter().filter_map(|bytes| frame(bytes)).collect()
    }

    fn send(&mut self) {
        let sent = sent(&mut self.port).into_iter();
        self.sent
            .extend(sent.filter(|bytes| frame(bytes).is_some()));
    }
}

/// What of a frame both have to agree upon. Sequence numbers and our name for an exchange are our
/// own affair; so is what we offer, and that we ask for no order.
fn essence(frame: &ReceivedFrame<'_>) -> String {
    let header = &frame.header;
    let mut payload = frame.payload.to_vec();
    match (header.r_ctl, payload.len()) {
        (RCtl::ELS_REPLY, 116) => payload[68] = 0x80,
        (RCtl::ELS_REPLY, 20) => payload[16..].fill(0),
        _ => {}
    }
    format!(
        "{:?}>{:?} {:?} {:?} {:?} {:?} {:02x?}",
        header.s_id, header.d_id, header.r_ctl, header.kind, header.ox_id, header.seq_cnt, payload
    )
}

#[test]
fn in_the_place_of_the_target() {
    let kernel = captured(TARGET);
    let kernel: Vec<_> = kernel.iter().filter_map(|one| frame(&one.bytes)).collect();
    // A pure target logs in to nobody, and asks nobody for his time-outs.
    let answers = kernel
        .iter()
        .filter(|one| one.header.r_ctl != RCtl::ELS_REQUEST);
    let is_data = |one: &&ReceivedFrame<'_>| one.header.r_ctl == RCtl::SOLICITED_DATA;
    let mut data: VecDeque<_> = kernel
        .iter()
        .filter(is_data)
        .map(|one| one.payload)
        .collect();
    let mut player = Player::new(TARGET, FcpTarget::new(target::FcpLimits::default()));
    for heard in captured(INITIATOR) {
        player.hear(&heard, |port| {
            while let Some(event) = port.poll() {
                if let PortEvent::Fc4(target::FcpTargetEvent::Execute { remote, command }) = event {
                    assert_eq!(command.cdb[0], 0x12);
                    let bytes = data.pop_front().unwrap().to_vec();
                    let done = good(bytes.len() as u64, 0);
                    let data = HeapLease::from_bytes(bytes);
                    port.fc4_mut().send_data_in(remote, command.tag, 0, data);
                    port.fc4_mut().complete(remote, command.tag, &done);
                }
            }
        });
    }
    let ours = player.frames();
    let ours: Vec<_> = ours.iter().map(essence).collect();
    assert_eq!(ours, answers.map(essence).collect::<Vec<_>>());
}

/// A kernel's frame under the number that the exchange has with us.
fn renumbered(bytes: &[u8], ours: OxId) -> Vec<u8> {
    let (ethernet, payload) = ethernet::EthernetHeader::parse(bytes).unwrap();
    let mut frame = fcoe::decode(payload).unwrap();
    frame.header.ox_id = ours;
    fc::tests::frame(
        &ethernet,
        (frame.sof, frame.eof),
        &frame.header,
        frame.payload,
    )
}

/// The kernel's target refuses nothing, is logged in to at once, and answers an INQUIRY. It is
/// asked by PLOGI, PRLI and FCP_CMND, in this order; that it sends a PRLI itself is answered.
#[test]
fn in_the_place_of_the_initiator() {
    let mut player = Player::new(INITIATOR, FcpInitiator::new(FcpInitiatorConfig::default()));
    let mut done = Vec::new();
    for mut heard in captured(TARGET) {
        if let Some(came) = frame(&heard.bytes)
            && came.header.f_ctl.exchange_responder()
        {
            let is_own = |sent: &ReceivedFrame<'_>| !sent.header.f_ctl.exchange_responder();
            let mut sent = player.sent.iter().filter_map(|bytes| frame(bytes));
            let last = sent.rfind(is_own).unwrap().header;
            let is_to_last = last.kind == came.header.kind;
            let is_rtv = came.header.kind == FrameType::ELS && came.payload.len() == 16;
            if !is_to_last || is_rtv {
                continue;
            }
            heard.bytes = renumbered(&heard.bytes, last.ox_id);
        }
        player.hear(&heard, |port| {
            while let Some(event) = port.poll() {
                match event {
                    PortEvent::Up(remote) => inquire(port, heard.at, remote),
                    PortEvent::Fc4(FcpInitiatorEvent::Done(one)) => done.push(one),
                    _ => {}
                }
            }
        });
    }
    let ours = player.frames();
    let kinds: Vec<_> = ours
        .iter()
        .map(|one| (one.header.r_ctl, one.payload[0]))
        .collect();
    let (request, reply) = (RCtl::ELS_REQUEST, RCtl::ELS_REPLY);
    let expected = [
        (request, Code::PLOGI.0),
        (request, Code::PRLI.0),
        (reply, Code::LS_ACC.0),
        (RCtl::UNSOLICITED_COMMAND, 0),
    ];
    assert_eq!(kinds, expected);
    let offered = FcpParameters(u32::from_be_bytes(*ours[1].payload.last_chunk().unwrap()));
    assert!(offered.has(FcpParameters::INITIATOR.with(FcpParameters::READ_XFER_RDY_DISABLED)));
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].status, done[0].moved), (0, 36));
}

fn inquire(port: &mut Port<FcpInitiator<HeapLease>>, now: Now, remote: RemoteId) {
    let into = Data::In(HeapLease::from_bytes(vec![0; 36]));
    let command = command(1, &[0x12, 0, 0, 0, 36, 0], into);
    assert!(port.fc4_mut().execute(now, remote, command).is_ok());
}
