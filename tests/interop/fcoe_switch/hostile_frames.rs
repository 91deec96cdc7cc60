//! What a hostile host sends, a function for each kind: the frame of a number.

use fc::tests::{EnodeFrames, FipParts, fip_frame, frame};
use fc::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use fc::wire::fcoe::{Eof, Sof};
use fc::wire::fip::{Descriptor, FipOperation, Flags};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::lldp::{self, Identifier};
use fc::wire::names::{FcId, Wwn};

/// What a host knows before it does anything bad: its own login, and a pair elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) own: EnodeFrames,
    pub(super) fc_id: FcId,
    /// The ENodes and N_Port_IDs of the pair.
    pub(super) pair: [(Mac, FcId); 2],
}

/// The frame of a number, of one kind.
pub(super) type Forge = fn(&Known, u32) -> Vec<u8>;

/// All kinds, and how many frames of each are sent at once.
pub(super) const KINDS: [(&str, u32, Forge); 18] = [
    ("beacons for one N_Port_ID", 4000, beacon),
    ("solicitations", 4000, solicitation),
    ("logins of ever other ENodes", 10_000, flogi),
    ("logins of one ENode under other names", 2000, renaming),
    ("further N_Port_IDs", 2000, fdisc),
    ("clear virtual links", 2000, clear_virtual_links),
    ("advertisements", 2000, advertisement),
    ("frames under the IDs of the pair", 4000, forged_id),
    ("frames of a pair's address", 2000, forged_mac),
    ("logouts of the pair", 2000, forged_logo),
    ("logins under the names of the pair", 2000, forged_login),
    ("tags", 4000, tagged),
    ("frames for the pair", 4000, zoned),
    ("CT garbage", 4000, ct_garbage),
    ("half sequences", 4000, half_sequence),
    ("ELS garbage", 4000, els_garbage),
    ("LLDP of 1,000 neighbors", 2000, lldp_neighbour),
    ("what is for others, and IPv4", 4000, not_for_us),
];

/// Another station behind the same cable.
fn station(known: &Known, number: u32) -> EnodeFrames {
    let [_, a, b, c] = number.to_be_bytes();
    EnodeFrames::new(Mac([2, 9, 9, a, b, c]), known.own.fcf)
}

/// VN2VN: ENodes without end have one N_Port_ID.
fn beacon(known: &Known, number: u32) -> Vec<u8> {
    let from = station(known, number);
    let fc_id = FcId(0x4711);
    let mac = Mac::of_port(Mac::VN2VN_FC_MAP, fc_id);
    let parts = [
        Descriptor::Mac(from.mac),
        Descriptor::Name(from.wwnn),
        Descriptor::VxPort {
            mac,
            fc_id,
            wwpn: from.wwpn,
        },
    ];
    let dst = [Mac::ALL_VN2VN_ENODE, Mac::ALL_FCF, known.own.fcf][number as usize % 3];
    fip(mac, dst, (FipOperation::Beacon, Flags::default(), &parts))
}

fn solicitation(known: &Known, number: u32) -> Vec<u8> {
    station(known, number).solicitation(2158)
}

fn flogi(known: &Known, number: u32) -> Vec<u8> {
    station(known, number).flogi(number as u16)
}

fn renaming(known: &Known, number: u32) -> Vec<u8> {
    let one = station(known, 0);
    let wwpn = Wwn(0x2000_0808_0000_0000 | u64::from(number));
    EnodeFrames { wwpn, ..one }.flogi(number as u16)
}

fn fdisc(known: &Known, number: u32) -> Vec<u8> {
    let wwpn = Wwn(0x2000_0707_0000_0000 | u64::from(number));
    known.own.fdisc(wwpn, number as u16)
}

