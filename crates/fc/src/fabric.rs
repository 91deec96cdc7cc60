//! A fabric of one switch: what stands behind its well-known addresses (FC-GS, FC-LS-2), and who
//! may see whom.

pub mod zones;
