//! `fcoe://…`: units behind an Ethernet port.

use std::fmt;

use fc::port::config::E_D_TOVS;
use fc::wire::names::Wwn;

use super::error::SyntaxProblem;
use super::leaf::{self, LeafOptions, LeafRule, end_of, nothing, rule};
use super::place::{CABLE, PlaceText, place};
use super::session;
use super::text_piece::{Parsed, TextPiece};
use super::write::Separated;
use super::{Address, FcoeAddress, FcoeOptions, Time};

pub(super) const FCOE: LeafRule = rule(
    "://",
    "\"://\", an interface and a WWPN",
    "fcoe://eth0/20:00:ac:de:48:23:45:67/0",
    &["mode", "e_d_tov", "replacement", "key", "write-cache"],
    fcoe,
);

/// `IFACE/WWPN[/LUN]`
fn fcoe(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    let (way, port_name, lun) = parts(body)?;
    let mode = options.value("mode", "mode=vn2vn")?;
    if let Some(value) = mode.filter(|value| value.text != "vn2vn") {
        return Err(value.fault(SyntaxProblem::Mode));
    }
    Ok(Address::Fcoe(FcoeAddress {
        place: place(way)?,
        port_name: wwpn(port_name)?,
        lun: lun.map_or(Ok(0), leaf::lun)?,
        options: FcoeOptions {
            e_d_tov: e_d_tov(options)?,
            replacement: leaf::time(options, "replacement", "replacement=2m")?,
            key: session::key(options)?,
            write_cache: session::write_cache(options)?,
        },
    }))
}

fn e_d_tov(options: &LeafOptions<'_>) -> Parsed<Option<Time>> {
    let Some(value) = options.value("e_d_tov", "e_d_tov=100ms")? else {
        return Ok(None);
    };
    match Time::parse(value)? {
        Time(time) if E_D_TOVS.contains(&time) => Ok(Some(Time(time))),
        _ => Err(value.fault(SyntaxProblem::Number {
            expected: "a time from 1ms to 10s",
            hint: "write for example e_d_tov=100ms",
        })),
    }
}

type FcoeParts<'a> = (TextPiece<'a>, TextPiece<'a>, Option<TextPiece<'a>>);

/// A cable has slashes in its path, so there they are looked at from the end.
fn parts(body: TextPiece<'_>) -> Parsed<FcoeParts<'_>> {
    if body.strip_prefix(CABLE).is_none() {
        let mut parts = body.split('/');
        let place = parts.next().unwrap_or(body);
        let (port_name, lun) = (parts.next().unwrap_or(end_of(body)), parts.next());
        nothing(parts.next(), "fcoe://IFACE/WWPN[/LUN]")?;
        return Ok((place, port_name, lun));
    }
    let missing = || end_of(body).fault(SyntaxProblem::PortName);
    let (rest, last) = body.rsplit_once('/').ok_or_else(missing)?;
    if wwpn(last).is_ok() {
        return Ok((rest, last, None));
    }
    let (place, port_name) = rest.rsplit_once('/').ok_or_else(missing)?;
    match wwpn(port_name) {
        Ok(_) => Ok((place, port_name, Some(last))),
        Err(_) => Err(missing()),
    }
}

fn wwpn(piece: TextPiece<'_>) -> Parsed<Wwn> {
    let wwpn = piece.text.parse();
    wwpn.map_err(|_| piece.fault(SyntaxProblem::PortName))
}

impl fmt::Display for FcoeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = PlaceText(&self.place);
        write!(f, "fcoe://{place}/{}/{}", self.port_name, self.lun)?;
        let FcoeOptions {
            e_d_tov,
            replacement,
            key,
            write_cache,
        } = &self.options;
        let mut list = Separated::new('?', '&');
        for (key, time) in [("e_d_tov", e_d_tov), ("replacement", replacement)] {
            if let Some(time) = time {
                list.item(f, format_args!("{key}={time}"))?;
            }
        }
        if let Some(key) = key {
            list.item(f, format_args!("key={key:x}"))?;
        }
        match write_cache {
            Some(true) => list.item(f, format_args!("write-cache=on")),
            Some(false) => list.item(f, format_args!("write-cache=off")),
            None => Ok(()),
        }
    }
}
