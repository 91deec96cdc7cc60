//! Stories of one end of a connection, and of two.

mod beginning;
mod broken_rules;
mod ending;
mod own_reads;
mod peer_reads;
mod random;
mod rig;
mod sends;
mod writes;
