mod buffer;
mod pool;
mod region;
