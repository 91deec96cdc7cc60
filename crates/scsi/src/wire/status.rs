//! SAM-5 §5.3.1: status codes.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Good = 0x00,
    /// Sense data says what went wrong.
    CheckCondition = 0x02,
    /// COMPARE AND WRITE's and PRE-FETCH's "it is (in the cache)".
    ConditionMet = 0x04,
    /// Try again later.
    Busy = 0x08,
    /// Another nexus holds a reservation.
    ReservationConflict = 0x18,
    /// The task set, or a buffer pool, has no room.
    TaskSetFull = 0x28,
    /// ACA is established; never sent, as ACA is not offered.
    AcaActive = 0x30,
    /// Aborted by another nexus, with TAS = 1.
    TaskAborted = 0x40,
}
