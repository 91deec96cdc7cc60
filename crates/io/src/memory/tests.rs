mod buffer;
#[cfg(not(loom))]
mod granules;
mod pool;
mod region;
mod write_claims;
