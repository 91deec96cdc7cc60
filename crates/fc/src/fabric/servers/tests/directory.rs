//! The name server, as libfc and other initiators ask it.

use super::rig::{Rig, Sent, id, login, wwnn, wwpn};
use crate::fabric::zones::Zones;
use crate::wire::ct::name_server::{
    AddressScope, Fc4Types, FeatureBits, NameServerAccept, NameServerRequest, PortType,
    SymbolicName,
};
use crate::wire::ct::{CtHeader, CtService, HEADER_LEN};
use crate::wire::els::{Els, Reply};
use crate::wire::frame::FrameType;
use crate::wire::names::FcId;

type Ask = NameServerRequest;
type Accept = NameServerAccept;

const ALL: AddressScope = AddressScope { domain: 0, area: 0 };

/// What is answered, or reason and explanation of the reject.
fn answer(request: &NameServerRequest, sent: &Sent) -> Result<NameServerAccept, (u8, u8)> {
    let (header, payload) = CtHeader::parse(&sent.payload).unwrap();
    let payload = header.outcome(payload);
    let payload = payload.map_err(|why| (why.reason, why.explanation))?;
    Ok(NameServerAccept::parse(request.code(), payload).unwrap())
}

impl Rig {
    #[track_caller]
    pub(super) fn ask(&mut self, number: u32, request: &Ask) -> Result<Accept, (u8, u8)> {
        let sent = self.ct(number, FcId::DIRECTORY, &request.encode());
        answer(request, &sent)
    }

    /// A port comes up as libfc does it, to the last registration.
    pub(super) fn registers(&mut self, number: u32, features: u8) {
        self.log_in(number, FcId::DIRECTORY);
        let types = Fc4Types::of(&[FrameType::FCP, FrameType::CT]);
        let name = SymbolicName::new(format!("port {number}").as_bytes());
        let node = SymbolicName::new(format!("node {}", number / 10).as_bytes());
        let requests = [
            Ask::RnnId(id(number), wwnn(number)),
            Ask::RsnnNn(wwnn(number), node),
            Ask::RspnId(id(number), name),
            Ask::RftId(id(number), types),
            Ask::RffId(id(number), features, FrameType::FCP),
        ];
        for request in requests {
            assert_eq!(self.ask(number, &request), Ok(Accept::Empty), "{request:?}");
        }
    }
}

/// Target 1 with two initiators that do not see each other.
fn zoned() -> Rig {
    let zones = format!(
        "zone a = {target} {}\nzone b = {target} {}\nzoneset all = a b\nactive all",
        wwpn(11),
        wwpn(12),
        target = wwpn(1),
    );
    let mut rig = Rig::zoned(Zones::parse(&zones).unwrap(), [1, 11, 12, 13]);
    rig.registers(1, FeatureBits::FCP_TARGET);
    rig.registers(11, FeatureBits::FCP_INITIATOR);
    rig.registers(12, FeatureBits::FCP_INITIATOR);
    rig.log_in(13, FcId::DIRECTORY);
    rig
}

#[test]
fn an_initiator_finds_what_its_zones_have() {
    let mut rig = zoned();
    let names = |numbers: &[u32]| {
        let named = numbers.iter().map(|number| (id(*number), wwpn(*number)));
        Ok(Accept::Names(named.collect()))
    };
    let ask = Ask::GpnFt(ALL, FrameType::FCP);
    assert_eq!(rig.ask(11, &ask), names(&[1, 11]));
    assert_eq!(rig.ask(12, &ask), names(&[1, 12]));
    assert_eq!(rig.ask(1, &ask), names(&[1, 11, 12]));
    // Linux takes this for an empty fabric.
    assert_eq!(rig.ask(13, &ask), Err((0x09, 0x07)));
    let Ok(Accept::Features(features)) = rig.ask(11, &Ask::GffId(id(1))) else {
        unreachable!("no features")
    };
    assert_eq!(features.of(FrameType::FCP), FeatureBits::FCP_TARGET);
}

