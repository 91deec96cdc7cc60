//! What a port in a fabric asks on behalf of other programs.

use super::rig::{FCF, INITIATOR, Rig, SWITCH, TARGET, in_fabric};
use crate::frames::SINGLE;
use crate::port::tests::rig::ms;
use crate::port::{FcQuery, FcQueryError, FcQueryId, QUERIES_MAX};
use crate::tests::frame;
use crate::wire::ct::name_server::{AddressScope, Fc4Types, NameServerRequest, code};
use crate::wire::ct::{CtHeader, CtReject};
use crate::wire::els::{Code, Els, Logo, Reply};
use crate::wire::ethernet::{EthernetHeader, FCOE, Mac};
use crate::wire::fip::{self, Descriptor, FipOperation, Flags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

const ABSENT: FcId = FcId(0x01_0fff);

type Outcome = Result<Vec<u8>, FcQueryError>;

fn echo(to: FcId, data: &[u8]) -> FcQuery {
    FcQuery::els(to, Els::Echo(data.to_vec()).encode()).unwrap()
}

fn ask(rig: &mut Rig, query: FcQuery) -> Result<FcQueryId, FcQueryError> {
    rig.traced();
    rig.initiator.port.query(rig.now, query)
}

fn answered(rig: &mut Rig) -> Option<Outcome> {
    let answered = rig.initiator.port.answered_query();
    answered.map(|(_, outcome)| outcome)
}

/// The answer that has come at once.
fn answer(rig: &mut Rig, query: FcQuery) -> Vec<u8> {
    let id = ask(rig, query).unwrap();
    rig.pass(0);
    let (told, outcome) = rig.initiator.port.answered_query().unwrap();
    assert_eq!(told, id);
    outcome.unwrap()
}

/// Written by hand, as a program that knows nothing of our types would send it.
#[test]
fn an_echo_comes_back_as_it_was_sent() {
    let mut rig = Rig::up();
    let sent = [0x10, 0, 0, 0, 0, 0, 0, 1, 9, 8, 7];
    let query = FcQuery::els(TARGET, sent.to_vec()).unwrap();
    let got = answer(&mut rig, query);
    assert_eq!(got, [&[2, 0, 0, 0], &sent[4..]].concat());
    let trace = rig.traced();
    let expected = [" 2000 010101 > 010100 ECHO", " 2000 010100 > 010101 LS_ACC"];
    assert_eq!(trace, expected);
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
}

#[test]
fn ports_without_a_login_and_services_of_the_fabric_answer_too() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.rejects.push((code::GPN_FT, CtReject::new(9, 7)));
    rig.run(ms(1000));
    assert_eq!(rig.target.told, ["online 010100"]);
    let got = answer(&mut rig, echo(TARGET, &[7; 4]));
    assert_eq!(got, [2, 0, 0, 0, 7, 7, 7, 7]);
    assert_eq!(answer(&mut rig, echo(FcId::FABRIC_F, &[1])), [2, 0, 0, 0]);
}

#[test]
fn a_port_tells_its_link_errors() {
    let mut rig = Rig::up();
    let query = FcQuery::els(TARGET, Els::Rls(TARGET).encode()).unwrap();
    let got = answer(&mut rig, query);
    assert_eq!(got.len(), 28);
    assert!(matches!(Reply::parse(Code::RLS, &got), Ok(Reply::Rls(_))));
}

#[test]
fn the_name_server_accepts_and_rejects() {
    let mut rig = Rig::up();
    let ask_name = |of| FcQuery::ct(NameServerRequest::GpnId(of).encode()).unwrap();
    let got = answer(&mut rig, ask_name(TARGET));
    let wwpn = rig.target.port.wwpn().0.to_be_bytes();
    assert_eq!((&got[8..10], &got[16..]), (&[0x80, 2][..], &wwpn[..]));
    assert_eq!(rig.count(code::GPN_ID), 1);
    let got = answer(&mut rig, ask_name(ABSENT));
    let (header, _) = CtHeader::parse(&got).unwrap();
    assert_eq!(header.why, CtReject::new(9, 1));
}

/// E_D_TOV is 2 s. What comes later is not told any more.
#[test]
fn a_port_that_is_silent_is_told_of_and_asked_once() {
    let mut rig = Rig::up();
    ask(&mut rig, echo(ABSENT, &[1])).unwrap();
    rig.pass(1999);
    assert_eq!(answered(&mut rig), None);
    rig.pass(1);
    let silent = FcQueryError::Silent(ms(2000));
    assert_eq!(answered(&mut rig), Some(Err(silent)));
    assert_eq!(silent.to_string(), "no answer within 2000 ms");
    assert_eq!(rig.traced(), [" 2000 010101 > 010fff ECHO"]);
    for ox_id in (0..=u16::MAX).map(OxId) {
        deliver_accept(&mut rig, ABSENT, FCF, ox_id);
    }
    assert_eq!(answered(&mut rig), None);
}

