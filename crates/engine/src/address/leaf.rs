//! Leaves: `scheme:body[?key=value&…]`.

use std::time::Duration;

use iscsi::auth::Hash as ChapHash;
use iscsi::names;

use super::error::Problem;
use super::host::HostPort;
use super::number::{Size, Time};
use super::parse::first;
use super::piece::{Parsed, Piece};
use super::{
    Address, BlockAddress, FileAddress, LUN_MAX, RbdAddress, SessionOptions, UnitAddress, fcoe,
};
use crate::remote::SESSIONS;

/// How one scheme is read.
pub(super) struct Rule {
    /// What stands between the scheme and the body.
    opening: &'static str,
    /// What the body is, for the message when it is not there.
    body: &'static str,
    example: &'static str,
    /// The options that there are.
    options: &'static [&'static str],
    parse: fn(Piece<'_>, &Options<'_>) -> Parsed<Address>,
}

/// Reads what follows a scheme.
pub(super) fn parse(
    scheme: &'static str,
    rule: &Rule,
    name: Piece<'_>,
    rest: Piece<'_>,
) -> Parsed<Address> {
    let missing = |piece: Piece<'_>| {
        piece.fault(Problem::Body {
            scheme,
            expected: rule.body,
            example: rule.example,
        })
    };
    let Some(text) = rest.strip_prefix(rule.opening) else {
        let colon = rest.text.starts_with(':');
        return Err(missing(if colon { first(rest) } else { name }));
    };
    let (body, options) = match text.split_once('?') {
        Some((body, options)) => (body, Some(options)),
        None => (text, None),
    };
    if body.is_empty() {
        return Err(missing(body));
    }
    if let Some(at) = body.text.find(['(', '&']) {
        let wrong = first(body.split_at(at).1);
        let found = if wrong.text == "(" { '(' } else { '&' };
        return Err(wrong.fault(Problem::Reserved { found }));
    }
    let options = Options::parse(scheme, rule.options, options)?;
    (rule.parse)(body, &options)
}

/// The options that were given, each known and there once.
pub(super) struct Options<'a>(Vec<(Piece<'a>, Option<Piece<'a>>)>);

impl<'a> Options<'a> {
    fn parse(
        scheme: &'static str,
        known: &'static [&'static str],
        text: Option<Piece<'a>>,
    ) -> Parsed<Self> {
        let mut options: Vec<(Piece<'a>, Option<Piece<'a>>)> = Vec::new();
        for option in text.iter().flat_map(|text| text.split('&')) {
            if let Some(at) = option.text.find('?') {
                let wrong = first(option.split_at(at).1);
                return Err(wrong.fault(Problem::Reserved { found: '?' }));
            }
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (option, None),
            };
            if !known.contains(&key.text) {
                return Err(key.fault(Problem::UnknownOption {
                    scheme,
                    key: key.text.to_owned(),
                    known,
                }));
            }
            if options.iter().any(|(other, _)| other.text == key.text) {
                return Err(key.fault(Problem::Duplicate(key.text.to_owned())));
            }
            options.push((key, value));
        }
        Ok(Self(options))
    }

    fn find(&self, key: &str) -> Option<(Piece<'a>, Option<Piece<'a>>)> {
        self.0.iter().find(|(k, _)| k.text == key).copied()
    }

    fn flag(&self, key: &'static str) -> Parsed<bool> {
        match self.find(key) {
            None => Ok(false),
            Some((_, None)) => Ok(true),
            Some((_, Some(value))) => Err(value.fault(Problem::TakesNoValue(key))),
        }
    }

    pub(super) fn value(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Parsed<Option<Piece<'a>>> {
        match self.find(key) {
            None => Ok(None),
            Some((_, Some(value))) => Ok(Some(value)),
            Some((key_piece, None)) => Err(key_piece.fault(Problem::NeedsValue { key, example })),
        }
    }
}

fn ram(body: Piece<'_>, _: &Options<'_>) -> Parsed<Address> {
    size(body).map(Address::Ram)
}

fn null(body: Piece<'_>, _: &Options<'_>) -> Parsed<Address> {
    size(body).map(Address::Null)
}

/// The size of a volume, which has a block at least.
fn size(piece: Piece<'_>) -> Parsed<Size> {
    match Size::parse_positive(piece, "the size of a volume")? {
        Size(bytes) if bytes < LEAST_BLOCK => Err(piece.fault(Problem::NoBlock)),
        size => Ok(size),
    }
}

/// The smallest block that a volume can have.
const LEAST_BLOCK: u64 = 512;

fn file(body: Piece<'_>, options: &Options<'_>) -> Parsed<Address> {
    let size = options.value("size", "size=10G")?.map(size).transpose()?;
    let file = FileAddress {
        path: body.path()?,
        size,
        sparse: options.flag("sparse")?,
        direct: options.flag("direct")?,
        sync: options.flag("sync")?,
        read_only: options.flag("readonly")?,
    };
    match options.find("readonly") {
        Some((key, _)) if file.size.is_some() => {
            Err(key.fault(Problem::Contradiction("size", "readonly")))
        }
        _ => Ok(Address::File(file)),
    }
}

