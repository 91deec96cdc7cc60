mod buffer;
#[cfg(not(loom))]
mod granules;
mod lent;
mod pool;
mod region;
