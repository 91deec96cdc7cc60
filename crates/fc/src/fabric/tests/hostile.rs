//! Stations behind one port that do what they like, while a pair at another one is served.

use super::rig::{Host, fcf, fcoe_frame, frames, host, ms, receive, sent, switch, told, vn, wait};
use crate::fabric::{PortNumber, Switch, Verdict};
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// A switch with a pair at port 1, which exchanges frames.
struct Besieged {
    switch: Switch,
    pair: (FcId, FcId),
}

impl Besieged {
    fn new() -> Self {
        let mut switch = switch();
        let pair = [1, 2].map(|number| {
            let host = host(1, number);
            receive(&mut switch, 1, 1, &mut host.flogi(1));
            let login = switch.logins().find(|login| login.wwpn == host.wwpn);
            login.unwrap().fc_id
        });
        sent(&mut switch, 1);
        told(&mut switch);
        let pair = pair.into();
        Self { switch, pair }
    }

    /// A frame of the pair goes its way.
    #[track_caller]
    fn serves(&mut self, at: u64) {
        let mut frame = fcoe_frame(1, self.pair.0, self.pair.1, 64);
        let verdict = receive(&mut self.switch, at, 1, &mut frame);
        assert!(matches!(verdict, Verdict::Forward(_)), "{verdict:?}");
    }

    /// So many stations log in at port 0, those that may; returns their N_Port_IDs.
    fn crowd(&mut self, count: u32) -> Vec<FcId> {
        for number in 0..count {
            receive(&mut self.switch, 2, 0, &mut station(number).flogi(1));
            if number % 100 == 0 {
                self.serves(2);
                frames(&mut self.switch, 0);
            }
        }
        let logins = self.switch.logins();
        let at_port = logins.filter(|login| login.port == PortNumber(0));
        at_port.map(|login| login.fc_id).collect()
    }
}

/// Each has an address and a name of its own.
fn station(number: u32) -> Host {
    let [_, _, a, b] = number.to_be_bytes();
    Host {
        port: 0,
        mac: Mac([2, 9, 0, 0, a, b]),
        wwpn: Wwn(0x2000_0900_0000_0000 | u64::from(number)),
    }
}

/// A frame of a VN_Port at port 0 to a service.
fn to_service(
    ids: (FcId, FcId),
    (kind, ends): ((RCtl, FrameType), bool),
    ox_id: u16,
    payload: &[u8],
) -> Vec<u8> {
    let ethernet = EthernetHeader::new(vn(ids.0), fcf(1, 0), ethernet::FCOE);
    let f_ctl = if ends {
        FCtl::REQUEST
    } else {
        FCtl::FIRST_SEQUENCE
    };
    let header = FrameHeader {
        f_ctl,
        ..FrameHeader::new(kind, ids, (OxId(ox_id), RxId::UNASSIGNED))
    };
    let eof = if ends { Eof::T } else { Eof::N };
    crate::tests::frame(&ethernet, (Sof::I3, eof), &header, payload)
}

const CT: (RCtl, FrameType) = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
const ELS: (RCtl, FrameType) = (RCtl::ELS_REQUEST, FrameType::ELS);

/// There are 4,096 logins, whoever asks for more; 16 rejections are told.
#[test]
fn ten_thousand_logins_at_one_port() {
    let mut besieged = Besieged::new();
    let logged_in = besieged.crowd(10_000);
    assert_eq!(logged_in.len(), 4096 - 2);
    let switch = &mut besieged.switch;
    assert_eq!(switch.fip_statistics().rejected, 10_000 - 4094);
    assert_eq!(switch.ids().count(), 4096);
    let told = told(switch);
    let rejected = told.iter().filter(|line| line.contains("as many logins"));
    assert_eq!(rejected.count(), 16);
    // Each port has 16 places of its own.
    let late = host(1, 3);
    receive(switch, 3, 1, &mut late.flogi(1));
    assert!(switch.logins().any(|login| login.wwpn == late.wwpn));
    besieged.serves(3);
}

/// All of them send requests that cannot be read, and first frames of requests that never end.
#[test]
fn garbage_and_half_requests_of_a_crowd() {
    let mut besieged = Besieged::new();
    let crowd = besieged.crowd(1000);
    let mut answers = 0;
    for round in 0..20 {
        for (number, fc_id) in crowd.iter().enumerate() {
            let ids = (*fc_id, FcId::DIRECTORY);
            let garbage = [number as u8; 40];
            let ox_id = round * 4;
            let plogi = Els::Plogi(station(number as u32).parameters()).encode();
            for mut frame in [
                to_service(ids, (ELS, true), ox_id, &plogi),
                to_service(ids, (CT, true), ox_id + 1, &garbage),
                to_service(ids, (CT, false), ox_id + 2, &garbage),
                to_service(ids, (ELS, true), ox_id + 3, &garbage),
            ] {
                receive(&mut besieged.switch, 3, 0, &mut frame);
            }
        }
        answers += frames(&mut besieged.switch, 0).len();
        besieged.serves(3);
    }
    // 64,000 requests of all behind the port are served and 2,000 rejected, and no more than 4,096
    // answers wait at a port.
    assert!(answers <= 20 * 4096, "{answers}");
    assert!(told(&mut besieged.switch).len() <= 1000 * 4 + 16);
    // What was begun is given up in time, and nothing is due without end.
    wait(&mut besieged.switch, 6_000, 0);
    let next = besieged.switch.next_deadline().unwrap();
    assert!(next > ms(6_000), "{next:?}");
    besieged.serves(6_000);
}
