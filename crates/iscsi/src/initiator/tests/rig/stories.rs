//! The same stories over both transports: what the session does must not depend on how its PDUs
//! and its data move.

/// Runs stories over TCP and over RDMA.
macro_rules! over_both_transports {
    ($($stories:tt)*) => {
        mod over_tcp {
            use super::*;
            type Rig = crate::initiator::tests::rig::Rig;
            $($stories)*
        }
        mod over_iser {
            use super::*;
            type Rig = crate::initiator::tests::rig::IserRig;
            $($stories)*
        }
    };
}
pub(in crate::initiator::tests) use over_both_transports;
