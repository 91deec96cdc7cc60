//! Ports in a fabric: from the FCF to a nexus, what changes around it, and how it ends.

mod changes;
mod endings;
mod logins;
mod queries;
mod rig;
mod services;
mod switch;
mod walks;
