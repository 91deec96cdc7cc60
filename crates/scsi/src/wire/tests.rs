//! Formats that are told apart by few tests.

use proptest::prelude::*;

use super::cdb::*;
use super::designator::*;
use super::reserve::*;

#[test]
fn read16_fields_are_big_endian() {
    let cdb = [
        0x88, 0x18, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x00, 0x00, 0x01, 0x02, 0, 0,
    ];
    assert_eq!(Field::new(2, 8).read(&cdb), 0x0011_2233_4455_6677);
    assert_eq!(be64(&cdb, 2), 0x0011_2233_4455_6677);
    assert_eq!(Field::new(10, 4).read(&cdb), 0x102);
    assert_eq!(be24(&cdb, 11), 0x102);
    assert!(bit(&cdb, 1, 0x10) && bit(&cdb, 1, 0x08) && !bit(&cdb, 1, 0xe0));
}

#[test]
fn bytes_beyond_the_end_are_zero() {
    assert_eq!(be32(&[0xff], 0), 0xff00_0000);
    assert_eq!(Field::new(4, 4).read(&[1, 2, 3]), 0);
}

proptest! {
    #[test]
    fn a_number_written_is_read_again(at in 0u8..8, len in 1u8..=8, value: u64) {
        let field = Field::new(at, len);
        let mut cdb = [0; 16];
        field.write(&mut cdb, value);
        let kept = if len == 8 { value } else { value & ((1 << (8 * len)) - 1) };
        prop_assert_eq!(field.read(&cdb), kept);
    }
}

const ISCSI: u8 = 5;

#[test]
fn a_logical_unit_is_named_without_a_protocol() {
    let naa = [0x31, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88];
    let descriptor = Designator::Naa(&naa).encode(Association::LogicalUnit, ISCSI);
    assert_eq!(descriptor, [&[0x01, 0x03, 0, 8][..], &naa].concat());
}

#[test]
fn a_name_string_ends_with_zeros_up_to_a_multiple_of_four() {
    let name = |name| Designator::Name(name).encode(Association::TargetDevice, ISCSI);
    assert_eq!(name("iqn.x"), *b"\x53\xa8\x00\x08iqn.x\0\0\0");
    assert_eq!(name("iqn"), *b"\x53\xa8\x00\x04iqn\0");
    assert_eq!(name("iqnx"), *b"\x53\xa8\x00\x08iqnx\0\0\0\0");
}

#[test]
fn ports_are_told_by_number_too() {
    let port = Designator::RelativeTargetPort(0x102).encode(Association::TargetPort, ISCSI);
    assert_eq!(port, [0x51, 0x94, 0, 4, 0, 0, 1, 2]);
    let group = Designator::TargetPortGroup(7).encode(Association::TargetPort, 0);
    assert_eq!(group, [0x01, 0x95, 0, 4, 0, 0, 0, 7]);
}

#[test]
fn what_does_not_fit_the_length_is_cut_off() {
    let descriptor = Designator::T10Vendor(&[b'x'; 300]).encode(Association::LogicalUnit, ISCSI);
    assert_eq!(descriptor[..4], [0x02, 0x01, 0, 255]);
    assert_eq!(descriptor.len(), 4 + 255);
}

#[test]
fn designators_are_written_as_linux_writes_them() {
    for (descriptor, written) in [
        (&[1, 3, 0x60, 0x01, 0x40, 0x5a][..], "naa.6001405a"),
        (&[1, 2, 0, 0x25, 0x38], "eui.002538"),
        (b"\x02\x01ATA     disk  \0", "t10.ATA     disk"),
        (b"\x03\x08iqn.2026-11.t:0\0\0\0", "iqn.2026-11.t:0"),
        (b"\x02\x01a\nb", "t10.a%0Ab"),
        (b"\x02\x01a%0Ab", "t10.a%250Ab"),
        (&[1, 10, 0xab], "type10.ab"),
        (&[], "type0."),
    ] {
        assert_eq!(text(descriptor), written);
    }
}

proptest! {
    /// The flags of bytes 20 to 24 decide where to look, so they are drawn more often.
    #[test]
    fn any_list_is_read_without_a_panic(
        head in proptest::collection::vec(any::<u8>(), 20),
        flags in any::<[u8; 4]>(),
        len in 0_u32..80,
        rest in proptest::collection::vec(prop_oneof![Just(0x45), Just(0), any::<u8>()], 0..80),
        protocol in prop_oneof![Just(0_u8), Just(5)],
    ) {
        let specified = [&head[..], &flags, &len.to_be_bytes(), &rest].concat();
        let moved = [&head[..], &len.to_be_bytes(), &rest].concat();
        for bytes in [&specified, &moved] {
            let _ = list(bytes, protocol);
            let _ = move_list(bytes, protocol);
        }
    }
}

#[test]
fn the_type_mask_has_a_bit_for_each_type() {
    // WR_EX_AR, EX_AC_RO, WR_EX_RO, EX_AC and WR_EX, then EX_AC_AR.
    assert_eq!(TYPE_MASK.to_be_bytes(), [0b1110_1010, 0b0000_0001]);
}