fn block(body: Piece<'_>, options: &Options<'_>) -> Parsed<Address> {
    Ok(Address::Block(BlockAddress {
        device: body.path()?,
        read_only: options.flag("readonly")?,
    }))
}

fn scsi(body: Piece<'_>, _: &Options<'_>) -> Parsed<Address> {
    body.path().map(Address::Scsi)
}

fn rbd(body: Piece<'_>, _: &Options<'_>) -> Parsed<Address> {
    let missing = || {
        body.fault(Problem::Body {
            scheme: "rbd",
            expected: RBD.body,
            example: RBD.example,
        })
    };
    let (pool, rest) = body.split_once('/').ok_or_else(missing)?;
    let (image, snapshot) = match rest.split_once('@') {
        Some((image, snapshot)) => (image, Some(snapshot)),
        None => (rest, None),
    };
    let wrong = [Some(pool), Some(image), snapshot]
        .into_iter()
        .flatten()
        .find(|part| part.is_empty() || part.text.contains(['/', '@']));
    if let Some(part) = wrong {
        return Err(part.fault(Problem::Trailing {
            shape: "rbd:POOL/IMAGE[@SNAPSHOT]",
        }));
    }
    Ok(Address::Rbd(RbdAddress {
        pool: pool.string()?,
        image: image.string()?,
        snapshot: snapshot.map(Piece::string).transpose()?,
    }))
}

fn iscsi(body: Piece<'_>, options: &Options<'_>) -> Parsed<Address> {
    unit(body, options).map(Address::Iscsi)
}

fn iser(body: Piece<'_>, options: &Options<'_>) -> Parsed<Address> {
    unit(body, options).map(Address::Iser)
}

/// `[user@]host[:port]/target[/lun]`
fn unit(body: Piece<'_>, options: &Options<'_>) -> Parsed<UnitAddress> {
    let mut parts = body.split('/');
    let place = parts.next().unwrap_or(body);
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user_name(user)?), place),
        None => (None, place),
    };
    let portal = HostPort::parse(place)?;
    if portal.port == 0 {
        return Err(place.fault(Problem::Zero("the port of a target")));
    }
    let target = target_name(parts.next().unwrap_or(end_of(body)))?;
    let lun = parts.next().map_or(Ok(0), lun)?;
    nothing(parts.next(), "HOST[:PORT]/TARGET[/LUN]")?;
    let session = session(options)?;
    let secret = SECRET
        .iter()
        .find_map(|&key| Some((key, options.find(key)?.0)));
    match secret {
        Some((key, place)) if user.is_none() => Err(place.fault(Problem::NeedsUser(key))),
        _ => Ok(UnitAddress {
            user,
            portal,
            target,
            lun,
            session,
        }),
    }
}

fn session(options: &Options<'_>) -> Parsed<SessionOptions> {
    let digests = options.value("digests", "digests=crc32c")?;
    let digests = digests.map(|value| match value.text {
        "crc32c" => Ok(true),
        "none" => Ok(false),
        _ => Err(value.fault(Problem::Digests)),
    });
    let sessions = options.value("sessions", "sessions=4")?;
    let sessions = sessions.map(|value| match value.text.parse() {
        Ok(number @ 1..=SESSIONS) if digits(value) => Ok(number),
        _ => Err(value.fault(Problem::Sessions)),
    });
    let file = |key, example| match options.value(key, example)? {
        Some(value) if value.is_empty() => Err(value.fault(Problem::NeedsValue { key, example })),
        value => value.map(Piece::path).transpose(),
    };
    let mutual_secret_file = file("mutual-secret-file", "mutual-secret-file=/path")?;
    let hash = options.value("chap-hash", "chap-hash=md5")?;
    let hash =
        hash.map(|value| ChapHash::named(value.text).ok_or_else(|| value.fault(Problem::ChapHash)));
    Ok(SessionOptions {
        chap_hash: hash.transpose()?,
        secret_file: file("secret-file", "secret-file=/path")?,
        mutual: options.flag("mutual")? || mutual_secret_file.is_some(),
        mutual_secret_file,
        digests: digests.transpose()?,
        timeout: time(options, "timeout", "timeout=30s")?,
        replacement: time(options, "replacement", "replacement=2m")?,
        key: key(options)?,
        write_cache: write_cache(options)?,
        sessions: sessions.transpose()?,
        initiator: options
            .value("initiator", "initiator=iqn.2026-11.org.example:host")?
            .map(initiator_name)
            .transpose()?,
    })
}

/// `key=1f00d`
pub(super) fn key(options: &Options<'_>) -> Parsed<Option<u64>> {
    let key = options.value("key", "key=1f00d")?.map(reservation_key);
    key.transpose()
}

/// `write-cache=off`
pub(super) fn write_cache(options: &Options<'_>) -> Parsed<Option<bool>> {
    let value = options.value("write-cache", "write-cache=off")?;
    let on = value.map(|value| match value.text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(value.fault(Problem::OnOff)),
    });
    on.transpose()
}

