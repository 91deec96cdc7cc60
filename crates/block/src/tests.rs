//! Stories about volumes, each told to handles on the rings of [`rig`].

mod device;
mod fake;
mod file;
mod latch;
mod null;
mod oracle;
mod places;
mod ram;
mod rig;
