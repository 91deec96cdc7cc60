use proptest::prelude::*;

use super::*;

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
