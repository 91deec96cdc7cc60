use std::sync::Arc;

use crate::commands::QueryResult;
use crate::query::test_unit::{FixedUsage, TestQuery, data, is_cdb_field, refuses, unit};
use crate::statistics::SpaceUsage;
use crate::unit::UnitState;
use crate::wire::lun::Lun;

fn standard(unit: &UnitState) -> Vec<u8> {
    data(&[0x12, 0, 0, 0, 96, 0], unit)
}

fn vpd(page: u8, unit: &UnitState) -> Vec<u8> {
    data(&[0x12, 1, page, 2, 0, 0], unit)
}

fn fixed() -> UnitState {
    let mut unit = unit();
    Arc::make_mut(&mut unit.identity).removable = false;
    unit.traits.unmap_granularity = None;
    unit.traits.atomic = None;
    unit.traits.write_cache = false;
    unit
}

#[test]
fn standard_data() {
    let data = standard(&unit());
    assert_eq!(data.len(), 96);
    assert_eq!(data[..8], [0x00, 0x80, 0x06, 0x12, 91, 0x28, 0x00, 0x02]);
    assert_eq!(&data[8..36], b"LUNAR   RAM             0001");
    assert_eq!(data[36..58], [0; 22]);
    assert_eq!(
        data[58..74],
        [
            0x00, 0xa0, 0x04, 0x60, 0x05, 0xc0, 0x04, 0xc0, 0x06, 0x00, 0x09, 0x60, 0, 0, 0, 0
        ]
    );
}

#[test]
fn standard_data_of_a_fixed_medium_has_no_rmb() {
    assert_eq!(standard(&fixed())[1], 0);
}

#[test]
fn names_that_are_too_long_are_cut_off() {
    let mut unit = unit();
    Arc::make_mut(&mut unit.identity).vendor = "NINECHARS".into();
    assert_eq!(&standard(&unit)[8..17], b"NINECHARR");
}

#[test]
fn page_code_without_evpd_is_refused() {
    let unit = unit();
    refuses(&[0x12, 0, 1, 0, 96, 0], &unit, 2, None);
}

#[test]
fn unknown_vpd_page_is_refused() {
    let unit = unit();
    refuses(&[0x12, 1, 0xb5, 0, 96, 0], &unit, 2, None);
}

#[test]
fn absent_lun_has_qualifier_3_and_type_1f() {
    let asked = |cdb: &[u8]| {
        TestQuery {
            unit: None,
            lun: Lun::from_index(7),
            ..TestQuery::new(cdb, &unit())
        }
        .answer()
    };
    let QueryResult::Data(data) = asked(&[0x12, 0, 0, 0, 96, 0]) else {
        panic!()
    };
    assert_eq!(data[..8], [0x7f, 0x00, 0x06, 0x12, 91, 0x28, 0x00, 0x02]);
    assert_eq!(data[8..36], [b' '; 28]);
    let QueryResult::Data(data) = asked(&[0x12, 1, 0, 0, 96, 0]) else {
        panic!()
    };
    assert_eq!(data, [0x7f, 0, 0, 1, 0]);
    is_cdb_field(asked(&[0x12, 1, 0x83, 0, 96, 0]), 2, None);
}

#[test]
fn every_vpd_page_that_is_listed_is_there_with_its_true_length() {
    let unit = unit();
    let list = vpd(0x00, &unit);
    assert_eq!(list[..4], [0, 0, 0, 11]);
    assert_eq!(
        list[4..],
        [
            0x00, 0x80, 0x83, 0x85, 0x86, 0x87, 0x88, 0x8f, 0xb0, 0xb1, 0xb2
        ]
    );
    for &code in &list[4..] {
        let page = vpd(code, &unit);
        assert_eq!(page[1], code);
        let length = usize::from(u16::from_be_bytes([page[2], page[3]]));
        assert_eq!(length, page.len() - 4, "page {code:02x}h");
    }
}

#[test]
fn unit_serial_number() {
    assert_eq!(vpd(0x80, &unit()), *b"\x00\x80\x00\x04S123");
}

#[test]
fn device_identification() {
    let page = vpd(0x83, &unit());
    let expected = [
        b"\x01\x03\x00\x08\x31\x22\x33\x44\x55\x66\x77\x88".as_slice(),
        b"\x02\x01\x00\x0cLUNAR   S123",
        b"\x51\x94\x00\x04\x00\x00\x00\x01",
        b"\x51\x95\x00\x04\x00\x00\x00\x01",
        b"\x53\x98\x00\x10iqn.x,t,0x0001\0\0",
        b"\x53\x98\x00\x08iqn.x\0\0\0",
    ]
    .concat();
    assert_eq!(page[4..], expected);
}

