mod buffer;
#[cfg(not(loom))]
mod file_map;
#[cfg(not(loom))]
mod granules;
mod locked;
mod pool;
mod raw;
mod region;
mod write_claims;
