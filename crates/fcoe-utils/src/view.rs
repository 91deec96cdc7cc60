//! Views in the layout of `fcoeadm` 1.0.34: the same labels, in the same columns.
//!
//! Where the original is wrong, or prints nothing, these differ: capacities of disks with blocks of
//! 4,096 bytes are not eight times too large, no empty line follows a serial number, an interface
//! without a PCI device is shown too, and no line ends in blanks.

pub mod adapter;
pub mod fcf;
pub mod statistics;
pub mod target;

use std::fmt::Display;

use crate::hba::UNKNOWN;
use crate::sysfs::SysfsDir;

/// A line of a label and, `column` columns behind the indent of the label, its value.
fn field(out: &mut String, (indent, column): (usize, usize), label: &str, value: impl Display) {
    let line = format!("{:indent$}{label:<column$}{value}", "");
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The text of an attribute, or [`UNKNOWN`].
fn text(dir: &SysfsDir, attribute: &str) -> String {
    dir.text(attribute).unwrap_or_else(|| UNKNOWN.to_owned())
}