#[test]
fn management_network_addresses_are_none() {
    assert_eq!(vpd(0x85, &unit()), [0, 0x85, 0, 0]);
}

#[test]
fn extended_inquiry_data() {
    let page = vpd(0x86, &unit());
    assert_eq!(
        page[..14],
        [0, 0x86, 0, 60, 0, 0x07, 0x01, 0, 0, 0, 0, 0, 0, 40]
    );
    assert_eq!(vpd(0x86, &fixed())[6], 0, "V_SUP without a volatile cache");
}

#[test]
fn mode_page_policy_is_shared() {
    assert_eq!(vpd(0x87, &unit()), [0, 0x87, 0, 4, 0x3f, 0xff, 0, 0]);
}

#[test]
fn scsi_ports() {
    let page = vpd(0x88, &unit());
    assert_eq!(page[..4], [0, 0x88, 0, 32]);
    assert_eq!(page[4..16], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20]);
    assert_eq!(&page[16..], b"\x53\x98\x00\x10iqn.x,t,0x0001\0\0");
}

#[test]
fn third_party_copy() {
    let page = vpd(0x8f, &unit());
    let expected = [
        &[
            0x00, 0x01, 0x00, 12, 9, 0x83, 1, 0, 0x84, 4, 0, 1, 3, 4, 0, 0,
        ][..],
        &[0x00, 0x04, 0x00, 28, 0, 0, 0, 0, 0, 16, 0, 64],
        &[
            0, 0, 0x09, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        &[0x00, 0x08, 0x00, 4, 2, 0x02, 0xe4, 0],
        &[0x80, 0x01, 0x00, 32, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0],
        &[0; 20],
    ]
    .concat();
    assert_eq!(page[4..], expected);
}

#[test]
fn block_limits() {
    let page = vpd(0xb0, &unit());
    let expected = [
        &[0, 0xb0, 0, 60, 0x01, 0xff, 0, 8][..],
        &[0x00, 0x01, 0x00, 0x00], // 32 MiB
        &[0x00, 0x00, 0x02, 0x00], // 256 KiB
        &[0x00, 0x02, 0x00, 0x00], // 64 MiB
        &[0x00, 0x10, 0x00, 0x00],
        &[0x00, 0x00, 0x01, 0x00],
        &[0x00, 0x00, 0x00, 0x08],
        &[0x80, 0x00, 0x00, 0x00],
        &[0, 0, 0, 0, 0x00, 0x20, 0x00, 0x00], // 1 GiB
        &[0, 0, 0, 64, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(page, expected);
}

#[test]
fn block_limits_tell_whether_write_same_of_no_blocks_is_refused() {
    let mut careless = unit();
    assert_eq!(vpd(0xb0, &careless)[4], 1);
    careless.traits.write_same_to_end = true;
    assert_eq!(vpd(0xb0, &careless)[4], 0);
}

#[test]
fn block_limits_tell_nothing_that_the_volume_cannot_do() {
    let page = vpd(0xb0, &fixed());
    assert_eq!(page[20..36], [0; 16], "unmap");
    assert_eq!(page[44..64], [0; 20], "atomic writes");
}

#[test]
fn block_device_characteristics() {
    assert_eq!(vpd(0xb1, &unit())[..8], [0, 0xb1, 0, 60, 0, 1, 0, 0x40]);
    let mut disk = unit();
    disk.traits.solid_state = false;
    disk.traits.sanitize = &[];
    assert_eq!(vpd(0xb1, &disk)[4..], [0; 60]);
}

#[test]
fn logical_block_provisioning() {
    assert_eq!(vpd(0xb2, &unit()), [0, 0xb2, 0, 4, 0, 0xe6, 2, 0]);
    assert_eq!(vpd(0xb2, &fixed()), [0, 0xb2, 0, 4, 0, 0, 0, 0]);
    let unit = unit();
    unit.statistics.set_gauge(FixedUsage(SpaceUsage {
        used: 1,
        available: 2,
    }));
    assert_eq!(vpd(0xb2, &unit)[4], 11, "threshold exponent");
}
