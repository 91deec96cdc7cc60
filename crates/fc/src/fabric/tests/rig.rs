//! A switch with hosts at its ports, and what it sends and tells, a line each.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::fabric::zones::Zones;
use crate::fabric::{PortNumber, Switch, SwitchConfig, SwitchEvent, SwitchPortConfig, Verdict};
use crate::fip::max_fcoe;
pub(super) use crate::tests::FipParts as Parts;
use crate::tests::{EnodeFrames, HeapFrames, login, switch_port};
use crate::wire::els::{Els, LsRejectReason, Reply, ServiceParameters};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::fip::{Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use crate::wire::names::{FcId, Wwn};

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) const fn tag(vid: u16) -> VlanTag {
    VlanTag {
        priority: 3,
        dei: false,
        vid,
    }
}

/// The FCF-MAC of a port of the switch of this number.
pub(super) const fn fcf(switch: u8, port: u8) -> Mac {
    Mac([2, 0, 0, 0xfc, switch, port])
}

pub(super) fn port_config(switch: u8, port: u8) -> SwitchPortConfig {
    SwitchPortConfig {
        mac: fcf(switch, port),
        ..switch_port(port)
    }
}

/// A switch with so many ports, whose links are up since 0.
pub(super) fn switch_of(number: u8, config: &SwitchConfig, ports: u8) -> Switch {
    let mut switch = Switch::new(config, ms(0), [number; 8]);
    for port in 0..ports {
        let port = switch.add_port(port_config(number, port));
        switch.link(ms(0), port, true);
    }
    switch
}

pub(super) fn open() -> SwitchConfig {
    SwitchConfig {
        zones: Arc::new(Zones::open()),
        ..SwitchConfig::default()
    }
}

/// An open switch of two ports that has said all that it says at first.
pub(super) fn switch() -> Switch {
    quiet(switch_of(1, &open(), 2))
}

/// What it has said and told is not looked at.
pub(super) fn quiet(mut switch: Switch) -> Switch {
    switch.expire(ms(0));
    for port in 0..2 {
        sent(&mut switch, port);
    }
    told(&mut switch);
    switch
}

/// An ENode with a VN_Port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) port: u8,
    pub(super) mac: Mac,
    pub(super) wwpn: Wwn,
}

/// The host of this number, at a port of switch 1.
pub(super) const fn host(port: u8, number: u8) -> Host {
    Host {
        port,
        mac: Mac([2, 0, 0, 0, 0, number]),
        wwpn: Wwn(0x2000_0200_0000_0000 | number as u64),
    }
}

impl Host {
    pub(super) fn named(self, wwpn: u64) -> Self {
        let wwpn = Wwn(0x2000_0200_0000_0000 | wwpn);
        Self { wwpn, ..self }
    }

    pub(super) fn wwnn(self) -> Wwn {
        let [.., low] = self.mac.0;
        Wwn(0x1000_0200_0000_0000 | u64::from(low))
    }

    /// What it sends.
    pub(super) fn enode(self) -> EnodeFrames {
        EnodeFrames {
            mac: self.mac,
            wwpn: self.wwpn,
            wwnn: self.wwnn(),
            fcf: fcf(1, self.port),
            vlan: None,
        }
    }

    pub(super) fn frame(self, dst: Mac, parts: Parts<'_>) -> Vec<u8> {
        self.enode().fip(dst, parts)
    }

    pub(super) fn vlan_request(self) -> Vec<u8> {
        self.enode().vlan_request()
    }

    pub(super) fn solicitation(self, mtu: usize) -> Vec<u8> {
        self.enode().solicitation(max_fcoe(mtu))
    }

    pub(super) fn parameters(self) -> ServiceParameters {
        login(self.wwpn, self.wwnn())
    }

    pub(super) fn els(self, kind: DescriptorType, from: FcId, ox_id: u16, els: &Els) -> Vec<u8> {
        self.els_with(Flags::FPMA, (kind, from, OxId(ox_id)), els)
    }

