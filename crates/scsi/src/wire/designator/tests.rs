use super::*;

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
