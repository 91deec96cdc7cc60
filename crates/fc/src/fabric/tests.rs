//! A switch as its peers see it: traces of what they send and hear.

mod changes;
mod cores;
mod discovery;
mod forwarding;
mod hostile;
mod ids;
mod keep_alives;
mod linux;
mod logins;
mod rejected;
mod rig;
mod services;
mod standby;
mod states;
mod wrong;
