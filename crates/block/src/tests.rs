//! Stories about volumes, each told to handles on the rings of [`rig`].

mod cancel;
mod device;
mod fake;
mod fault;
mod file;
mod latch;
mod later;
mod layout;
mod lent_pages;
mod locked;
mod locks;
mod nests;
mod null;
mod oracle;
mod parts;
mod places;
mod ram;
mod reserved;
mod rig;
mod sketch;
mod stats;
mod together;
mod verify;
