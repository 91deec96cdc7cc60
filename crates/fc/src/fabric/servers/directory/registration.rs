//! What ports register of themselves.
//!
//! A port registers for itself only. Its names are those of its login to the fabric, by which zones
//! know it: others are rejected.

use scsi::medium::Now;

use crate::fabric::servers::Servers;
use crate::wire::ct::name_server::{
    Fc4Types, FeatureBits, NameServerAccept, NameServerRequest, PortType, SymbolicName,
};
use crate::wire::ct::{CtReject, explanation};
use crate::wire::names::{FcId, Wwn};

/// What is registered of a port, beside what its login to the fabric says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::fabric::servers) struct PortObjects {
    pub(in crate::fabric::servers) kind: PortType,
    pub(in crate::fabric::servers) symbolic: SymbolicName,
    /// Of its node. Other ports of the same WWNN have their own: the WWNN is what a port says.
    pub(in crate::fabric::servers) symbolic_node: SymbolicName,
    pub(in crate::fabric::servers) classes: u32,
    pub(in crate::fabric::servers) types: Fc4Types,
    pub(in crate::fabric::servers) features: Box<FeatureBits>,
}

impl Default for PortObjects {
    fn default() -> Self {
        Self {
            kind: PortType::N_PORT,
            symbolic: SymbolicName::default(),
            symbolic_node: SymbolicName::default(),
            classes: CLASS_3,
            types: Fc4Types::default(),
            features: Box::default(),
        }
    }
}

impl NameServerRequest {
    /// Whether it changes what is registered.
    pub(super) const fn registers(&self) -> bool {
        self.subject().is_some()
    }

    /// For which port or node it registers something.
    const fn subject(&self) -> Option<Subject> {
        match self {
            Self::RpnId(id, _)
            | Self::RnnId(id, _)
            | Self::RcsId(id, _)
            | Self::RftId(id, _)
            | Self::RspnId(id, _)
            | Self::RptId(id, _)
            | Self::RffId(id, ..)
            | Self::DaId(id) => Some(Subject::Port(*id)),
            Self::RsnnNn(node, _) => Some(Subject::Node(*node)),
            _ => None,
        }
    }
}

/// For what something is registered.
#[derive(Clone, Copy)]
enum Subject {
    Port(FcId),
    Node(Wwn),
}

impl Servers {
    pub(super) fn register(
        &mut self,
        now: Now,
        from: FcId,
        request: NameServerRequest,
    ) -> Result<NameServerAccept, CtReject> {
        let port = self.ports.get_mut(&from).ok_or(DENIED)?;
        let (wwpn, wwnn) = (port.login.wwpn, port.login.wwnn);
        let is_own = match request.subject() {
            Some(Subject::Port(id)) => id == from,
            Some(Subject::Node(node)) => node == wwnn,
            None => false,
        };
        if !is_own {
            return Err(DENIED);
        }
        let mut objects = port.objects.clone();
        let ends_registration = matches!(request, NameServerRequest::RffId(..));
        match request {
            NameServerRequest::RpnId(_, name) if name != wwpn => return Err(DENIED),
            NameServerRequest::RnnId(_, name) if name != wwnn => return Err(DENIED),
            NameServerRequest::RcsId(_, classes) => objects.classes = classes,
            NameServerRequest::RftId(_, types) => objects.types = types,
            NameServerRequest::RspnId(_, name) => objects.symbolic = name,
            NameServerRequest::RptId(_, kind) => objects.kind = kind,
            NameServerRequest::RffId(_, bits, kind) => objects.features.set(kind, bits),
            NameServerRequest::RsnnNn(_, name) => objects.symbolic_node = name,
            NameServerRequest::DaId(_) => objects = PortObjects::default(),
            _ => {}
        }
        let is_other = port.objects != objects;
        port.objects = objects;
        if is_other {
            self.registration_changed(now, from);
        }
        if ends_registration {
            self.announce(now, from);
        }
        Ok(NameServerAccept::Empty)
    }
}

/// The bit of class 3 among the classes of service.
const CLASS_3: u32 = 1 << 3;

/// It is another's.
const DENIED: CtReject = super::unable(explanation::ACCESS_DENIED);
