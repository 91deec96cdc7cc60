//! The initiator as a target sees it, PDU by PDU.

mod bad_logins;
mod iser;
mod leaving;
mod logins;
mod loopback;
mod management;
mod notices;
mod reads;
mod resting;
mod rig;
mod writes;
mod wrong;