/// As an FCF sends it, to the pair and to all; and as none does.
fn clear_virtual_links(known: &Known, number: u32) -> Vec<u8> {
    let (mac, fc_id) = known.pair[number as usize % 2];
    let parts = [
        Descriptor::Mac(known.own.fcf),
        Descriptor::Name(Wwn(0x1000 << 48 | u64::from(number))),
        Descriptor::VxPort {
            mac: Mac::of_port(Mac::FC_MAP, fc_id),
            fc_id,
            wwpn: Wwn(1),
        },
    ];
    let dst = [mac, Mac::ALL_ENODE, known.own.fcf][number as usize % 3];
    let parts = (FipOperation::ClearVirtualLinks, Flags::F_PORT, &parts[..]);
    fip(known.own.fcf, dst, parts)
}

/// Of another switch, of this name or of another.
fn advertisement(known: &Known, number: u32) -> Vec<u8> {
    let from = station(known, number % 64).mac;
    let parts = [
        Descriptor::Priority((number % 200) as u8),
        Descriptor::Mac(from),
        Descriptor::Name(Wwn(0x1000 << 48 | u64::from(number % 16))),
        Descriptor::Fabric {
            vf_id: 0,
            fc_map: Mac::FC_MAP,
            name: Wwn(0x2000 << 48 | u64::from(number % 8)),
        },
        Descriptor::FkaAdvPeriod {
            disabled: false,
            period_ms: 8000,
        },
    ];
    let flags = Flags::FPMA.with(Flags::AVAILABLE).with(Flags::F_PORT);
    let dst = [Mac::ALL_FCF, Mac::ALL_ENODE][number as usize % 2];
    fip(from, dst, (FipOperation::Advertisement, flags, &parts))
}

const COMMAND: (RCtl, FrameType) = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);

/// S_ID and source address of one of the pair, to the other one.
fn forged_id(known: &Known, number: u32) -> Vec<u8> {
    let [(_, one), (_, other)] = known.pair;
    let ids = [(one, other), (other, one), (one, known.fc_id)][number as usize % 3];
    known.own.fcoe(COMMAND, ids, number as u16, &[0x5a; 64])
}

/// The own S_ID, from the address of one of the pair, and of an S_ID that none has.
fn forged_mac(known: &Known, number: u32) -> Vec<u8> {
    let (_, other) = known.pair[number as usize % 2];
    let ids = [
        (known.fc_id, other),
        (FcId(0x01_fe00 | number & 0xff), other),
    ];
    let (from, to) = ids[number as usize / 2 % 2];
    let src = Mac::of_port(Mac::FC_MAP, other);
    let ethernet = EthernetHeader::new(src, known.own.fcf, ethernet::FCOE);
    let header = FrameHeader::new(COMMAND, (from, to), (OxId(number as u16), RxId::UNASSIGNED));
    frame(&ethernet, (Sof::I3, Eof::T), &header, &[0x5a; 64])
}

/// FIP LOGO of one of the pair, from the address of its ENode.
fn forged_logo(known: &Known, number: u32) -> Vec<u8> {
    let (mac, fc_id) = known.pair[number as usize % 2];
    EnodeFrames::new(mac, known.own.fcf).logo(fc_id, number as u16)
}

/// FLOGI with the name of one of the pair, from its address and from ours, and its keep alives.
fn forged_login(known: &Known, number: u32) -> Vec<u8> {
    let (mac, fc_id) = known.pair[number as usize % 2];
    let theirs = EnodeFrames::new(mac, known.own.fcf);
    match number / 2 % 4 {
        0 => theirs.flogi(number as u16),
        1 => {
            let mac = station(known, number).mac;
            EnodeFrames { mac, ..theirs }.flogi(number as u16)
        }
        2 => theirs.keep_alive(),
        _ => theirs.port_keep_alive(fc_id),
    }
}

/// Frames and solicitations on all VLANs.
fn tagged(known: &Known, number: u32) -> Vec<u8> {
    let vlan = Some(VlanTag {
        priority: 3,
        dei: false,
        vid: (number % 4096) as u16,
    });
    let own = EnodeFrames { vlan, ..known.own };
    let (_, other) = known.pair[number as usize % 2];
    if number.is_multiple_of(2) {
        own.solicitation(2158)
    } else {
        own.fcoe(COMMAND, (known.fc_id, other), number as u16, &[0x5a; 64])
    }
}

