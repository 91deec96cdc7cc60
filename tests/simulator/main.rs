//! Stories of the target in a simulated world: cores, hosts, wires, mailboxes and disks behind one
//! seed, and an oracle that knows what may be read and what may come to the disks; and of N_Ports
//! on a simulated Ethernet.
//!
//! `LUNAR_SEEDS=n` tells each story with n seeds, `LUNAR_SEED=x` with that one, and `LUNAR_TRACE=1`
//! says what happens on the way.

mod host;
mod inventory;
mod lab;
mod liar;
mod oracle;
mod ports;
mod seeds;
mod stories;
