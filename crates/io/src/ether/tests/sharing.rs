//! Several sockets at one interface, and which of them gets what.

use super::*;

mod mtu_2500 {
    super::on_veth_as_root! { 2500:
        frames_go_where_their_initiator_is_steered
        an_interface_that_is_made_anew_is_the_first_ones_alone
    }
}

mod cable {
    use super::*;

    #[test]
    fn a_cable_is_not_shared_but_another_port_sends_by_it() {
        let Pair {
            mut a,
            mut b,
            _folder,
        } = Pair::cable();
        let mut other = a.sender(&EtherOptions::default()).unwrap();
        assert!(a.share(&[&other]).is_err());
        let frame = fcp(b.mac(), 1);
        send(&mut other, &frame);
        assert_eq!(receive(&mut b, 1), [(frame, None)]);
        // Nothing comes in there, and the end of the cable stays when it goes.
        let answer = fcp(a.mac(), 2);
        send(&mut b, &answer);
        quiet(&mut other);
        drop(other);
        assert_eq!(receive(&mut a, 1), [(answer, None)]);
        send(&mut b, &fcp(a.mac(), 3));
        receive(&mut a, 1);
    }
}

/// A frame of FCP whose S_ID ends in this number.
fn fcp(to: EtherMac, s_id: u16) -> Vec<u8> {
    let mut bytes = frame(to, FCOE, 100);
    bytes[34..36].copy_from_slice(&s_id.to_be_bytes());
    bytes[36] = 8;
    bytes
}

/// A link service of that one.
fn els(to: EtherMac, s_id: u16) -> Vec<u8> {
    let mut bytes = fcp(to, s_id);
    bytes[36] = 1;
    bytes
}

/// A pair whose end `a` shares what comes in with two others.
fn shared() -> (Pair, [EtherPort; 2]) {
    let mut pair = Pair::veth(&EtherOptions::default());
    let others = [(); 2].map(|()| pair.a.sharer(&EtherOptions::default()).unwrap());
    pair.a.share(&others.each_ref()).unwrap();
    (pair, others)
}

fn frames_go_where_their_initiator_is_steered() {
    let (mut pair, mut others) = shared();
    let a = pair.a.mac();
    assert!(pair.a.steer(0x0101, 1).unwrap());
    assert!(pair.a.steer(0x0102, 2).unwrap());
    for (frame, to) in [
        (fcp(a, 0x0101), 1),
        (fcp(a, 0x0102), 2),
        (fcp(a, 0x0103), 0),
        (els(a, 0x0101), 0),
        (frame(a, FIP, 100), 0),
    ] {
        send(&mut pair.b, &frame);
        let port = match to {
            0 => &mut pair.a,
            other => &mut others[other - 1],
        };
        assert_eq!(receive(port, 1), [(frame, None)], "{to}");
    }
    assert!(pair.a.steer(0x0101, 0).unwrap());
    send(&mut pair.b, &fcp(a, 0x0101));
    receive(&mut pair.a, 1);
    others.iter_mut().for_each(quiet);
    // Each of them sends.
    for port in &mut others {
        let frame = fcp(pair.b.mac(), 7);
        send(port, &frame);
        assert_eq!(receive(&mut pair.b, 1), [(frame, None)]);
    }
}

/// A socket that shares cannot be bound to another interface.
fn an_interface_that_is_made_anew_is_the_first_ones_alone() {
    let (mut pair, mut others) = shared();
    assert!(pair.a.steer(0x0101, 1).unwrap());
    ip("link del va");
    for port in [&mut pair.a, &mut pair.b].into_iter().chain(&mut others) {
        assert!(!news(port).up);
    }
    ip("link add va mtu 2500 type veth peer name vb mtu 2500");
    ip("link set vb up");
    ip("link set va up");
    for port in [&mut pair.a, &mut pair.b].into_iter().chain(&mut others) {
        while !port.link().up {
            ready(port, LONG);
            port.receive(|_, _| {});
            port.news().unwrap();
        }
    }
    let (frame, answer) = (fcp(pair.a.mac(), 0x0101), fcp(pair.b.mac(), 1));
    send(&mut pair.b, &frame);
    assert_eq!(receive(&mut pair.a, 1), [(frame, None)]);
    send(&mut others[0], &answer);
    assert_eq!(receive(&mut pair.b, 1), [(answer, None)]);
}
