mod aborts;
mod commands;
mod management;
mod nexus;
mod owed;
mod recovery;
mod refusals;
mod twice;
