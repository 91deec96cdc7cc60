//! What tshark makes of our Ethernet frames: two whole ports, an initiator and a target, and what
//! others say between. Nothing of it needs a network.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fc::fip::{self, Fip, Mode};
use fc::initiator::{self, Data, FcpInitiator, FcpTmf};
use fc::port::{Port, PortConfig, PortEvent};
use fc::remote::RemoteId;
use fc::target::{self, FcpTarget};
use fc::tests::HeapFrames;
use fc::wire::ethernet::{self, Mac, VlanTag};
use scsi::medium::{HeapLease, Lease};
use scsi::task::{Attribute, Completed, FunctionResult, SenseBytes};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;
use tests::tool;

const LEN: usize = 8192;

struct Cable {
    now: Duration,
    target: Port<FcpTarget<HeapLease>>,
    initiator: Port<FcpInitiator<HeapLease>>,
    nexus: Option<RemoteId>,
    ended: usize,
    /// The next data frame is lost.
    lose: bool,
    /// All that was sent, and when.
    sent: Vec<(Duration, Vec<u8>)>,
}

fn config(low: u8, tag: Option<VlanTag>) -> PortConfig {
    let mut config = PortConfig::new(Mac([2, 0, 0, 0, 0x41, low]), 2500);
    config.tag = tag;
    config
}

impl Cable {
    fn new(tag: Option<VlanTag>) -> Self {
        let target = FcpTarget::new(target::FcpLimits::default());
        let initiator = FcpInitiator::new(initiator::FcpInitiatorConfig::default());
        let mut cable = Self {
            now: Duration::ZERO,
            target: Port::new(&config(1, tag), target, Duration::ZERO, [1; 8]),
            initiator: Port::new(&config(2, tag), initiator, Duration::ZERO, [2; 8]),
            nexus: None,
            ended: 0,
            lose: false,
            sent: Vec::new(),
        };
        cable.target.link(cable.now, true);
        cable.initiator.link(cable.now, true);
        cable
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            while self.turn() {}
            let deadlines = [self.target.next_deadline(), self.initiator.next_deadline()];
            let Some(next) = deadlines.into_iter().flatten().min() else {
                break;
            };
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.target.expire(self.now);
            self.initiator.expire(self.now);
        }
        self.now = until;
    }

    /// Whether there was anything to send.
    fn turn(&mut self) -> bool {
        self.serve();
        while let Some(event) = self.initiator.poll() {
            match event {
                PortEvent::Up(id) => self.nexus = Some(id),
                PortEvent::Fc4(_) => self.ended += 1,
                _ => {}
            }
        }
        let (mut from_target, mut from_initiator) = (HeapFrames::default(), HeapFrames::default());
        self.target.transmit(&mut from_target);
        self.initiator.transmit(&mut from_initiator);
        let before = self.sent.len();
        for frame in from_target.frames {
            let full = frame.len() > 2000 && is_fcoe(&frame);
            if !(full && std::mem::take(&mut self.lose)) {
                self.initiator.receive(self.now, &frame, None);
            }
            self.sent.push((self.now, frame));
        }
        for frame in from_initiator.frames {
            self.target.receive(self.now, &frame, None);
            self.sent.push((self.now, frame));
        }
        self.sent.len() > before
    }

    /// The device: it reads and writes, never ends VERIFY, and does not know any other command.
    fn serve(&mut self) {
        while let Some(event) = self.target.poll() {
            let fcp = self.target.fc4_mut();
            match event {
                PortEvent::Down(id, _) => self.target.ended(self.now, id),
                PortEvent::Fc4(target::FcpTargetEvent::Execute { remote, command }) => {
                    match command.cdb[0] {
                        0x28 => {
                            let data = HeapLease::from_bytes(vec![0x5a; LEN]);
                            fcp.send_data_in(remote, command.tag, 0, data);
                            fcp.complete(remote, command.tag, &completed(Status::Good, LEN, 0));
                        }
                        0x2a => {
                            let into = HeapLease::from_bytes(vec![0; LEN]);
                            fcp.receive_data_out(remote, command.tag, 0, into);
                        }
                        0x2f => {}
                        _ => {
                            let ended = completed(Status::CheckCondition, 0, 0);
                            fcp.complete(remote, command.tag, &ended);
                        }
                    }
                }
                PortEvent::Fc4(target::FcpTargetEvent::DataOut { remote, tag, .. }) => {
                    fcp.complete(remote, tag, &completed(Status::Good, 0, LEN));
                }
                PortEvent::Fc4(target::FcpTargetEvent::Manage {
                    remote,
                    id,
                    function,
                    ..
                }) => {
                    if let scsi::task::Function::AbortTask(tag) = function {
                        fcp.aborted(remote, tag);
                    }
                    fcp.managed(remote, id, FunctionResult::Complete);
                }
                _ => {}
            }
        }
    }

    fn execute(&mut self, id: u64, opcode: u8, data: Data<HeapLease>) {
        let mut cdb = [0; 16];
        (cdb[0], cdb[8]) = (opcode, (LEN / 512) as u8);
        let command = initiator::ClientCommand {
            id,
            lun: Lun([0; 8]),
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        let (nexus, initiator) = (self.nexus.unwrap(), self.initiator.fc4_mut());
        initiator.execute(self.now, nexus, command).unwrap();
        self.run(Duration::from_millis(10));
    }

    fn manage(&mut self, function: FcpTmf) {
        let nexus = self.nexus.unwrap();
        let initiator = self.initiator.fc4_mut();
        initiator
            .manage(self.now, nexus, 7, Lun([0; 8]), function)
            .unwrap();
        self.run(Duration::from_secs(1));
    }
}