/// RESERVATION KEY (SPC-5 §6.17.3), of which 0 is none.
fn reservation_key(value: Piece<'_>) -> Parsed<u64> {
    let digits = value.strip_prefix("0x").unwrap_or(value);
    let all_digits = digits.text.bytes().all(|c| c.is_ascii_hexdigit());
    match u64::from_str_radix(digits.text, 16) {
        Ok(key) if all_digits && key > 0 => Ok(key),
        _ => Err(value.fault(Problem::Key)),
    }
}

pub(super) fn time(
    options: &Options<'_>,
    key: &'static str,
    example: &'static str,
) -> Parsed<Option<Time>> {
    let Some(value) = options.value(key, example)? else {
        return Ok(None);
    };
    match Time::parse(value)? {
        Time(Duration::ZERO) => Err(value.fault(Problem::Zero(key))),
        time => Ok(Some(time)),
    }
}

fn user_name(user: Piece<'_>) -> Parsed<String> {
    if let Some((_, secret)) = user.split_once(':') {
        return Err(secret.fault(Problem::Secret));
    }
    match user.string()? {
        name if name.is_empty() => Err(user.fault(Problem::Host {
            problem: "a CHAP name is expected before \"@\"",
            hint: "write for example iscsi://user@host/iqn.2026-11.org.example:disk0/0",
        })),
        name => Ok(name),
    }
}

/// An iSCSI name (RFC 7143 §4.2.7).
fn target_name(piece: Piece<'_>) -> Parsed<String> {
    let name = piece.string()?;
    if name.is_empty() {
        return Err(piece.fault(Problem::NoTarget));
    }
    match names::normalise(&name) {
        Ok(_) => Ok(name),
        Err(cause) => Err(piece.fault(Problem::TargetName(cause))),
    }
}

fn initiator_name(piece: Piece<'_>) -> Parsed<String> {
    let name = piece.string()?;
    match names::normalise(&name) {
        Ok(_) => Ok(name),
        Err(cause) => Err(piece.fault(Problem::InitiatorName(cause))),
    }
}

pub(super) fn lun(piece: Piece<'_>) -> Parsed<u16> {
    match piece.text.parse() {
        Ok(lun) if digits(piece) && lun <= LUN_MAX => Ok(lun),
        _ => Err(piece.fault(Problem::Lun)),
    }
}

fn digits(piece: Piece<'_>) -> bool {
    piece.text.bytes().all(|c| c.is_ascii_digit())
}

pub(super) fn nothing(piece: Option<Piece<'_>>, shape: &'static str) -> Parsed<()> {
    match piece {
        Some(piece) => Err(piece.fault(Problem::Trailing { shape })),
        None => Ok(()),
    }
}

pub(super) fn end_of(piece: Piece<'_>) -> Piece<'_> {
    piece.split_at(piece.text.len()).1
}

const fn rule(
    opening: &'static str,
    body: &'static str,
    example: &'static str,
    options: &'static [&'static str],
    parse: fn(Piece<'_>, &Options<'_>) -> Parsed<Address>,
) -> Rule {
    Rule {
        opening,
        body,
        example,
        options,
        parse,
    }
}

pub(super) const RAM: Rule = rule(":", "\":\" and a size", "ram:1G", &[], ram);
pub(super) const NULL: Rule = rule(":", "\":\" and a size", "null:1T", &[], null);
pub(super) const FILE: Rule = rule(
    ":",
    "\":\" and a path",
    "file:/path?size=10G",
    &["size", "sparse", "direct", "sync", "readonly"],
    file,
);
pub(super) const BLOCK: Rule = rule(
    ":",
    "\":\" and a device node",
    "block:/dev/nvme0n1",
    &["readonly"],
    block,
);
pub(super) const SCSI: Rule = rule(":", "\":\" and a device node", "scsi:/dev/sg3", &[], scsi);
pub(super) const RBD: Rule = rule(
    ":",
    "\":\", a pool, \"/\" and an image",
    "rbd:pool/image@snap",
    &[],
    rbd,
);
/// Options that say something only where there is a user.
const SECRET: [&str; 4] = ["secret-file", "mutual", "mutual-secret-file", "chap-hash"];
const SESSION: &[&str] = &[
    "secret-file",
    "mutual",
    "mutual-secret-file",
    "chap-hash",
    "digests",
    "timeout",
    "replacement",
    "sessions",
    "initiator",
    "key",
    "write-cache",
];
pub(super) const ISCSI: Rule = rule(
    "://",
    "\"://\", a host and a target",
    "iscsi://host/iqn.2026-11.org.example:disk0/0",
    SESSION,
    iscsi,
);
pub(super) const ISER: Rule = rule(
    "://",
    "\"://\", a host and a target",
    "iser://host/iqn.2026-11.org.example:disk0/0",
    SESSION,
    iser,
);
pub(super) const FCOE: Rule = rule(
    "://",
    "\"://\", an interface and a WWPN",
    "fcoe://eth0/20:00:ac:de:48:23:45:67/0",
    &["mode", "e_d_tov", "replacement", "key", "write-cache"],
    fcoe::fcoe,
);
