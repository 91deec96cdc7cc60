//! Stories of sessions, told as packet traces.

mod reads;
#[expect(dead_code, reason = "for the stories that follow")]
mod rig;
mod writes;
