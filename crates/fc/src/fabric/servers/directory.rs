//! The name server (FC-GS): what ports ask about each other.
//!
//! A port is told of itself and of those that share a zone with it. A port is registered by its
//! login to the fabric, so its names and its address are there before it registers anything; FC-4
//! types it has only once it says so.

use scsi::medium::Now;

use super::common_transport::NOT_SUPPORTED;
use super::port::RegisteredPort;
use super::{Asked, Servers};
use crate::wire::ct::name_server::{
    AddressScope, NameServerAccept, NameServerRequest, PortEntry, PortType,
};
use crate::wire::ct::{CtHeader, CtReject, explanation, reason};
use crate::wire::frame::FrameType;
use crate::wire::names::{FcId, Wwn};

mod nodes;
mod registration;

pub(super) use self::nodes::Nodes;
pub(super) use self::registration::PortObjects;

/// Why there is nothing to tell.
const fn unable(explanation: u8) -> CtReject {
    CtReject::new(reason::UNABLE, explanation)
}

const NO_ID: CtReject = unable(explanation::PORT_ID_NOT_REGISTERED);
const NO_PORT_NAME: CtReject = unable(explanation::PORT_NAME_NOT_REGISTERED);
const NO_NODE_NAME: CtReject = unable(explanation::NODE_NAME_NOT_REGISTERED);
const NO_TYPES: CtReject = unable(explanation::FC4_TYPES_NOT_REGISTERED);
const NO_PORT_TYPE: CtReject = unable(explanation::PORT_TYPE_NOT_REGISTERED);
const NOTHING_IN_SCOPE: CtReject = unable(explanation::NO_OBJECT_IN_SCOPE);

impl Servers {
    /// The whole CT_IU of an accept.
    pub(super) fn name_server(
        &mut self,
        now: Now,
        asked: Asked,
        header: &CtHeader,
        payload: &[u8],
    ) -> Result<Vec<u8>, CtReject> {
        let request = NameServerRequest::parse(header.code, payload)?;
        let accept = match request {
            NameServerRequest::Other(_) => return Err(NOT_SUPPORTED),
            request if request.registers() => self.register(now, asked.from, request)?,
            request => self.query(asked.from, &request)?,
        };
        accept.encode(header).ok_or(super::common_transport::SIZE)
    }

    fn query(
        &mut self,
        from: FcId,
        request: &NameServerRequest,
    ) -> Result<NameServerAccept, CtReject> {
        type Ask = NameServerRequest;
        match *request {
            Ask::GidPn(name) => self.visible_name(from, name).map(NameServerAccept::Id),
            Ask::GsnnNn(node) => {
                self.charge(from, self.nodes.count(node));
                self.name_of_node(from, node)
            }
            Ask::GidNn(node) => {
                self.charge(from, self.nodes.count(node));
                let ports = self.ports_of_node(from, node);
                list(ports.map(RegisteredPort::fc_id).collect()).ok_or(NO_NODE_NAME)
            }
            Ask::GaNxt(id) => {
                let (entry, looked_at) = self.next_port(from, id);
                self.charge(from, looked_at);
                entry.ok_or(NO_ID)
            }
            Ask::GiA(_)
            | Ask::GidFt(..)
            | Ask::GpnFt(..)
            | Ask::GnnFt(..)
            | Ask::GidPt(..)
            | Ask::GidFf(..) => self.search(from, request),
            _ => self.about(from, request),
        }
    }

    /// Requests about the port of an N_Port_ID.
    fn about(&self, from: FcId, request: &NameServerRequest) -> Result<NameServerAccept, CtReject> {
        type Ask = NameServerRequest;
        type Accept = NameServerAccept;
        let port = |id: FcId| self.visible_id(from, id).ok_or(NO_ID);
        Ok(match *request {
            Ask::GpnId(id) => Accept::Name(port(id)?.login.wwpn),
            Ask::GnnId(id) => Accept::Name(port(id)?.login.wwnn),
            Ask::GfpnId(id) => Accept::Name(port(id)?.login.f_port_name),
            Ask::GcsId(id) => Accept::Classes(port(id)?.objects.classes),
            Ask::GptId(id) => Accept::PortType(port(id)?.objects.kind),
            Ask::GspnId(id) => Accept::SymbolicName(port(id)?.objects.symbolic.clone()),
            Ask::GffId(id) => Accept::Features(port(id)?.objects.features.clone()),
            Ask::GftId(id) => match port(id)?.objects.types {
                none if none.is_empty() => return Err(NO_TYPES),
                types => Accept::Types(types),
            },
            _ => return Err(NOT_SUPPORTED),
        })
    }

    /// Requests for which all ports are looked at.
    fn search(
        &mut self,
        from: FcId,
        request: &NameServerRequest,
    ) -> Result<NameServerAccept, CtReject> {
        self.charge(from, self.ports.len());
        type Ask = NameServerRequest;
        let of_type = |kind: FrameType| move |port: &RegisteredPort| port.objects.types.has(kind);
        match *request {
            Ask::GiA(domain) => self.areas(from, domain),
            Ask::GidFt(scope, kind) => self.ids(from, scope, of_type(kind)).ok_or(NO_TYPES),
            Ask::GpnFt(scope, kind) => {
                self.names(from, scope, of_type(kind), |port| port.login.wwpn)
            }
            Ask::GnnFt(scope, kind) => {
                self.names(from, scope, of_type(kind), |port| port.login.wwnn)
            }
            Ask::GidPt(scope, kind) => {
                let is_of = |port: &RegisteredPort| port.objects.kind.is_in(kind);
                self.ids(from, scope, is_of).ok_or(NO_PORT_TYPE)
            }
            Ask::GidFf(scope, bits, kind) => {
                let has = |port: &RegisteredPort| {
                    let objects = &port.objects;
                    objects.types.has(kind) && (bits == 0 || objects.features.of(kind) & bits != 0)
                };
                self.ids(from, scope, has).ok_or(NOTHING_IN_SCOPE)
            }
            _ => Err(NOT_SUPPORTED),
        }
    }

