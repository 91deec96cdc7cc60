use proptest::prelude::*;

use super::Residual;

#[test]
fn residuals_compare_what_was_announced_with_what_was_presented() {
    assert_eq!(Residual::of(512, 512), Residual::Exact);
    assert_eq!(Residual::of(512, 0), Residual::Underflow(512));
    assert_eq!(Residual::of(0, 4096), Residual::Overflow(4096));
    assert_eq!(Residual::of(0, 1 << 40), Residual::Overflow(u32::MAX));
}

proptest! {
    #[test]
    fn a_residual_and_what_was_moved_make_up_what_was_announced(expected: u32, presented: u64) {
        let residual = Residual::of(expected, presented);
        let moved = residual.moved(expected).map(u64::from);
        prop_assert_eq!(moved, Some(presented.min(expected.into())));
        match residual {
            Residual::Exact => prop_assert_eq!(u64::from(expected), presented),
            Residual::Underflow(count) => {
                prop_assert_eq!(presented + u64::from(count), expected.into());
            }
            Residual::Overflow(u32::MAX) => {
                prop_assert!(presented - u64::from(expected) >= u32::MAX.into());
            }
            Residual::Overflow(count) => prop_assert_eq!(u64::from(expected + count), presented),
        }
    }
}
