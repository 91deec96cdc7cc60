//! RFC 7143 §4.2.2.1: sequence numbers, compared by the serial number arithmetic of RFC 1982.

use std::cmp::Ordering;

/// Compares two serial numbers of 32 bits. Numbers exactly half the circle apart have no order by
/// RFC 1982; here the first is then the smaller one, so that no caller thinks of a third case.
const fn compare(a: u32, b: u32) -> Ordering {
    match b.wrapping_sub(a) {
        0 => Ordering::Equal,
        1..=0x8000_0000 => Ordering::Less,
        _ => Ordering::Greater,
    }
}

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// The number `count` further on.
            #[must_use]
            pub const fn plus(self, count: u32) -> Self {
                Self(self.0.wrapping_add(count))
            }

            /// The number `count` before.
            #[must_use]
            pub const fn minus(self, count: u32) -> Self {
                Self(self.0.wrapping_sub(count))
            }

            /// Whether this number comes before `other`.
            #[must_use]
            pub const fn is_before(self, other: Self) -> bool {
                matches!(compare(self.0, other.0), Ordering::Less)
            }

            /// How far it is from `earlier` to this number, going up.
            #[must_use]
            pub const fn since(self, earlier: Self) -> u32 {
                self.0.wrapping_sub(earlier.0)
            }
        }
    };
}

serial! {
    /// Numbers the commands of a session (RFC 7143 §4.2.2.1).
    CmdSn
}

serial! {
    /// Numbers the responses of a connection (RFC 7143 §4.2.2.2).
    StatSn
}

serial! {
    /// Numbers the Data PDUs or R2Ts of a command (RFC 7143 §4.2.2.4).
    DataSn
}
