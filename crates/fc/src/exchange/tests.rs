mod data;
mod garbage;
mod ids;
pub(crate) mod pair;
pub(crate) mod trace;
