//! How addresses are written, so that they read back the same.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use block::fault::{FailureRule, Faults};
use scsi::medium::MediumError;

use super::{
    Address, BlockAddress, FileAddress, RamAddress, RbdAddress, RdmaProvider, SessionOptions, Size,
    Time, UnitAddress,
};

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ram(ram) => ram.fmt(f),
            Self::Null(size) => write!(f, "null:{size}"),
            Self::File(file) => file.fmt(f),
            Self::Block(block) => block.fmt(f),
            Self::Scsi(device) => write!(f, "scsi:{}", path(device)),
            Self::Rbd(rbd) => rbd.fmt(f),
            Self::Iscsi(unit) => write!(f, "iscsi://{unit}"),
            Self::Iser(unit) => write!(f, "iser://{unit}"),
            Self::Fcoe(fcoe) => fcoe.fmt(f),
            Self::Row(name) => write!(f, "vol:{}", Escaped(name.as_bytes(), b"")),
            _ => self.write_wrapper(f),
        }
    }
}

impl Address {
    fn write_wrapper(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Stripe { chunk, .. } => write!(f, ":{chunk}")?,
            Self::Limit {
                iops, rate, burst, ..
            } => {
                let mut list = Separated::new(':', ',');
                if let Some(iops) = iops {
                    list.item(f, format_args!("iops={iops}"))?;
                }
                if let Some(rate) = rate {
                    list.item(f, format_args!("rate={rate}"))?;
                }
                if let Some(burst) = burst {
                    list.item(f, format_args!("burst={burst}"))?;
                }
            }
            Self::Delay { time, .. } => {
                write!(f, ":{}", Time(*time))?;
            }
            Self::Fault { faults, .. } => write_faults(f, faults)?,
            _ => {}
        }
        let mut list = Separated::new('(', ',');
        for volume in self.inner() {
            list.item(f, format_args!("{volume}"))?;
        }
        f.write_str(")")
    }

    /// The scheme or the name of the wrapper.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ram(_) => "ram",
            Self::Null(_) => "null",
            Self::File(_) => "file",
            Self::Block(_) => "block",
            Self::Scsi(_) => "scsi",
            Self::Rbd(_) => "rbd",
            Self::Iscsi(_) => "iscsi",
            Self::Iser(_) => "iser",
            Self::Fcoe(_) => "fcoe",
            Self::Row(_) => "vol",
            Self::Stripe { .. } => "stripe",
            Self::Concat(_) => "concat",
            Self::Mirror(_) => "mirror",
            Self::Limit { .. } => "limit",
            Self::Delay { .. } => "delay",
            Self::Fault { .. } => "fault",
            Self::Verify(_) => "verify",
            Self::Stats(_) => "stats",
            Self::Readonly(_) => "readonly",
        }
    }
}

impl fmt::Display for RamAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = if self.locked { "?locked" } else { "" };
        write!(f, "ram:{}{locked}", self.size)
    }
}

impl fmt::Display for FileAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file:{}", path(&self.path))?;
        let mut list = Separated::new('?', '&');
        if let Some(size) = self.size {
            list.item(f, format_args!("size={size}"))?;
        }
        let flags = [
            (self.sparse, "sparse"),
            (self.direct, "direct"),
            (self.sync, "sync"),
            (self.read_only, "readonly"),
        ];
        for (_, name) in flags.iter().filter(|(set, _)| *set) {
            list.item(f, format_args!("{name}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read_only = if self.read_only { "?readonly" } else { "" };
        write!(f, "block:{}{read_only}", path(&self.device))
    }
}

impl fmt::Display for RbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |text| Escaped(str::as_bytes(text), b"/@");
        write!(f, "rbd:{}/{}", part(&self.pool), part(&self.image))?;
        match &self.snapshot {
            Some(snapshot) => write!(f, "@{}", part(snapshot)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for UnitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{}@", Escaped(user.as_bytes(), b"/@:"))?;
        }
        let target = Escaped(self.target.as_bytes(), b"/");
        write!(f, "{}/{target}/{}{}", self.portal, self.lun, self.session)
    }
}