#[test]
fn each_question_about_a_port() {
    let mut rig = zoned();
    let types = Fc4Types::of(&[FrameType::FCP, FrameType::CT]);
    let rows = [
        (Ask::GpnId(id(1)), Accept::Name(wwpn(1))),
        (Ask::GnnId(id(1)), Accept::Name(wwnn(1))),
        (Ask::GfpnId(id(1)), Accept::Name(login(1).f_port_name)),
        (Ask::GcsId(id(1)), Accept::Classes(8)),
        (Ask::GptId(id(1)), Accept::PortType(PortType::N_PORT)),
        (Ask::GftId(id(1)), Accept::Types(types)),
        (
            Ask::GspnId(id(1)),
            Accept::SymbolicName(SymbolicName::new(b"port 1")),
        ),
        (
            Ask::GsnnNn(wwnn(1)),
            Accept::SymbolicName(SymbolicName::new(b"node 0")),
        ),
        (Ask::GidPn(wwpn(1)), Accept::Id(id(1))),
        (Ask::GidNn(wwnn(11)), Accept::Ids(vec![id(11)])),
        (
            Ask::GnnFt(ALL, FrameType::FCP),
            Accept::Names(vec![(id(1), wwnn(1)), (id(11), wwnn(11))]),
        ),
        (
            Ask::GidFt(ALL, FrameType::CT),
            Accept::Ids(vec![id(1), id(11)]),
        ),
        (
            Ask::GidPt(ALL, PortType::NX_PORT),
            Accept::Ids(vec![id(1), id(11)]),
        ),
        (Ask::GidFf(ALL, 1, FrameType::FCP), Accept::Ids(vec![id(1)])),
        (
            Ask::GidFf(ALL, 0, FrameType::FCP),
            Accept::Ids(vec![id(1), id(11)]),
        ),
        (Ask::GiA(0), Accept::Ids(vec![FcId(0x01_0000)])),
        (Ask::GiA(1), Accept::Ids(vec![FcId(0x01_0100)])),
    ];
    for (request, accept) in rows {
        assert_eq!(rig.ask(11, &request), Ok(accept), "{request:?}");
    }
}

/// Of a port that is not there, and of one in another zone, the same is told.
#[test]
fn what_is_not_to_be_seen_is_not_there() {
    let mut rig = zoned();
    for number in [12, 99] {
        let by_id = [
            Ask::GpnId,
            Ask::GnnId,
            Ask::GcsId,
            Ask::GftId,
            Ask::GspnId,
            Ask::GptId,
            Ask::GfpnId,
            Ask::GffId,
        ];
        for ask in by_id {
            assert_eq!(rig.ask(11, &ask(id(number))), Err((0x09, 0x01)));
        }
        assert_eq!(rig.ask(11, &Ask::GidPn(wwpn(number))), Err((0x09, 0x02)));
    }
    assert_eq!(rig.ask(1, &Ask::GidNn(wwnn(99))), Err((0x09, 0x03)));
    assert_eq!(rig.ask(1, &Ask::GsnnNn(wwnn(99))), Err((0x09, 0x03)));
    // Scopes and kinds that have none.
    let elsewhere = AddressScope { domain: 2, area: 0 };
    let area = AddressScope { domain: 1, area: 7 };
    for scope in [elsewhere, area] {
        assert_eq!(
            rig.ask(1, &Ask::GpnFt(scope, FrameType::FCP)),
            Err((0x09, 0x07))
        );
        assert_eq!(
            rig.ask(1, &Ask::GidPt(scope, PortType::N_PORT)),
            Err((0x09, 0x0a))
        );
        assert_eq!(
            rig.ask(1, &Ask::GidFf(scope, 1, FrameType::FCP)),
            Err((0x09, 0x13))
        );
    }
    assert_eq!(
        rig.ask(1, &Ask::GidPt(ALL, PortType(0x81))),
        Err((0x09, 0x0a))
    );
    assert_eq!(rig.ask(1, &Ask::GiA(2)), Err((0x09, 0x13)));
    assert_eq!(rig.ask(13, &Ask::GftId(id(13))), Err((0x09, 0x07)));
}

