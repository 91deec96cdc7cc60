use super::rig::{config, frames, message, ms, multicast, port, receive, sent, told, up};
use crate::fip::FipConfig;
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::fip::{self, Descriptor, DescriptorType, Encapsulated, FipOperation, Flags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;
use scsi::violation::Violation;

/// The claim of 000001 with the bytes from `at` replaced.
fn spoilt(at: usize, bytes: &[u8]) -> Result<(), Violation> {
    let mut frame = multicast(&config(1), FipOperation::ClaimNotification, 1);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    let mut fip = up();
    let taken = receive(&mut fip, ms(1000), &frame);
    assert_eq!(sent(&mut fip).len(), usize::from(taken.is_ok()));
    assert_eq!(fip.statistics().refused, u64::from(taken.is_err()));
    taken
}

fn rule(taken: Result<(), Violation>) -> &'static str {
    taken.unwrap_err().rule
}

/// Where the parts of a claim are, from the Ethernet header on.
const MAC: usize = 24;
const NAME: usize = 32;
const VX_PORT: usize = 44;
const FC4: usize = 64;
const SIZE: usize = 228;

#[test]
fn the_places_are_right() {
    let frame = multicast(&config(1), FipOperation::ClaimNotification, 1);
    let kinds = [MAC, NAME, VX_PORT, FC4, SIZE].map(|at| frame[at]);
    assert_eq!(kinds, [2, 4, 11, 15, 6]);
    assert!(spoilt(0, &[]).is_ok());
}

#[test]
fn formats_are_held_to() {
    assert_eq!(rule(spoilt(14, &[0x20])), "FIP of a version other than 1");
    assert_eq!(rule(spoilt(20, &[1])), "a truncated FIP message");
    let overrun = "a FIP descriptor that exceeds the list";
    assert_eq!(rule(spoilt(MAC + 1, &[0])), overrun);
    assert_eq!(rule(spoilt(SIZE + 1, &[2])), overrun);
    let length = "a FIP descriptor of the wrong length";
    assert_eq!(rule(spoilt(MAC + 1, &[1])), length);
}

#[test]
fn descriptors_are_those_of_the_message() {
    let place = "a VN2VN message with a descriptor missing, twice, or out of place";
    assert_eq!(rule(spoilt(NAME, &[100])), place, "unknown, and critical");
    assert_eq!(rule(spoilt(19, &[5])), place, "a Beacon with a size");
    let mut claim = fip::encode(FipOperation::ClaimNotification, Flags::default(), &[]);
    let mut fip = up();
    let header = EthernetHeader::new(config(1).mac, Mac::ALL_VN2VN_ENODE, ethernet::FIP);
    assert_eq!(rule(fip.receive(ms(1000), &header, &claim)), place);
    let twice = [Descriptor::Mac(config(1).mac); 2];
    claim = fip::encode(FipOperation::Beacon, Flags::default(), &twice);
    assert_eq!(rule(fip.receive(ms(1000), &header, &claim)), place);
}

/// Who does not know what is not critical does without it.
#[test]
fn what_is_not_critical_is_left_out() {
    assert!(spoilt(FC4, &[200]).is_ok());
}

#[test]
fn a_port_is_what_it_says_to_be() {
    let id = "a VN2VN N_Port_ID outside 000001h to 00FFFEh, or with a MAC address that does not \
              match";
    for (mac, fc_id) in [([0, 0, 0], [0, 0, 0]), ([0, 0xff, 0xff], [0, 0xff, 0xff])] {
        let mut bytes = [0; 10];
        bytes[3..6].copy_from_slice(&mac);
        bytes[..3].copy_from_slice(&[0x0e, 0xfd, 0]);
        bytes[7..].copy_from_slice(&fc_id);
        assert_eq!(rule(spoilt(VX_PORT + 2, &bytes)), id);
    }
    assert_eq!(rule(spoilt(VX_PORT + 2, &[0x0e, 0xfc])), id);
    assert_eq!(rule(spoilt(VX_PORT + 9, &[1])), id);
    let sender = "a VN2VN message from a MAC address other than the one in it";
    assert_eq!(rule(spoilt(11, &[9])), sender);
    assert_eq!(rule(spoilt(MAC + 2, &[3])), sender, "a group");
    let small = "a Max FCoE Size too small for 256 bytes of payload";
    assert_eq!(rule(spoilt(SIZE + 2, &301u16.to_be_bytes())), small);
    assert!(spoilt(SIZE + 2, &302u16.to_be_bytes()).is_ok());
}

#[test]
fn no_more_ports_are_known_than_there_is_room_for() {
    let mut fip = up();
    for number in 0x10..0x10 + 4096 {
        let beacon = multicast(&config(number), FipOperation::Beacon, number);
        receive(&mut fip, ms(1000), &beacon).unwrap();
    }
    let beacon = multicast(&config(0x9000), FipOperation::Beacon, 0x9000);
    receive(&mut fip, ms(1000), &beacon).unwrap();
    assert!(fip.neighbours.knows(FcId(0x9000)));
    assert!(
        !fip.neighbours.knows(FcId(0x10)),
        "who was met first and came to nothing"
    );
    assert_eq!(fip.neighbours.entries.len(), 4096);
}

#[test]
fn who_there_is_a_link_to_does_not_make_room() {
    let mut fip = super::logins::linked();
    for number in 0x10..0x10 + 9000 {
        let claim = multicast(&config(number), FipOperation::ClaimNotification, number);
        receive(&mut fip, ms(1000), &claim).unwrap();
    }
    assert_eq!(fip.neighbours.entries.len(), 4096);
    assert_eq!(fip.neighbours().count(), 1);
}

