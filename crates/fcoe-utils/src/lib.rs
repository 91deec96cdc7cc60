//! What the programs of fcoe-utils (Open-FCoE) tell and do, in the layout of its version 1.0.34:
//! FCoE instances of the kernel as `fcoeadm` shows them, VLANs as `fipvlan` finds them, and what
//! `fcping`, `fcnsq` and `fcrls` ask other ports for.
//!
//! The kernel's instances are read from sysfs, whose root is a parameter: tests have folders that
//! are laid out like it. Views are texts; nothing here prints.
#![forbid(unsafe_code)]

pub mod change;
pub mod config;
mod hba;
pub mod instance;
pub mod link_errors;
pub mod local_port;
pub mod name_server;
mod pci;
pub mod ping;
pub mod sysfs;
#[cfg(test)]
mod tests;
pub mod transport;
pub mod view;
pub mod vlan;

pub use fc::wire::names as fc_names;
pub use io::ether::interfaces;