/// As long as a frame may be.
fn zoned(known: &Known, number: u32) -> Vec<u8> {
    let (_, other) = known.pair[number as usize % 2];
    known
        .own
        .fcoe(COMMAND, (known.fc_id, other), number as u16, &[0x5a; 2112])
}

const SERVICES: [FcId; 4] = [
    FcId::DIRECTORY,
    FcId::MANAGEMENT,
    FcId::FABRIC_CONTROLLER,
    FcId::FABRIC_F,
];

/// A service, by the number of a frame.
const fn service(number: u32) -> FcId {
    SERVICES[number as usize % SERVICES.len()]
}

/// Bytes that are different for each number.
fn garbage(number: u32) -> Vec<u8> {
    let byte = |at: u32| (number.wrapping_mul(0x9e37_79b9) >> (at % 24)) as u8 ^ at as u8;
    (0..number % 200).map(byte).collect()
}

/// Half of it has the header of a request.
fn ct_garbage(known: &Known, number: u32) -> Vec<u8> {
    let mut payload = garbage(number);
    if number.is_multiple_of(2) {
        let head = [1, 0, 0, 0, 0xfc, 2, 0, 0, 1, number as u8, 0, 0, 0, 0, 0, 0];
        payload.splice(..0, head);
    }
    let kind = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
    known.own.fcoe(
        kind,
        (known.fc_id, service(number / 2)),
        number as u16,
        &payload,
    )
}

/// The first frame of a request that does not go on.
fn half_sequence(known: &Known, number: u32) -> Vec<u8> {
    let ethernet = EthernetHeader::new(
        Mac::of_port(Mac::FC_MAP, known.fc_id),
        known.own.fcf,
        ethernet::FCOE,
    );
    let kind = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
    let ids = (known.fc_id, service(number));
    let header = FrameHeader {
        f_ctl: FCtl::FIRST_SEQUENCE,
        ..FrameHeader::new(kind, ids, (OxId(number as u16), RxId::UNASSIGNED))
    };
    frame(&ethernet, (Sof::I3, Eof::N), &header, &[1; 2048])
}

fn els_garbage(known: &Known, number: u32) -> Vec<u8> {
    let mut payload = vec![(number / 4) as u8, 0, 0, 0];
    payload.extend(garbage(number / 4));
    let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
    known.own.fcoe(
        kind,
        (known.fc_id, service(number)),
        number as u16,
        &payload,
    )
}

fn lldp_neighbour(known: &Known, number: u32) -> Vec<u8> {
    let mac = station(known, number % 1000).mac;
    let chassis = Identifier {
        subtype: Identifier::CHASSIS_MAC,
        id: &mac.0,
    };
    let port = Identifier {
        subtype: Identifier::PORT_MAC,
        id: &mac.0,
    };
    let bytes = lldp::begin(chassis, port, 120).end();
    let header = EthernetHeader::new(mac, Mac::NEAREST_BRIDGE, ethernet::LLDP);
    let mut frame = vec![0; (header.len() + bytes.len()).max(ethernet::MIN_LEN)];
    header.put(&mut frame)[..bytes.len()].copy_from_slice(&bytes);
    frame
}

/// The port does not even look at these: FCoE for another station, and another protocol.
fn not_for_us(known: &Known, number: u32) -> Vec<u8> {
    let fcf = station(known, number).mac;
    let (_, other) = known.pair[number as usize % 2];
    let mut frame = EnodeFrames { fcf, ..known.own }.fcoe(
        COMMAND,
        (known.fc_id, other),
        number as u16,
        &[0x5a; 64],
    );
    if number.is_multiple_of(2) {
        frame[..6].copy_from_slice(&[0xff; 6]);
        frame[12..14].copy_from_slice(&[8, 0]);
    }
    frame
}

fn fip(src: Mac, dst: Mac, parts: FipParts<'_>) -> Vec<u8> {
    fip_frame(&EthernetHeader::new(src, dst, ethernet::FIP), parts)
}
