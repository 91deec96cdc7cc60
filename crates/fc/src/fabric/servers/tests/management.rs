//! FDMI, as libfc speaks it, and as who looks at a fabric does.

use super::rig::{CT, Rig, id, login, wwpn};
use crate::fabric::zones::Zones;
use crate::wire::ct::CtHeader;
use crate::wire::ct::fdmi::{FdmiAccept, FdmiAttribute, FdmiRequest};
use crate::wire::names::{FcId, Wwn};

type Ask = FdmiRequest;
type Accept = FdmiAccept;

const TO: FcId = FcId::MANAGEMENT;

impl Rig {
    #[track_caller]
    fn fdmi(&mut self, number: u32, request: &Ask) -> Result<Accept, (u8, u8)> {
        let sent = self.ct(number, TO, &request.encode());
        let (header, payload) = CtHeader::parse(&sent.payload).unwrap();
        let payload = header.outcome(payload);
        let payload = payload.map_err(|why| (why.reason, why.explanation))?;
        Ok(Accept::parse(request.code(), payload).unwrap())
    }
}

fn attribute(kind: u16, len: usize) -> FdmiAttribute {
    FdmiAttribute {
        kind,
        value: vec![kind as u8; len],
    }
}

fn rig(ports: std::ops::RangeInclusive<u32>) -> Rig {
    let mut rig = Rig::new(ports.clone());
    ports.for_each(|number| rig.log_in(number, TO));
    rig
}

/// An HBA that is called as its first port.
fn rhba(number: u32, list: Vec<FdmiAttribute>) -> Ask {
    Ask::Rhba(wwpn(number), vec![wwpn(number)], list)
}

const DONE: Result<Accept, (u8, u8)> = Ok(Accept::Empty);

/// RHBA of libfc has 11 attributes, or 18 of version 2, and is longer than a frame.
#[test]
fn a_host_registers_its_hba_and_port() {
    let mut rig = rig(1..=2);
    let attributes: Vec<_> = (1..=18).map(|kind| attribute(kind, 160)).collect();
    let request = rhba(1, attributes.clone()).encode();
    assert!(request.len() > 2112);
    rig.sends((id(1), TO), CT, &request, 2112);
    let (header, _) = CtHeader::parse(&rig.sent_one().payload).unwrap();
    assert_eq!(header.outcome(&[]), Ok([0; 0].as_slice()));
    let port = vec![attribute(1, 32), attribute(5, 256)];
    assert_eq!(rig.fdmi(1, &Ask::Rpa(wwpn(1), port.clone())), DONE);

    assert_eq!(rig.fdmi(2, &Ask::Grhl), Ok(Accept::Names(vec![wwpn(1)])));
    let hba = Accept::Hba(vec![wwpn(1)], attributes);
    assert_eq!(rig.fdmi(2, &Ask::Ghat(wwpn(1))), Ok(hba));
    assert_eq!(
        rig.fdmi(2, &Ask::Grpl(wwpn(1))),
        Ok(Accept::Names(vec![wwpn(1)]))
    );
    assert_eq!(
        rig.fdmi(2, &Ask::Gpat(wwpn(1))),
        Ok(Accept::Attributes(port))
    );
    // The host is gone.
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.fdmi(2, &Ask::Grhl), Ok(Accept::Names(vec![])));
    assert_eq!(rig.fdmi(2, &Ask::Ghat(wwpn(1))), Err((0x09, 0x17)));
    assert_eq!(rig.fdmi(2, &Ask::Gpat(wwpn(1))), Err((0x09, 0x18)));
}