#[test]
fn the_queue_is_bounded() {
    let mut fip = up();
    let claim = multicast(&config(1), FipOperation::ClaimNotification, 1);
    for _ in 0..500 {
        receive(&mut fip, ms(1000), &claim).unwrap();
    }
    assert_eq!(frames(&mut fip).len(), 256);
}

/// An ELS request of 000001 that `fip` knows.
fn els(kind: DescriptorType, to: u32, payload: &[u8]) -> Vec<u8> {
    let exchange = (OxId(0), RxId::UNASSIGNED);
    let kind_of_frame = (RCtl::ELS_REQUEST, FrameType::ELS);
    let header = FrameHeader {
        f_ctl: FCtl::REQUEST,
        ..FrameHeader::new(kind_of_frame, (FcId(1), FcId(to)), exchange)
    };
    let els = Descriptor::Els(Encapsulated {
        kind,
        header,
        payload,
    });
    fip::encode(FipOperation::ElsRequest, Flags::default(), &[els])
}

/// The FLOGI of 000001, or what accepts it.
fn flogi(code: u8) -> Vec<u8> {
    let login = port(config(1)).service_parameters();
    let mut payload = Els::Flogi(login).encode();
    payload[0] = code;
    payload
}

/// What becomes of an ELS from this sender to a port that knows 000001.
fn request(from: &FipConfig, bytes: &[u8]) -> (Result<(), Violation>, Vec<String>) {
    let mut fip = up();
    let claim = multicast(&config(1), FipOperation::ClaimNotification, 1);
    receive(&mut fip, ms(1000), &claim).unwrap();
    frames(&mut fip);
    let header = EthernetHeader::new(from.mac, config(2).mac, ethernet::FIP);
    let taken = fip.receive(ms(1000), &header, bytes);
    (taken, sent(&mut fip))
}

#[test]
fn an_els_comes_from_who_claimed_and_goes_to_us() {
    let ours = els(DescriptorType::FLOGI, 2, &flogi(4));
    let (taken, answers) = request(&config(1), &ours);
    assert!(taken.is_ok());
    assert_eq!(
        answers,
        ["0002 > 0001 ElsReply LS_ACC 000002 > 000001 0000"]
    );
    let (taken, answers) = request(&config(7), &ours);
    let other = "an ELS in FIP from an ENode other than the one that claimed its S_ID";
    assert_eq!((rule(taken), answers.len()), (other, 0));
    let (taken, answers) = request(&config(1), &els(DescriptorType::FLOGI, 3, &flogi(4)));
    let other = "an ELS in FIP for another N_Port_ID";
    assert_eq!((rule(taken), answers.len()), (other, 0));
}

#[test]
fn an_els_that_has_no_place_here_is_rejected() {
    let rejected = ["0002 > 0001 ElsReply LS_RJT 000002 > 000001 0000"];
    for (kind, command) in [
        (DescriptorType::FDISC, 0x51),
        (DescriptorType::ELP, 0x10),
        (DescriptorType::FLOGI, 3),
    ] {
        let (taken, answers) = request(&config(1), &els(kind, 2, &[command, 0, 0, 0]));
        assert!(taken.is_ok());
        assert_eq!(answers, rejected, "{kind:?}");
    }
    for payload in [&[][..], &flogi(4)[..112]] {
        let (_, answers) = request(&config(1), &els(DescriptorType::FLOGI, 2, payload));
        assert_eq!(answers, rejected, "too short");
    }
    let mut other = flogi(4);
    other[27] ^= 1;
    let (_, answers) = request(&config(1), &els(DescriptorType::FLOGI, 2, &other));
    assert_eq!(answers, rejected, "of another name than it claimed with");
}

#[test]
fn an_els_stands_first_and_alone() {
    let place = "an ELS in FIP with a descriptor missing, twice, or out of place";
    let mac = Descriptor::Mac(config(1).mac);
    let message = fip::encode(FipOperation::ElsRequest, Flags::default(), &[mac]);
    let (taken, _) = request(&config(1), &message);
    assert_eq!(rule(taken), place);
    let mut bytes = els(DescriptorType::LOGO, 2, &[5; 16]);
    let one = bytes[10..].to_vec();
    bytes.extend(&one);
    bytes[7] *= 2;
    let (taken, _) = request(&config(1), &bytes);
    assert_eq!(rule(taken), place);
}

/// A reply to nothing, or to what was asked under another number, is no reply.
#[test]
fn only_what_was_asked_is_answered() {
    let mut fip = up();
    for operation in [FipOperation::ClaimNotification, FipOperation::Beacon] {
        receive(&mut fip, ms(1000), &multicast(&config(1), operation, 1)).unwrap();
    }
    let mut reply = els(DescriptorType::FLOGI, 2, &flogi(2));
    reply[5] = 2;
    let ox_id = 10 + 4 + 16;
    reply[ox_id..ox_id + 2].copy_from_slice(&[0, 9]);
    let header = EthernetHeader::new(config(1).mac, config(2).mac, ethernet::FIP);
    fip.receive(ms(1000), &header, &reply).unwrap();
    assert_eq!(told(&mut fip).len(), 0);
    reply[ox_id + 1] = 0;
    fip.receive(ms(1000), &header, &reply).unwrap();
    assert_eq!(told(&mut fip), ["found 000001"]);
}

#[test]
fn what_is_of_a_fabric_is_left_alone() {
    let mut fip = up();
    let solicitation = fip::encode(FipOperation::Solicitation, Flags::FPMA, &[]);
    let beacon = message(&config(1), FipOperation::Beacon, 1, Mac::ALL_VN2VN_ENODE);
    let (header, _) = EthernetHeader::parse(&beacon).unwrap();
    fip.receive(ms(1000), &header, &solicitation).unwrap();
    assert_eq!(sent(&mut fip).len(), 0);
}
