//! What is wrong with an address, where, and what was expected.

use std::fmt;
use std::ops::Range;

use ::io::ether::dcb::NotADcbUse;
use iscsi::names::NameError;

use super::FaultError;
use crate::SESSIONS_MAX;

/// An address, portal or argument of one that does not follow the grammar.
///
/// Its text is several lines: what is wrong, the address, a caret line under the guilty
/// characters, and what to write instead where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    span: Range<usize>,
    problem: SyntaxProblem,
}

impl ParseError {
    pub(super) fn new(text: &str, fault: SyntaxFault) -> Self {
        let secret = matches!(fault.problem, SyntaxProblem::Secret);
        Self {
            text: if secret {
                mask(text, &fault.span)
            } else {
                text.to_owned()
            },
            span: fault.span,
            problem: fault.problem,
        }
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &SyntaxProblem {
        &self.problem
    }

    /// What is wrong and what to write instead, for where there is no room for the caret.
    #[must_use]
    pub fn one_line(&self) -> String {
        match self.problem.way_out() {
            Some(way_out) => format!("{}: {way_out}", self.problem),
            None => self.problem.to_string(),
        }
    }

    /// Where, in bytes of the text that was parsed.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = |range: Range<usize>| self.text.get(range).map_or(0, |t| t.chars().count());
        let indent = columns(0..self.span.start);
        let carets = columns(self.span.clone()).max(1);
        writeln!(f, "{}", self.problem)?;
        writeln!(f, "  {}", printable(&self.text))?;
        write!(f, "  {:indent$}{:^<carets$}", "", "")?;
        match self.problem.way_out() {
            Some(way_out) => write!(f, "\n{way_out}"),
            None => Ok(()),
        }
    }
}

/// A problem and the bytes that it is about.
#[derive(Debug)]
pub(super) struct SyntaxFault {
    pub(super) span: Range<usize>,
    pub(super) problem: SyntaxProblem,
}

