//! What a VN_Port asks of the services of the fabric, as FCoE.

use super::rig::{fcf, fcoe_frame, frames, host, ms, receive, switch, told, vn, wait};
use crate::fabric::{DropReason, PortNumber, Switch, Verdict};
use crate::wire::els::{Code, Els, LinkErrors, Logo, Reply, Rscn};
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::fcoe::{self, Eof, Sof};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

const FIRST: FcId = FcId(0x01_0100);

/// An ELS of the VN_Port of host 1 to a service.
fn els(to: FcId, els: &Els) -> Vec<u8> {
    let ethernet = EthernetHeader::new(vn(FIRST), fcf(1, 0), ethernet::FCOE);
    let header = FrameHeader::request((RCtl::ELS_REQUEST, FrameType::ELS), (FIRST, to), OxId(3));
    crate::tests::frame(&ethernet, (Sof::I3, Eof::T), &header, &els.encode())
}

/// The answers that go out at port 0, each with the service that they are from.
fn asked(switch: &mut Switch, to: FcId, request: &Els) -> Vec<(FcId, Reply)> {
    let verdict = receive(switch, 2, 0, &mut els(to, request));
    assert_eq!(verdict, Verdict::Taken);
    let answer = |frame: Vec<u8>| {
        let (ethernet, bytes) = EthernetHeader::parse(&frame).unwrap();
        assert_eq!((ethernet.src, ethernet.dst), (fcf(1, 0), vn(FIRST)));
        let frame = fcoe::decode(bytes).unwrap();
        assert_eq!(frame.header.d_id, FIRST);
        assert_eq!(frame.header.ox_id, OxId(3));
        let reply = Reply::parse(request.code(), frame.payload).unwrap();
        (frame.header.s_id, reply)
    };
    frames(switch, 0).into_iter().map(answer).collect()
}

fn logged_in() -> Switch {
    let mut switch = switch();
    assert_eq!(host(0, 1).log_in(&mut switch, 1), FIRST);
    switch
}

#[test]
fn the_name_server_takes_a_plogi() {
    let mut switch = logged_in();
    let mut parameters = host(0, 1).parameters();
    parameters.class_3.receive_size = 2112;
    let plogi = Els::Plogi(parameters);
    let answers = asked(&mut switch, FcId::DIRECTORY, &plogi);
    assert!(matches!(answers[..], [(FcId::DIRECTORY, Reply::Login(_))]));
    assert_eq!(switch.registered().count(), 1);
}

#[test]
fn the_f_port_tells_the_times_of_the_fabric() {
    let mut switch = logged_in();
    let answers = asked(&mut switch, FcId::FABRIC_F, &Els::Rtv);
    let [(FcId::FABRIC_F, Reply::Rtv(times))] = answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!((times.r_a_tov_ms, times.e_d_tov_ms()), (10_000, 2_000));
}

/// The answer goes out although the login is over.
/// What the switch has counted, and what it was told that its carrier has.
#[test]
fn rls_tells_what_went_wrong_at_the_port() {
    let mut switch = logged_in();
    switch.link(ms(1), PortNumber(1), false);
    switch.link(ms(2), PortNumber(1), true);
    let (asking, silent) = (host(0, 1), host(1, 2));
    switch.link(ms(3), PortNumber(0), false);
    switch.link(ms(4), PortNumber(0), true);
    assert_eq!(asking.log_in(&mut switch, 5), FIRST);
    silent.log_in(&mut switch, 5);
    host(0, 3).log_in(&mut switch, 5);
    receive(&mut switch, 19_000, 0, &mut asking.keep_alive());
    wait(&mut switch, 20_100, 0);
    told(&mut switch);
    let mut damaged = fcoe_frame(0, FIRST, FcId::DIRECTORY, 64);
    damaged[60] ^= 1;
    receive(&mut switch, 20_100, 0, &mut damaged);
    let carrier = LinkErrors {
        invalid_words: 5,
        invalid_crcs: 2,
        ..LinkErrors::default()
    };
    switch.set_carrier_errors(PortNumber(0), carrier);
    let expected = LinkErrors {
        link_failures: 1,
        sync_losses: 1,
        signal_losses: 1,
        protocol_errors: 0,
        invalid_words: 5,
        invalid_crcs: 3,
    };
    let answers = asked(&mut switch, FcId::FABRIC_F, &Els::Rls(FcId(0)));
    assert_eq!(answers, [(FcId::FABRIC_F, Reply::Rls(expected))]);
}