fn is_fcoe(frame: &[u8]) -> bool {
    let (header, _) = ethernet::EthernetHeader::parse(frame).unwrap();
    header.ethertype == ethernet::FCOE
}

/// Sense: ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE.
fn completed(status: Status, length_in: usize, length_out: usize) -> Completed {
    let mut sense = [0; 18];
    (sense[0], sense[2], sense[7], sense[12]) = (0x70, 5, 10, 0x20);
    let sense = match status {
        Status::CheckCondition => SenseBytes::new(&sense),
        _ => SenseBytes::EMPTY,
    };
    Completed {
        status,
        sense,
        qualifier: 0,
        length_in: length_in as u64,
        length_out: length_out as u64,
    }
}

/// Bring-up, data both ways, one frame of it lost, an error, task management, logout.
fn talk(tag: Option<VlanTag>) -> Vec<(Duration, Vec<u8>)> {
    let mut cable = Cable::new(tag);
    cable.run(Duration::from_secs(3));
    let memory = || HeapLease::from_bytes(vec![0xa5; LEN]);
    cable.execute(1, 0x28, Data::In(memory()));
    cable.execute(2, 0x2a, Data::Out(memory()));
    cable.execute(3, 0xc1, Data::None);
    assert_eq!(cable.ended, 3);
    cable.lose = true;
    cable.execute(4, 0x28, Data::In(memory()));
    cable.run(Duration::from_secs(10));
    assert_eq!(cable.ended, 4);
    cable.execute(5, 0x2f, Data::None);
    cable.manage(FcpTmf::AbortTask(5));
    cable.manage(FcpTmf::LogicalUnitReset);
    assert_eq!(cable.ended, 7);
    cable.initiator.log_out(cable.now);
    cable.run(Duration::from_secs(1));
    cable.sent
}

/// A port that wants the N_Port_ID of another one, and one in point-to-point mode.
fn others() -> Vec<(Duration, Vec<u8>)> {
    let config = |number, at, mode| fip::FipConfig {
        mac: Mac([2, at, 0, 0, 0x41, number]),
        wwpn: config(number, None).wwpn,
        wwnn: config(number, None).wwnn,
        max_fcoe: fip::max_fcoe(1500),
        mode,
        target: false,
        initiator: true,
    };
    let mut sent = Vec::new();
    let mut ports: Vec<Fip> = Vec::new();
    for (number, mode) in [
        (1, Mode::Multipoint),
        (1, Mode::Multipoint),
        (2, Mode::PointToPoint),
    ] {
        let config = config(number, ports.len() as u8, mode);
        let begin = Duration::from_secs(2 * ports.len() as u64);
        let mut port = Fip::new(config, begin, [number; 8]);
        port.link(begin, true);
        ports.push(port);
        exchange(&mut ports, begin + Duration::from_secs(2), &mut sent);
    }
    sent
}

