//! Stories of ports, told as packet traces.

mod bring_up;
mod commands;
mod endings;
mod fabric;
mod places;
mod queries;
mod rest;
mod rig;
mod services;
mod third_party;
mod trace;
mod weather;