#[test]
fn a_logo_as_fcoe_ends_the_login() {
    let mut switch = logged_in();
    let logo = Els::Logo(Logo {
        fc_id: FIRST,
        wwpn: host(0, 1).wwpn,
    });
    assert_eq!(logo.code(), Code::LOGO);
    let answers = asked(&mut switch, FcId::FABRIC_F, &logo);
    assert_eq!(answers, [(FcId::FABRIC_F, Reply::Accept)]);
    assert_eq!(told(&mut switch), ["010100 out, LoggedOut"]);
    assert_eq!(switch.registered().count(), 0);
    let again = receive(&mut switch, 3, 0, &mut els(FcId::FABRIC_F, &logo));
    assert_eq!(again, Verdict::Dropped(DropReason::NotLoggedIn));
}

/// The other host is at another port of the switch.
#[test]
fn a_host_that_registered_is_told_who_is_gone() {
    let mut switch = logged_in();
    let other = host(1, 2).log_in(&mut switch, 1);
    let answers = asked(&mut switch, FcId::FABRIC_CONTROLLER, &Els::Scr(3));
    assert_eq!(answers, [(FcId::FABRIC_CONTROLLER, Reply::Accept)]);
    receive(&mut switch, 3, 1, &mut host(1, 2).logo(other, 9));
    let mut notices = Vec::new();
    while let Some(at) = switch.next_deadline().filter(|at| *at < ms(2_000)) {
        switch.expire(at);
        notices.extend(frames(&mut switch, 0));
    }
    let [notice] = &notices[..] else {
        panic!("{notices:?}");
    };
    let (ethernet, bytes) = EthernetHeader::parse(notice).unwrap();
    assert_eq!((ethernet.src, ethernet.dst), (fcf(1, 0), vn(FIRST)));
    let frame = fcoe::decode(bytes).unwrap();
    assert_eq!(frame.header.s_id, FcId::FABRIC_CONTROLLER);
    let rscn = Els::parse(frame.payload);
    assert_eq!(rscn, Ok(Els::Rscn(Rscn(vec![(0, other)]))));
}

/// A port that goes down takes with it what waits for its hosts.
#[test]
fn what_waits_at_a_port_goes_with_its_link() {
    let mut switch = logged_in();
    receive(&mut switch, 2, 0, &mut els(FcId::FABRIC_F, &Els::Rtv));
    let port = PortNumber(0);
    switch.link(ms(3), port, false);
    switch.link(ms(4), port, true);
    assert!(frames(&mut switch, 0).is_empty());
}

/// A switch forwards optional headers, but has no use for them itself.
#[test]
fn what_the_services_cannot_read_is_dropped() {
    let mut switch = logged_in();
    let mut header = FrameHeader::new(
        (RCtl::ELS_REQUEST, FrameType::ELS),
        (FIRST, FcId::DIRECTORY),
        (OxId(3), RxId::UNASSIGNED),
    );
    header.df_ctl = 0x10;
    let ethernet = EthernetHeader::new(vn(FIRST), fcf(1, 0), ethernet::FCOE);
    let delimiters = (Sof::I3, Eof::T);
    let mut frame = crate::tests::frame(&ethernet, delimiters, &header, &[0; 16]);
    let verdict = receive(&mut switch, 2, 0, &mut frame);
    assert_eq!(verdict, Verdict::Dropped(DropReason::Malformed));
}
