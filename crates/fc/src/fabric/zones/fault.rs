//! What is wrong with a zone file, and what would be right.

/// Where a zone file is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ZoneError {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: ZoneFault,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneFault {
    /// It is longer than [`super::TEXT_MAX`].
    #[error("a zone file has at most 1 MiB")]
    TooLong,
    /// A line begins with another word.
    #[error("`{0}` is none of `alias`, `zone`, `zoneset`, `active`, `default`")]
    Statement(String),
    /// A statement without what it has to say.
    #[error("it ends too early: `{0}` is meant")]
    Incomplete(&'static str),
    /// Something else stands in place of `=`.
    #[error("`=` is missing before `{0}`")]
    NoEquals(String),
    /// A word too many.
    #[error("`{0}` is too much: there is one name here")]
    TooMuch(String),
    /// It cannot be a name.
    #[error(
        "`{0}` is no name: a letter, then up to 63 letters, digits, `-`, `_`, `$` or `^`; and not \
         a WWPN"
    )]
    Name(String),
    /// It is defined already.
    #[error("`{name}` is defined in line {line} already")]
    Again {
        /// The name, or the word that may stand only once.
        name: String,
        /// Where it is.
        line: usize,
    },
    /// It stands in the same list twice.
    #[error("`{0}` is listed twice")]
    Twice(String),
    /// It identifies nothing.
    #[error("`{0}` is neither a WWPN, `node:WWNN`, `id:DDAAPP` nor `port:PLACE`")]
    Member(String),
    /// There is no such alias.
    #[error("`{0}` is neither an alias nor a WWPN, `node:WWNN`, `id:DDAAPP` or `port:PLACE`")]
    NoAlias(String),
    /// An alias among the members of an alias.
    #[error("`{0}` is an alias itself: list its members here, or both aliases in the zone")]
    AliasOfAlias(String),
    /// There is no such zone.
    #[error("there is no zone `{0}`")]
    NoZone(String),
    /// There is no such zone set.
    #[error("there is no zone set `{0}`")]
    NoSet(String),
    /// Neither of the two words for the default zone.
    #[error("`{0}` is neither `deny` nor `permit`")]
    Default(String),
    /// The active zones have more members than can be kept.
    #[error(
        "the active zones have more than 262,144 members: identify nodes or ports of the switch"
    )]
    TooMany,
}
