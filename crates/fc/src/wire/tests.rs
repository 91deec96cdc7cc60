//! Each format by itself: what is encoded is what is decoded, and wrong bytes are told.

mod common_transport;
mod encapsulation;
mod fip;
mod information_units;
mod link_services;
mod lldp;
mod names;
