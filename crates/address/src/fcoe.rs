//! `fcoe://…`: units behind an Ethernet port.

use std::fmt;

use ::io::ether::Place;
use ::io::ether::dcb::DcbUse;
use fc::port::config::E_D_TOVS;
use fc::wire::names::Wwn;

use super::error::{ParseError, SyntaxProblem};
use super::leaf::{self, LeafOptions, LeafRule, end_of, nothing, rule};
use super::place::{CABLE, PlaceText, place};
use super::session;
use super::text_piece::{Parsed, TextPiece};
use super::write::Separated;
use super::{Address, FabricOptions, FcoeAddress, FcoeMode, FcoeOptions, FurtherNames, Time};

pub(super) const FCOE: LeafRule = rule(
    "://",
    "\"://\", an interface and a WWPN",
    "fcoe://eth0/20:00:ac:de:48:23:45:67/0",
    &[
        "mode",
        "vlan",
        "fcf",
        "fabric",
        "npiv",
        "dcb",
        "e_d_tov",
        "replacement",
        "key",
        "write-cache",
    ],
    fcoe,
);

/// What is behind an Ethernet port of ours, and how it is found: `fcoe://IFACE`, with
/// `?mode=fabric` and what goes with that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FcoePortal {
    /// The Ethernet port.
    pub place: Place,
    /// How ports find each other there.
    pub mode: FcoeMode,
}

impl FcoePortal {
    /// Reads one; `None` where the text has another scheme.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Option<Result<Self, ParseError>> {
        let rest = TextPiece::new(text).strip_prefix("fcoe://")?;
        let read = || {
            let (way, options) = match rest.split_once('?') {
                Some((way, options)) => (way, Some(options)),
                None => (rest, None),
            };
            if let Some((_, behind)) = way.split_once('/')
                && way.strip_prefix(CABLE).is_none()
            {
                let shape = "fcoe://IFACE, without a port name";
                return Err(behind.fault(SyntaxProblem::Trailing { shape }));
            }
            let options = LeafOptions::parse("fcoe", PORTAL_KEYS, options)?;
            let place = place(way)?;
            Ok(Self {
                mode: mode(&options, &place)?,
                place,
            })
        };
        Some(read().map_err(|fault| ParseError::new(text, fault)))
    }
}

/// How ports find each other.
const PORTAL_KEYS: &[&str] = &["mode", "vlan", "fcf", "fabric", "npiv", "dcb"];

impl fmt::Display for FcoePortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fcoe://{}", PlaceText(&self.place))?;
        let mut list = Separated::new('?', '&');
        for (key, value) in self.mode.items() {
            list.item(f, format_args!("{key}={value}"))?;
        }
        Ok(())
    }
}

/// `IFACE/WWPN[/LUN]`
fn fcoe(body: TextPiece<'_>, options: &LeafOptions<'_>) -> Parsed<Address> {
    let (way, port_name, lun) = parts(body)?;
    let place = place(way)?;
    Ok(Address::Fcoe(FcoeAddress {
        port_name: wwpn(port_name)?,
        lun: lun.map_or(Ok(0), leaf::lun)?,
        options: FcoeOptions {
            mode: mode(options, &place)?,
            e_d_tov: e_d_tov(options)?,
            replacement: leaf::time(options, "replacement", "replacement=2m")?,
            key: session::key(options)?,
            write_cache: session::write_cache(options)?,
        },
        place,
    }))
}

fn mode(options: &LeafOptions<'_>, place: &Place) -> Parsed<FcoeMode> {
    match options.value("mode", "mode=fabric")? {
        Some(value) if value.text == "fabric" => {
            return fabric(options, place).map(FcoeMode::Fabric);
        }
        Some(value) if value.text != "vn2vn" => return Err(value.fault(SyntaxProblem::Mode)),
        _ => {}
    }
    for (key, example) in FABRIC_KEYS {
        if let Some(value) = options.value(key, example)? {
            return Err(value.fault(SyntaxProblem::OfFabric(key)));
        }
    }
    Ok(FcoeMode::Vn2Vn)
}

fn fabric(options: &LeafOptions<'_>, place: &Place) -> Parsed<FabricOptions> {
    let [vlan, fcf, fabric, npiv, dcb] =
        FABRIC_KEYS.map(|(key, example)| options.value(key, example));
    let vlan = vlan?.map(|value| {
        let vlan = value.text.parse();
        vlan.map_err(|_| value.fault(SyntaxProblem::Vlan))
    });
    let fcf = fcf?.map(|value| {
        let fcf = value.text.parse();
        fcf.map_err(|_| value.fault(SyntaxProblem::Fcf))
    });
    let fabric = fabric?.map(|value| {
        let name = value.text.parse();
        name.map_err(|_| value.fault(SyntaxProblem::FabricName))
    });
    Ok(FabricOptions {
        npiv: npiv?.map_or_else(
            || Ok(FurtherNames::default()),
            |value| npiv_of(value, place),
        )?,
        dcb: dcb?.map_or(Ok(DcbUse::Off), |value| dcb_of(value, place))?,
        vlan: vlan.transpose()?.unwrap_or_default(),
        fcf: fcf.transpose()?,
        fabric: fabric.transpose()?,
    })
}

fn npiv_of(value: TextPiece<'_>, place: &Place) -> Parsed<FurtherNames> {
    match (place, value.text.parse()) {
        (Place::Interface(_), Ok(names)) => Ok(names),
        (Place::Interface(_), Err(_)) => Err(value.fault(SyntaxProblem::FurtherNames)),
        _ => Err(value.fault(SyntaxProblem::OfInterface("npiv"))),
    }
}

/// A cable has no network card, and so nothing but `off`.
fn dcb_of(value: TextPiece<'_>, place: &Place) -> Parsed<DcbUse> {
    match (place.interface(), value.text.parse()) {
        (_, Err(_)) => Err(value.fault(SyntaxProblem::Dcb)),
        (None, Ok(DcbUse::Required | DcbUse::Apply)) => Err(value.fault(SyntaxProblem::NoCard)),
        (_, Ok(what)) => Ok(what),
    }
}

/// What goes with `mode=fabric` alone, each with an example.
const FABRIC_KEYS: [(&str, &str); 5] = [
    ("vlan", "vlan=152"),
    ("fcf", "fcf=00:0d:ec:6d:8f:00"),
    ("fabric", "fabric=20:98:00:0d:ec:6d:8f:01"),
    ("npiv", "npiv=20:00:ac:de:48:23:45:68"),
    ("dcb", "dcb=required"),
];

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
            mode,
            e_d_tov,
            replacement,
            key,
            write_cache,
        } = &self.options;
        let mut list = Separated::new('?', '&');
        for (key, value) in mode.items() {
            list.item(f, format_args!("{key}={value}"))?;
        }
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
