//! A remote port, from when it is found to when it is lost (FC-LS-2; FC-BB-6 for VN2VN).

mod peer;

pub use self::peer::{Address, Fcp, Peer, RemoteId};
