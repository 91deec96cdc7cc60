//! FDMI over cables: what a host says of its HBA and port, another one reads.
//!
//! The attributes are those of FC-GS-7, FDMI-1 and FDMI-2, each as long as it may be.

use engine::switch::testing::Enode;
use fc::wire::ct::fdmi::{FdmiAccept, FdmiAttribute, FdmiRequest, explanation};
use fc::wire::ct::reason;
use fc::wire::names::{FcId, Wwn};
use io::ether::Place;

use super::Fabric;

type Ask = FdmiRequest;
type Accept = FdmiAccept;

/// Type and length of each attribute of an HBA: node name, manufacturer, serial number, model, its
/// description, versions of hardware, driver, option ROM, firmware and system, the longest CT
/// payload;
const HBA_1: [(u16, usize); 11] = [
    (0x01, 8),
    (0x02, 64),
    (0x03, 64),
    (0x04, 256),
    (0x05, 256),
    (0x06, 256),
    (0x07, 256),
    (0x08, 256),
    (0x09, 256),
    (0x0a, 256),
    (0x0b, 4),
];

/// and symbolic node name, vendor's information, number of ports, fabric name, version and state of
/// the boot BIOS, vendor identifier (FDMI-2).
const HBA_2: [(u16, usize); 7] = [
    (0x0c, 256),
    (0x0d, 4),
    (0x0e, 4),
    (0x0f, 8),
    (0x10, 256),
    (0x11, 4),
    (0xe0, 8),
];

/// Of a port: FC-4 types, supported and current speed, frame size, name of the device and of the
/// host;
const PORT_1: [(u16, usize); 6] = [
    (0x01, 32),
    (0x02, 4),
    (0x03, 4),
    (0x04, 4),
    (0x05, 256),
    (0x06, 256),
];

/// and node, port and symbolic name, type, classes, fabric name, active FC-4 types, state, number
/// of discovered ports, N_Port_ID (FDMI-2).
const PORT_2: [(u16, usize); 10] = [
    (0x07, 8),
    (0x08, 8),
    (0x09, 256),
    (0x0a, 4),
    (0x0b, 4),
    (0x0c, 8),
    (0x0d, 32),
    (0x0e, 4),
    (0x0f, 4),
    (0x10, 4),
];

/// Values of which no two bytes in a row are the same.
fn attributes(kinds: &[(u16, usize)], seed: u8) -> Vec<FdmiAttribute> {
    let value = |kind: u16, len: usize| {
        let byte = |at: usize| (kind as u8).wrapping_mul(31) ^ (at as u8) ^ seed;
        (0..len).map(byte).collect()
    };
    let one = |&(kind, len): &(u16, usize)| FdmiAttribute {
        kind,
        value: value(kind, len),
    };
    kinds.iter().map(one).collect()
}

/// A host that is logged in to the management server.
fn host(fabric: &Fabric, name: &str) -> Enode {
    let mut host = Enode::plug(&Place::Cable(fabric.dir.join(name)), None);
    host.log_in();
    host.log_in_to(FcId::MANAGEMENT);
    host
}

/// What a request is answered with, or reason and explanation of its reject.
fn asks(host: &mut Enode, request: &Ask) -> Result<Accept, (u8, u8)> {
    let (header, payload) = host.ask(FcId::MANAGEMENT, &request.encode());
    let payload = header.outcome(&payload);
    let payload = payload.map_err(|why| (why.reason, why.explanation))?;
    Ok(Accept::parse(request.code(), payload).unwrap())
}

#[track_caller]
fn does(host: &mut Enode, request: &Ask) {
    assert_eq!(asks(host, request), Ok(Accept::Empty), "{request:?}");
}

const NO_HBA: Result<Accept, (u8, u8)> = Err((reason::UNABLE, explanation::HBA_NOT_REGISTERED));
const NO_PORT: Result<Accept, (u8, u8)> = Err((reason::UNABLE, explanation::PORT_NOT_REGISTERED));

/// RHBA and RHAT make an HBA, RPRT and RPA its two ports, and each attribute is there again.
#[test]
fn all_attributes_of_an_hba_and_its_ports_come_back() {
    let fabric = Fabric::start("switch-fdmi", &["--open"]);
    let [mut one, mut other] = ["a", "b"].map(|name| host(&fabric, name));
    let (hba, second) = (one.wwpn(), other.wwpn());
    does(&mut one, &Ask::Rhba(hba, vec![hba], attributes(&HBA_1, 1)));
    does(&mut one, &Ask::Rhat(hba, attributes(&HBA_2, 1)));
    does(&mut one, &Ask::Rpa(hba, attributes(&PORT_1, 2)));
    does(&mut one, &Ask::Rpa(hba, attributes(&PORT_2, 2)));
    does(&mut other, &Ask::Rprt(hba, second, attributes(&PORT_1, 3)));
    does(&mut other, &Ask::Rpa(second, attributes(&PORT_2, 3)));

    let ports = in_order(hba, second);
    for asking in [&mut one, &mut other] {
        assert_eq!(asks(asking, &Ask::Grhl), Ok(Accept::Names(vec![hba])));
        let whole = Accept::Hba(ports.clone(), attributes(&[&HBA_1[..], &HBA_2].concat(), 1));
        assert_eq!(asks(asking, &Ask::Ghat(hba)), Ok(whole));
        let names = Accept::Names(ports.clone());
        assert_eq!(asks(asking, &Ask::Grpl(hba)), Ok(names));
        for (port, seed) in [(hba, 2), (second, 3)] {
            let whole = attributes(&[&PORT_1[..], &PORT_2].concat(), seed);
            assert_eq!(
                asks(asking, &Ask::Gpat(port)),
                Ok(Accept::Attributes(whole))
            );
        }
    }
    deregisters(&mut one, &mut other);
}

