//! What an initiator is told before it connects, and what of it cannot work.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::auth::Hash;
use crate::keys::{self, LoginKey};
use crate::names::{self, NameError};
use crate::parameters::{Operational, TaskReporting};
use crate::target::PROTOCOL_LEVEL;
use crate::text::MAX_VALUE;

/// The most commands that one session has at once, sent or waiting. Tags have room for more; the
/// state of so many takes about 8 MiB.
pub const MAX_TASKS: usize = 32_768;

/// Everything that a session needs to know; the same for each attempt to connect, so that a new one
/// reinstates the old (RFC 7143 §6.3.5).
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// InitiatorName.
    pub initiator: String,
    /// InitiatorAlias, for display at the target.
    pub alias: Option<String>,
    /// The initiator's part of the session identifier (RFC 7143 §11.12.5).
    pub isid: [u8; 6],
    /// Connection id.
    pub cid: u16,
    /// What for.
    pub purpose: InitiatorPurpose,
    /// How each side proves its identity.
    pub auth: Auth,
    /// What is offered of the operational keys.
    pub offer: OperationalOffer,
    /// What the target may cost.
    pub limits: InitiatorLimits,
    /// How long is waited, for what.
    pub times: InitiatorTimeouts,
}

/// SessionType (RFC 7143 §13.21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitiatorPurpose {
    /// A normal session with the target of this name.
    Normal(String),
    /// SendTargets only.
    Discovery,
}

/// AuthMethod (RFC 7143 §12.1). What is configured is all that is offered: a target, or an attacker
/// in between, cannot talk an initiator out of it.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// Neither side authenticates.
    #[default]
    None,
    /// CHAP.
    Chap(InitiatorChap),
}

/// CHAP credentials (RFC 7143 §12.1.3). The secrets are never shown.
#[derive(Clone)]
pub struct InitiatorChap {
    /// CHAP_N.
    pub user: String,
    /// What proves it.
    pub secret: Zeroizing<Vec<u8>>,
    /// What the target has to prove; `None`: nothing.
    pub mutual: Option<Mutual>,
    /// The hashes that are offered, in this order; [`HASHES`] where nothing speaks against it.
    /// tgtd takes the number of SHA-256 for SHA1, and can do only MD5.
    pub hashes: Vec<Hash>,
}

/// Every hash, the strongest first.
pub const HASHES: [Hash; 4] = [Hash::Sha3, Hash::Sha256, Hash::Sha1, Hash::Md5];

/// What a target has to prove.
#[derive(Clone)]
pub struct Mutual {
    /// The CHAP_N that it has to give; `None`: any.
    pub name: Option<String>,
    /// What proves it.
    pub secret: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for InitiatorChap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chap")
            .field("user", &self.user)
            .field("mutual", &self.mutual)
            .field("hashes", &self.hashes)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Mutual {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mutual")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Whether PDUs are to have a CRC32C digest (RFC 7143 §13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Digest {
    /// No.
    Never,
    /// If the target wants it.
    #[default]
    Accept,
    /// Unless the target does not.
    Prefer,
    /// Yes, or there is no session.
    Require,
}

impl Digest {
    /// The value that is offered.
    pub(super) const fn offer(self) -> &'static str {
        match self {
            Self::Never => "None",
            Self::Accept => "None,CRC32C",
            Self::Prefer => "CRC32C,None",
            Self::Require => "CRC32C",
        }
    }
}

/// What is offered of the operational keys (RFC 7143 §13, RFC 7144 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationalOffer {
    /// HeaderDigest.
    pub header_digest: Digest,
    /// DataDigest.
    pub data_digest: Digest,
    /// All others; `own_data_segment` is declared, and `first_burst` not above `max_burst`. What is
    /// always the same stays at its default: MaxConnections is 1, ErrorRecoveryLevel 0.
    pub keys: Operational,
}

impl Default for OperationalOffer {
    /// Long segments and bursts, and writes that need no R2T as far as the target lets them. Data
    /// is wanted in order: what it costs a target is little, and the place of each byte is then
    /// known from a count.
    fn default() -> Self {
        Self {
            header_digest: Digest::default(),
            data_digest: Digest::default(),
            keys: Operational {
                initial_r2t: false,
                immediate_data: true,
                own_data_segment: 256 << 10,
                max_burst: 1 << 20,
                first_burst: 256 << 10,
                outstanding_r2t: 8,
                time2wait: 2,
                time2retain: 0,
                pdu_in_order: true,
                sequence_in_order: true,
                task_reporting: TaskReporting::Rfc3720,
                protocol_level: PROTOCOL_LEVEL,
                ..Operational::default()
            },
        }
    }
}

/// Bounds on what a target, or the user of the session, can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorLimits {
    /// Commands at once, sent or waiting for their place in the target's window; 1 to
    /// [`MAX_TASKS`].
    pub tasks: usize,
    /// Bytes of the answer to SendTargets.
    pub targets: usize,
}

impl Default for InitiatorLimits {
    /// As many commands as the widest window that targets are known to open, and text for about
    /// 10,000 targets.
    fn default() -> Self {
        Self {
            tasks: 1024,
            targets: 1 << 20,
        }
    }
}

/// How long is waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorTimeouts {
    /// From connect to the full-feature phase.
    pub login: Duration,
    /// For a command that has no deadline of its own, and for the answer to a text.
    pub command: Duration,
    /// For the answer to the ABORT TASK of a command that is late.
    pub abort: Duration,
    /// For the answer to the LOGICAL UNIT RESET that follows.
    pub reset: Duration,
    /// Silence after which a NOP-Out is sent.
    pub ping: Duration,
    /// Silence after that NOP-Out after which the connection is given up.
    pub patience: Duration,
    /// For the Logout Response.
    pub logout: Duration,
}

