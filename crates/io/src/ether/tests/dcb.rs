//! dcbnl: the messages, byte for byte those of `dcb` (iproute2 6.1, as strace showed them), and
//! interfaces that have no DCB.

use super::super::dcb::{self, DcbApp, DcbError, DcbEts, DcbPfc, InterfaceDcb};

mod mtu_2500 {
    super::super::on_veth! { 2500:
        veth_has_no_dcb
        lldp_comes_in_where_its_group_was_joined
    }
}

fn veth_has_no_dcb() {
    let told = dcb::read("va").unwrap_err();
    assert!(matches!(told, DcbError::Unsupported(_)), "{told}");
    assert!(told.to_string().contains("this NIC has no DCB"), "{told}");
    let told = dcb::apply("va", &InterfaceDcb::default()).unwrap_err();
    assert!(matches!(told, DcbError::Unsupported(_)), "{told}");
    for name in ["vx", "", "a\0b", "a-name-that-is-too-long"] {
        let told = dcb::read(name).unwrap_err();
        assert!(matches!(told, DcbError::Missing(_)), "{told}");
    }
}

fn lldp_comes_in_where_its_group_was_joined() {
    use super::*;
    let nearest_bridge = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
    let mut pair = Pair::veth(&EtherOptions::default());
    let sent = frame(nearest_bridge, 0x88cc, 200);
    send(&mut pair.a, &sent);
    quiet(&mut pair.b);
    pair.b.join(nearest_bridge).unwrap();
    send(&mut pair.a, &sent);
    send(&mut pair.a, &frame(nearest_bridge, 0x88cd, 200));
    assert_eq!(receive(&mut pair.b, 1), [(sent, None)]);
    quiet(&mut pair.b);
}

/// Bytes of hexadecimal digits.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

const fn fcoe(protocol: u16) -> DcbApp {
    DcbApp {
        selector: 1,
        priority: 3,
        protocol,
    }
}

/// The words are little endian, as those of the machine where they were taken; the sequence number
/// is 0 here.
#[cfg(target_endian = "little")]
mod bytes {
    use super::super::super::dcb::message::{Command, read, request, set_outcome, set_request};
    use super::*;

    /// `dcb pfc show dev va`.
    #[test]
    fn what_is_asked() {
        let expected = hex("1c000000 4e00 0500 00000000 00000000 00150000 0700 0100 766100 00");
        assert_eq!(request(Command::IeeeGet, "va").unwrap().finish(), expected);
        let expected = hex("1c000000 4e00 0500 00000000 00000000 00160000 0700 0100 766100 00");
        assert_eq!(request(Command::DcbxGet, "va").unwrap().finish(), expected);
    }

    /// `dcb app add dev va ethtype-prio 0x8906:3 0x8914:3`.
    #[test]
    fn what_is_set() {
        let change = InterfaceDcb {
            apps: vec![fcoe(0x8906), fcoe(0x8914)],
            ..InterfaceDcb::default()
        };
        let expected = "34000000 4f00 0500 00000000 00000000 00140000 0700 0100 766100 00 \
                        1800 0d80 1400 0380 0800 0100 01030689 0800 0100 01031489";
        assert_eq!(set_request("va", &change).unwrap().finish(), hex(expected));
    }

    /// `struct ieee_ets` and `struct ieee_pfc` have 59 and 136 bytes.
    #[test]
    fn what_is_set_of_classes_and_pauses() {
        let change = InterfaceDcb {
            ets: Some(ETS),
            pfc: Some(DcbPfc {
                classes_max: 8,
                enabled: 0x08,
                ..DcbPfc::default()
            }),
            ..InterfaceDcb::default()
        };
        let table = ["3232000000000000", "0202000000000000", "0000000100000000"];
        let [bandwidth, algorithms, classes] = table;
        let head = "ec000000 4f00 0500 00000000 00000000 00140000 0700 0100 766100 00 d000 0d80";
        let ets = format!(
            "3f00 0100 010800 {bandwidth} {bandwidth} {algorithms} {classes} {bandwidth} \
             {algorithms} {classes} 00"
        );
        let pfc = format!("8c00 0200 080800 {}", "00".repeat(133));
        let expected = hex(&[head, &ets, &pfc].concat());
        assert_eq!(set_request("va", &change).unwrap().finish(), expected);
    }

