//! Messages of dcbnl: `dcbmsg` (family, command, padding), attributes. Numbers are in the byte
//! order of the machine.

use std::io;

use super::InterfaceDcb;
use crate::ether::link::{attributes, part};
use crate::ether::netlink::{NetlinkRequest, attribute};

/// What is asked (`enum dcbnl_commands`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// DCB_CMD_IEEE_SET.
    IeeeSet = 20,
    /// DCB_CMD_IEEE_GET.
    IeeeGet = 21,
    /// DCB_CMD_GDCBX.
    DcbxGet = 22,
}

/// Traffic classes (`struct ieee_ets`, without what is recommended).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcbEts {
    /// Takes what the neighbour recommends.
    pub willing: bool,
    /// How many traffic classes there can be.
    pub classes_max: u8,
    /// Percent of the link that each class may send.
    pub bandwidth: [u8; 8],
    /// How frames of each class are selected: 0 by strict priority, 2 by bandwidth.
    pub algorithms: [u8; 8],
    /// The class of each priority.
    pub classes: [u8; 8],
}

impl DcbEts {
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let settings = |it: &Self| (it.bandwidth, it.algorithms, it.classes, it.willing);
        settings(self) == settings(other)
    }

    fn read(value: &[u8]) -> Option<Self> {
        let [willing, classes_max] = part(value, 0)?;
        Some(Self {
            willing: willing != 0,
            classes_max,
            bandwidth: part(value, 3)?,
            algorithms: part(value, 19)?,
            classes: part(value, 27)?,
        })
    }

    /// What is recommended is the same, as is what each class may receive.
    fn write(&self) -> [u8; ETS_LEN] {
        let mut value = [0; ETS_LEN];
        value[0] = u8::from(self.willing);
        value[1] = self.classes_max;
        let (bandwidth, classes) = (self.bandwidth, self.classes);
        let fields = [bandwidth, bandwidth, self.algorithms, classes];
        let recommended = [bandwidth, self.algorithms, classes];
        for (at, field) in (3..).step_by(8).zip(fields.into_iter().chain(recommended)) {
            value[at..at + 8].copy_from_slice(&field);
        }
        value
    }
}

/// Priority-based flow control (`struct ieee_pfc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcbPfc {
    /// For how many priorities at once it can be enabled.
    pub classes_max: u8,
    /// A bit a priority: 08h is priority 3.
    pub enabled: u8,
    /// Cannot be had with MACsec in use.
    pub mbc: bool,
    /// Pauses that were sent, by priority.
    pub requests: [u64; 8],
    /// Pauses that were received, by priority.
    pub indications: [u64; 8],
}

impl DcbPfc {
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        self.enabled == other.enabled
    }

    fn read(value: &[u8]) -> Option<Self> {
        let [classes_max, enabled, mbc] = part(value, 0)?;
        let mut counters = [0; 16];
        for (at, counter) in (8..).step_by(8).zip(&mut counters) {
            *counter = u64::from_ne_bytes(part(value, at)?);
        }
        let (requests, indications) = counters.split_at(8);
        Some(Self {
            classes_max,
            enabled,
            mbc: mbc != 0,
            requests: requests.try_into().ok()?,
            indications: indications.try_into().ok()?,
        })
    }

    fn write(&self) -> [u8; PFC_LEN] {
        let mut value = [0; PFC_LEN];
        value[..3].copy_from_slice(&[self.classes_max, self.enabled, u8::from(self.mbc)]);
        value
    }
}

/// The priority of a protocol (`struct dcb_app`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcbApp {
    /// What `protocol` is: 1 an EtherType, 2 a TCP port, 3 a UDP port, 4 either, 5 DSCP.
    pub selector: u8,
    /// 0 to 7.
    pub priority: u8,
    /// The protocol.
    pub protocol: u16,
}

impl DcbApp {
    fn read(value: &[u8]) -> Option<Self> {
        let [selector, priority] = part(value, 0)?;
        Some(Self {
            selector,
            priority,
            protocol: u16::from_ne_bytes(part(value, 2)?),
        })
    }

