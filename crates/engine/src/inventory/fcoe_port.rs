//! Fibre Channel ports that serve: `IFACE[,mode=vn2vn][,fip-resp=yes|no][,wwpn=WWPN][,wwnn=WWNN]
//! [,e_d_tov=TIME]`, and `IFACE,mode=fabric[,vlan=VID|auto|none][,fcf=MAC|WWN][,fabric=WWN]
//! [,npiv=WWPN+WWPN…][,dcb=off|required|apply]` with the same.

use std::iter;
use std::str::FromStr;

use ::io::ether::Place;
use ::io::ether::dcb::{DcbUse, NotADcbUse};
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
    /// The port names of further ports of its ENode (NPIV).
    pub npiv: Vec<Wwn>,
    /// Whether it is itself a further port of the one that has the same place.
    pub is_further: bool,
    /// What it makes of DCB.
    pub dcb: DcbUse,
    /// Whether it answers VLAN Requests of FIP, without a fabric.
    pub fip_resp: bool,
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
        "unknown parameter {0:?}: mode=vn2vn, fip-resp=, wwpn=WWPN, wwnn=WWNN and e_d_tov=TIME may \
         follow the interface, and vlan=, fcf=, fabric=, npiv= and dcb= with mode=fabric"
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
    /// In a fabric the switch answers.
    #[error("fip-resp= needs mode=vn2vn: in a fabric the switch answers VLAN requests")]
    InFabric,
    /// Neither yes nor no.
    #[error("fip-resp={0}: yes or no is expected here")]
    FipResp(String),
    /// A cable has no VLAN interfaces, and what AF_XDP takes is taken once.
    #[error("fip-resp= needs an interface, and {0} is none that can be opened twice")]
    NoVlans(Place),
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
    Reserved(&'static str, Wwn),
    /// A further port that has the name of another one.
    #[error("npiv={0}: another port has this name: give each further port its own")]
    SameName(Wwn),
    /// A place that one program alone can open, once.
    #[error(
        "npiv= needs an interface: {0} can be opened once, and each further port opens it again"
    )]
    Npiv(Place),
    /// Nothing that is made of DCB.
    #[error("dcb={0}: {NotADcbUse}")]
    Dcb(String),
    /// A cable has no network card.
    #[error("dcb= needs an interface: {0} has no DCB")]
    NoCard(Place),
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
        let (mut wwpn, mut wwnn, mut e_d_tov, mut fip_resp) = (None, None, None, None);
        for part in parts {
            match part.split_once('=') {
                Some(("mode", "vn2vn")) => once("mode", &mut mode, false)?,
                Some(("mode", "fabric")) => once("mode", &mut mode, true)?,
                Some(("mode", other)) => return Err(NotAPort::Mode(other.to_owned())),
                Some(("wwpn", name)) => once("wwpn", &mut wwpn, worldwide("wwpn", name)?)?,
                Some(("wwnn", name)) => once("wwnn", &mut wwnn, worldwide("wwnn", name)?)?,
                Some(("e_d_tov", time)) => once("e_d_tov", &mut e_d_tov, self::e_d_tov(time)?)?,
                Some(("fip-resp", word)) => once("fip-resp", &mut fip_resp, yes_or_no(word)?)?,
                Some((key, value)) if fabric.take(key, value)? => {}
                _ => return Err(NotAPort::Unknown(part.to_owned())),
            }
        }
        let npiv = fabric.npiv.take().unwrap_or_default();
        let dcb = fabric.dcb.take();
        if mode != Some(true) && !npiv.is_empty() {
            return Err(NotAPort::OfFabric("npiv"));
        }
        if mode != Some(true) && dcb.is_some() {
            return Err(NotAPort::OfFabric("dcb"));
        }
        let port = Self {
            mode: fabric.mode(mode == Some(true))?,
            place,
            wwpn,
            wwnn,
            e_d_tov,
            npiv,
            is_further: false,
            dcb: dcb.unwrap_or_default(),
            fip_resp: fip_resp.unwrap_or_default(),
        };
        port.check_npiv()?;
        port.check_fip_resp(fip_resp.is_some())?;
        if port.dcb != DcbUse::Off && port.place.interface().is_none() {
            return Err(NotAPort::NoCard(port.place));
        }
        Ok(port)
    }
}

