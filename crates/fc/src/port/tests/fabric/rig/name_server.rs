//! What the name server of the small fabric answers.

use super::Rig;
use crate::wire::ct::name_server::{
    Fc4Types, FeatureBits, NameServerAccept, NameServerRequest, PortEntry, PortType, SymbolicName,
};
use crate::wire::ct::{CtHeader, CtReject};
use crate::wire::frame::FrameType;
use crate::wire::names::{FcId, Wwn};

impl Rig {
    pub(super) fn is_unanswered(&self, bytes: &[u8]) -> bool {
        let (ct, payload) = CtHeader::parse(bytes).unwrap();
        match NameServerRequest::parse(ct.code, payload).unwrap() {
            NameServerRequest::GpnId(fc_id)
            | NameServerRequest::GffId(fc_id)
            | NameServerRequest::GaNxt(fc_id) => self.unanswered.contains(&(ct.code, fc_id)),
            _ => false,
        }
    }

    pub(super) fn name_server(&mut self, from: FcId, bytes: &[u8]) -> Vec<u8> {
        let (ct, payload) = CtHeader::parse(bytes).unwrap();
        let rejected = self.rejects.iter().find(|row| row.0 == ct.code);
        if let Some((_, why)) = rejected {
            return ct.reject(*why).encode().to_vec();
        }
        let none = ct.reject(CtReject::new(9, 1)).encode().to_vec();
        let accept = match NameServerRequest::parse(ct.code, payload).unwrap() {
            NameServerRequest::RffId(_, features, _) => {
                self.entries.entry(from).or_default().features = Some(features);
                NameServerAccept::Empty
            }
            NameServerRequest::GpnFt(..) => {
                let of_fcp = self
                    .entries
                    .iter()
                    .filter(|(_, one)| one.features.is_some());
                let list: Vec<_> = of_fcp.map(|(fc_id, one)| (*fc_id, one.wwpn)).collect();
                NameServerAccept::Names(list)
            }
            NameServerRequest::GpnId(fc_id) => match self.entries.get(&fc_id) {
                Some(entry) => NameServerAccept::Name(entry.wwpn),
                None => return none,
            },
            NameServerRequest::GaNxt(after) => {
                let mut next = self.entries.range(FcId(after.0 + 1)..);
                let next = next.next().or_else(|| self.entries.iter().next());
                let Some((fc_id, entry)) = next else {
                    return none;
                };
                NameServerAccept::Port(Box::new(PortEntry {
                    fc_id: *fc_id,
                    wwpn: entry.wwpn,
                    kind: PortType::N_PORT,
                    symbolic_port: SymbolicName::new(b""),
                    wwnn: Wwn(0),
                    symbolic_node: SymbolicName::new(b""),
                    classes: 8,
                    types: Fc4Types::of(&[FrameType::FCP]),
                    f_port_name: Wwn(0),
                    hard_address: FcId(0),
                }))
            }
            NameServerRequest::GffId(fc_id) => {
                let features = self.entries.get(&fc_id).and_then(|one| one.features);
                let mut bits = FeatureBits::default();
                bits.set(FrameType::FCP, features.unwrap_or_default());
                NameServerAccept::Features(Box::new(bits))
            }
            _ => NameServerAccept::Empty,
        };
        accept.encode(&ct).unwrap()
    }
}
