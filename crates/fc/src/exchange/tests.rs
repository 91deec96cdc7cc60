mod cover;
mod ids;
pub(crate) mod pair;