#[test]
fn attributes_are_set_and_taken_away() {
    let mut rig = rig(1..=1);
    let (a, b) = (attribute(1, 8), attribute(2, 8));
    assert_eq!(rig.fdmi(1, &rhba(1, vec![a.clone()])), DONE);
    let longer = attribute(1, 64);
    assert_eq!(
        rig.fdmi(1, &Ask::Rhat(wwpn(1), vec![longer.clone(), b.clone()])),
        DONE
    );
    let hba = |list| Ok(Accept::Hba(vec![wwpn(1)], list));
    assert_eq!(
        rig.fdmi(1, &Ask::Ghat(wwpn(1))),
        hba(vec![longer, b.clone()])
    );
    assert_eq!(
        rig.fdmi(1, &Ask::Dhat(wwpn(1), vec![attribute(1, 0)])),
        DONE
    );
    assert_eq!(rig.fdmi(1, &Ask::Ghat(wwpn(1))), hba(vec![b.clone()]));
    assert_eq!(rig.fdmi(1, &Ask::Dhat(wwpn(1), vec![])), DONE);
    assert_eq!(rig.fdmi(1, &Ask::Ghat(wwpn(1))), hba(vec![]));

    assert_eq!(
        rig.fdmi(1, &Ask::Rpa(wwpn(1), vec![a.clone(), b.clone()])),
        DONE
    );
    assert_eq!(rig.fdmi(1, &Ask::Dpa(wwpn(1), vec![a])), DONE);
    assert_eq!(
        rig.fdmi(1, &Ask::Gpat(wwpn(1))),
        Ok(Accept::Attributes(vec![b]))
    );
    assert_eq!(rig.fdmi(1, &Ask::Dprt(wwpn(1))), DONE);
    assert_eq!(rig.fdmi(1, &Ask::Gpat(wwpn(1))), Err((0x09, 0x18)));
    assert_eq!(rig.fdmi(1, &Ask::Grpl(wwpn(1))), Ok(Accept::Names(vec![])));
    assert_eq!(rig.fdmi(1, &Ask::Dhba(wwpn(1))), DONE);
    assert_eq!(rig.fdmi(1, &Ask::Grhl), Ok(Accept::Names(vec![])));
}

#[test]
fn two_ports_of_one_hba() {
    let mut rig = rig(1..=2);
    assert_eq!(
        rig.fdmi(2, &Ask::Rprt(wwpn(1), wwpn(2), vec![])),
        Err((0x09, 0x17))
    );
    assert_eq!(rig.fdmi(1, &rhba(1, vec![])), DONE);
    assert_eq!(
        rig.fdmi(2, &Ask::Rprt(wwpn(1), wwpn(2), vec![attribute(1, 4)])),
        DONE
    );
    let both = Accept::Names(vec![wwpn(1), wwpn(2)]);
    assert_eq!(rig.fdmi(1, &Ask::Grpl(wwpn(1))), Ok(both));
    // The second port leaves, the first stays.
    rig.servers.logged_out(rig.now, id(2));
    assert_eq!(
        rig.fdmi(1, &Ask::Grpl(wwpn(1))),
        Ok(Accept::Names(vec![wwpn(1)]))
    );
}

#[test]
fn a_port_registers_for_itself_only() {
    let mut rig = rig(1..=2);
    assert_eq!(rig.fdmi(1, &rhba(1, vec![])), DONE);
    let denied = [
        (rhba(1, vec![]), 0x10),
        (Ask::Rhat(wwpn(1), vec![]), 0x10),
        (Ask::Dhat(wwpn(1), vec![]), 0x10),
        (Ask::Dhba(wwpn(1)), 0x10),
        (Ask::Rprt(wwpn(1), wwpn(1), vec![]), 0x18),
        (Ask::Rpa(wwpn(1), vec![]), 0x18),
        (Ask::Dprt(wwpn(1)), 0x18),
        (Ask::Dpa(wwpn(1), vec![]), 0x18),
        // Nothing is registered that these are of.
        (Ask::Rhat(wwpn(2), vec![]), 0x17),
        (Ask::Rpa(wwpn(2), vec![]), 0x18),
        (Ask::Dpa(wwpn(2), vec![]), 0x18),
        (Ask::Dprt(wwpn(2)), 0x18),
        (Ask::Grpl(wwpn(2)), 0x17),
    ];
    for (request, explanation) in denied {
        assert_eq!(
            rig.fdmi(2, &request),
            Err((0x09, explanation)),
            "{request:?}"
        );
    }
    // What it says of other ports is not kept.
    let claims = Ask::Rhba(Wwn(7), vec![wwpn(1), wwpn(2)], vec![]);
    assert_eq!(rig.fdmi(2, &claims), DONE);
    assert_eq!(
        rig.fdmi(2, &Ask::Grpl(Wwn(7))),
        Ok(Accept::Names(vec![wwpn(2)]))
    );
    assert_eq!(
        rig.fdmi(2, &Ask::Grpl(wwpn(1))),
        Ok(Accept::Names(vec![wwpn(1)]))
    );
    // Another HBA takes the place of the first.
    assert_eq!(rig.fdmi(2, &Ask::Rhba(Wwn(8), vec![], vec![])), DONE);
    assert_eq!(
        rig.fdmi(2, &Ask::Grhl),
        Ok(Accept::Names(vec![Wwn(8), wwpn(1)]))
    );
}

