//! Views of a machine whose sysfs is a folder, against what fcoe-utils 1.0.34 prints for the same
//! folder.

mod changes;
mod configs;
mod requests;
mod tree;
mod views;
mod vlans;
