//! Stories of commands, as a transport, a medium and an owner see them.

mod chaos;
mod copy;
mod flow;
mod format;
mod inventory;
mod latency;
mod manage;
mod order;
mod pieces;
mod reserve;
mod returns;
mod rig;
mod setting;
mod subscribe;
mod sweep;
mod transfer;
mod untrue;
mod world;