/// What can be wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxProblem {
    /// Nothing where an address should be.
    #[error("an address is expected here")]
    Empty,
    /// Blanks around an address.
    #[error("no blanks are allowed around an address")]
    Blank,
    /// A path without a scheme.
    #[error("a path alone is not an address")]
    BarePath {
        /// The scheme that would fit.
        scheme: &'static str,
        /// The path.
        path: String,
    },
    /// No such scheme or name.
    #[error("unknown kind of volume \"{name}\"")]
    UnknownScheme {
        /// What was written.
        name: String,
        /// The nearest that there is.
        near: Option<&'static str>,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A scheme without its body.
    #[error("\"{scheme}\" must be followed by {expected}")]
    Body {
        /// The scheme that was written.
        scheme: &'static str,
        /// By what.
        expected: &'static str,
        /// An address that is right.
        example: &'static str,
    },
    /// A wrapper without its parentheses.
    #[error("\"{name}\" stands around other volumes, and \"(\" is expected here")]
    Parenthesis {
        /// The name of the wrapper.
        name: &'static str,
        /// An address that is right.
        example: &'static str,
    },
    /// A character that the grammar keeps for itself.
    #[error("\"{found}\" is not allowed here unescaped")]
    Reserved {
        /// The character found.
        found: char,
    },
    /// A `%` without two hexadecimal digits.
    #[error("\"%\" must be followed by two hexadecimal digits")]
    Escape,
    /// `%00`, or text that is not UTF-8 where text is needed.
    #[error("{0}")]
    Bytes(&'static str),
    /// No such option.
    #[error("\"{scheme}\" has no option \"{key}\"")]
    UnknownOption {
        /// Of which scheme or wrapper.
        scheme: &'static str,
        /// What was written.
        key: String,
        /// Those that there are.
        known: &'static [&'static str],
    },
    /// An option twice.
    #[error("\"{0}\" is given twice")]
    Duplicate(String),
    /// An option without its value.
    #[error("\"{key}\" needs a value")]
    NeedsValue {
        /// The key of the option.
        key: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// A value for an option that has none.
    #[error("\"{0}\" takes no value")]
    TakesNoValue(&'static str),
    /// An option that means something only with a CHAP name.
    #[error("\"{0}\" needs a user, which must be known to the target")]
    NeedsUser(&'static str),
    /// Neither digests nor none.
    #[error("crc32c or none is expected here")]
    Digests,
    /// No hash of CHAP.
    #[error("md5, sha1, sha256 or sha3-256 is expected here")]
    ChapHash,
    /// Not a number of sessions.
    #[error("a number of sessions from 1 to {SESSIONS_MAX} is expected here")]
    Sessions,
    /// No reservation key.
    #[error("a reservation key is expected here")]
    Key,
    /// Neither on nor off.
    #[error("on or off is expected here")]
    OnOff,
    /// Not a name that a device of RDMA can have.
    #[error("soft, device, or the name of an RDMA device is expected here")]
    RdmaDevice,
    /// Two options that exclude each other.
    #[error("\"{0}\" and \"{1}\" exclude each other")]
    Contradiction(&'static str, &'static str),
    /// CRCs of an RDMA device, which is called so here.
    #[error("\"via={0}\" and \"crc\" exclude each other")]
    DeviceCrc(String),
    /// Not the number that it should be.
    #[error("{expected} is expected here")]
    Number {
        /// What kind.
        expected: &'static str,
        /// How it is written.
        hint: &'static str,
    },
    /// More than 64 bits.
    #[error("this number is too large")]
    TooLarge,
    /// Nothing of something.
    #[error("{0} cannot be 0")]
    Zero(&'static str),
    /// Less than a block.
    #[error("a volume must have at least one block of 512 bytes")]
    NoBlock,
    /// Not a host.
    #[error("{problem}")]
    Host {
        /// What is wrong.
        problem: &'static str,
        /// How it is written.
        hint: &'static str,
    },
    /// A password in an address.
    #[error("a secret is not allowed in an address")]
    Secret,
    /// No target.
    #[error("the name of a target is expected here")]
    NoTarget,
    /// Not an iSCSI name.
    #[error("{0}")]
    TargetName(NameError),
    /// Not an iSCSI name, of an initiator.
    #[error("{0}")]
    InitiatorName(NameError),
    /// No way for ports to find each other.
    #[error("vn2vn or fabric is expected here")]
    Mode,
    /// An option of a fabric where there is none.
    #[error("{0} needs mode=fabric")]
    OfFabric(&'static str),
    /// Not a VLAN.
    #[error("{}", super::NotAVlan)]
    Vlan,
    /// Not an FCF.
    #[error("the MAC address or Switch_Name of an FCF is expected here")]
    Fcf,
    /// Not the names of further N_Ports.
    #[error("{}", super::NotFurtherNames)]
    FurtherNames,
    /// Nothing that is made of DCB.
    #[error("{}", NotADcbUse)]
    Dcb,
    /// A cable has no network card.
    #[error("dcb needs an interface: a cable has no DCB")]
    NoCard,
    /// What a place that can be opened once cannot have.
    #[error("{0} needs an interface, which can be opened more than once")]
    OfInterface(&'static str),
    /// Not the name of a fabric.
    #[error("a Fabric_Name is expected here")]
    FabricName,
    /// Not a LUN.
    #[error("a LUN is expected here, a number from 0 to {}", super::LUN_MAX)]
    Lun,
    /// Not a WWPN.
    #[error("a WWPN is expected here")]
    PortName,
    /// More parts between slashes than there is a meaning for.
    #[error("nothing may follow here")]
    Trailing {
        /// The shape of the whole.
        shape: &'static str,
    },
    /// Too few or too many volumes inside a wrapper.
    #[error("\"{name}\" takes {takes}, not {found}")]
    Volumes {
        /// Which wrapper.
        name: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What it got.
        found: usize,
    },
    /// A wrapper without the argument that it needs.
    #[error("\"{name}\" needs {needs}")]
    MissingArgument {
        /// The name of the wrapper.
        name: &'static str,
        /// What it needs.
        needs: &'static str,
        /// An address that is right.
        example: &'static str,
    },
    /// Arguments for a wrapper that has none.
    #[error("\"{0}\" takes no arguments")]
    NoArguments(&'static str),
    /// Faults that there are not.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// A `(` without its `)`.
    #[error("this \"(\" is never closed")]
    Unclosed,
    /// Something behind the end.
    #[error("the address ends here, but \"{0}\" follows")]
    Behind(char),
    /// Wrappers within wrappers without end.
    #[error("wrappers are nested more than {} deep", super::DEPTH_MAX)]
    TooDeep,
}

impl SyntaxProblem {
    /// What to write instead.
    fn way_out(&self) -> Option<String> {
        Some(match self {
            Self::Empty => "write for example ram:1G, file:/path or block:/dev/sdb".into(),
            Self::BarePath { scheme, path } => format!("write {scheme}:{path}"),
            Self::UnknownScheme { near, known, .. } => unknown_scheme(*near, known),
            Self::UnknownOption { key, known, .. } => unknown_option(key, known),
            Self::Body { example, .. }
            | Self::Parenthesis { example, .. }
            | Self::NeedsValue { example, .. }
            | Self::MissingArgument { example, .. } => format!("write for example {example}"),
            Self::Reserved { found } => reserved(*found),
            Self::Escape => "write a percent sign itself as %25".into(),
            Self::Number { hint, .. } | Self::Host { hint, .. } => (*hint).into(),
            Self::NeedsUser(_) => "write the user before the host, as in iscsi://user@host".into(),
            Self::Secret => {
                "name a file that holds it, as in ?secret-file=FILE, or set the environment \
                 variable LUNAR_SECRET"
                    .into()
            }
            Self::NoTarget => {
                "lunar ls HOST lists the targets of a host, with their addresses".into()
            }
            Self::TargetName(_) => {
                "write a name such as iqn.2026-11.org.example:disk0, or an eui. or naa. name".into()
            }
            Self::InitiatorName(_) => {
                "write a name such as iqn.2026-11.org.example:host, or an eui. or naa. name".into()
            }
            Self::RdmaDevice => {
                "write a name as rdma link or ibv_devices have it, such as mlx5_0 or rxe0".into()
            }
            Self::DeviceCrc(_) => {
                "leave crc out, as a device makes the CRCs of its wire itself; via=soft takes it"
                    .into()
            }
            Self::Key => "write 1 to 16 hexadecimal digits, not all of them 0, as in 1f00d".into(),
            Self::OfFabric(_) => "write mode=fabric too, or leave it out".into(),
            Self::Vlan => "write for example vlan=152".into(),
            Self::Fcf => "write for example fcf=00:0d:ec:6d:8f:00".into(),
            Self::FurtherNames => "write for example npiv=20:00:ac:de:48:23:45:68".into(),
            Self::Dcb => "write for example dcb=required".into(),
            Self::OfInterface(_) | Self::NoCard => {
                "leave it out, or name an interface such as eth0".into()
            }
            Self::FabricName => "write eight bytes, as in fabric=20:98:00:0d:ec:6d:8f:01".into(),
            Self::PortName => "write eight bytes, as in 20:00:ac:de:48:23:45:67".into(),
            Self::Trailing { shape } => format!("the shape is {shape}"),
            Self::Unclosed => "write \")\" after its last volume".into(),
            Self::Behind(',') => "several volumes may be listed only inside parentheses".into(),
            _ => return None,
        })
    }
}

fn unknown_scheme(near: Option<&str>, known: &[&str]) -> String {
    match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}", known.join(", ")),
    }
}

fn unknown_option(key: &str, known: &[&'static str]) -> String {
    match (nearest(key, known.iter().copied()), known) {
        (Some(near), _) => format!("did you mean \"{near}\"?"),
        (None, []) => "it has no options".into(),
        (None, [only]) => format!("there is {only}"),
        (None, known) => format!("there are {}", known.join(", ")),
    }
}

fn reserved(found: char) -> String {
    let mut bytes = [0; 4];
    let escaped: String = found
        .encode_utf8(&mut bytes)
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    match found {
        '&' => format!("write {escaped}, or \"?\" if the first option begins here"),
        '?' => "write \"&\" if another option begins here".into(),
        _ => format!("write {escaped}"),
    }
}

/// The one of `known` that `word` was probably meant to be: one that begins with it, or one that is
/// at most two typing errors away.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let tolerance = (word.chars().count() / 3).clamp(1, 2);
    known
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= tolerance && *distance < candidate.len()
                || word.len() >= 3 && candidate.starts_with(&word)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, changes and swaps of neighbours between two words (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The text with as many asterisks as the span has characters.
fn mask(text: &str, span: &Range<usize>) -> String {
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    let stars = text.get(span.clone()).map_or(0, |s| s.chars().count());
    format!(
        "{}{}{}",
        before.unwrap_or_default(),
        "*".repeat(stars),
        after.unwrap_or_default()
    )
}

/// The text with each control character replaced, so that the caret line stays under it.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