impl Default for InitiatorTimeouts {
    /// A command is given as long as hosts commonly give a disk; the others are what a person
    /// would wait.
    fn default() -> Self {
        Self {
            login: Duration::from_secs(15),
            command: Duration::from_secs(30),
            abort: Duration::from_secs(10),
            reset: Duration::from_secs(15),
            ping: Duration::from_secs(5),
            patience: Duration::from_secs(5),
            logout: Duration::from_secs(5),
        }
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misconfigured {
    /// InitiatorName or TargetName.
    #[error("\"{name}\" is not an iSCSI name: {cause}")]
    Name {
        /// As given.
        name: String,
        /// What is wrong.
        cause: NameError,
    },
    /// A value that its key cannot have.
    #[error("{key} cannot be {value} ({clause})")]
    Key {
        /// Key.
        key: &'static str,
        /// Value.
        value: String,
        /// Where its bounds are.
        clause: &'static str,
    },
    /// RFC 7143 §13.14.
    #[error("FirstBurstLength exceeds MaxBurstLength: set it to at most {0}")]
    FirstBurst(u32),
    /// RFC 7143 §9.2.1.
    #[error("the same CHAP secret is used in both directions: give the target a secret of its own")]
    SharedSecret,
    /// CHAP without a user or a secret.
    #[error("CHAP needs a user name of 1 to 255 bytes, and secrets that are not empty")]
    Credentials,
    /// CHAP without a hash.
    #[error("CHAP needs a hash to offer")]
    Hashes,
    /// An alias that does not fit a value.
    #[error("an alias must have at most 255 bytes and no null byte")]
    Alias,
    /// [`InitiatorLimits::tasks`].
    #[error("a session must allow 1 to {MAX_TASKS} commands at once")]
    Tasks,
}

impl InitiatorConfig {
    /// A normal session with `target`, without authentication; the rest is the default.
    #[must_use]
    pub fn normal(initiator: &str, isid: [u8; 6], target: &str) -> Self {
        Self::new(initiator, isid, InitiatorPurpose::Normal(target.to_owned()))
    }

    /// A discovery session, without authentication; the rest is the default.
    #[must_use]
    pub fn discovery(initiator: &str, isid: [u8; 6]) -> Self {
        Self::new(initiator, isid, InitiatorPurpose::Discovery)
    }

    fn new(initiator: &str, isid: [u8; 6], purpose: InitiatorPurpose) -> Self {
        Self {
            initiator: initiator.to_owned(),
            alias: None,
            isid,
            cid: 0,
            purpose,
            auth: Auth::None,
            offer: OperationalOffer::default(),
            limits: InitiatorLimits::default(),
            times: InitiatorTimeouts::default(),
        }
    }

    /// Whether it is for a discovery session.
    #[must_use]
    pub const fn is_discovery(&self) -> bool {
        matches!(self.purpose, InitiatorPurpose::Discovery)
    }

    /// Checks what can be known to fail before anything is sent.
    ///
    /// # Errors
    /// The first thing that cannot work.
    pub fn check(&self) -> Result<(), Misconfigured> {
        check_name(&self.initiator)?;
        if let InitiatorPurpose::Normal(target) = &self.purpose {
            check_name(target)?;
        }
        if let Some(alias) = &self.alias
            && !is_value(alias)
        {
            return Err(Misconfigured::Alias);
        }
        if let Auth::Chap(chap) = &self.auth {
            chap.check()?;
        }
        if !(1..=MAX_TASKS).contains(&self.limits.tasks) {
            return Err(Misconfigured::Tasks);
        }
        self.offer.check()
    }
}

impl InitiatorChap {
    fn check(&self) -> Result<(), Misconfigured> {
        let mutual = self.mutual.as_ref();
        let empty = self.secret.is_empty() || mutual.is_some_and(|other| other.secret.is_empty());
        if self.hashes.is_empty() {
            return Err(Misconfigured::Hashes);
        }
        if empty || self.user.is_empty() || !is_value(&self.user) {
            return Err(Misconfigured::Credentials);
        }
        if mutual.is_some_and(|other| other.secret == self.secret) {
            return Err(Misconfigured::SharedSecret);
        }
        Ok(())
    }
}

impl OperationalOffer {
    fn check(&self) -> Result<(), Misconfigured> {
        for row in &keys::TABLE {
            let value = match row.key {
                LoginKey::MaxRecvDataSegmentLength => self.keys.own_data_segment.to_string(),
                LoginKey::MaxBurstLength
                | LoginKey::FirstBurstLength
                | LoginKey::DefaultTime2Wait
                | LoginKey::DefaultTime2Retain
                | LoginKey::MaxOutstandingR2T
                | LoginKey::ProtocolLevel => match self.keys.value(row.key) {
                    Some(value) => value.to_string(),
                    None => continue,
                },
                _ => continue,
            };
            if row.number(&value).is_none() {
                return Err(Misconfigured::Key {
                    key: row.name,
                    value,
                    clause: row.clause,
                });
            }
        }
        if self.keys.first_burst > self.keys.max_burst {
            return Err(Misconfigured::FirstBurst(self.keys.max_burst));
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), Misconfigured> {
    match names::normalise(name) {
        Ok(_) => Ok(()),
        Err(cause) => Err(Misconfigured::Name {
            name: name.to_owned(),
            cause,
        }),
    }
}

fn is_value(text: &str) -> bool {
    text.len() <= MAX_VALUE && !text.contains('\0')
}