    pub(super) fn els_with(
        self,
        flags: Flags,
        request: (DescriptorType, FcId, OxId),
        els: &Els,
    ) -> Vec<u8> {
        self.enode().els(flags, request, els)
    }

    pub(super) fn flogi(self, ox_id: u16) -> Vec<u8> {
        self.enode().flogi(ox_id)
    }

    pub(super) fn fdisc(self, ox_id: u16) -> Vec<u8> {
        self.enode().fdisc(self.wwpn, ox_id)
    }

    pub(super) fn logo(self, fc_id: FcId, ox_id: u16) -> Vec<u8> {
        self.enode().logo(fc_id, ox_id)
    }

    pub(super) fn keep_alive(self) -> Vec<u8> {
        self.enode().keep_alive()
    }

    pub(super) fn port_keep_alive(self, fc_id: FcId) -> Vec<u8> {
        self.enode().port_keep_alive(fc_id)
    }

    /// Logs in at `at`, by an exchange of that number, and returns the N_Port_ID.
    pub(super) fn log_in(self, switch: &mut Switch, at: u64) -> FcId {
        receive(switch, at, self.port, &mut self.flogi(at as u16));
        let login = switch.logins().find(|login| login.wwpn == self.wwpn);
        let fc_id = login.unwrap().fc_id;
        sent(switch, self.port);
        told(switch);
        fc_id
    }
}

/// The address that the fabric provides for an N_Port_ID.
pub(super) const fn vn(fc_id: FcId) -> Mac {
    Mac::of_port(Mac::FC_MAP, fc_id)
}

pub(super) fn fip_frame(src: Mac, dst: Mac, parts: Parts<'_>) -> Vec<u8> {
    crate::tests::fip_frame(&EthernetHeader::new(src, dst, ethernet::FIP), parts)
}

/// An FCoE frame from a VN_Port, with a payload of so many bytes.
pub(super) fn fcoe_frame(port: u8, from: FcId, to: FcId, len: usize) -> Vec<u8> {
    fcoe_with(None, port, (from, to), len)
}

pub(super) fn fcoe_with(vlan: Option<VlanTag>, port: u8, ids: (FcId, FcId), len: usize) -> Vec<u8> {
    let ethernet = EthernetHeader {
        vlan,
        ..EthernetHeader::new(vn(ids.0), fcf(1, port), ethernet::FCOE)
    };
    let kinds = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
    let header = FrameHeader::request(kinds, ids, OxId(7));
    crate::tests::frame(&ethernet, (Sof::I3, Eof::T), &header, &vec![0x5a; len])
}

pub(super) fn receive(switch: &mut Switch, at: u64, port: u8, frame: &mut [u8]) -> Verdict {
    switch.receive(ms(at), PortNumber(port.into()), frame)
}

/// What comes in at `at`, and what goes out at that port.
pub(super) fn ask(switch: &mut Switch, at: u64, port: u8, frame: &[u8]) -> Vec<String> {
    switch.receive(ms(at), PortNumber(port.into()), frame);
    sent(switch, port)
}

pub(super) fn frames(switch: &mut Switch, port: u8) -> Vec<Vec<u8>> {
    let mut out = HeapFrames::default();
    switch.transmit(PortNumber(port.into()), &mut out);
    out.frames
}

pub(super) fn sent(switch: &mut Switch, port: u8) -> Vec<String> {
    let frames = frames(switch, port);
    frames.iter().map(|frame| line(frame)).collect()
}

/// What the switch does until then by itself, at one port.
pub(super) fn wait(switch: &mut Switch, until: u64, port: u8) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(at) = switch.next_deadline().filter(|at| *at <= ms(until)) {
        switch.expire(at);
        lines.extend(sent(switch, port));
    }
    lines
}

