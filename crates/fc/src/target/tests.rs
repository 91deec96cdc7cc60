mod aborts;
mod commands;
mod management;
mod nexus;
mod recovery;
mod refusals;
mod repeats;
mod window;