    fn write(self) -> [u8; 4] {
        let [a, b] = self.protocol.to_ne_bytes();
        [self.selector, self.priority, a, b]
    }
}

/// A request about the interface of this name.
pub(crate) fn request(command: Command, name: &str) -> io::Result<NetlinkRequest> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let kind = match command {
        Command::IeeeSet => RTM_SETDCB,
        Command::IeeeGet | Command::DcbxGet => RTM_GETDCB,
    };
    let head = [libc::AF_UNSPEC as u8, command as u8, 0, 0];
    let request = NetlinkRequest::new(kind, libc::NLM_F_ACK, &head);
    Ok(request.attribute(IFNAME, &[name.as_bytes(), &[0]].concat()))
}

/// A request to set what `change` has.
pub(crate) fn set_request(name: &str, change: &InterfaceDcb) -> io::Result<NetlinkRequest> {
    let mut nest = Vec::new();
    if let Some(ets) = &change.ets {
        nest.extend(attribute(IEEE_ETS, &ets.write()));
    }
    if let Some(pfc) = &change.pfc {
        nest.extend(attribute(IEEE_PFC, &pfc.write()));
    }
    if !change.apps.is_empty() {
        let apps = change.apps.iter();
        let table: Vec<_> = apps
            .flat_map(|app| attribute(IEEE_APP, &app.write()))
            .collect();
        nest.extend(attribute(IEEE_APP_TABLE | NESTED, &table));
    }
    Ok(request(Command::IeeeSet, name)?.attribute(IEEE | NESTED, &nest))
}

/// Takes what an answer tells, from `dcbmsg` on. Whether it tells who sets it.
pub(crate) fn read(answer: &[u8], told: &mut InterfaceDcb) -> bool {
    let mut has_dcbx = false;
    for (kind, value) in attributes(answer.get(DCBMSG..).unwrap_or_default()) {
        match (kind & KIND, value) {
            (DCBX, [dcbx, ..]) => {
                told.dcbx = *dcbx;
                has_dcbx = true;
            }
            (IEEE, nest) => read_ieee(nest, told),
            _ => {}
        }
    }
    has_dcbx
}

fn read_ieee(nest: &[u8], told: &mut InterfaceDcb) {
    for (kind, value) in attributes(nest) {
        match kind & KIND {
            IEEE_ETS => told.ets = DcbEts::read(value),
            IEEE_PFC => told.pfc = DcbPfc::read(value),
            IEEE_APP_TABLE => {
                let apps = attributes(value).filter(|(kind, _)| kind & KIND == IEEE_APP);
                told.apps = apps.filter_map(|(_, app)| DcbApp::read(app)).collect();
            }
            _ => {}
        }
    }
}

/// What became of a request to set something: the kernel tells the last byte of its error.
pub(crate) fn set_outcome(answer: &[u8]) -> io::Result<()> {
    let attributes = attributes(answer.get(DCBMSG..).unwrap_or_default());
    for (kind, value) in attributes {
        match (kind & KIND, value) {
            (IEEE, [0, ..]) => return Ok(()),
            (IEEE, [code, ..]) => {
                return Err(io::Error::from_raw_os_error(256 - i32::from(*code)));
            }
            _ => {}
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

const RTM_GETDCB: u16 = 78;
const RTM_SETDCB: u16 = 79;

/// Bytes of `dcbmsg`.
const DCBMSG: usize = 4;

/// Bytes of `ieee_ets` and `ieee_pfc`.
const ETS_LEN: usize = 59;
const PFC_LEN: usize = 136;

/// Attributes of a message (`enum dcbnl_attrs`).
const IFNAME: u16 = 1;
const IEEE: u16 = 13;
const DCBX: u16 = 14;

/// Attributes within IEEE (`enum ieee_attrs`), and within its table of protocols.
const IEEE_ETS: u16 = 1;
const IEEE_PFC: u16 = 2;
const IEEE_APP_TABLE: u16 = 3;
const IEEE_APP: u16 = 1;

/// Of the kind of an attribute: it has attributes in it; and what is the kind itself.
const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;