impl FcoePort {
    fn check_npiv(&self) -> Result<(), NotAPort> {
        if !self.npiv.is_empty() && !matches!(self.place, Place::Interface(_)) {
            return Err(NotAPort::Npiv(self.place.clone()));
        }
        for (at, wwpn) in self.npiv.iter().enumerate() {
            if self.npiv[..at].contains(wwpn) || self.wwpn == Some(*wwpn) {
                return Err(NotAPort::SameName(*wwpn));
            }
        }
        Ok(())
    }

    fn check_fip_resp(&self, is_given: bool) -> Result<(), NotAPort> {
        if is_given && self.mode != FcoeMode::Vn2Vn {
            return Err(NotAPort::InFabric);
        }
        match &self.place {
            Place::Interface(_) => Ok(()),
            place if self.fip_resp => Err(NotAPort::NoVlans(place.clone())),
            _ => Ok(()),
        }
    }

    /// The port, and each further one of its ENode, as ports of their own.
    pub fn ports(&self) -> impl Iterator<Item = Self> {
        let alone = Self {
            npiv: Vec::new(),
            ..self.clone()
        };
        let further = self.npiv.iter().map(|wwpn| Self {
            wwpn: Some(*wwpn),
            is_further: true,
            npiv: Vec::new(),
            ..self.clone()
        });
        iter::once(alone).chain(further)
    }

    /// All names that it has by its options.
    pub(crate) fn names(&self) -> impl Iterator<Item = Wwn> {
        self.wwpn.into_iter().chain(self.npiv.iter().copied())
    }
}

/// What belongs to a fabric.
#[derive(Default)]
struct FabricParts {
    vlan: Option<FabricVlan>,
    fcf: Option<FcfPin>,
    fabric: Option<Wwn>,
    npiv: Option<Vec<Wwn>>,
    dcb: Option<DcbUse>,
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
            "dcb" => {
                let what = value.parse();
                let what = what.map_err(|_| NotAPort::Dcb(value.to_owned()))?;
                once("dcb", &mut self.dcb, what)?;
            }
            "npiv" => {
                let names = value.split('+').map(|name| worldwide("npiv", name));
                once("npiv", &mut self.npiv, names.collect::<Result<_, _>>()?)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// All of it, or none.
    fn mode(self, is_fabric: bool) -> Result<FcoeMode, NotAPort> {
        let Self {
            vlan, fcf, fabric, ..
        } = self;
        if is_fabric {
            let vlan = vlan.unwrap_or_default();
            return Ok(FcoeMode::Fabric(FabricOptions {
                vlan,
                fcf,
                fabric,
                ..FabricOptions::default()
            }));
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
        // IFNAMSIZ is 16, with its NUL. The kernel takes no slash, colon or blank.
        Place::Interface(name) | Place::Xdp(name)
            if name.len() > 15
                || name
                    .contains(|letter: char| "/:".contains(letter) || letter.is_whitespace()) =>
        {
            Err(NotAPort::NoName(name.clone()))
        }
        _ => Ok(place),
    }
}

fn yes_or_no(word: &str) -> Result<bool, NotAPort> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(NotAPort::FipResp(word.to_owned())),
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
        wwn @ Wwn(0 | u64::MAX) => Err(NotAPort::Reserved(key, wwn)),
        wwn => Ok(wwn),
    }
}

fn e_d_tov(text: &str) -> Result<Time, NotAPort> {
    let time = text.parse().ok();
    let time = time.filter(|Time(time)| E_D_TOVS.contains(time));
    time.ok_or_else(|| NotAPort::ErrorDetect(text.to_owned()))
}
