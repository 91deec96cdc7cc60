//! Fibre Channel ports that serve: `IFACE[,mode=vn2vn][,wwpn=WWPN][,wwnn=WWNN]
//! [,e_d_tov=TIME]`, and `IFACE,mode=fabric[,vlan=VID|auto|none][,fcf=MAC|WWN][,fabric=WWN]` with
//! the same.

use std::str::FromStr;

use ::io::ether::Place;
use address::{FabricOptions, FabricVlan, FcoeMode, NotAVlan, Time};
use fc::fip::enode::FcfPin;
use fc::fip::enode::fcf::NotAnFcf;
use fc::port::config::E_D_TOVS;
use fc::wire::names::Wwn;

/// A Fibre Channel port over Ethernet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FcoePort {
    /// The interface or cable.
    pub place: Place,
    /// How it finds initiators.
    pub mode: FcoeMode,
    /// Its port name; `None`: 20:00 and the address of the interface.
    pub wwpn: Option<Wwn>,
    /// Its node name; `None`: 10:00 and the address of the interface.
    pub wwnn: Option<Wwn>,
    /// E_D_TOV that it tells initiators; `None`: that of the standard.
    pub e_d_tov: Option<Time>,
}

/// A port that is not written as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPort {
    /// No interface.
    #[error("name an interface first, as in eth0 or cable:/run/x.sock")]
    NoInterface,
    /// What the kernel would not take for a name.
    #[error("{0:?} is not an interface name: see ip link")]
    NoName(String),
    /// Not a key, or one without a value.
    #[error(
        "unknown parameter {0:?}: mode=vn2vn, wwpn=WWPN, wwnn=WWNN and e_d_tov=TIME may follow \
         the interface, and vlan=, fcf= and fabric= with mode=fabric"
    )]
    Unknown(String),
    /// A key twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A way to find each other that there is not.
    #[error("mode={0}: vn2vn or fabric is expected here")]
    Mode(String),
    /// What only a port in a fabric has.
    #[error("{0}= needs mode=fabric")]
    OfFabric(&'static str),
    /// Not a VLAN.
    #[error("vlan={0}: {NotAVlan}, as in vlan=152")]
    Vlan(String),
    /// Not an FCF.
    #[error("fcf={0}: {NotAnFcf}")]
    Fcf(String),
    /// Not a worldwide name.
    #[error("{0}={1}: a worldwide name has 16 hexadecimal digits, as in 20:00:52:54:00:78:41:00")]
    Name(&'static str, String),
    /// A worldwide name that is not in use.
    #[error("{0}={1}: this name is reserved; omit {0}= to derive one from the Ethernet address")]
    Nobody(&'static str, Wwn),
    /// Not a time, or one by which nothing works.
    #[error("e_d_tov={0}: a time from 1ms to 10s is expected here, as in e_d_tov=100ms")]
    ErrorDetect(String),
}

impl FromStr for FcoePort {
    type Err = NotAPort;

    fn from_str(text: &str) -> Result<Self, NotAPort> {
        let mut parts = text.split(',');
        let (place, mut mode) = (place(parts.next().unwrap_or_default())?, None);
        let mut fabric = FabricParts::default();
        let (mut wwpn, mut wwnn, mut e_d_tov) = (None, None, None);
        for part in parts {
            match part.split_once('=') {
                Some(("mode", "vn2vn")) => once("mode", &mut mode, false)?,
                Some(("mode", "fabric")) => once("mode", &mut mode, true)?,
                Some(("mode", other)) => return Err(NotAPort::Mode(other.to_owned())),
                Some(("wwpn", name)) => once("wwpn", &mut wwpn, worldwide("wwpn", name)?)?,
                Some(("wwnn", name)) => once("wwnn", &mut wwnn, worldwide("wwnn", name)?)?,
                Some(("e_d_tov", time)) => once("e_d_tov", &mut e_d_tov, self::e_d_tov(time)?)?,
                Some((key, value)) if fabric.take(key, value)? => {}
                _ => return Err(NotAPort::Unknown(part.to_owned())),
            }
        }
        Ok(Self {
            mode: fabric.mode(mode == Some(true))?,
            place,
            wwpn,
            wwnn,
            e_d_tov,
        })
    }
}

/// What belongs to a fabric.
#[derive(Default)]
struct FabricParts {
    vlan: Option<FabricVlan>,
    fcf: Option<FcfPin>,
    fabric: Option<Wwn>,
}

impl FabricParts {
    /// Whether the key is one of these.
    fn take(&mut self, key: &str, value: &str) -> Result<bool, NotAPort> {
        match key {
            "vlan" => {
                let vlan = value.parse();
                let vlan = vlan.map_err(|_| NotAPort::Vlan(value.to_owned()))?;
                once("vlan", &mut self.vlan, vlan)?;
            }
            "fcf" => {
                let fcf = value.parse();
                let fcf = fcf.map_err(|_| NotAPort::Fcf(value.to_owned()))?;
                once("fcf", &mut self.fcf, fcf)?;
            }
            "fabric" => once("fabric", &mut self.fabric, worldwide("fabric", value)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// All of it, or none.
    fn mode(self, is_fabric: bool) -> Result<FcoeMode, NotAPort> {
        let Self { vlan, fcf, fabric } = self;
        if is_fabric {
            let vlan = vlan.unwrap_or_default();
            return Ok(FcoeMode::Fabric(FabricOptions { vlan, fcf, fabric }));
        }
        let given = [
            ("vlan", vlan.is_some()),
            ("fcf", fcf.is_some()),
            ("fabric", fabric.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(NotAPort::OfFabric(key)),
            None => Ok(FcoeMode::Vn2Vn),
        }
    }
}

/// The interface or cable of this name.
pub(crate) fn place(text: &str) -> Result<Place, NotAPort> {
    let Ok(place) = text.parse();
    match &place {
        Place::Cable(path) if path.as_os_str().is_empty() => Err(NotAPort::NoInterface),
        Place::Interface(name) | Place::Xdp(name) if name.is_empty() => Err(NotAPort::NoInterface),
        // IFNAMSIZ is 16, with its NUL.
        Place::Interface(name) | Place::Xdp(name)
            if name.len() > 15 || name.contains(['/', ' ']) =>
        {
            Err(NotAPort::NoName(name.clone()))
        }
        _ => Ok(place),
    }
}

fn once<T>(key: &'static str, place: &mut Option<T>, value: T) -> Result<(), NotAPort> {
    match place.replace(value) {
        Some(_) => Err(NotAPort::Twice(key)),
        None => Ok(()),
    }
}

fn worldwide(key: &'static str, name: &str) -> Result<Wwn, NotAPort> {
    let wrong = |_| NotAPort::Name(key, name.to_owned());
    match name.parse().map_err(wrong)? {
        wwn @ Wwn(0 | u64::MAX) => Err(NotAPort::Nobody(key, wwn)),
        wwn => Ok(wwn),
    }
}

fn e_d_tov(text: &str) -> Result<Time, NotAPort> {
    let time = text.parse().ok();
    let time = time.filter(|Time(time)| E_D_TOVS.contains(time));
    time.ok_or_else(|| NotAPort::ErrorDetect(text.to_owned()))
}
