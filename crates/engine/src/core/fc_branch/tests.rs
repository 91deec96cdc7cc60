//! What the kernel hands a branch by itself, and what the port forwards to it.

use ::io::ether::{EtherOptions, EtherPort, Place};
use fc::remote::{Fcp, PeerAddress};
use fc::target::divided::DividedTarget;
use fc::target::{FcpLimits, FcpTargetEvent};
use fc::tests::frame;
use fc::wire::els::{Code, Els, ExchangeName, Reply};
use fc::wire::ethernet::{EthernetHeader, FCOE, Mac};
use fc::wire::fcoe::{self, Eof, ReceivedFrame, Sof};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::FcId;

use super::*;

const INITIATOR: RemoteId = RemoteId(1);

/// The exchange of the command.
const OX_ID: OxId = OxId(7);

/// An initiator at the other end of a cable, with a nexus at the branch.
struct Rig {
    port: DividedTarget<BlockLease>,
    branch: FcBranch,
    peer: FcpPeer,
    host: EtherPort,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Cable(folder.path().join("cable"));
        let open = || EtherPort::open(&place, &EtherOptions::default()).unwrap();
        let (ours, host) = (open(), open());
        let peer = peer(&ours, &host);
        let mut port = DividedTarget::new(FcpLimits::default(), 1);
        // The first one is the port's own.
        port.peer_up(RemoteId(0), peer);
        port.peer_up(INITIATOR, peer);
        let key = FcPortKey {
            core: CoreId(0),
            port: 0,
        };
        let way = PortBranch::new(place.clone(), ours, Some(1 << 20));
        let share = port.share(way.window_max());
        let mut branch = FcBranch::new(key, Wwn(1), way, share);
        branch.machine.up(Now::ZERO, INITIATOR, &peer);
        Self {
            port,
            branch,
            peer,
            host,
            _folder: folder,
        }
    }

    fn header(&self, r_ctl: RCtl, kind: FrameType, ox_id: OxId) -> FrameHeader {
        let ports = (self.peer.address.fc_id, self.peer.own.fc_id);
        FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new((r_ctl, kind), ports, (ox_id, RxId::UNASSIGNED))
        }
    }

    /// TEST UNIT READY comes by the kernel's hand.
    fn command_comes(&mut self) {
        let ethernet = EthernetHeader::new(self.peer.address.mac, self.peer.own.mac, FCOE);
        let header = self.header(RCtl::UNSOLICITED_COMMAND, FrameType::FCP, OX_ID);
        let bytes = frame(&ethernet, (Sof::I3, Eof::T), &header, &[0; 32]);
        let slot = self.host.slot(bytes.len()).unwrap();
        slot.copy_from_slice(&bytes);
        self.host.commit(bytes.len());
        assert!(self.host.flush().unwrap());
    }

    /// Something comes by way of the port.
    fn is_forwarded(&mut self, header: FrameHeader, payload: &[u8]) {
        let frame = ReceivedFrame {
            sof: Sof::I3,
            eof: Eof::T,
            header,
            payload,
        };
        self.port.receive(Now::ZERO, INITIATOR, &frame);
        for (_, frames) in self.port.take_forwarded() {
            self.branch.receive(Now::ZERO, &frames);
        }
    }

    /// The second bytes of the CDBs of commands that are to be carried out.
    fn commands(&mut self) -> Vec<u8> {
        let events = std::iter::from_fn(|| self.branch.machine.target_mut().poll());
        let command = |event| match event {
            FcpTargetEvent::Execute { command, .. } => command.cdb[1],
            other => panic!("{other:?}"),
        };
        events.map(command).collect()
    }

    /// What it answers.
    fn replies(&mut self) -> Vec<Reply> {
        self.branch.way.transmit(self.branch.machine.target_mut());
        let mut replies = Vec::new();
        self.host.receive(|frame, _| {
            let (_, payload) = EthernetHeader::parse(frame).unwrap();
            let answer = fcoe::decode(payload).unwrap();
            replies.push(Reply::parse(Code::REC, answer.payload).unwrap());
        });
        replies
    }
}

fn peer(ours: &EtherPort, host: &EtherPort) -> FcpPeer {
    let address = |fc_id, ether: &EtherPort| PeerAddress {
        fc_id: FcId(fc_id),
        mac: Mac(ether.mac()),
    };
    FcpPeer {
        address: address(0x01_0002, host),
        own: address(0x01_0001, ours),
        tag: None,
        wwpn: Wwn(2),
        payload_max: 2112,
        fcp: Fcp {
            rec: true,
            ..Fcp::default()
        },
        e_d_tov: Duration::from_secs(2),
        r_a_tov: Duration::from_secs(10),
    }
}

/// Else its initiator would take the command for lost, and send it again.
#[test]
fn a_rec_in_the_mail_is_not_ahead_of_its_command_in_the_ring() {
    let mut rig = Rig::new();
    rig.command_comes();
    let name = ExchangeName {
        originator: rig.peer.address.fc_id,
        ox_id: OX_ID,
        rx_id: RxId::UNASSIGNED,
    };
    let header = rig.header(RCtl::ELS_REQUEST, FrameType::ELS, OxId(8));
    rig.is_forwarded(header, &Els::Rec(name).encode());
    assert_eq!(rig.commands(), [0]);
    let replies = rig.replies();
    assert!(matches!(replies[..], [Reply::Rec(_)]), "{replies:?}");
}

/// Once another initiator has come that the kernel does not tell from this one, all goes by way of
/// the port.
#[test]
fn what_the_kernel_has_handed_out_is_not_overtaken_by_way_of_the_port() {
    let mut rig = Rig::new();
    rig.command_comes();
    let header = rig.header(RCtl::UNSOLICITED_COMMAND, FrameType::FCP, OxId(8));
    let mut later = [0; 32];
    later[13] = 1;
    rig.is_forwarded(header, &later);
    assert_eq!(rig.commands(), [0, 1]);
}
