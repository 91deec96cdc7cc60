//! Bytes on the Ethernet: one file a format, each decoded and encoded, so that target and
//! initiator share them. All numbers are big-endian but for the CRC of FCoE.
//!
//! Unknown codes are values, not errors: what a machine does about them is its own affair. Reserved
//! bits are ignored when decoded and zero when encoded.

/// A set of bits.
macro_rules! bit_set {
    ($name:ident) => {
        impl $name {
            /// The bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

pub mod bls;
pub mod ct;
pub mod els;
pub mod ethernet;
pub mod fcoe;
pub mod fcp;
pub mod fip;
pub mod frame;
pub mod lldp;
pub mod names;
pub mod reader;

#[cfg(test)]
mod tests;