impl fmt::Display for RdmaProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Software => f.write_str("soft"),
            Self::Device => f.write_str("device"),
            Self::Named(name) => write!(f, "{}", Escaped(name.as_bytes(), b"")),
        }
    }
}

impl fmt::Display for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = Separated::new('?', '&');
        if let Some(file) = &self.secret_file {
            list.item(f, format_args!("secret-file={}", path(file)))?;
        }
        match &self.mutual_secret_file {
            Some(file) => list.item(f, format_args!("mutual-secret-file={}", path(file)))?,
            None if self.mutual => list.item(f, format_args!("mutual"))?,
            None => {}
        }
        if let Some(hash) = self.chap_hash {
            list.item(f, format_args!("chap-hash={}", hash.name()))?;
        }
        if let Some(digests) = self.digests {
            let digests = if digests { "crc32c" } else { "none" };
            list.item(f, format_args!("digests={digests}"))?;
        }
        if let Some(via) = &self.via {
            list.item(f, format_args!("via={via}"))?;
        }
        if let Some(on) = self.crc {
            list.item(f, format_args!("crc={}", if on { "on" } else { "off" }))?;
        }
        if let Some(key) = self.key {
            list.item(f, format_args!("key={key:x}"))?;
        }
        if let Some(on) = self.write_cache {
            list.item(
                f,
                format_args!("write-cache={}", if on { "on" } else { "off" }),
            )?;
        }
        for (key, time) in [("timeout", self.timeout), ("replacement", self.replacement)] {
            if let Some(time) = time {
                list.item(f, format_args!("{key}={time}"))?;
            }
        }
        if let Some(sessions) = self.sessions {
            list.item(f, format_args!("sessions={sessions}"))?;
        }
        if let Some(name) = &self.initiator {
            list.item(
                f,
                format_args!("initiator={}", Escaped(name.as_bytes(), b"")),
            )?;
        }
        Ok(())
    }
}

fn write_faults(f: &mut fmt::Formatter<'_>, faults: &Faults) -> fmt::Result {
    let mut list = Separated::new(':', ',');
    let kinds = [
        ("read", faults.read),
        ("write", faults.write),
        ("flush", faults.flush),
    ];
    for (key, failing) in kinds {
        match failing {
            None => {}
            Some(FailureRule::Seldom(probability)) => {
                list.item(f, format_args!("{key}={probability}"))?;
            }
            Some(FailureRule::After(bytes, error)) => {
                let error = match error {
                    MediumError::NoSpace => "enospc",
                    MediumError::Gone => "gone",
                    _ => "eio",
                };
                list.item(f, format_args!("{key}={error}"))?;
                if bytes > 0 {
                    write!(f, "@{}", Size(bytes))?;
                }
            }
        }
    }
    if faults.torn {
        list.item(f, format_args!("torn"))?;
    }
    match faults.seed {
        0 => Ok(()),
        seed => list.item(f, format_args!("seed={seed}")),
    }
}

/// A list with one character before its first item and another between items.
pub(super) struct Separated {
    before: char,
    between: char,
}

impl Separated {
    pub(super) fn new(before: char, between: char) -> Self {
        Self { before, between }
    }

    pub(super) fn item(
        &mut self,
        f: &mut fmt::Formatter<'_>,
        item: fmt::Arguments<'_>,
    ) -> fmt::Result {
        write!(f, "{}{item}", self.before)?;
        self.before = self.between;
        Ok(())
    }
}

fn path(path: &Path) -> Escaped<'_> {
    Escaped(path.as_os_str().as_bytes(), b"")
}

/// Bytes as a body has them: what the grammar keeps for itself, the further characters given,
/// control characters and what is not UTF-8 as `%XX`.
pub(super) struct Escaped<'a>(pub(super) &'a [u8], pub(super) &'static [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                let ascii = u8::try_from(c).ok();
                let reserved = ascii.is_some_and(|c| RESERVED.contains(&c) || self.1.contains(&c));
                if reserved || c.is_control() || c.is_whitespace() {
                    write_bytes(f, c.encode_utf8(&mut [0; 4]).as_bytes())?;
                } else {
                    write!(f, "{c}")?;
                }
            }
            write_bytes(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "%{byte:02X}"))
}

const RESERVED: &[u8] = b"(),?&%";