/// Ports of an HBA come by name, and cables of each run make other names.
fn in_order(one: Wwn, other: Wwn) -> Vec<Wwn> {
    vec![one.min(other), one.max(other)]
}

/// What both have registered goes step by step.
fn deregisters(one: &mut Enode, other: &mut Enode) {
    let (hba, second) = (one.wwpn(), other.wwpn());
    // Only the types are looked at.
    does(one, &Ask::Dhat(hba, attributes(&HBA_2, 0)));
    let rest = Accept::Hba(in_order(hba, second), attributes(&HBA_1, 1));
    assert_eq!(asks(other, &Ask::Ghat(hba)), Ok(rest));
    does(one, &Ask::Dpa(hba, attributes(&PORT_1, 0)));
    let rest = Accept::Attributes(attributes(&PORT_2, 2));
    assert_eq!(asks(other, &Ask::Gpat(hba)), Ok(rest));
    does(one, &Ask::Dpa(hba, Vec::new()));
    assert_eq!(
        asks(other, &Ask::Gpat(hba)),
        Ok(Accept::Attributes(Vec::new()))
    );
    does(other, &Ask::Dprt(second));
    assert_eq!(asks(one, &Ask::Gpat(second)), NO_PORT);
    assert_eq!(asks(one, &Ask::Grpl(hba)), Ok(Accept::Names(vec![hba])));
    does(one, &Ask::Dhba(hba));
    assert_eq!(asks(other, &Ask::Grhl), Ok(Accept::Names(Vec::new())));
    assert_eq!(asks(other, &Ask::Ghat(hba)), NO_HBA);
    assert_eq!(asks(other, &Ask::Gpat(hba)), NO_PORT);
}

/// A host registers until there is no room, at its HBA and at its port: 64 KiB in all. What was
/// taken is there, whole, and is gone with the login.
#[test]
fn an_hba_and_its_port_have_64_kib() {
    let fabric = Fabric::start("switch-fdmi-full", &["--open"]);
    let [mut one, mut other] = ["a", "b"].map(|name| host(&fabric, name));
    let name = one.wwpn();
    does(&mut one, &Ask::Rhba(name, vec![name], Vec::new()));
    let of_hba = fill(&mut one, |list| Ask::Rhat(name, list));
    let of_port = fill(&mut one, |list| Ask::Rpa(name, list));
    let kept: usize = [&of_hba, &of_port].map(|list| size(list)).iter().sum();
    assert!((60 << 10..=64 << 10).contains(&kept), "{kept} bytes");
    let whole = Accept::Hba(vec![name], of_hba);
    assert_eq!(asks(&mut other, &Ask::Ghat(name)), Ok(whole));
    assert_eq!(
        asks(&mut other, &Ask::Gpat(name)),
        Ok(Accept::Attributes(of_port))
    );
    one.log_out();
    assert_eq!(asks(&mut other, &Ask::Ghat(name)), NO_HBA);
}

/// Registers attributes of 992 bytes, four at once, until they are rejected; those that were not.
fn fill(host: &mut Enode, request: impl Fn(Vec<FdmiAttribute>) -> Ask) -> Vec<FdmiAttribute> {
    let mut kept = Vec::new();
    for first in (0x100..0x200).step_by(4) {
        let kinds = [0, 1, 2, 3].map(|at| (first + at, 992));
        let list = attributes(&kinds, 4);
        match asks(host, &request(list.clone())) {
            Ok(accept) => assert_eq!(accept, Accept::Empty),
            full => {
                assert_eq!(full, Err((reason::UNABLE, 0)));
                return kept;
            }
        }
        kept.extend(list);
    }
    panic!("{} bytes, and no end", size(&kept));
}

fn size(list: &[FdmiAttribute]) -> usize {
    list.iter().map(|attribute| attribute.value.len()).sum()
}

/// A name that no port has is no HBA of a port, and one that registers for another is told so.
#[test]
fn a_port_registers_nothing_for_another() {
    let fabric = Fabric::start("switch-fdmi-own", &["--open"]);
    let [mut one, mut other] = ["a", "b"].map(|name| host(&fabric, name));
    let name = one.wwpn();
    let taken = Err((reason::UNABLE, explanation::HBA_ALREADY_REGISTERED));
    let claims = Ask::Rhba(name, vec![name], attributes(&HBA_1, 1));
    assert_eq!(asks(&mut other, &claims), taken);
    assert_eq!(asks(&mut other, &Ask::Rprt(name, name, Vec::new())), NO_HBA);
    assert_eq!(asks(&mut other, &Ask::Rhat(Wwn(7), Vec::new())), NO_HBA);
    assert_eq!(asks(&mut one, &Ask::Grhl), Ok(Accept::Names(Vec::new())));
}
