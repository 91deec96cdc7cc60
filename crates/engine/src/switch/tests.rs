//! The parts of a switch that are no machine of Fibre Channel.

mod backlog;
mod backpressure;
mod carry;
mod core_queue;
mod cores;
mod egress;
mod fast_path;
mod ids;
mod ids_keeper;
mod interfaces;
mod lldp;
mod login_log;
mod options;
mod outbox;
mod pfc_watch;
mod port;
mod report;
mod running;
mod status;
mod vlan;
mod zone_file;

use super::testing as enode;
