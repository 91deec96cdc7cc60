//! A fabric: one or two switches at a few Ethernets, N_Ports of ours and of a Linux kernel behind
//! them, one clock, and what has to be so whatever happens.
//!
//! | always | after a calm time |
//! |---|---|
//! | no switch forwards between ports that share no zone, once a change was answered | all are logged in |
//! | a WWPN has one N_Port_ID for ever | each sees those of its zones, and no others |
//! | no ENode logs in to an FCF whose solicited Advertisement it has not heard | the tables of the switch agree |
//! | the oracle of the disks | each host reads from each of its targets |

mod chassis;
mod check;
mod frames;
mod linux;
mod orders;
mod shape;
mod watch;
mod world;
mod zoning;

pub(crate) use shape::FabricShape;
pub(crate) use watch::Mutant;
pub(crate) use world::FabricWorld;