    fn ids(
        &self,
        from: FcId,
        scope: AddressScope,
        is_meant: impl Fn(&RegisteredPort) -> bool,
    ) -> Option<NameServerAccept> {
        let ids = self.visible(from).filter(|port| is_meant(port));
        let ids = ids.map(RegisteredPort::fc_id);
        list(ids.filter(|id| scope.has(*id)).collect())
    }

    fn names(
        &self,
        from: FcId,
        scope: AddressScope,
        is_meant: impl Fn(&RegisteredPort) -> bool,
        name: impl Fn(&RegisteredPort) -> Wwn,
    ) -> Result<NameServerAccept, CtReject> {
        let ports = self.visible(from).filter(|port| is_meant(port));
        let named = ports.map(|port| (port.fc_id(), name(port)));
        let names: Vec<_> = named.filter(|(id, _)| scope.has(*id)).collect();
        if names.is_empty() {
            return Err(NO_TYPES);
        }
        Ok(NameServerAccept::Names(names))
    }

    /// The domains of the fabric, or the areas of one, in which there are ports.
    fn areas(&self, from: FcId, domain: u8) -> Result<NameServerAccept, CtReject> {
        let mut areas = Vec::new();
        for port in self.visible(from) {
            let [its, area, _] = port.fc_id().bytes();
            let area = match domain {
                0 => FcId::from_bytes([its, 0, 0]),
                _ if its == domain => FcId::from_bytes([its, area, 0]),
                _ => continue,
            };
            // Ports come in the order of their addresses.
            if areas.last() != Some(&area) {
                areas.push(area);
            }
        }
        list(areas).ok_or(NOTHING_IN_SCOPE)
    }

    /// The port after this address, and how many were looked at; after the last comes the first.
    fn next_port(&self, from: FcId, after: FcId) -> (Option<NameServerAccept>, usize) {
        let later = self.ports.range(FcId(after.0.saturating_add(1))..);
        let earlier = self.ports.range(..=after);
        let mut ports = later.chain(earlier).map(|(_, port)| port);
        let mut looked_at = 0;
        let port = ports.find(|port| {
            looked_at += 1;
            self.sees(from, port)
        });
        (port.map(|port| self.entry(port)), looked_at)
    }

    fn entry(&self, port: &RegisteredPort) -> NameServerAccept {
        NameServerAccept::Port(Box::new(PortEntry {
            kind: port.objects.kind,
            fc_id: port.fc_id(),
            wwpn: port.login.wwpn,
            symbolic_port: port.objects.symbolic.clone(),
            wwnn: port.login.wwnn,
            symbolic_node: port.objects.symbolic_node.clone(),
            classes: port.objects.classes,
            types: port.objects.types,
            f_port_name: port.login.f_port_name,
            hard_address: FcId::UNIDENTIFIED,
        }))
    }

    /// The ports of a node that a port is told of, by address.
    fn ports_of_node(&self, from: FcId, node: Wwn) -> impl Iterator<Item = &RegisteredPort> {
        let ports = self.nodes.ports(node);
        ports.filter_map(move |id| self.visible_id(from, id))
    }

    /// The symbolic name of a node: that of its first port which has registered one; an empty one
    /// if none has.
    fn name_of_node(&self, from: FcId, node: Wwn) -> Result<NameServerAccept, CtReject> {
        let names = self.ports_of_node(from, node);
        let mut names = names.map(|port| &port.objects.symbolic_node).peekable();
        let first = names.peek().copied().ok_or(NO_NODE_NAME)?;
        let name = names.find(|name| !name.bytes().is_empty());
        Ok(NameServerAccept::SymbolicName(
            name.unwrap_or(first).clone(),
        ))
    }

    pub(super) fn visible_name(&self, from: FcId, wwpn: Wwn) -> Result<FcId, CtReject> {
        let id = self.nodes.port(wwpn).ok_or(NO_PORT_NAME)?;
        let port = self.visible_id(from, id);
        port.map(RegisteredPort::fc_id).ok_or(NO_PORT_NAME)
    }

    /// All ports that a port is told of, by address.
    pub(super) fn visible(&self, from: FcId) -> impl Iterator<Item = &RegisteredPort> {
        self.ports
            .values()
            .filter(move |port| self.sees(from, port))
    }

    /// The port at an address, if a port is told of it.
    pub(super) fn visible_id(&self, from: FcId, id: FcId) -> Option<&RegisteredPort> {
        self.ports.get(&id).filter(|port| self.sees(from, port))
    }

    /// Whether a port is told of another, or of itself.
    pub(super) fn sees(&self, from: FcId, port: &RegisteredPort) -> bool {
        let asking = self.ports.get(&from);
        let share = |asking: &RegisteredPort| self.zones.join(&asking.membership, &port.membership);
        port.fc_id() == from || asking.is_some_and(share)
    }
}

/// A list has at least one entry.
fn list(ids: Vec<FcId>) -> Option<NameServerAccept> {
    (!ids.is_empty()).then_some(NameServerAccept::Ids(ids))
}

impl PortType {
    /// Whether it is of a type that was asked for.
    fn is_in(self, asked: Self) -> bool {
        self == asked || asked == Self::NX_PORT && self == Self::N_PORT
    }
}
