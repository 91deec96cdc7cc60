//! SCR and RSCN: who is told what, and when.

use std::sync::Arc;

use super::rig::{CT, ELS, Rig, id, login, told, wwpn};
use crate::fabric::zones::Zones;
use crate::wire::ct::name_server::{Fc4Types, NameServerRequest, SymbolicName};
use crate::wire::els::{Code, Els, LsRejectReason, Reply, Rscn};
use crate::wire::frame::{FCtl, FrameType, RCtl};
use crate::wire::names::FcId;

const TO: FcId = FcId::FABRIC_CONTROLLER;

/// Pages of an RSCN: ports, or `None` for the whole fabric.
type Told = (FcId, Vec<Option<FcId>>);

impl Rig {
    #[track_caller]
    fn scr(&mut self, number: u32, function: u8) -> String {
        told(&self.els(number, TO, &Els::Scr(function)))
    }

    /// RSCNs that are sent. Each is accepted at once, unless it is lost.
    fn rscns(&mut self, is_lost: bool) -> Vec<Told> {
        let mut all = Vec::new();
        for sent in self.sent() {
            let header = sent.header;
            assert_eq!((header.r_ctl, header.s_id), (RCtl::ELS_REQUEST, TO));
            assert_eq!(header.f_ctl, FCtl::REQUEST);
            let Ok(Els::Rscn(Rscn(pages))) = Els::parse(&sent.payload) else {
                unreachable!("no RSCN")
            };
            let page = |(format, id): (u8, FcId)| match format {
                0 => Some(id),
                3 => None,
                other => unreachable!("format {other}"),
            };
            all.push((header.d_id, pages.into_iter().map(page).collect()));
            if !is_lost {
                self.accepts(header.d_id, header.ox_id.0, &Reply::Accept);
            }
        }
        all
    }

    fn accepts(&mut self, from: FcId, ox_id: u16, reply: &Reply) {
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        let mut answer = self.frames((from, TO), kind, &reply.encode(), 2112);
        answer[0].header.ox_id.0 = ox_id;
        self.comes(&answer[0]);
    }

    /// RSCNs until so many milliseconds have passed.
    fn rscns_in(&mut self, ms: u64) -> Vec<Told> {
        self.pass(ms);
        self.rscns(false)
    }

    fn logs_in(&mut self, number: u32) {
        self.servers.logged_in(self.now, login(number));
    }

    fn logs_out(&mut self, number: u32) {
        self.servers.logged_out(self.now, id(number));
    }
}

/// All of these ports are told of this one.
fn to_each(numbers: &[u32], about: u32) -> Vec<Told> {
    let told = numbers
        .iter()
        .map(|number| (id(*number), vec![Some(id(about))]));
    told.collect()
}

/// Ports that are there, registered by SCR as Linux does it, without a PLOGI.
fn settled(zones: Zones, ports: std::ops::RangeInclusive<u32>) -> Rig {
    let mut rig = Rig::zoned(zones, ports.clone());
    for number in ports {
        assert_eq!(rig.scr(number, 3), "LS_ACC");
    }
    for _ in 0..3 {
        rig.rscns_in(3000);
    }
    rig
}

#[test]
fn a_port_that_comes_is_told_once_it_has_registered() {
    let mut rig = settled(Zones::open(), 1..=2);
    rig.logs_in(3);
    rig.registers(3, 1);
    assert_eq!(rig.rscns_in(99), []);
    assert_eq!(rig.rscns_in(1), to_each(&[1, 2], 3));
    // Its SCR tells nothing new.
    assert_eq!(rig.scr(3, 3), "LS_ACC");
    assert_eq!(rig.rscns_in(5000), []);
    assert_eq!(rig.servers.next_deadline(), None);
}

#[test]
fn a_port_without_fc4_types_is_told_by_its_scr_or_after_two_seconds() {
    let mut rig = settled(Zones::open(), 1..=2);
    rig.logs_in(3);
    assert_eq!(rig.scr(3, 3), "LS_ACC");
    assert_eq!(rig.rscns_in(100), to_each(&[1, 2], 3));
    rig.logs_in(4);
    assert_eq!(rig.rscns_in(2099), []);
    assert_eq!(rig.rscns_in(1), to_each(&[1, 2, 3], 4));
}

#[test]
fn a_port_that_is_gone_is_told_at_once() {
    let mut rig = settled(Zones::open(), 1..=3);
    rig.logs_out(2);
    assert_eq!(rig.rscns(false), to_each(&[1, 3], 2));
    // The next one follows 100 ms later.
    rig.logs_out(3);
    assert_eq!(rig.rscns_in(99), []);
    assert_eq!(rig.rscns_in(1), to_each(&[1], 3));
}

