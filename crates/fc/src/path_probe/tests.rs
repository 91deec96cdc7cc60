//! What a probe finds out about the way to ports and FCFs on a simulated Ethernet.

mod outside;
mod paths;
mod rig;