#[test]
fn other_zones_are_told_nothing() {
    let mut rig = Rig::zoned(Zones::closed(), 1..=2);
    (1..=2).for_each(|number| rig.log_in(number, TO));
    assert_eq!(rig.fdmi(1, &rhba(1, vec![])), DONE);
    assert_eq!(rig.fdmi(2, &Ask::Grhl), Ok(Accept::Names(vec![])));
    assert_eq!(rig.fdmi(2, &Ask::Ghat(wwpn(1))), Err((0x09, 0x17)));
    assert_eq!(rig.fdmi(2, &Ask::Grpl(wwpn(1))), Err((0x09, 0x17)));
    assert_eq!(rig.fdmi(2, &Ask::Gpat(wwpn(1))), Err((0x09, 0x18)));
    assert_eq!(rig.fdmi(1, &Ask::Grhl), Ok(Accept::Names(vec![wwpn(1)])));
    // Nor by how a change is rejected.
    for hba in [wwpn(1), wwpn(9)] {
        let changes = [
            Ask::Rhat(hba, vec![]),
            Ask::Rprt(hba, wwpn(2), vec![]),
            Ask::Dhat(hba, vec![]),
            Ask::Dhba(hba),
        ];
        for request in changes {
            assert_eq!(rig.fdmi(2, &request), Err((0x09, 0x17)), "{request:?}");
        }
    }
    assert_eq!(
        rig.fdmi(1, &Ask::Grpl(wwpn(1))),
        Ok(Accept::Names(vec![wwpn(1)]))
    );
}

/// A name that is taken in another zone is rejected as one for which there is no room.
#[test]
fn an_hba_of_another_zone_is_not_told_by_its_name() {
    let mut rig = Rig::zoned(Zones::closed(), 1..=3);
    (1..=3).for_each(|number| rig.log_in(number, TO));
    assert_eq!(rig.fdmi(1, &Ask::Rhba(Wwn(7), vec![], vec![])), DONE);
    for hba in [wwpn(3), Wwn(7)] {
        let claims = Ask::Rhba(hba, vec![wwpn(2)], vec![]);
        assert_eq!(rig.fdmi(2, &claims), Err((0x09, 0)), "{hba}");
    }
    // Its own it may register anew.
    for _ in 0..2 {
        assert_eq!(rig.fdmi(2, &Ask::Rhba(Wwn(8), vec![], vec![])), DONE);
        assert_eq!(rig.fdmi(1, &Ask::Rhba(Wwn(7), vec![], vec![])), DONE);
    }
}

/// An HBA has ports in two zones: a port is told of those in its own.
#[test]
fn ports_of_other_zones_are_left_out_of_an_hba() {
    let text = format!(
        "zone a = {} {}\nzone b = {} {}\nzoneset all = a b\nactive all",
        wwpn(1),
        wwpn(2),
        wwpn(1),
        wwpn(3)
    );
    let mut rig = Rig::zoned(Zones::parse(&text).unwrap(), 1..=3);
    (1..=3).for_each(|number| rig.log_in(number, TO));
    assert_eq!(rig.fdmi(1, &rhba(1, vec![])), DONE);
    assert_eq!(rig.fdmi(3, &Ask::Rprt(wwpn(1), wwpn(3), vec![])), DONE);
    let seen = Accept::Names(vec![wwpn(1)]);
    assert_eq!(rig.fdmi(2, &Ask::Grpl(wwpn(1))), Ok(seen));
    let seen = Accept::Hba(vec![wwpn(1)], vec![]);
    assert_eq!(rig.fdmi(2, &Ask::Ghat(wwpn(1))), Ok(seen));
    let all = Accept::Names(vec![wwpn(1), wwpn(3)]);
    assert_eq!(rig.fdmi(1, &Ask::Grpl(wwpn(1))), Ok(all));
}

#[test]
fn an_hba_has_not_the_name_of_another_port() {
    let mut rig = rig(1..=2);
    let claims = Ask::Rhba(wwpn(1), vec![wwpn(2)], vec![]);
    assert_eq!(rig.fdmi(2, &claims), Err((0x09, 0x10)));
    // Before that port is there nothing speaks against it; it has its name back when it comes.
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.fdmi(2, &claims), DONE);
    rig.servers.logged_in(rig.now, login(1));
    rig.log_in(1, TO);
    assert_eq!(rig.fdmi(1, &rhba(1, vec![attribute(1, 8)])), DONE);
    let hba = Accept::Hba(vec![wwpn(1)], vec![attribute(1, 8)]);
    assert_eq!(rig.fdmi(2, &Ask::Ghat(wwpn(1))), Ok(hba));
    assert_eq!(rig.fdmi(2, &Ask::Dhba(wwpn(1))), Err((0x09, 0x10)));
}

