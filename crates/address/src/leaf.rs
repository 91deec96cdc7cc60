//! Leaves: `scheme:body[?key=value&…]`.

use std::time::Duration;

use iscsi::names;

use super::error::SyntaxProblem;
use super::host::HostPort;
use super::number::{Size, Time};
use super::session::session;
use super::text_piece::{Parsed, TextPiece};
use super::{
    Address, BlockAddress, FileAddress, LUN_MAX, RamAddress, RbdAddress, RdmaProvider, UnitAddress,
};

/// How one scheme is read.
pub(super) struct LeafRule {
    /// What stands between the scheme and the body.
    opening: &'static str,
    /// What the body is, for the message when it is not there.
    body: &'static str,
    example: &'static str,
    /// The options that there are.
    options: &'static [&'static str],
    parse: fn(TextPiece<'_>, &LeafOptions<'_>) -> Parsed<Address>,
}

/// Reads what follows a scheme.
pub(super) fn parse(
    scheme: &'static str,
    rule: &LeafRule,
    name: TextPiece<'_>,
    rest: TextPiece<'_>,
) -> Parsed<Address> {
    let missing = |piece: TextPiece<'_>| {
        piece.fault(SyntaxProblem::Body {
            scheme,
            expected: rule.body,
            example: rule.example,
        })
    };
    let Some(text) = rest.strip_prefix(rule.opening) else {
        let colon = rest.text.starts_with(':');
        return Err(missing(if colon { rest.first() } else { name }));
    };
    let (body, options) = match text.split_once('?') {
        Some((body, options)) => (body, Some(options)),
        None => (text, None),
    };
    if body.is_empty() {
        return Err(missing(body));
    }
    if let Some(at) = body.text.find(['(', '&']) {
        let wrong = body.split_at(at).1.first();
        let found = if wrong.text == "(" { '(' } else { '&' };
        return Err(wrong.fault(SyntaxProblem::Reserved { found }));
    }
    let options = LeafOptions::parse(scheme, rule.options, options)?;
    (rule.parse)(body, &options)
}

/// The options that were given, each known and there once.
pub(super) struct LeafOptions<'a>(Vec<(TextPiece<'a>, Option<TextPiece<'a>>)>);

impl<'a> LeafOptions<'a> {
    pub(super) fn parse(
        scheme: &'static str,
        known: &'static [&'static str],
        text: Option<TextPiece<'a>>,
    ) -> Parsed<Self> {
        let mut options: Vec<(TextPiece<'a>, Option<TextPiece<'a>>)> = Vec::new();
        for option in text.iter().flat_map(|text| text.split('&')) {
            if let Some(at) = option.text.find('?') {
                let wrong = option.split_at(at).1.first();
                return Err(wrong.fault(SyntaxProblem::Reserved { found: '?' }));
            }
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (option, None),
            };
            if !known.contains(&key.text) {
                return Err(key.fault(SyntaxProblem::UnknownOption {
                    scheme,
                    key: key.text.to_owned(),
                    known,
                }));
            }
            if options.iter().any(|(other, _)| other.text == key.text) {
                return Err(key.fault(SyntaxProblem::Duplicate(key.text.to_owned())));
            }
            options.push((key, value));
        }
        Ok(Self(options))
    }

    fn find(&self, key: &str) -> Option<(TextPiece<'a>, Option<TextPiece<'a>>)> {
        self.0.iter().find(|(k, _)| k.text == key).copied()
    }

    pub(super) fn flag(&self, key: &'static str) -> Parsed<bool> {
        match self.find(key) {
            None => Ok(false),
            Some((_, None)) => Ok(true),
            Some((_, Some(value))) => Err(value.fault(SyntaxProblem::TakesNoValue(key))),
        }
    }

    pub(super) fn value(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Parsed<Option<TextPiece<'a>>> {
        match self.find(key) {
            None => Ok(None),
            Some((_, Some(value))) => Ok(Some(value)),
            Some((key_piece, None)) => {
                Err(key_piece.fault(SyntaxProblem::NeedsValue { key, example }))
            }
        }
    }
}

