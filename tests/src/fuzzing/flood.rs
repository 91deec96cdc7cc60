//! Floods: however many messages came, the next one costs no more. No time is measured: what a
//! machine keeps, by which a message costs, is counted.

/// Whether a script ends in a flood. One in eight does, as a flood takes longer than most scripts.
pub(super) const fn ends_in_flood(script: &[u8]) -> bool {
    script.len().is_multiple_of(8)
}

/// Has so many messages come, by their numbers. `hear` tells how many records are kept then: in the
/// second half there are never more than in the first.
pub(super) fn flood(messages: u16, mut hear: impl FnMut(u16) -> usize) {
    let half = messages / 2;
    let most = (0..half).map(&mut hear).max();
    for number in half..messages {
        let records = Some(hear(number));
        assert!(
            records <= most,
            "{records:?} after {number}, {most:?} before"
        );
    }
}
