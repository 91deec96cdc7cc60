//! What serving and using volumes have in common on one machine.
//!
//! | duty | modules |
//! |---|---|
//! | Fibre Channel ports of this machine | [`n_port`] |
//! | LLDP and DCBX at an Ethernet port | [`lldp`] |
//! | when a thread spins in place of sleeping | [`polling`] |
//! | what iSCSI sends, in batches of the ring | [`batch`] |
//! | why frames of Fibre Channel are lost, and what mends it | [`diagnosis`] |
//! | queue pairs of RDMA devices, as iSER uses them | [`device_pair`] |
//! | the log of what peers do wrong | [`journal`] |
//! | locks between processes, files that survive a power cut, CHAP secrets | [`lockfile`], [`files`], [`secret`] |
#![forbid(unsafe_code)]

pub mod batch;
pub mod device_pair;
pub mod diagnosis;
pub mod files;
pub mod journal;
pub mod lldp;
pub mod lockfile;
pub mod n_port;
pub mod polling;
pub mod secret;