#[test]
fn a_port_that_is_gone_before_it_was_told_leaves_nothing() {
    let mut rig = settled(Zones::open(), 1..=1);
    rig.logs_in(2);
    rig.scr(2, 3);
    rig.logs_out(2);
    // Who asked meanwhile has seen it.
    assert_eq!(rig.rscns(false), to_each(&[1], 2));
    assert_eq!(rig.rscns_in(9000), []);
    assert_eq!(rig.servers.next_deadline(), None);
}

#[test]
fn only_what_changed_is_told() {
    let mut rig = settled(Zones::open(), 1..=2);
    rig.registers(2, 1);
    assert_eq!(rig.rscns_in(100), to_each(&[1], 2));
    // The same once more.
    rig.registers(2, 1);
    assert_eq!(rig.rscns_in(5000), []);
    let types = Fc4Types::of(&[FrameType::FCP, FrameType(0x28)]);
    let name = SymbolicName::new(b"other");
    for request in [
        NameServerRequest::RftId(id(2), types),
        NameServerRequest::RspnId(id(2), name),
        NameServerRequest::RffId(id(2), 3, FrameType::FCP),
        NameServerRequest::DaId(id(2)),
    ] {
        rig.sends((id(2), FcId::DIRECTORY), CT, &request.encode(), 2112);
        assert_eq!(rig.sent().len(), 1);
        assert_eq!(rig.rscns_in(100), to_each(&[1], 2), "{request:?}");
    }
}

#[test]
fn ports_are_told_of_their_zones_only() {
    let text = format!(
        "zone a = {} {}\nzone b = {} {}\nzoneset all = a b\nactive all",
        wwpn(1),
        wwpn(2),
        wwpn(3),
        wwpn(4)
    );
    let mut rig = settled(Zones::parse(&text).unwrap(), 1..=4);
    rig.logs_out(1);
    assert_eq!(rig.rscns(false), to_each(&[2], 1));
    rig.logs_in(1);
    rig.scr(1, 3);
    assert_eq!(rig.rscns_in(100), to_each(&[2], 1));
    // Zone b loses a member, who joins zone a.
    let changed = text.replace(
        &format!("zone a = {}", wwpn(1)),
        &format!("zone a = {}", wwpn(3)),
    );
    let changed = changed.replace(
        &format!("zone b = {}", wwpn(3)),
        &format!("zone b = {}", wwpn(1)),
    );
    rig.servers
        .set_zones(rig.now, Arc::new(Zones::parse(&changed).unwrap()));
    let all = [rig.rscns(false), rig.rscns_in(100)];
    let mut all: Vec<_> = all.concat();
    all.sort();
    let both =
        |number, others: [u32; 2]| (id(number), others.map(|other| Some(id(other))).to_vec());
    let expected = [
        both(1, [2, 4]),
        both(2, [1, 3]),
        both(3, [2, 4]),
        both(4, [1, 3]),
    ];
    assert_eq!(all, expected);
    // The same zones once more change nothing.
    rig.servers
        .set_zones(rig.now, Arc::new(Zones::parse(&changed).unwrap()));
    assert_eq!(rig.rscns_in(5000), []);
}

#[test]
fn the_functions_of_scr() {
    let mut rig = settled(Zones::open(), 1..=4);
    for (number, function) in [(1, 1), (2, 2), (3, 255)] {
        assert_eq!(rig.scr(number, function), "LS_ACC");
    }
    for function in [0, 4, 254] {
        assert_eq!(rig.scr(1, function), "LS_RJT 03/00");
    }
    rig.logs_in(5);
    rig.scr(5, 255);
    assert_eq!(rig.rscns_in(100), to_each(&[1, 4], 5), "seen by the fabric");
    let own = Els::Rscn(Rscn(vec![(0, id(5))]));
    assert_eq!(told(&rig.els(5, TO, &own)), "LS_ACC");
    assert_eq!(rig.rscns_in(100), to_each(&[2, 4], 5), "told by the port");
    let others = Els::Rscn(Rscn(vec![(0, id(4)), (3, FcId(0))]));
    assert_eq!(told(&rig.els(5, TO, &others)), "LS_ACC");
    assert_eq!(rig.rscns_in(1000), [], "of others it tells nothing");
    assert_eq!(told(&rig.els(5, TO, &Els::Other(Code::LIRR))), "LS_ACC");
}

#[test]
fn over_64_changes_are_told_as_one() {
    let mut rig = settled(Zones::open(), 1..=1);
    (100..164).for_each(|number| rig.logs_in(number));
    let told = rig.rscns_in(2100);
    assert_eq!((told.len(), told[0].1.len()), (1, 64));
    (200..265).for_each(|number| rig.logs_in(number));
    assert_eq!(rig.rscns_in(2100), [(id(1), vec![None])]);
    // Many more than are looked at.
    (1000..1600).for_each(|number| rig.logs_in(number));
    assert_eq!(rig.rscns_in(2100), [(id(1), vec![None])]);
}

