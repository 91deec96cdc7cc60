//! The programs of fcoe-utils as verbs. They also work by the names of these programs: a symbolic
//! link `fcoeadm` to lunar is `lunar fcoeadm`.

pub(crate) mod fcoeadm;
pub(crate) mod fipvlan;

/// The programs whose names stand for a verb.
pub(crate) const PROGRAMS: &[&str] = &["fcoeadm", "fipvlan"];
