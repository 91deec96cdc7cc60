//! Formats round-trip, and a stream is cut in the same way wherever it is split.

mod framing;
mod pdus;
mod serials;
