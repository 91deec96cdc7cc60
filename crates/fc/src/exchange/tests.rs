mod cover;
mod ids;
pub(crate) mod pair;
pub(crate) mod trace;
