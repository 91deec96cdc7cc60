use proptest::array::uniform8;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::ethernet::Mac;
use crate::wire::lldp::cee::{
    self, Applications, CeeApp, CeeDcb, CeePfc, Control, FeatureFlags, PriorityGroups,
};
use crate::wire::lldp::ieee::{self, App, Ets, EtsTable, IeeeDcb, Pfc};
use crate::wire::lldp::tlv::{self, TlvWriter};
use crate::wire::lldp::{self, Identifier, LldpError, Lldpdu};

/// Hexadecimal digits, with spaces where they help.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn begun(ttl_s: u16) -> TlvWriter {
    let chassis = Identifier {
        subtype: Identifier::CHASSIS_MAC,
        id: &MAC.0,
    };
    let port = Identifier {
        subtype: Identifier::PORT_INTERFACE,
        id: b"eth0",
    };
    lldp::begin(chassis, port, ttl_s)
}

/// Priority 3 has a traffic class of its own, with half of the link and no loss.
fn usual() -> IeeeDcb {
    let table = EtsTable {
        classes: [0, 0, 0, 1, 0, 0, 0, 0],
        bandwidth: [50, 50, 0, 0, 0, 0, 0, 0],
        algorithms: [2, 2, 0, 0, 0, 0, 0, 0],
    };
    let app = |protocol| App {
        selector: App::ETHERTYPE,
        protocol,
        priority: 3,
    };
    IeeeDcb {
        ets: Some(Ets {
            willing: true,
            shaper: false,
            classes_max: 8,
            table,
        }),
        recommendation: Some(table),
        pfc: Some(Pfc {
            willing: true,
            mbc: false,
            classes_max: 4,
            enabled: 0x08,
        }),
        apps: Some(vec![app(0x8906), app(0x8914)]),
    }
}

#[test]
fn an_lldpdu_of_ieee_has_these_bytes() {
    let mut to = begun(120);
    usual().put(&mut to);
    let expected = [
        "0207 04 020000000001",
        "0405 05 65746830",
        "0602 0078",
        "fe19 0080c2 09 80 00010000 3232000000000000 0202000000000000",
        "fe19 0080c2 0a 00 00010000 3232000000000000 0202000000000000",
        "fe06 0080c2 0b 84 08",
        "fe0b 0080c2 0c 00 618906 618914",
        "0000",
    ];
    assert_eq!(to.end(), hex(&expected.concat()));
}

#[test]
fn a_tlv_of_cee_has_these_bytes() {
    let flags = FeatureFlags {
        enabled: true,
        willing: true,
        error: false,
    };
    let cee = CeeDcb {
        control: Control {
            seq_no: 3,
            ack_no: 5,
        },
        groups: Some(PriorityGroups {
            flags,
            groups: [0, 0, 0, 1, 0, 0, 0, 15],
            bandwidth: [50, 50, 0, 0, 0, 0, 0, 0],
            classes_max: 8,
        }),
        pfc: Some(CeePfc {
            flags,
            enabled: 0x08,
            classes_max: 4,
        }),
        apps: Some(Applications {
            flags,
            entries: vec![CeeApp::ethertype(0x8906, 8), CeeApp::ethertype(0x8914, 8)],
        }),
    };
    let mut to = TlvWriter::default();
    cee.put(&mut to);
    let expected = [
        "fe3d 001b21 02",
        "020a 0000 00000003 00000005",
        "0411 0000 c0 00 0001000f 3232000000000000 08",
        "0606 0000 c0 00 08 04",
        "0810 0000 c0 00 8906 00 1b21 08 8914 00 1b21 08",
    ];
    assert_eq!(to.into_bytes(), hex(&expected.concat()));
}

#[test]
fn what_is_cut_off_in_the_first_three_is_told() {
    let whole = begun(120).into_bytes();
    assert!(Lldpdu::parse(&whole).is_ok(), "the end need not be told");
    for len in 0..whole.len() {
        assert_eq!(Lldpdu::parse(&whole[..len]), Err(LldpError::Truncated));
    }
}

#[test]
fn the_first_three_come_in_order_once_and_have_a_length() {
    let error = |digits: &str| Lldpdu::parse(&hex(digits)).unwrap_err();
    let (chassis, port, ttl) = ("0207 04020000000001", "0405 0565746830", "0602 0078");
    let of = |parts: &[&str]| error(&parts.concat());
    assert_eq!(of(&[port, chassis, ttl, "0000"]), LldpError::Order);
    assert_eq!(of(&[chassis, port, "0000"]), LldpError::Order);
    assert_eq!(of(&[chassis, port, ttl, ttl, "0000"]), LldpError::Twice);
    assert_eq!(of(&[chassis, port, ttl, port, "0000"]), LldpError::Twice);
    assert_eq!(of(&["020104", port, ttl]), LldpError::Length);
    assert_eq!(of(&[chassis, "0400", ttl]), LldpError::Length);
    assert_eq!(of(&[chassis, port, "060178"]), LldpError::Length);
    let long = format!("0301 04{}", "61".repeat(256));
    assert_eq!(of(&[&long, port, ttl]), LldpError::Length);
    let most = format!("0300 04{}", "61".repeat(255));
    assert!(Lldpdu::parse(&hex(&[&most, port, ttl].concat())).is_ok());
}

#[test]
fn what_follows_the_end_or_exceeds_the_frame_is_left_out() {
    let kinds = |rest: &str| -> Vec<u8> {
        let bytes = [begun(120).into_bytes(), hex(rest)].concat();
        let message = Lldpdu::parse(&bytes).unwrap();
        message.tlvs().map(|tlv| tlv.kind).collect()
    };
    assert_eq!(kinds("0a0161 0000 0c0161"), [tlv::SYSTEM_NAME]);
    assert_eq!(kinds("0a0161 0cff61"), [tlv::SYSTEM_NAME]);
    assert_eq!(kinds("0a0161 0c"), [tlv::SYSTEM_NAME]);
}

