//! VN2VN as its ports see it: traces of what they send and are told.

pub(crate) mod captures;
mod claims;
mod conflicts;
mod floods;
mod logins;
mod neighbours;
mod net;
mod point_to_point;
mod responder;
pub(super) mod rig;
mod states;
mod wrong;
