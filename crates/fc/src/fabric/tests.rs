//! A switch as its peers see it: traces of what they send and hear.

mod ids;