/// 64 pages do not fit in a frame of 256 bytes.
#[test]
fn a_port_of_short_frames_is_told_less() {
    let mut rig = settled(Zones::open(), 1..=1);
    let plogi = Els::Plogi(super::rig::parameters(1, 256));
    assert_eq!(told(&rig.els(1, TO, &plogi)), "LS_ACC");
    (100..163).for_each(|number| rig.logs_in(number));
    assert_eq!(rig.rscns_in(2100)[0].1.len(), 63);
    (200..264).for_each(|number| rig.logs_in(number));
    assert_eq!(rig.rscns_in(2100), [(id(1), vec![None])]);
}

#[test]
fn an_rscn_is_repeated_until_it_is_answered() {
    let mut rig = settled(Zones::open(), 1..=1);
    rig.logs_in(2);
    rig.scr(2, 255);
    rig.pass(100);
    assert_eq!(rig.rscns(true), to_each(&[1], 2));
    // Meanwhile another one comes: one RSCN at a time.
    rig.logs_in(3);
    rig.scr(3, 255);
    rig.pass(1999);
    assert_eq!(rig.rscns(true), []);
    rig.pass(1);
    let both = vec![(id(1), vec![Some(id(2)), Some(id(3))])];
    assert_eq!(rig.rscns(true), both);
    rig.pass(2000);
    assert_eq!(rig.rscns(true), both);
    // After three it is told seldom, or when something else changes.
    rig.pass(9000);
    assert_eq!(rig.rscns(true), []);
    rig.logs_out(3);
    assert_eq!(rig.rscns(true), both);
    rig.pass(2000 + 9999);
    assert_eq!(rig.rscns(true), []);
    rig.pass(1);
    assert_eq!(rig.rscns(false), both);
    rig.pass(60_000);
    assert_eq!(rig.rscns(true), [], "it has answered");
}

/// What was sent and not answered is not sent again either.
#[test]
fn a_port_that_ends_its_registration_is_told_nothing_more() {
    let mut rig = settled(Zones::open(), 1..=3);
    rig.logs_out(2);
    assert_eq!(rig.rscns(true).len(), 2);
    for number in [1, 3] {
        assert_eq!(rig.scr(number, 255), "LS_ACC");
    }
    assert_eq!(rig.servers.next_deadline(), None);
    rig.pass(60_000);
    assert_eq!(rig.rscns(true), []);
}

#[test]
fn an_rscn_that_is_rejected_is_answered() {
    let mut rig = settled(Zones::open(), 1..=2);
    rig.logs_out(2);
    let sent = rig.sent_one();
    let reject = Reply::Reject(LsRejectReason::NOT_SUPPORTED);
    // An answer to another exchange is none.
    rig.accepts(id(1), sent.header.ox_id.0 + 1, &reject);
    assert!(rig.servers.next_deadline().is_some());
    rig.accepts(id(1), sent.header.ox_id.0, &reject);
    assert_eq!(rig.servers.next_deadline(), None);
}

/// A port that changes as fast as it can costs each other port ten RSCNs a second.
#[test]
fn a_port_that_changes_without_end_is_told_ten_times_a_second() {
    let mut rig = settled(Zones::open(), 1..=3);
    rig.log_in(3, FcId::DIRECTORY);
    let mut told = 0;
    for step in 0..2000u32 {
        let bits = step as u8 & 1;
        let change = NameServerRequest::RffId(id(3), bits, FrameType::FCP);
        rig.sends((id(3), FcId::DIRECTORY), CT, &change.encode(), 2112);
        assert_eq!(rig.sent().len(), 1);
        told += rig.rscns_in(1).len();
    }
    assert!((36..=40).contains(&told), "{told}");
    // And so does one that comes and goes.
    let mut told = 0;
    for _ in 0..2000 {
        rig.logs_out(3);
        rig.logs_in(3);
        rig.sends((id(3), TO), ELS, &Els::Scr(3).encode(), 2112);
        rig.pass(1);
        let (answers, rscns): (Vec<_>, Vec<_>) = rig
            .sent()
            .into_iter()
            .partition(|sent| sent.header.r_ctl == RCtl::ELS_REPLY);
        assert_eq!(answers.len(), 1);
        for sent in rscns {
            told += 1;
            rig.accepts(sent.header.d_id, sent.header.ox_id.0, &Reply::Accept);
        }
    }
    assert!((36..=42).contains(&told), "{told}");
}
