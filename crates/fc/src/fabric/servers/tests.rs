//! The services of a fabric, as its ports find them.

mod changes;
mod directory;
mod link_services;
mod management;
mod reassembly;
mod rig;
mod rounds;
