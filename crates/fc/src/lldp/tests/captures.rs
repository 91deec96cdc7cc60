//! LLDPDUs of other agents, as they came on a veth.

use super::rig::*;
use crate::lldp::{DcbProblem, Lldp, LldpMode};
use crate::wire::ethernet::EthernetHeader;

/// lldpd 1.0.16 with `custom-tlv` for ETS, PFC and application priority, as a switch has them.
const LLDPD: &str = "\
    0180c200000e02000000000b88cc02070402000000000b04070302000000000b060200780a056c656166310c056a75\
    6467650e04009c008010181102fe80000000000000000000fffe00000b02000000020008027662fe0900120f030100\
    000000fe0900120f010080000036fe190080c209000001000032320000000000000202000000000000fe060080c20b\
    0408fe0b0080c20c006189066189140000";

/// The same as it ends.
const LLDPD_END: &str = "\
    0180c200000e02000000000b88cc02070402000000000b04070302000000000b060200000000";

/// lldpad 1.1, which tells no more by default.
const LLDPAD: &str = "\
    0180c200000e02000000000b88cc0207048e8ebe089a8b0407038e8ebe089a8b060200780000000000000000000000\
    00000000000000000000000000";

fn hear_frame(agent: &mut Lldp, at: u64, digits: &str) {
    let digits = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let frame: Vec<u8> = digits.map(byte).collect();
    let (header, payload) = EthernetHeader::parse(&frame).unwrap();
    agent.receive(s(at), &header, payload).unwrap();
}

#[test]
fn lldpd_is_heard_and_followed_until_it_ends() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    hear_frame(&mut host, 1, LLDPD);
    let neighbour = &host.neighbours()[0];
    assert_eq!(
        neighbour.to_string(),
        "leaf1 02:00:00:00:00:0b (02:00:00:00:00:0b)"
    );
    assert_eq!(neighbour.system_description, "judge");
    assert_eq!(neighbour.port_description, "vb");
    assert_eq!((neighbour.ttl_s, neighbour.cee.is_some()), (120, false));
    assert_eq!(outcome(&host), "IEEE 08 08 3");
    hear_frame(&mut host, 2, LLDPD_END);
    assert_eq!(host.dcbx().lossless(), Err(DcbProblem::NoNeighbour));
}

#[test]
fn lldpad_without_dcbnl_says_nothing_of_dcbx() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    hear_frame(&mut host, 1, LLDPAD);
    assert_eq!(
        host.neighbours()[0].to_string(),
        "8e:8e:be:08:9a:8b 8e:8e:be:08:9a:8b"
    );
    assert_eq!(host.dcbx().lossless(), Err(DcbProblem::NotSpoken));
}
