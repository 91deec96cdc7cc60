mod buffer;
#[cfg(not(loom))]
mod granules;
mod pool;
mod region;
