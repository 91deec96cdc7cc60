//! What an address says of the sessions with a unit, behind its `?`.

use iscsi::auth::Hash as ChapHash;
use iscsi::names;

use super::error::SyntaxProblem;
use super::leaf::{LeafOptions, digits, time};
use super::text_piece::{Parsed, TextPiece};
use super::{RdmaProvider, SessionOptions};
use crate::SESSIONS_MAX;

pub(super) fn session(options: &LeafOptions<'_>) -> Parsed<SessionOptions> {
    let digests = options.value("digests", "digests=crc32c")?;
    let digests = digests.map(|value| match value.text {
        "crc32c" => Ok(true),
        "none" => Ok(false),
        _ => Err(value.fault(SyntaxProblem::Digests)),
    });
    let sessions = options.value("sessions", "sessions=4")?;
    let sessions = sessions.map(|value| match value.text.parse() {
        Ok(number @ 1..=SESSIONS_MAX) if digits(value) => Ok(number),
        _ => Err(value.fault(SyntaxProblem::Sessions)),
    });
    let file = |key, example| match options.value(key, example)? {
        Some(value) if value.is_empty() => {
            Err(value.fault(SyntaxProblem::NeedsValue { key, example }))
        }
        value => value.map(TextPiece::path).transpose(),
    };
    let mutual_secret_file = file("mutual-secret-file", "mutual-secret-file=/path")?;
    let hash = options.value("chap-hash", "chap-hash=md5")?;
    let hash = hash.map(|value| {
        ChapHash::named(value.text).ok_or_else(|| value.fault(SyntaxProblem::ChapHash))
    });
    Ok(SessionOptions {
        chap_hash: hash.transpose()?,
        secret_file: file("secret-file", "secret-file=/path")?,
        mutual: options.flag("mutual")? || mutual_secret_file.is_some(),
        mutual_secret_file,
        digests: digests.transpose()?,
        via: via(options)?,
        crc: on_off(options, "crc", "crc=off")?,
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

/// `via=soft`, `via=device`, `via=mlx5_0`
fn via(options: &LeafOptions<'_>) -> Parsed<Option<RdmaProvider>> {
    let (key, example) = ("via", "via=device");
    let Some(value) = options.value(key, example)? else {
        return Ok(None);
    };
    let name = value.string()?;
    Ok(Some(match &*name {
        "" => return Err(value.fault(SyntaxProblem::NeedsValue { key, example })),
        "soft" => RdmaProvider::Software,
        "device" => RdmaProvider::Device,
        _ if !is_device_name(&name) => return Err(value.fault(SyntaxProblem::RdmaDevice)),
        _ => RdmaProvider::Named(name),
    }))
}

/// Whether a device can have this name. `Soft` and `DEVICE` are typing errors, no devices.
fn is_device_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_way = |way: &str| name.eq_ignore_ascii_case(way);
    name.len() <= DEVICE_NAME_BYTES
        && name.bytes().all(is_plain)
        && !["soft", "device"].into_iter().any(is_way)
}

/// IBV_SYSFS_NAME_MAX, without the byte that ends it.
const DEVICE_NAME_BYTES: usize = 63;

/// `key=1f00d`
pub(super) fn key(options: &LeafOptions<'_>) -> Parsed<Option<u64>> {
    let key = options.value("key", "key=1f00d")?.map(reservation_key);
    key.transpose()
}

/// `write-cache=off`
pub(super) fn write_cache(options: &LeafOptions<'_>) -> Parsed<Option<bool>> {
    on_off(options, "write-cache", "write-cache=off")
}

fn on_off(
    options: &LeafOptions<'_>,
    key: &'static str,
    example: &'static str,
) -> Parsed<Option<bool>> {
    let value = options.value(key, example)?;
    let on = value.map(|value| match value.text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(value.fault(SyntaxProblem::OnOff)),
    });
    on.transpose()
}

/// RESERVATION KEY (SPC-5 §6.17.3), of which 0 is none.
fn reservation_key(value: TextPiece<'_>) -> Parsed<u64> {
    let digits = value.strip_prefix("0x").unwrap_or(value);
    let all_digits = digits.text.bytes().all(|c| c.is_ascii_hexdigit());
    match u64::from_str_radix(digits.text, 16) {
        Ok(key) if all_digits && key > 0 => Ok(key),
        _ => Err(value.fault(SyntaxProblem::Key)),
    }
}

fn initiator_name(piece: TextPiece<'_>) -> Parsed<String> {
    let name = piece.string()?;
    match names::normalise(&name) {
        Ok(_) => Ok(name),
        Err(cause) => Err(piece.fault(SyntaxProblem::InitiatorName(cause))),
    }
}
