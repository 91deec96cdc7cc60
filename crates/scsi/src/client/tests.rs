//! Stories of a unit that is somewhere else.

mod cache;
mod cancel;
mod changes;
mod chaos;
mod identify;
mod nexus;
mod operations;
mod unit;
mod wishes;