fn exchange(ports: &mut [Fip], until: Duration, sent: &mut Vec<(Duration, Vec<u8>)>) {
    while let Some(now) = ports.iter().filter_map(Fip::next_deadline).min() {
        if now > until {
            return;
        }
        for port in ports.iter_mut() {
            port.expire(now);
        }
        loop {
            let mut out = HeapFrames::default();
            ports.iter_mut().for_each(|port| port.transmit(&mut out));
            if out.frames.is_empty() {
                break;
            }
            for frame in out.frames {
                let (header, payload) = ethernet::EthernetHeader::parse(&frame).unwrap();
                for port in ports.iter_mut() {
                    // Who is not meant ignores it.
                    let _ = port.receive(now, &header, payload);
                }
                sent.push((now, frame));
            }
        }
    }
}

/// The frames as a capture file: nanoseconds, Ethernet.
fn write(path: &Path, frames: &[(Duration, Vec<u8>)]) {
    let mut file = Vec::new();
    file.extend(0xa1b2_3c4d_u32.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for (at, frame) in frames {
        let len = frame.len() as u32;
        for word in [at.as_secs() as u32, at.subsec_nanos(), len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

fn tshark(file: &Path, filter: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-Y", filter]);
    let text = tool::must(&mut command).unwrap();
    // Each frame has its number in front, unlike what it says about itself.
    let number = |line: &&str| line.split_whitespace().next()?.parse::<u32>().ok();
    let frames = text.lines().filter(|line| number(line).is_some());
    frames.map(str::to_owned).collect()
}

/// What the talk is made of, so that nothing is right for not having been said.
const SEEN: &[(&str, &str)] = &[
    ("a Probe Request", "fip.vn2vn_subcode == 1"),
    ("a Probe Reply", "fip.vn2vn_subcode == 2"),
    ("a Claim Notification", "fip.vn2vn_subcode == 3"),
    (
        "a Claim Response",
        "fip.vn2vn_subcode == 4 && frame.len > 1500",
    ),
    ("a Beacon", "fip.vn2vn_subcode == 5"),
    ("point-to-point", "fip.flags.rec_p2p == 1"),
    ("FLOGI in FIP", "fip && fcels.opcode == 4"),
    ("LOGO in FIP", "fip && fcels.opcode == 5"),
    ("PLOGI", "fcoe && fcels.opcode == 3"),
    ("PRLI", "fcoe && fcels.opcode == 0x20"),
    ("a command", "fcp && fc.r_ctl == 6"),
    ("XFER_RDY", "fcp && fc.r_ctl == 5"),
    ("data", "fcoe && fc.r_ctl == 1 && frame.len > 2000"),
    ("CHECK CONDITION", "fcp.status == 2"),
    ("a reset", "fcp.mgmt.flags.lu_reset == 1"),
    ("ABTS", "fc.r_ctl == 0x81"),
    ("BA_ACC", "fc.r_ctl == 0x84"),
    ("a VLAN", "vlan.id == 100 && fip"),
];

#[test]
fn no_field_is_malformed() {
    let dir = tests::scratch("fcoe-trace").unwrap();
    let file = dir.join("talk.pcap");
    let tag = VlanTag {
        priority: 3,
        dei: false,
        vid: 100,
    };
    let frames = [talk(None), talk(Some(tag)), others()].concat();
    write(&file, &frames);
    let all = tshark(&file, "fip || fcoe");
    assert_eq!(all.len(), frames.len());
    for (what, filter) in SEEN {
        assert!(!tshark(&file, filter).is_empty(), "{what} was not seen");
    }
    let wrong = tshark(&file, "_ws.malformed || _ws.expert.severity >= warning");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let checked = tshark(&file, "fcoe.crc.bad");
    assert!(checked.is_empty(), "{}", checked.join("\n"));
}