/// 1,100 attributes fit in a request, but not in 32 KiB: each takes 32 bytes beside its value.
#[test]
fn a_registration_that_is_rejected_leaves_what_was_there() {
    let mut rig = rig(1..=1);
    let kept = vec![attribute(1, 8)];
    assert_eq!(rig.fdmi(1, &rhba(1, kept.clone())), DONE);
    assert_eq!(rig.fdmi(1, &Ask::Rpa(wwpn(1), kept.clone())), DONE);
    let large: Vec<_> = (0..1100).map(|kind| attribute(kind, 0)).collect();
    for request in [
        rhba(1, large.clone()),
        Ask::Rhba(Wwn(7), vec![], large.clone()),
        Ask::Rprt(wwpn(1), wwpn(1), large),
    ] {
        assert_eq!(rig.fdmi(1, &request), Err((0x09, 0)));
    }
    let hba = Accept::Hba(vec![wwpn(1)], kept.clone());
    assert_eq!(rig.fdmi(1, &Ask::Ghat(wwpn(1))), Ok(hba));
    let port = Accept::Attributes(kept);
    assert_eq!(rig.fdmi(1, &Ask::Gpat(wwpn(1))), Ok(port));
}

/// A change costs what is stored, also where it changes little: 8 ms for 32 KiB, of 2 s.
#[test]
fn changes_of_many_attributes_are_bounded() {
    let many: Vec<_> = (0..1000).map(|kind| attribute(kind, 0)).collect();
    let one = || vec![attribute(1, 0)];
    let changes = [
        Ask::Rhat(wwpn(1), one()),
        Ask::Dhat(wwpn(1), vec![attribute(2000, 0)]),
        Ask::Rpa(wwpn(1), one()),
        Ask::Dpa(wwpn(1), vec![attribute(2000, 0)]),
    ];
    for change in changes {
        let mut rig = rig(1..=1);
        assert_eq!(rig.fdmi(1, &rhba(1, many.clone())), DONE);
        assert_eq!(rig.fdmi(1, &Ask::Rpa(wwpn(1), many.clone())), DONE);
        let served = (0..1000).filter(|_| rig.fdmi(1, &change) == DONE).count();
        assert!((100..130).contains(&served), "{served} of {change:?}");
    }
}

/// 32 KiB of an HBA, and 32 MiB of all.
#[test]
fn what_is_kept_is_bounded() {
    let mut rig = rig(1..=2000);
    let kilobytes = |kinds: std::ops::Range<u16>| kinds.map(|kind| attribute(kind, 992)).collect();
    let mut full = 0;
    for number in 1..=2000 {
        assert_eq!(rig.fdmi(number, &rhba(number, vec![])), DONE);
        for step in 0..4 {
            let more = Ask::Rhat(wwpn(number), kilobytes(step * 8..step * 8 + 8));
            rig.sends((id(number), TO), CT, &more.encode(), 2112);
            let (header, _) = CtHeader::parse(&rig.sent_one().payload).unwrap();
            full += usize::from(header.outcome(&[]).is_err());
        }
        rig.pass(1);
    }
    assert_eq!(full, 4 * 2000 - 4 * 1024);
    let more = Ask::Rhat(wwpn(2000), kilobytes(0..1));
    assert_eq!(rig.fdmi(2000, &more), Err((0x09, 0)));
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.fdmi(2000, &more), DONE);
}

#[test]
fn an_answer_that_does_not_fit_and_requests_that_are_wrong() {
    let mut rig = rig(1..=1);
    assert_eq!(rig.fdmi(1, &rhba(1, vec![attribute(1, 64)])), DONE);
    let mut rejected = |bytes: &[u8]| {
        let sent = rig.ct(1, TO, bytes);
        let (header, _) = CtHeader::parse(&sent.payload).unwrap();
        (header.why.reason, header.why.explanation)
    };
    let mut tight = Ask::Ghat(wwpn(1)).encode();
    tight[11] = 4;
    assert_eq!(rejected(&tight), (0x04, 0));
    let ask = Ask::Rpa(wwpn(1), vec![attribute(1, 4)]).encode();
    assert_eq!(rejected(&ask[..ask.len() - 1]), (0x04, 0));
    let mut other = ask.clone();
    other[8] = 0x77;
    assert_eq!(rejected(&other), (0x0b, 0));
    let mut names = ask;
    names[4] = 0xfc;
    assert_eq!(rejected(&names), (0x0b, 0));
}