    #[test]
    fn what_is_told() {
        let ets = format!("3f00 0100 010800 {} 00", ETS_TOLD.concat());
        let requests = (0..16).map(|number: u64| format!("{:016x}", (number << 56)));
        let pfc = format!(
            "8c00 0200 040801 00 00000000 {}",
            requests.collect::<String>()
        );
        let apps = "1400 0300 0800 0100 01030689 0800 0100 01031489";
        let nest = [ets.as_str(), &pfc, apps].concat();
        let len = 4 + hex(&nest).len() as u16;
        let head = "00000000 4e00 0000 00000000 00000000 00150000 0700 0100 766100 00";
        let answer = [
            hex(head),
            len.to_le_bytes().to_vec(),
            hex(&format!("0d00 {nest} 0500 0e00 09 000000")),
        ]
        .concat();
        let mut told = InterfaceDcb::default();
        let answer = &answer[16..];
        assert!(read(answer, &mut told));
        assert_eq!(told.dcbx, InterfaceDcb::HOST | InterfaceDcb::IEEE);
        assert_eq!(told.ets, Some(ETS));
        let expected = DcbPfc {
            classes_max: 4,
            enabled: 8,
            mbc: true,
            requests: [0, 1, 2, 3, 4, 5, 6, 7],
            indications: [8, 9, 10, 11, 12, 13, 14, 15],
        };
        assert_eq!(told.pfc, Some(expected));
        assert_eq!(told.apps, [fcoe(0x8906), fcoe(0x8914)]);
        for len in 0..answer.len() {
            read(&answer[..len], &mut InterfaceDcb::default());
        }
    }

    #[test]
    fn what_became_of_it() {
        let outcome = |attribute: &str| {
            let head = "00000000 4f00 0000 00000000 00000000 00140000";
            let outcome = set_outcome(&hex(&[head, attribute].concat())[16..]);
            outcome.map_err(|cause| cause.raw_os_error())
        };
        assert_eq!(outcome("0500 0d00 00 000000"), Ok(()));
        let refused = Err(Some(libc::EINVAL));
        assert_eq!(outcome("0500 0d00 ea 000000"), refused);
        assert_eq!(outcome(""), Err(None));
    }
}

const ETS: DcbEts = DcbEts {
    willing: true,
    classes_max: 8,
    bandwidth: [50, 50, 0, 0, 0, 0, 0, 0],
    algorithms: [2, 2, 0, 0, 0, 0, 0, 0],
    classes: [0, 0, 0, 1, 0, 0, 0, 0],
};

/// Sent and received bandwidth, algorithms, classes, and what is recommended.
const ETS_TOLD: [&str; 7] = [
    "3232000000000000",
    "0000000000000000",
    "0202000000000000",
    "0000000100000000",
    "0000000000000000",
    "0000000000000000",
    "0000000000000000",
];

#[test]
fn only_what_is_something_else_is_written_and_nothing_is_taken_away() {
    let pfc = |enabled, requests| DcbPfc {
        enabled,
        requests: [requests; 8],
        ..DcbPfc::default()
    };
    let before = InterfaceDcb {
        dcbx: InterfaceDcb::HOST,
        ets: Some(ETS),
        pfc: Some(pfc(0x08, 7)),
        apps: vec![fcoe(0x8906), fcoe(0x88e5)],
    };
    let wanted = InterfaceDcb {
        pfc: Some(pfc(0x08, 0)),
        apps: vec![fcoe(0x8906)],
        ..before.clone()
    };
    let change = |wanted: &InterfaceDcb| dcb::difference("va", &before, wanted);
    assert_eq!(change(&wanted).unwrap(), InterfaceDcb::default());
    let wanted = InterfaceDcb {
        pfc: Some(pfc(0x18, 0)),
        apps: vec![fcoe(0x8906), fcoe(0x8914)],
        ..wanted
    };
    let expected = InterfaceDcb {
        pfc: Some(pfc(0x18, 0)),
        apps: vec![fcoe(0x8914)],
        ..InterfaceDcb::default()
    };
    assert_eq!(change(&wanted).unwrap(), expected);
    let other = DcbApp {
        priority: 4,
        ..fcoe(0x8906)
    };
    let wanted = InterfaceDcb {
        apps: vec![other],
        ..InterfaceDcb::default()
    };
    let told = change(&wanted).unwrap_err().to_string();
    assert!(
        told.contains("dcb app del dev va ethtype-prio 0x8906:3"),
        "{told}"
    );
}