pub(super) fn told(switch: &mut Switch) -> Vec<String> {
    let events = std::iter::from_fn(|| switch.poll());
    events.map(|event| event_line(&event)).collect()
}

fn event_line(event: &SwitchEvent) -> String {
    match event {
        SwitchEvent::LoggedIn(login) => {
            format!("{} in at {} as {:?}", login.wwpn, login.place, login.fc_id)
        }
        SwitchEvent::LoggedOut(login, why) => format!("{:?} out, {why:?}", login.fc_id),
        SwitchEvent::LoginRejected(rejected) => {
            let (place, from) = (&rejected.place, short(rejected.from));
            let wwpn = rejected
                .wwpn
                .map_or_else(|| "?".into(), |wwpn| wwpn.to_string());
            format!(
                "{place}: {from}: {} of {wwpn}: {}",
                rejected.request,
                rejected.why()
            )
        }
        SwitchEvent::IdsChanged => "ids".into(),
        SwitchEvent::Remark {
            place,
            from,
            violation,
        } => format!("{place}: {}: {}", short(*from), violation.rule),
        SwitchEvent::Takeover { other: None } => "is active, as no other was heard".into(),
        SwitchEvent::Takeover { other: Some(_) } => "takes over".into(),
        SwitchEvent::StoodDown { other, place, from } => {
            let (other, from) = (short(*other), short(*from));
            format!("stands down for {other}, heard from {from} at {place}")
        }
    }
}

/// A FIP frame in one line.
pub(super) fn line(frame: &[u8]) -> String {
    let (header, payload) = EthernetHeader::parse(frame).unwrap();
    assert_eq!(header.ethertype, ethernet::FIP);
    let message = FipMessage::parse(payload).unwrap();
    let (src, dst) = (short(header.src), short(header.dst));
    let mut line = format!("{src} > {dst} {:?}", message.operation);
    for (flag, letter) in [(Flags::AVAILABLE, " A"), (Flags::SOLICITED, " S")] {
        if message.flags.has(flag) {
            line.push_str(letter);
        }
    }
    let granted = message.operation == FipOperation::ElsReply;
    for descriptor in message.descriptors() {
        match descriptor.unwrap() {
            Descriptor::VxPort { fc_id, .. } => write!(line, " {fc_id:?}").unwrap(),
            Descriptor::Vlan(vid) => write!(line, " {vid}").unwrap(),
            Descriptor::Els(els) => line.push_str(&els_line(&els)),
            Descriptor::Mac(mac) if granted => write!(line, " {}", short(mac)).unwrap(),
            _ => {}
        }
    }
    if let Some(tag) = header.vlan {
        write!(line, ", VLAN {}", tag.vid).unwrap();
    }
    if frame.len() > 300 {
        write!(line, ", {} bytes", frame.len()).unwrap();
    }
    line
}

fn els_line(els: &Encapsulated<'_>) -> String {
    let what = match Reply::parse(crate::wire::els::Code::LOGO, els.payload) {
        Ok(Reply::Reject(LsRejectReason {
            reason,
            explanation,
            ..
        })) => format!("LS_RJT {reason:02x}/{explanation:02x}"),
        Ok(_) => "LS_ACC".into(),
        Err(_) => "?".into(),
    };
    let (ox_id, d_id) = (els.header.ox_id, els.header.d_id);
    format!(" {what} of {ox_id:?} to {d_id:?}")
}

pub(super) fn short(mac: Mac) -> String {
    match mac {
        Mac::ALL_ENODE => "enodes".into(),
        Mac::ALL_FCF => "fcfs".into(),
        Mac([2, 0, 0, 0xfc, switch, port]) => format!("fcf{switch}.{port}"),
        Mac([2, 0, 0, 0, 0, number]) => format!("host{number}"),
        Mac([0x0e, 0xfc, 0, a, b, c]) => format!("vn:{:?}", FcId::from_bytes([a, b, c])),
        other => other.to_string(),
    }
}
