use super::*;
use proptest::prelude::*;

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
