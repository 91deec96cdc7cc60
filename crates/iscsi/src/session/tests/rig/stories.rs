//! The same stories over several datamovers.

/// Runs stories over one datamover.
macro_rules! over_one_datamover {
    ($module:ident, $rig:ident, $($stories:tt)*) => {
        mod $module {
            #[allow(unused_imports, reason = "some stories need nothing but the rig")]
            use super::*;
            type Rig = crate::session::tests::rig::$rig;
            $($stories)*
        }
    };
}
pub(in crate::session::tests) use over_one_datamover;

/// Runs stories in which no PDU moves data over each datamover: what a session does must not depend
/// on how its data moves.
macro_rules! over_each_datamover {
    ($($stories:tt)*) => {
        over_one_datamover! { over_tcp, Rig, $($stories)* }
        over_one_datamover! { over_memory, MemoryRig, $($stories)* }
        over_one_datamover! { over_iser, IserRig, $($stories)* }
    };
}
pub(in crate::session::tests) use over_each_datamover;

/// Runs stories that have no meaning over iSER; each tells the reason.
macro_rules! over_all_but_iser {
    ($($stories:tt)*) => {
        over_one_datamover! { but_over_tcp, Rig, $($stories)* }
        over_one_datamover! { but_over_memory, MemoryRig, $($stories)* }
    };
}
pub(in crate::session::tests) use over_all_but_iser;