/// As `lunar ls switch` does: from 0 until the first one comes again.
#[test]
fn a_walk_through_all_ports() {
    let mut rig = zoned();
    let mut at = FcId(0);
    let mut walk = |rig: &mut Rig, number| {
        let Ok(Accept::Port(entry)) = rig.ask(number, &Ask::GaNxt(at)) else {
            unreachable!("no port")
        };
        at = entry.fc_id;
        entry
    };
    let first = walk(&mut rig, 11);
    assert_eq!(
        (first.fc_id, first.wwpn, first.wwnn),
        (id(1), wwpn(1), wwnn(1))
    );
    assert_eq!(first.symbolic_port.bytes(), b"port 1");
    assert_eq!(first.symbolic_node.bytes(), b"node 0");
    assert!(first.types.has(FrameType::FCP));
    assert_eq!(walk(&mut rig, 11).fc_id, id(11));
    assert_eq!(walk(&mut rig, 11).fc_id, id(1));
    // A port without any other sees itself.
    assert_eq!(walk(&mut rig, 13).fc_id, id(13));
    assert_eq!(walk(&mut rig, 13).fc_id, id(13));
    let Ok(Accept::Port(entry)) = rig.ask(13, &Ask::GaNxt(FcId(u32::MAX))) else {
        unreachable!("no port")
    };
    assert_eq!(entry.fc_id, id(13));
}

#[test]
fn a_port_registers_for_itself_only() {
    let mut rig = Rig::new([1, 2, 11]);
    rig.registers(1, 1);
    let name = SymbolicName::new(b"lies");
    let types = Fc4Types::of(&[FrameType::FCP]);
    let denied = [
        Ask::RpnId(id(2), wwpn(2)),
        Ask::RnnId(id(2), wwnn(2)),
        Ask::RcsId(id(2), 8),
        Ask::RftId(id(2), types),
        Ask::RspnId(id(2), name.clone()),
        Ask::RptId(id(2), PortType::N_PORT),
        Ask::RffId(id(2), 2, FrameType::FCP),
        Ask::DaId(id(2)),
        Ask::RsnnNn(wwnn(11), name),
        // Zones know it by these.
        Ask::RpnId(id(1), wwpn(2)),
        Ask::RnnId(id(1), wwnn(11)),
    ];
    for request in denied {
        assert_eq!(rig.ask(1, &request), Err((0x09, 0x10)), "{request:?}");
    }
    for request in [
        Ask::RpnId(id(1), wwpn(1)),
        Ask::RcsId(id(1), 0x0c),
        Ask::RptId(id(1), PortType(2)),
    ] {
        assert_eq!(rig.ask(1, &request), Ok(Accept::Empty), "{request:?}");
    }
    assert_eq!(rig.ask(1, &Ask::GcsId(id(1))), Ok(Accept::Classes(0x0c)));
    assert_eq!(rig.ask(1, &Ask::DaId(id(1))), Ok(Accept::Empty));
    assert_eq!(rig.ask(1, &Ask::GcsId(id(1))), Ok(Accept::Classes(8)));
    assert_eq!(
        rig.ask(1, &Ask::GpnFt(ALL, FrameType::FCP)),
        Err((0x09, 0x07))
    );
}