fn ram(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    Ok(Address::Ram(RamAddress {
        size: size(body)?,
        locked: options.flag("locked")?,
    }))
}

fn null(body: TextPiece<'_>, _: &LeafOptions<'_>) -> Parsed<Address> {
    size(body).map(Address::Null)
}

/// The size of a volume, which has a block at least.
fn size(piece: TextPiece<'_>) -> Parsed<Size> {
    match Size::parse_positive(piece, "the size of a volume")? {
        Size(bytes) if bytes < LEAST_BLOCK => Err(piece.fault(SyntaxProblem::NoBlock)),
        size => Ok(size),
    }
}

/// The smallest block that a volume can have.
const LEAST_BLOCK: u64 = 512;

fn file(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
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
            Err(key.fault(SyntaxProblem::Contradiction("size", "readonly")))
        }
        _ => Ok(Address::File(file)),
    }
}

fn block(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    Ok(Address::Block(BlockAddress {
        device: body.path()?,
        read_only: options.flag("readonly")?,
    }))
}

fn scsi(body: TextPiece<'_>, _: &LeafOptions<'_>) -> Parsed<Address> {
    body.path().map(Address::Scsi)
}

fn rbd(body: TextPiece<'_>, _: &LeafOptions<'_>) -> Parsed<Address> {
    let missing = || {
        body.fault(SyntaxProblem::Body {
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
        return Err(part.fault(SyntaxProblem::Trailing {
            shape: "rbd:POOL/IMAGE[@SNAPSHOT]",
        }));
    }
    Ok(Address::Rbd(RbdAddress {
        pool: pool.string()?,
        image: image.string()?,
        snapshot: snapshot.map(TextPiece::string).transpose()?,
    }))
}

fn row(body: TextPiece<'_>, _: &LeafOptions<'_>) -> Parsed<Address> {
    body.string().map(Address::Row)
}

fn iscsi(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    unit(body, options).map(Address::Iscsi)
}

fn iser(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    let unit = unit(body, options)?;
    match (&unit.session.via, options.find("crc")) {
        // A device makes the CRCs of its wire itself.
        (Some(via @ (RdmaProvider::Device | RdmaProvider::Named(_))), Some((key, _))) => {
            Err(key.fault(SyntaxProblem::DeviceCrc(via.to_string())))
        }
        _ => Ok(Address::Iser(unit)),
    }
}

/// `[user@]host[:port]/target[/lun]`
fn unit(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<UnitAddress> {
    let mut parts = body.split('/');
    let place = parts.next().unwrap_or(body);
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user_name(user)?), place),
        None => (None, place),
    };
    let portal = HostPort::parse(place)?;
    if portal.port == 0 {
        return Err(place.fault(SyntaxProblem::Zero("the port of a target")));
    }
    let target = target_name(parts.next().unwrap_or(end_of(body)))?;
    let lun = parts.next().map_or(Ok(0), lun)?;
    nothing(parts.next(), "HOST[:PORT]/TARGET[/LUN]")?;
    let session = session(options)?;
    let secret = SECRET
        .iter()
        .find_map(|&key| Some((key, options.find(key)?.0)));
    match secret {
        Some((key, place)) if user.is_none() => Err(place.fault(SyntaxProblem::NeedsUser(key))),
        _ => Ok(UnitAddress {
            user,
            portal,
            target,
            lun,
            session,
        }),
    }
}

pub(super) fn time(
    options: &LeafOptions<'_>,
    key: &'static str,
    example: &'static str,
) -> Parsed<Option<Time>> {
    let Some(value) = options.value(key, example)? else {
        return Ok(None);
    };
    match Time::parse(value)? {
        Time(Duration::ZERO) => Err(value.fault(SyntaxProblem::Zero(key))),
        time => Ok(Some(time)),
    }
}

