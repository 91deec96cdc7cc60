//! One story a file: LLDPDUs as they are sent and heard, and what comes of DCBX.

mod agreements;
mod captures;
mod dialects;
mod neighbours;
mod rig;
mod sending;