/// The WWNN is what a port says in its FLOGI: one that takes a target's neither reads nor changes
/// what the target registered.
#[test]
fn a_symbolic_node_name_is_told_within_zones_only() {
    let mut rig = zoned();
    let impostor = crate::fabric::servers::PortLogin {
        wwnn: wwnn(1),
        ..login(13)
    };
    rig.servers.logged_in(rig.now, impostor);
    rig.log_in(13, FcId::DIRECTORY);
    let entry_of = |rig: &mut Rig, number, after| {
        let Ok(Accept::Port(entry)) = rig.ask(number, &Ask::GaNxt(FcId(after))) else {
            unreachable!("no port")
        };
        (entry.fc_id, entry.symbolic_node)
    };
    let name = |name: &str| SymbolicName::new(name.as_bytes());
    let ask = Ask::GsnnNn(wwnn(1));
    let answer = |text| Ok(Accept::SymbolicName(name(text)));
    assert_eq!(rig.ask(13, &ask), answer(""));
    assert_eq!(entry_of(&mut rig, 13, 0), (id(13), name("")));
    let lies = Ask::RsnnNn(wwnn(1), name("lies"));
    assert_eq!(rig.ask(13, &lies), Ok(Accept::Empty));
    assert_eq!(rig.ask(13, &ask), answer("lies"));
    assert_eq!(rig.ask(11, &ask), answer("node 0"));
    assert_eq!(entry_of(&mut rig, 11, 0), (id(1), name("node 0")));
}

/// Each N_Port of Linux registers the name, but not at once.
#[test]
fn a_node_has_the_name_that_one_of_its_ports_registered() {
    let mut rig = Rig::new([1, 2, 3]);
    rig.log_in(1, FcId::DIRECTORY);
    let ask = Ask::GsnnNn(wwnn(1));
    let name = |name: &str| Ok(Accept::SymbolicName(SymbolicName::new(name.as_bytes())));
    assert_eq!(rig.ask(1, &ask), name(""));
    rig.registers(2, 1);
    assert_eq!(rig.ask(1, &ask), name("node 0"));
    rig.registers(3, 1);
    rig.servers.logged_out(rig.now, id(2));
    assert_eq!(rig.ask(1, &ask), name("node 0"));
    rig.servers.logged_out(rig.now, id(3));
    assert_eq!(rig.ask(1, &ask), name(""));
}

#[test]
fn what_a_port_registered_is_gone_with_it() {
    let mut rig = Rig::new([1, 2]);
    rig.registers(1, 1);
    rig.registers(2, 2);
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.ask(2, &Ask::GpnId(id(1))), Err((0x09, 0x01)));
    assert_eq!(rig.ask(2, &Ask::GidPn(wwpn(1))), Err((0x09, 0x02)));
    // The node has another port.
    let node = Accept::SymbolicName(SymbolicName::new(b"node 0"));
    assert_eq!(rig.ask(2, &Ask::GsnnNn(wwnn(1))), Ok(node));
    rig.servers.logged_in(rig.now, login(1));
    assert_eq!(rig.ask(2, &Ask::GftId(id(1))), Err((0x09, 0x07)));
    // The same port at another address.
    let moved = crate::fabric::servers::PortLogin {
        fc_id: id(3),
        ..login(1)
    };
    rig.servers.logged_in(rig.now, moved);
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.ask(2, &Ask::GidPn(wwpn(1))), Ok(Accept::Id(id(3))));
}

/// The first frame has SOFi3, the others SOFn3 and the next SEQ_CNT; the rig sees to that.
#[test]
fn a_long_list_comes_in_frames() {
    let mut rig = Rig::new(1..=200);
    (1..=200).for_each(|number| rig.registers(number, 1));
    let ask = Ask::GpnFt(ALL, FrameType::FCP);
    let sent = rig.ct(1, FcId::DIRECTORY, &ask.encode());
    assert_eq!((sent.frames, sent.payload.len()), (2, HEADER_LEN + 3200));
    let Ok(Accept::Names(names)) = answer(&ask, &sent) else {
        unreachable!("no names")
    };
    assert_eq!(names.len(), 200);
    // A port that takes 256 bytes only.
    let plogi = Els::Plogi(super::rig::parameters(1, 259));
    assert!(matches!(
        rig.els(1, FcId::DIRECTORY, &plogi),
        Reply::Login(_)
    ));
    assert_eq!(rig.ct(1, FcId::DIRECTORY, &ask.encode()).frames, 13);
    // And one that wants 10 entries only.
    let mut request = ask.encode();
    request[10..12].copy_from_slice(&43u16.to_be_bytes());
    let sent = rig.ct(1, FcId::DIRECTORY, &request);
    let (header, _) = CtHeader::parse(&sent.payload).unwrap();
    assert_eq!(
        (header.size, sent.payload.len()),
        (190 * 4, HEADER_LEN + 160)
    );
}

