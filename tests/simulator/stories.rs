//! One story a file.

mod compare;
mod cuts;
mod damage;
mod fences;
mod idle;
mod inventory;
mod logins;
mod logouts;
mod outcomes;
mod ports;
mod random_io;
mod reinstatement;
mod remote_units;
mod slow_readers;
mod splits;
mod spread;
mod stops;
mod wrong_targets;
