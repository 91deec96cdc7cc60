//! One story a file.

mod cuts;
mod fences;
mod random_io;
mod reinstatement;