#[test]
fn requests_that_are_wrong() {
    let mut rig = Rig::new([1]);
    rig.registers(1, 1);
    let mut rejected = |bytes: &[u8]| {
        let sent = rig.ct(1, FcId::DIRECTORY, bytes);
        let (header, _) = CtHeader::parse(&sent.payload).unwrap();
        (header.why.reason, header.why.explanation)
    };
    let ask = Ask::GpnId(id(1)).encode();
    assert_eq!(rejected(&ask[..HEADER_LEN + 3]), (0x04, 0));
    let mut tight = ask.clone();
    tight[11] = 1;
    assert_eq!(
        rejected(&tight),
        (0x04, 0),
        "8 bytes do not fit in one word"
    );
    let mut other = ask.clone();
    other[8] = 0x77;
    assert_eq!(rejected(&other), (0x0b, 0));
    other[8] = 0x80;
    other[9] = 2;
    assert_eq!(rejected(&other), (0x0b, 0), "an answer is no request");
    let mut elsewhere = ask;
    elsewhere[4] = CtService::FDMI.kind;
    assert_eq!(rejected(&elsewhere), (0x0b, 0));
}

/// What many ports are looked at for is counted as many requests.
#[test]
fn searches_in_a_large_fabric_are_bounded() {
    let mut rig = Rig::new(1..=4096);
    rig.log_in(1, FcId::DIRECTORY);
    rig.log_in(2, FcId::DIRECTORY);
    let ask = Ask::GpnFt(ALL, FrameType::FCP);
    let busy = (0..100).filter(|_| rig.ask(1, &ask) == Err((0x05, 0)));
    assert_eq!(100 - busy.count(), 31);
    assert_eq!(rig.ask(2, &ask), Err((0x09, 0x07)));
    rig.pass(100);
    assert_eq!(rig.ask(1, &Ask::GpnId(id(1))), Ok(Accept::Name(wwpn(1))));
}

/// The ports of a node are walked through, too.
#[test]
fn searches_in_a_large_node_are_bounded() {
    let mut rig = Rig::new([]);
    for number in 1..=4096 {
        let login = crate::fabric::servers::PortLogin {
            wwnn: wwnn(1),
            ..login(number)
        };
        rig.servers.logged_in(rig.now, login);
    }
    rig.log_in(1, FcId::DIRECTORY);
    rig.log_in(2, FcId::DIRECTORY);
    for (number, ask) in [(1, Ask::GsnnNn(wwnn(1))), (2, Ask::GidNn(wwnn(1)))] {
        let busy = (0..100).filter(|_| rig.ask(number, &ask) == Err((0x05, 0)));
        assert_eq!(100 - busy.count(), 31, "{ask:?}");
    }
}

/// But who walks from one port to the next looks at one for each.
#[test]
fn a_walk_through_a_large_fabric_is_never_busy() {
    let mut rig = Rig::new(1..=4096);
    rig.log_in(1, FcId::DIRECTORY);
    let mut at = FcId(0);
    for _ in 0..4096 {
        let Ok(Accept::Port(entry)) = rig.ask(1, &Ask::GaNxt(at)) else {
            unreachable!("busy at {at}")
        };
        at = entry.fc_id;
    }
    assert_eq!(at, id(4096));
}
