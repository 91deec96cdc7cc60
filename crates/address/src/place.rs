//! Where frames of FCoE go in and out, as addresses and portals have it.

use std::fmt;
use std::os::unix::ffi::OsStrExt;

use ::io::ether::Place;

use super::error::SyntaxProblem;
use super::text_piece::{Parsed, TextPiece};
use super::write::Escaped;

/// An interface, one by AF_XDP, or `cable:` and a path.
pub(super) fn place(piece: TextPiece<'_>) -> Parsed<Place> {
    if let Some(name) = piece.strip_prefix(XDP) {
        return interface(name).map(Place::Xdp);
    }
    match piece.strip_prefix(CABLE) {
        Some(path) if path.is_empty() => Err(path.fault(SyntaxProblem::Host {
            problem: "the path of a cable is expected here",
            hint: "write for example fcoe://cable:/run/x.sock",
        })),
        Some(path) => path.path().map(Place::Cable),
        None => interface(piece).map(Place::Interface),
    }
}

/// The name of an Ethernet interface (IFNAMSIZ is 16, with its NUL).
fn interface(piece: TextPiece<'_>) -> Parsed<String> {
    let name = piece.string()?;
    let wrong = name.is_empty() || name.len() > 15 || name.contains(['/', ' ']);
    if wrong {
        Err(piece.fault(SyntaxProblem::Host {
            problem: "the name of an Ethernet interface is expected here",
            hint: "write for example fcoe://eth0",
        }))
    } else {
        Ok(name)
    }
}

/// A place as an address has it.
pub(super) struct PlaceText<'a>(pub(super) &'a Place);

impl fmt::Display for PlaceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Interface(name) => write!(f, "{}", Escaped(name.as_bytes(), b"/")),
            Place::Xdp(name) => write!(f, "{XDP}{}", Escaped(name.as_bytes(), b"/")),
            Place::Cable(path) => {
                write!(f, "{CABLE}{}", Escaped(path.as_os_str().as_bytes(), b""))
            }
        }
    }
}

pub(super) const CABLE: &str = "cable:";
const XDP: &str = "xdp:";