#[test]
fn of_a_tlv_that_comes_twice_the_first_counts_and_short_ones_do_not() {
    let read = |tlvs: &str| {
        let bytes = [begun(120).into_bytes(), hex(tlvs)].concat();
        let mut dcb = IeeeDcb::default();
        for tlv in Lldpdu::parse(&bytes).unwrap().tlvs() {
            dcb.take(&tlv.organizational().unwrap());
        }
        dcb.pfc.map(|pfc| pfc.enabled)
    };
    assert_eq!(read("fe06 0080c20b 04 08 fe06 0080c20b 04 10"), Some(0x08));
    assert_eq!(read("fe05 0080c20b 04 fe06 0080c20b 04 10"), Some(0x10));
    assert_eq!(read("fe06 0080c20c 04 08 fe06 001b2102 04 08"), None);
}

#[test]
fn identifiers_are_shown_as_what_they_are() {
    let shown = |subtype, id: &[u8]| Identifier { subtype, id }.to_string();
    assert_eq!(shown(Identifier::CHASSIS_MAC, &MAC.0), "02:00:00:00:00:01");
    assert_eq!(shown(Identifier::PORT_INTERFACE, b"eth0-1"), "eth0-1");
    assert_eq!(shown(7, b"Ethernet1/5"), "Ethernet1/5");
    assert_eq!(
        shown(7, b"a\x1b[2J"),
        "611b5b324a",
        "no terminal is told what to do"
    );
}

#[test]
fn a_protocol_of_cee_has_the_lowest_of_its_priorities() {
    let app = |priorities| CeeApp::ethertype(0x8906, priorities).to_ieee();
    assert_eq!(app(0), None);
    assert_eq!(app(0x18).map(|app| app.priority), Some(3));
}

prop_compose! {
    fn any_table()(
        classes in uniform8(0u8..8),
        bandwidth: [u8; 8],
        algorithms: [u8; 8],
    ) -> EtsTable {
        EtsTable { classes, bandwidth, algorithms }
    }
}

prop_compose! {
    fn any_app()(selector in 0u8..8, protocol: u16, priority in 0u8..8) -> App {
        App { selector, protocol, priority }
    }
}

prop_compose! {
    fn any_ieee()(
        (willing, shaper, mbc) in any::<(bool, bool, bool)>(),
        classes_max in 1u8..=8,
        tables in [any_table(), any_table()],
        (pfc_max, enabled) in (0u8..16, any::<u8>()),
        apps in vec(any_app(), 0..=ieee::APPS_MAX),
    ) -> IeeeDcb {
        IeeeDcb {
            ets: Some(Ets { willing, shaper, classes_max, table: tables[0] }),
            recommendation: Some(tables[1]),
            pfc: Some(Pfc { willing, mbc, classes_max: pfc_max, enabled }),
            apps: Some(apps),
        }
    }
}

prop_compose! {
    fn any_flags()((enabled, willing, error) in any::<(bool, bool, bool)>()) -> FeatureFlags {
        FeatureFlags { enabled, willing, error }
    }
}

prop_compose! {
    fn any_cee_app()(
        protocol: u16,
        selector in 0u8..4,
        [first, second, third]: [u8; 3],
        priorities: u8,
    ) -> CeeApp {
        CeeApp { protocol, selector, oui: [first & !3, second, third], priorities }
    }
}

prop_compose! {
    fn any_cee()(
        (seq_no, ack_no) in any::<(u32, u32)>(),
        flags in [any_flags(), any_flags(), any_flags()],
        groups in uniform8(0u8..16),
        bandwidth: [u8; 8],
        (classes_max, enabled) in any::<(u8, u8)>(),
        entries in vec(any_cee_app(), 0..=cee::APPS_MAX),
    ) -> CeeDcb {
        CeeDcb {
            control: Control { seq_no, ack_no },
            groups: Some(PriorityGroups { flags: flags[0], groups, bandwidth, classes_max }),
            pfc: Some(CeePfc { flags: flags[1], enabled, classes_max }),
            apps: Some(Applications { flags: flags[2], entries }),
        }
    }
}

proptest! {
    #[test]
    fn what_ieee_is_written_is_read_back(dcb in any_ieee()) {
        let mut to = begun(120);
        dcb.put(&mut to);
        let bytes = to.end();
        let mut read = IeeeDcb::default();
        for tlv in Lldpdu::parse(&bytes).unwrap().tlvs() {
            prop_assert!(read.take(&tlv.organizational().unwrap()));
        }
        prop_assert_eq!(read, dcb);
    }

    #[test]
    fn what_cee_is_written_is_read_back(dcb in any_cee()) {
        let mut to = begun(120);
        dcb.put(&mut to);
        let bytes = to.end();
        let mut tlvs = Lldpdu::parse(&bytes).unwrap().tlvs();
        let read = CeeDcb::parse(&tlvs.next().unwrap().organizational().unwrap());
        prop_assert_eq!(read, Some(dcb));
        prop_assert_eq!(tlvs.next(), None);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..300)) {
        let bytes = [begun(120).into_bytes(), bytes].concat();
        if let Ok(message) = Lldpdu::parse(&bytes) {
            let mut ieee = IeeeDcb::default();
            for tlv in message.tlvs().filter_map(|tlv| tlv.organizational()) {
                let is_ieee = ieee.take(&tlv);
                prop_assert!(!is_ieee || CeeDcb::parse(&tlv).is_none());
            }
        }
    }
}