/// An LS_ACC to the initiator.
fn deliver_accept(rig: &mut Rig, from: FcId, mac: Mac, ox_id: OxId) {
    let ethernet = EthernetHeader::new(mac, Mac::of_port(Mac::FC_MAP, INITIATOR), FCOE);
    let kind = (RCtl::ELS_REPLY, FrameType::ELS);
    let header = FrameHeader {
        f_ctl: FCtl::REPLY,
        ..FrameHeader::new(kind, (from, INITIATOR), (ox_id, RxId(1)))
    };
    let bytes = frame(&ethernet, SINGLE, &header, &[2, 0, 0, 0]);
    rig.deliver(&bytes);
}

#[test]
fn only_the_port_that_was_asked_can_answer() {
    let mut rig = Rig::up();
    let id = ask(&mut rig, echo(ABSENT, &[1])).unwrap();
    let liar = Mac([2, 9, 9, 9, 9, 9]);
    for ox_id in (0..=u16::MAX).map(OxId) {
        deliver_accept(&mut rig, ABSENT, liar, ox_id);
        deliver_accept(&mut rig, FcId(0x01_0ffe), FCF, ox_id);
    }
    assert_eq!(rig.initiator.port.answered_query(), None);
    for ox_id in (0..=u16::MAX).map(OxId) {
        deliver_accept(&mut rig, ABSENT, FCF, ox_id);
    }
    let answered = rig.initiator.port.answered_query();
    assert_eq!(answered, Some((id, Ok(vec![2, 0, 0, 0]))));
}

/// Whoever asks may be gone before it has an answer, and makes room for others.
#[test]
fn few_are_outstanding_at_a_time() {
    let mut rig = Rig::up();
    let ids = [(); QUERIES_MAX].map(|()| ask(&mut rig, echo(ABSENT, &[1])).unwrap());
    let refused = ask(&mut rig, echo(TARGET, &[1]));
    assert_eq!(refused, Err(FcQueryError::Busy));
    rig.initiator.port.forget_query(ids[0]);
    assert_eq!(answer(&mut rig, echo(TARGET, &[1])), [2, 0, 0, 0, 1]);
    rig.pass(2000);
    let silent = Some(Err(FcQueryError::Silent(ms(2000))));
    for _ in 1..QUERIES_MAX {
        assert_eq!(answered(&mut rig), silent);
    }
    assert_eq!(answered(&mut rig), None);
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
}

/// All else could end a login, or register what is not so.
#[test]
fn nothing_is_sent_that_changes_anything() {
    let logo = Logo {
        fc_id: INITIATOR,
        wwpn: Wwn(1),
    };
    for els in [Els::Logo(logo), Els::Scr(3), Els::Rtv] {
        let refused = FcQuery::els(TARGET, els.encode());
        assert_eq!(refused, Err(FcQueryError::NotAQuery), "{els:?}");
    }
    for bytes in [&[][..], &[0x10], &[0x0f, 0, 0, 0], &[2, 0, 0, 0]] {
        let refused = FcQuery::els(TARGET, bytes.to_vec());
        assert_eq!(refused, Err(FcQueryError::NotAQuery), "{bytes:?}");
    }
    let all = AddressScope::default();
    for request in [
        NameServerRequest::RftId(INITIATOR, Fc4Types::of(&[])),
        NameServerRequest::DaId(INITIATOR),
        NameServerRequest::GpnFt(all, FrameType::FCP),
    ] {
        let refused = FcQuery::ct(request.encode());
        assert_eq!(refused, Err(FcQueryError::NotAQuery), "{request:?}");
    }
    let whole = NameServerRequest::GpnId(TARGET).encode();
    for len in 0..whole.len() {
        assert!(FcQuery::ct(whole[..len].to_vec()).is_err(), "{len} bytes");
    }
    for (at, value) in [(0, 2), (4, 0xfa), (5, 3)] {
        let mut other = whole.clone();
        other[at] = value;
        assert!(FcQuery::ct(other).is_err(), "byte {at}");
    }
}

#[test]
fn one_that_fits_no_frame_is_refused_with_what_does() {
    let mut rig = Rig::up();
    let max = rig.initiator.port.payload_max();
    let longest = vec![5; usize::from(max) - 4];
    assert_eq!(answer(&mut rig, echo(TARGET, &longest))[4..], longest);
    let refused = ask(&mut rig, echo(TARGET, &[&longest[..], &[5]].concat()));
    assert_eq!(refused, Err(FcQueryError::TooLong(max)));
}

#[test]
fn without_a_login_nothing_is_asked() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    let early = ask(&mut rig, echo(TARGET, &[1]));
    assert_eq!(early, Err(FcQueryError::Offline));
    rig.is_mute = true;
    rig.run(ms(1000));
    let name = FcQuery::ct(NameServerRequest::GpnId(TARGET).encode()).unwrap();
    assert_eq!(ask(&mut rig, name), Err(FcQueryError::NotRegistered));
}

#[test]
fn a_login_that_ends_ends_what_was_asked() {
    let mut rig = Rig::up();
    ask(&mut rig, echo(ABSENT, &[1])).unwrap();
    let says = [Descriptor::Mac(FCF), Descriptor::Name(SWITCH)];
    let bytes = fip::encode(FipOperation::ClearVirtualLinks, Flags::F_PORT, &says);
    rig.send_fip(crate::tests::config(1).mac, &bytes, None);
    rig.pass(0);
    assert_eq!(answered(&mut rig), Some(Err(FcQueryError::Ended)));
    rig.pass(5000);
    assert_eq!(answered(&mut rig), None);
}
