//! Stations behind one port that do what they like, while a pair at another one is served.

use super::rig::{
    Host, ask, fcf, fcoe_frame, fcoe_with, frames, host, ms, receive, sent, switch, tag, told, vn,
    wait,
};
use crate::fabric::{DropReason, PortNumber, Switch, Verdict};
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::fip::{Descriptor, FipOperation, Flags};
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

    /// So many stations log in by another request; returns how many logins that ends.
    fn again(&mut self, at: u64, ox_id: u16, count: u32) -> usize {
        told(&mut self.switch);
        for number in 0..count {
            receive(&mut self.switch, at, 0, &mut station(number).flogi(ox_id));
            frames(&mut self.switch, 0);
        }
        let told = told(&mut self.switch);
        let ended = told.iter().filter(|line| line.ends_with("out, Restarted"));
        ended.count()
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

/// All of a port may log in again at once; then 64 a second may. Those that are rejected stay
/// logged in as they are.
#[test]
fn a_crowd_logs_in_again_without_end() {
    let mut besieged = Besieged::new();
    let crowd = besieged.crowd(4000);
    assert_eq!(besieged.again(3, 2, 4000), 4000);
    assert_eq!(besieged.again(3, 3, 4000), 96);
    assert_eq!(besieged.switch.logins().count(), 4002);
    let rejected = besieged.switch.fip_statistics().rejected;
    assert_eq!(rejected, 4000 - 96);
    besieged.serves(3);
    assert_eq!(besieged.again(1_003, 4, 4000), 64);
    // And so may they log out.
    let logs_out = station(0).logo(crowd[0], 5);
    let busy = ask(&mut besieged.switch, 1_003, 0, &logs_out);
    assert!(busy[0].contains("LS_RJT 05/29 of 0005"), "{busy:?}");
    let accepted = ask(&mut besieged.switch, 1_020, 0, &logs_out);
    assert!(accepted[0].contains("LS_ACC of 0005"), "{accepted:?}");
    // A host that was not logged in is no part of it.
    let first = ask(&mut besieged.switch, 1_020, 0, &station(0).flogi(6));
    assert!(first[0].contains("LS_ACC of 0006"), "{first:?}");
}

/// An FLOGI that ends a hundred and fifty logins counts as many.
#[test]
fn an_enode_of_many_ports_logs_in_again() {
    let mut besieged = Besieged::new();
    besieged.crowd(3900);
    let enode = station(5000);
    receive(&mut besieged.switch, 2, 0, &mut enode.flogi(1));
    for number in 5001..5150 {
        let further = Host {
            wwpn: station(number).wwpn,
            ..enode
        };
        receive(&mut besieged.switch, 2, 0, &mut further.fdisc(1));
    }
    frames(&mut besieged.switch, 0);
    assert_eq!(besieged.switch.logins().count(), 2 + 3900 + 150);
    assert_eq!(besieged.again(3, 2, 3900), 3900);
    let accepted = ask(&mut besieged.switch, 3, 0, &enode.flogi(2));
    assert!(accepted[0].contains("LS_ACC"), "{accepted:?}");
    assert_eq!(besieged.again(3, 3, 3900), 4096 - 3900 - 150);
}

/// All of them send requests that cannot be read, and first frames of requests that never end. They
/// have a budget together, and what does not fit into a queue is lost.
#[test]
fn garbage_and_half_requests_of_a_crowd() {
    let mut besieged = Besieged::new();
    let crowd = besieged.crowd(1000);
    frames(&mut besieged.switch, 0);
    let mut answers = Vec::new();
    for round in 0..20 {
        for (number, fc_id) in crowd.iter().enumerate() {
            let ids = (*fc_id, FcId::DIRECTORY);
            let garbage = [number as u8; 40];
            let plogi = Els::Plogi(station(number as u32).parameters()).encode();
            for (at, (kind, payload)) in [
                ((ELS, true), &plogi[..]),
                ((CT, true), &garbage),
                ((CT, false), &garbage),
                ((ELS, true), &garbage),
                ((CT, true), &garbage),
                ((ELS, true), &plogi),
            ]
            .into_iter()
            .enumerate()
            {
                let mut frame = to_service(ids, kind, round * 6 + at as u16, payload);
                receive(&mut besieged.switch, 3, 0, &mut frame);
            }
        }
        answers.push(frames(&mut besieged.switch, 0).len());
        besieged.serves(3);
    }
    // 5,000 are answered in a round, of which 4,096 fit into the queue, until 64,000 requests of
    // all behind the port are served and 2,000 rejected.
    let (first, rest) = answers.split_at(10);
    assert!(first.iter().all(|sent| *sent == 4096), "{answers:?}");
    assert!(rest.ends_with(&[0; 4]), "{answers:?}");
    assert!(told(&mut besieged.switch).len() <= 1000 * 4 + 16);
    // What was begun is given up in time, and nothing is due without end.
    wait(&mut besieged.switch, 6_000, 0);
    let next = besieged.switch.next_deadline().unwrap();
    assert!(next > ms(6_000), "{next:?}");
    besieged.serves(6_000);
}

/// The last 1,024 are noted to be about to log in, and as many to be told that they are not; all of
/// that is forgotten.
#[test]
fn ever_other_enodes_solicit_and_send_keep_alives() {
    let mut besieged = Besieged::new();
    let before = besieged.switch.records();
    for number in 0..20_000 {
        let solicits = station(number).solicitation(2500);
        let is_there = station(20_000 + number).keep_alive();
        for mut frame in [solicits, is_there] {
            receive(&mut besieged.switch, 2, 0, &mut frame);
        }
    }
    besieged.serves(2);
    let waiting = frames(&mut besieged.switch, 0).len();
    assert_eq!(waiting, 4096 + 256);
    let noted = besieged.switch.records() - before;
    assert_eq!(noted, 4 * 1024, "each with its place in an order");
    assert!(told(&mut besieged.switch).len() <= 64, "a line a budget");
    let again = &mut station(0).solicitation(2500);
    receive(&mut besieged.switch, 20_000, 0, again);
    let last = &mut station(1).keep_alive();
    receive(&mut besieged.switch, 20_000, 0, last);
    frames(&mut besieged.switch, 0);
    assert_eq!(besieged.switch.records() - before, 4);
    besieged.serves(20_000);
}

/// One ENode has one N_Port_ID by FLOGI and 255 by FDISC; 16,384 are remembered.
#[test]
fn one_enode_logs_in_under_ever_other_names() {
    let mut besieged = Besieged::new();
    let before = besieged.switch.records();
    // As fast as logins may end.
    let asks = |switch: &mut Switch, number: u32, request: fn(Host, u16) -> Vec<u8>| {
        let named = Host {
            wwpn: station(number).wwpn,
            ..station(0)
        };
        let at = 2 + 16 * u64::from(number);
        receive(switch, at, 0, &mut request(named, number as u16));
        frames(switch, 0);
        told(switch);
    };
    (0..20_000).for_each(|number| asks(&mut besieged.switch, number, Host::flogi));
    assert_eq!(besieged.switch.logins().count(), 2 + 1);
    assert_eq!(besieged.switch.ids().count(), 16_384);
    let kept = besieged.switch.records() - before;
    assert!(kept < 16_384 + 100, "{kept}");
    (20_000..22_000).for_each(|number| asks(&mut besieged.switch, number, Host::fdisc));
    assert_eq!(besieged.switch.logins().count(), 2 + 256);
    besieged.serves(400_000);
}

/// None of it goes anywhere, and 64 pairs are counted.
#[test]
fn forged_ids_addresses_and_vlans() {
    let mut besieged = Besieged::new();
    let [own] = besieged.crowd(1)[..] else {
        panic!("one login");
    };
    let before = besieged.switch.records();
    let (one, other) = besieged.pair;
    let mut dropped = |frame: &mut [u8]| match receive(&mut besieged.switch, 3, 0, frame) {
        Verdict::Dropped(reason) => reason,
        verdict => panic!("{verdict:?}"),
    };
    for number in 0..10_000_u32 {
        assert_eq!(
            dropped(&mut fcoe_frame(0, one, other, 64)),
            DropReason::Spoofed
        );
        let mut frame = fcoe_frame(0, own, other, 64);
        frame[9..12].copy_from_slice(&other.bytes());
        assert_eq!(dropped(&mut frame), DropReason::Spoofed);
        let stranger = FcId(0x02_0000 | number);
        let frame = &mut fcoe_frame(0, stranger, other, 64);
        assert_eq!(dropped(frame), DropReason::NotLoggedIn);
        let frame = &mut fcoe_frame(0, own, stranger, 64);
        assert_eq!(dropped(frame), DropReason::NoSuchPort);
        let vlan = Some(tag(1 + (number % 4094) as u16));
        let frame = &mut fcoe_with(vlan, 0, (own, other), 64);
        assert_eq!(dropped(frame), DropReason::NotForUs);
    }
    assert_eq!(besieged.switch.records() - before, 64);
    assert!(frames(&mut besieged.switch, 1).is_empty());
    besieged.serves(3);
}

/// What ENodes have no business to say is not kept; 16 other FCFs are.
#[test]
fn ever_other_stations_speak_as_fcfs_and_vn_ports() {
    let mut besieged = Besieged::new();
    let before = besieged.switch.records();
    for number in 0..10_000 {
        let from = station(number);
        let (mac, name) = (Descriptor::Mac(from.mac), Descriptor::Name(from.wwpn));
        let fabric = Descriptor::Fabric {
            vf_id: 0,
            fc_map: Mac::FC_MAP,
            name: Wwn(2),
        };
        let period = Descriptor::FkaAdvPeriod {
            disabled: false,
            period_ms: 8000,
        };
        let vx_port = Descriptor::VxPort {
            mac: vn(besieged.pair.0),
            fc_id: besieged.pair.0,
            wwpn: from.wwpn,
        };
        let advertises = [Descriptor::Priority(1), mac, name, fabric, period];
        let flags = Flags::F_PORT.with(Flags::AVAILABLE).with(Flags::FCF);
        for parts in [
            (FipOperation::Advertisement, flags, &advertises[..]),
            (
                FipOperation::ClearVirtualLinks,
                Flags::F_PORT,
                &[mac, name, vx_port],
            ),
            (
                FipOperation::Beacon,
                Flags::default(),
                &[mac, name, vx_port],
            ),
        ] {
            receive(
                &mut besieged.switch,
                2,
                0,
                &mut from.frame(Mac::ALL_FCF, parts),
            );
        }
    }
    assert_eq!(besieged.switch.records() - before, 16);
    assert!(frames(&mut besieged.switch, 0).is_empty());
    besieged.serves(2);
    assert_eq!(besieged.switch.logins().count(), 2);
}
