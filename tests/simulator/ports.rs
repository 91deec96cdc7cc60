//! N_Ports on an Ethernet that loses, delays, doubles and damages frames: targets with a device
//! server and a disk, hosts that use them, one clock, and the oracle that watches the disks.

mod disk;
mod host;
mod orders;
mod server;
mod world;

pub(crate) use disk::{BLOCK, BLOCKS};
pub(crate) use host::{Host, Use};
pub(crate) use orders::{PortWorld, any_faults};
pub(crate) use server::Server;
pub(crate) use world::{Shape, World};
