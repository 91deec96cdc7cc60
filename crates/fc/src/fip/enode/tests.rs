//! An ENode as an FCF sees it: traces of what it sends and is told.

mod addressing;
mod choice;
mod ends;
mod finding;
mod floods;
mod further;
mod refusals;
mod rig;
mod states;
mod takeover;
mod vlans;
mod wrong;
