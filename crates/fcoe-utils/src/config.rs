//! The files that fcoemon of fcoe-utils reads, `/etc/fcoe/cfg-IFACE`: one an interface, with lines
//! `NAME="value"` and comments.
//!
//! What fcoemon passes over is an error here, with line and column: a value that it does not know,
//! and a name that is given twice, would otherwise stand for a default in silence. Names that
//! neither of the two knows are reported and passed over, since scripts of distributions keep
//! others in these files.

pub mod folder;

use crate::change::FcoeMode;

/// What a file says of its interface. The defaults are those of fcoemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortConfig {
    /// `FCOE_ENABLE`: whether there is to be FCoE at all.
    pub enabled: bool,
    /// `DCB_REQUIRED`: whether FCoE waits for lossless Ethernet.
    pub dcb_required: bool,
    /// `AUTO_VLAN`: whether FIP is asked for the VLANs.
    pub auto_vlan: bool,
    /// `MODE`.
    pub mode: FcoeMode,
    /// `FIP_RESP`: whether VLAN Requests of others are answered, in VN2VN.
    pub fip_resp: bool,
    /// Names that mean nothing here, with their lines.
    pub unknown: Vec<(usize, String)>,
}

/// What is wrong with a file, and where. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ConfigError {
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
    /// What is wrong there.
    pub fault: ConfigFault,
}

/// What can be wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// It is neither empty, nor a comment, nor `NAME="value"`.
    #[error("a line is NAME=\"value\", or a comment that begins with #")]
    NoAssignment,
    /// fcoemon takes no other.
    #[error("a value is in quotes, as in {0}=\"{1}\"")]
    NoQuotes(&'static str, &'static str),
    /// The quotes are not closed.
    #[error("the quotes are not closed on this line")]
    Unclosed,
    /// Something follows the value.
    #[error("only a comment can follow a value")]
    Trailing,
    /// The value is unknown.
    #[error("{0} is {first} or {second}, not {2:?}", first = .1[0], second = .1[1])]
    Value(&'static str, [&'static str; 2], String),
    /// It has a value already.
    #[error("{0} has a value from line {1}: remove one of the two")]
    Twice(&'static str, usize),
}

/// A name that means something.
struct Setting {
    name: &'static str,
    /// The values; fcoemon takes the first one as the default.
    values: [&'static str; 2],
    /// Takes whether it is the second one.
    set: fn(&mut PortConfig, bool),
}

const NO_YES: [&str; 2] = ["no", "yes"];

const SETTINGS: [Setting; 5] = [
    Setting {
        name: "FCOE_ENABLE",
        values: NO_YES,
        set: |config, yes| config.enabled = yes,
    },
    Setting {
        name: "DCB_REQUIRED",
        values: NO_YES,
        set: |config, yes| config.dcb_required = yes,
    },
    Setting {
        name: "AUTO_VLAN",
        values: NO_YES,
        set: |config, yes| config.auto_vlan = yes,
    },
    Setting {
        name: "FIP_RESP",
        values: NO_YES,
        set: |config, yes| config.fip_resp = yes,
    },
    Setting {
        name: "MODE",
        values: ["fabric", "vn2vn"],
        set: |config, vn2vn| {
            config.mode = if vn2vn {
                FcoeMode::Vn2vn
            } else {
                FcoeMode::Fabric
            };
        },
    },
];

impl PortConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        // The lines on which settings were given.
        let mut given = [None; SETTINGS.len()];
        for (line, number) in text.lines().zip(1..) {
            let assignment = Assignment::read(line);
            let wrong = |(column, fault)| ConfigError {
                line: number,
                column,
                fault,
            };
            if let Some(assignment) = assignment.map_err(wrong)? {
                config
                    .take(&assignment, number, &mut given)
                    .map_err(wrong)?;
            }
        }
        Ok(config)
    }

    fn take(
        &mut self,
        assignment: &Assignment<'_>,
        line: usize,
        given: &mut [Option<usize>; SETTINGS.len()],
    ) -> Result<(), LineFault> {
        let Assignment { name, value, at } = *assignment;
        let known = SETTINGS
            .iter()
            .zip(given)
            .find(|(known, _)| known.name == name.1);
        let Some((setting, given)) = known else {
            self.unknown.push((line, name.1.to_owned()));
            return Ok(());
        };
        if let Some(first) = given.replace(line) {
            return Err((name.0, ConfigFault::Twice(setting.name, first)));
        }
        let value = value.ok_or((at, ConfigFault::NoQuotes(setting.name, setting.values[1])))?;
        let mut values = setting.values.iter();
        let Some(which) = values.position(|known| known.eq_ignore_ascii_case(value)) else {
            let fault = ConfigFault::Value(setting.name, setting.values, value.to_owned());
            return Err((at + 1, fault));
        };
        (setting.set)(self, which == 1);
        Ok(())
    }
}

/// A column, and what is wrong there.
type LineFault = (usize, ConfigFault);

/// A line `NAME="value"`.
struct Assignment<'a> {
    /// With its column.
    name: (usize, &'a str),
    /// None where it has no quotes.
    value: Option<&'a str>,
    /// The column of what stands behind the `=`.
    at: usize,
}

impl<'a> Assignment<'a> {
    /// None for an empty line, or a comment.
    fn read(line: &'a str) -> Result<Option<Self>, LineFault> {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let column = |rest: &str| line.chars().count() - rest.chars().count() + 1;
        let begin = line.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rest = begin.trim_start_matches(is_part);
        let name = &begin[..begin.len() - rest.len()];
        let quoted = rest.strip_prefix('=').filter(|_| !name.is_empty());
        let quoted = quoted.ok_or((column(rest), ConfigFault::NoAssignment))?;
        let name = (column(begin), name);
        let at = column(quoted);
        let Some(quote) = quoted.chars().next().filter(|c| ['"', '\''].contains(c)) else {
            return Ok(Some(Self {
                name,
                value: None,
                at,
            }));
        };
        let (value, rest) = quoted[1..]
            .split_once(quote)
            .ok_or((at, ConfigFault::Unclosed))?;
        let after = rest.trim_start();
        if !after.is_empty() && !after.starts_with('#') {
            return Err((column(after), ConfigFault::Trailing));
        }
        let value = Some(value);
        Ok(Some(Self { name, value, at }))
    }
}
