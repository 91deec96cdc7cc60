//! Agents, and neighbours that say what a test has them say.

use std::fmt::Write;
use std::time::Duration;

use scsi::medium::Now;
use scsi::violation::Violation;

use crate::lldp::{DcbSettings, Dcbx, Lldp, LldpConfig, LldpEvent, LldpMode};
use crate::tests::HeapFrames;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::lldp::cee::CeeDcb;
use crate::wire::lldp::ieee::IeeeDcb;
use crate::wire::lldp::tlv::{self, TlvWriter};
use crate::wire::lldp::{self, Identifier, Lldpdu};

pub(super) const fn s(seconds: u64) -> Now {
    Duration::from_secs(seconds)
}

pub(super) const fn mac(low: u16) -> Mac {
    let [a, b] = low.to_be_bytes();
    Mac([2, 0, 0, 0, a, b])
}

/// The agent at 02:00:00:00:`low`.
pub(super) fn config(low: u16, mode: LldpMode) -> LldpConfig {
    LldpConfig {
        mode,
        mac: mac(low),
        port_id: "eth0".to_owned(),
        port_description: String::new(),
        system_name: String::new(),
        system_description: String::new(),
        dcb: None,
    }
}

/// An agent whose link is up since 0.
pub(super) fn agent(config: LldpConfig) -> Lldp {
    let mut agent = Lldp::new(config, s(0));
    agent.link(s(0), true);
    agent
}

/// An agent with FCoE at priority 3.
pub(super) fn with_dcb(low: u16, mode: LldpMode, willing: bool) -> Lldp {
    agent(LldpConfig {
        dcb: Some(DcbSettings::fcoe(3, willing)),
        ..config(low, mode)
    })
}

/// The begin of what the port `low` of `low` tells.
pub(super) fn begun(low: u16, ttl_s: u16) -> TlvWriter {
    let chassis = Identifier {
        subtype: Identifier::CHASSIS_MAC,
        id: &mac(low).0,
    };
    let port = Identifier {
        subtype: Identifier::PORT_INTERFACE,
        id: b"swp1",
    };
    lldp::begin(chassis, port, ttl_s)
}

/// An agent hears these bytes from 02:00:00:00:`low`.
pub(super) fn hear_bytes(
    agent: &mut Lldp,
    at: Now,
    low: u16,
    bytes: &[u8],
) -> Result<(), Violation> {
    let header = EthernetHeader::new(mac(low), Mac::NEAREST_BRIDGE, ethernet::LLDP);
    agent.receive(at, &header, bytes)
}

/// An agent hears a neighbour that says nothing of DCBX.
pub(super) fn hear(agent: &mut Lldp, at: Now, low: u16, ttl_s: u16) {
    hear_bytes(agent, at, low, &begun(low, ttl_s).end()).unwrap();
}

/// An agent hears a neighbour that speaks IEEE, CEE or both.
pub(super) fn hear_dcb(
    agent: &mut Lldp,
    at: Now,
    low: u16,
    (ieee, cee): (Option<&IeeeDcb>, Option<&CeeDcb>),
) {
    let mut to = begun(low, 120);
    if let Some(ieee) = ieee {
        ieee.put(&mut to);
    }
    if let Some(cee) = cee {
        cee.put(&mut to);
    }
    hear_bytes(agent, at, low, &to.end()).unwrap();
}

/// What an agent sends now, as payloads.
pub(super) fn sent(agent: &mut Lldp) -> Vec<Vec<u8>> {
    let mut frames = HeapFrames::default();
    agent.transmit(&mut frames);
    let payload = |frame: &Vec<u8>| {
        let (header, payload) = EthernetHeader::parse(frame).unwrap();
        let (to, kind) = (Mac::NEAREST_BRIDGE, ethernet::LLDP);
        assert_eq!(header, EthernetHeader::new(agent.config().mac, to, kind));
        assert!(frame.len() >= ethernet::MIN_LEN && payload.len() <= 1500);
        payload.to_vec()
    };
    frames.frames.iter().map(payload).collect()
}

/// The seconds at which an agent sends until then, and of each how long it is valid.
pub(super) fn times(agent: &mut Lldp, until: Now) -> Vec<(u64, u16)> {
    let mut times = Vec::new();
    while let Some(at) = agent.next_deadline().filter(|at| *at <= until) {
        agent.expire(at);
        for payload in sent(agent) {
            times.push((at.as_secs(), Lldpdu::parse(&payload).unwrap().ttl_s));
        }
    }
    times
}

/// What an agent would send now, whatever was sent before.
pub(super) fn last_word(agent: &mut Lldp, at: Now) -> (Option<IeeeDcb>, Option<CeeDcb>) {
    agent.transmitter.begin(at);
    agent.transmitter.credit_full_at = at;
    agent.expire(at);
    let payload = sent(agent).pop().unwrap();
    let message = Lldpdu::parse(&payload).unwrap();
    let (mut ieee, mut cee) = (IeeeDcb::default(), None);
    for tlv in message.tlvs().filter_map(|tlv| tlv.organizational()) {
        if !ieee.take(&tlv) {
            cee = CeeDcb::parse(&tlv);
        }
    }
    let is_there = ieee != IeeeDcb::default();
    (is_there.then_some(ieee), cee)
}

pub(super) fn told(agent: &mut Lldp) -> Vec<LldpEvent> {
    std::iter::from_fn(|| agent.poll()).collect()
}

/// Types of the TLVs of a payload, those of organizations with OUI and subtype.
pub(super) fn kinds(payload: &[u8]) -> String {
    let mut line = String::new();
    for tlv in Lldpdu::parse(payload).unwrap().tlvs() {
        match tlv.organizational() {
            Some(tlv) => write!(line, "{:02x?}/{} ", tlv.oui, tlv.subtype).unwrap(),
            None => write!(line, "{} ", tlv.kind).unwrap(),
        }
    }
    assert!(payload.len() > 2 && tlv::END == 0);
    line.trim_end().to_owned()
}

/// PFC here and there, and the priority of FCoE if it is lossless.
pub(super) fn outcome(agent: &Lldp) -> String {
    match agent.dcbx() {
        Dcbx::Heard(agreed) => {
            let (ours, peers) = (agreed.pfc, agreed.peer_pfc);
            let lossless = agent.dcbx().lossless();
            let lossless = lossless.map_or_else(|why| format!("{why:?}"), |at| at.to_string());
            format!("{} {ours:02x} {peers:02x} {lossless}", agreed.dialect)
        }
        other => format!("{other:?}"),
    }
}