fn user_name(user: TextPiece<'_>) -> Parsed<String> {
    if let Some((_, secret)) = user.split_once(':') {
        return Err(secret.fault(SyntaxProblem::Secret));
    }
    match user.string()? {
        name if name.is_empty() => Err(user.fault(SyntaxProblem::Host {
            problem: "a CHAP name is expected before \"@\"",
            hint: "write for example iscsi://user@host/iqn.2026-11.org.example:disk0/0",
        })),
        name => Ok(name),
    }
}

/// An iSCSI name (RFC 7143 §4.2.7).
fn target_name(piece: TextPiece<'_>) -> Parsed<String> {
    let name = piece.string()?;
    if name.is_empty() {
        return Err(piece.fault(SyntaxProblem::NoTarget));
    }
    match names::normalise(&name) {
        Ok(_) => Ok(name),
        Err(cause) => Err(piece.fault(SyntaxProblem::TargetName(cause))),
    }
}

pub(super) fn lun(piece: TextPiece<'_>) -> Parsed<u16> {
    match piece.text.parse() {
        Ok(lun) if digits(piece) && lun <= LUN_MAX => Ok(lun),
        _ => Err(piece.fault(SyntaxProblem::Lun)),
    }
}

pub(super) fn digits(piece: TextPiece<'_>) -> bool {
    piece.text.bytes().all(|c| c.is_ascii_digit())
}

pub(super) fn nothing(piece: Option<TextPiece<'_>>, shape: &'static str) -> Parsed<()> {
    match piece {
        Some(piece) => Err(piece.fault(SyntaxProblem::Trailing { shape })),
        None => Ok(()),
    }
}

pub(super) fn end_of(piece: TextPiece<'_>) -> TextPiece<'_> {
    piece.split_at(piece.text.len()).1
}

pub(super) const fn rule(
    opening: &'static str,
    body: &'static str,
    example: &'static str,
    options: &'static [&'static str],
    parse: fn(TextPiece<'_>, &LeafOptions<'_>) -> Parsed<Address>,
) -> LeafRule {
    LeafRule {
        opening,
        body,
        example,
        options,
        parse,
    }
}

pub(super) const RAM: LeafRule = rule(":", "\":\" and a size", "ram:1G", &["locked"], ram);
pub(super) const ROW: LeafRule = rule(":", "\":\" and a name", "vol:db", &[], row);
pub(super) const NULL: LeafRule = rule(":", "\":\" and a size", "null:1T", &[], null);
pub(super) const FILE: LeafRule = rule(
    ":",
    "\":\" and a path",
    "file:/path?size=10G",
    &["size", "sparse", "direct", "sync", "readonly"],
    file,
);
pub(super) const BLOCK: LeafRule = rule(
    ":",
    "\":\" and a device node",
    "block:/dev/nvme0n1",
    &["readonly"],
    block,
);
pub(super) const SCSI: LeafRule = rule(":", "\":\" and a device node", "scsi:/dev/sg3", &[], scsi);
pub(super) const RBD: LeafRule = rule(
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
/// Over RDMA there are no digests: the queue pair has its own CRC.
const ISER_SESSION: &[&str] = &[
    "secret-file",
    "mutual",
    "mutual-secret-file",
    "chap-hash",
    "via",
    "crc",
    "timeout",
    "replacement",
    "sessions",
    "initiator",
    "key",
    "write-cache",
];
pub(super) const ISCSI: LeafRule = rule(
    "://",
    "\"://\", a host and a target",
    "iscsi://host/iqn.2026-11.org.example:disk0/0",
    SESSION,
    iscsi,
);
pub(super) const ISER: LeafRule = rule(
    "://",
    "\"://\", a host and a target",
    "iser://host/iqn.2026-11.org.example:disk0/0",
    ISER_SESSION,
    iser,
);
