//! The fast path: hosts at `vb` and `vd`, a switch at `va` and `vc`.

use super::super::EtherOpenError;
use super::super::fast_path::{
    FastPath, FastPathCounters, FastPathError, ForwardedPair, FrameNumber, RouteNumber,
};
use super::super::xdp::XdpPort;
use super::*;

mod mtu_2500 {
    super::on_veth_as_root! { 2500:
        frames_of_a_pair_go_on_in_the_kernel
        each_check_sends_a_frame_up
        no_frame_overtakes_one_that_went_up
        a_number_that_a_frame_came_with_is_no_number
        a_pair_that_was_taken_out_goes_up
        a_fabric_on_a_vlan_has_its_tag_and_priority
        a_tag_beside_a_frame_is_not_lost
        what_is_too_long_for_its_egress_goes_up
        an_egress_that_is_gone_sends_frames_up
        one_ingress_does_not_take_the_pairs_of_another
        interfaces_that_cannot_have_it_are_named
    }
}

const HOST: EtherMac = [0x0e, 0xfc, 0, 1, 1, 0];
const TARGET: EtherMac = [0x0e, 0xfc, 0, 1, 1, 1];

/// Ports of a switch and the hosts behind them, and a pair from the first to the second.
struct Rig {
    switch: [EtherPort; 2],
    hosts: [EtherPort; 2],
    path: FastPath,
    pair: ForwardedPair,
}

impl Rig {
    fn new(tci: Option<u16>) -> Self {
        ip("link add vc mtu 2500 type veth peer name vd mtu 2500");
        ip("link set vc up");
        ip("link set vd up");
        let open = |name: &str| {
            EtherPort::open(&Place::Interface(name.into()), &EtherOptions::default()).unwrap()
        };
        let switch = ["va", "vc"].map(open);
        let mut hosts = ["vb", "vd"].map(open);
        hosts[1].join(TARGET).unwrap();
        let mut path = FastPath::new(2, 2).unwrap();
        for (port, ether) in (0..).zip(&switch) {
            path.attach(port, ether).unwrap();
        }
        let pair = ForwardedPair {
            ingress: 0,
            egress: 1,
            tci,
            s_id: 0x01_0100,
            d_id: 0x01_0101,
            arriving: [switch[0].mac(), HOST],
            leaving: [TARGET, switch[1].mac()],
            mtu: 2500,
        };
        Self {
            switch,
            hosts,
            path,
            pair,
        }
    }

    /// One whose pair goes on from the first frame on.
    fn open(tci: Option<u16>) -> (Self, RouteNumber) {
        let mut rig = Self::new(tci);
        let route = rig.insert();
        rig.send(&rig.frame(60));
        let number = rig.goes_up(&rig.frame(60)).unwrap();
        rig.path.has_left(route, number);
        (rig, route)
    }

    fn insert(&mut self) -> RouteNumber {
        self.path.insert(&self.pair).unwrap().unwrap()
    }

    /// A frame of the pair with so many bytes besides its tag.
    fn frame(&self, len: usize) -> Vec<u8> {
        let [dst, src] = self.pair.arriving;
        let mut frame = [&dst[..], &src, &FCOE.to_be_bytes(), &[0; 13], &[0x2e]].concat();
        frame.extend([0x06, 1, 1, 1, 0, 1, 1, 0]);
        frame.extend((frame.len()..len).map(|at| (at * 7) as u8));
        frame[len - 4..].copy_from_slice(&[0x42, 0, 0, 0]);
        match self.pair.tci {
            Some(tci) => tagged(&frame, tci),
            None => frame,
        }
    }

    fn send(&mut self, frame: &[u8]) {
        send(&mut self.hosts[0], frame);
    }

    /// That a frame comes to the socket of the switch as it is here, but for the number in it.
    #[track_caller]
    fn goes_up(&mut self, frame: &[u8]) -> Option<FrameNumber> {
        self.go_up(1, frame)[0]
    }

    /// The same, of several that are alike.
    #[track_caller]
    fn go_up(&mut self, count: usize, frame: &[u8]) -> Vec<Option<FrameNumber>> {
        let taken = receive(&mut self.switch[0], count).into_iter();
        let numbers = taken.map(|taken| {
            let mut taken = whole(taken);
            let is_tagged = taken[12..].starts_with(&[0x81, 0]);
            let header = if is_tagged { 18 } else { 14 };
            let number = FrameNumber::of(&taken, header);
            FrameNumber::erase(&mut taken, header);
            assert_eq!(taken, frame);
            number
        });
        numbers.collect()
    }

    /// That a frame comes to the second host as the switch would have sent it, and to no socket of
    /// the switch.
    #[track_caller]
    fn goes_on(&mut self, frame: &[u8]) {
        let [dst, src] = self.pair.leaving;
        let expected = [&dst[..], &src, &frame[12..]].concat();
        assert_eq!(whole(receive(&mut self.hosts[1], 1).remove(0)), expected);
        quiet(&mut self.switch[0]);
    }
}

/// A frame with the tag that the kernel took out.
fn whole((frame, tci): Taken) -> Vec<u8> {
    match tci {
        Some(tci) => tagged(&frame, tci),
        None => frame,
    }
}

fn tagged(plain: &[u8], tci: u16) -> Vec<u8> {
    [&plain[..12], &[0x81, 0], &tci.to_be_bytes(), &plain[12..]].concat()
}

fn frames_of_a_pair_go_on_in_the_kernel() {
    let (mut rig, _) = Rig::open(None);
    for len in [60, 64, 1512, 2172] {
        let mut frame = rig.frame(len);
        for (sof, eof) in [(0x2e, 0x42), (0x36, 0x41)] {
            (frame[27], frame[len - 4]) = (sof, eof);
            rig.send(&frame);
            rig.goes_on(&frame);
        }
    }
    let (frames, bytes) = (8, 2 * (60 + 64 + 1512 + 2172));
    let counters = FastPathCounters { frames, bytes };
    assert_eq!(rig.path.counters(0).unwrap(), counters);
    assert_eq!(rig.path.counters(1).unwrap(), FastPathCounters::default());
}

fn each_check_sends_a_frame_up() {
    let (mut rig, _) = Rig::open(None);
    let plain = rig.frame(2172);
    let changed = |at: usize, value: u8| {
        let mut frame = plain.clone();
        frame[at] = value;
        frame
    };
    for (what, frame) in [
        ("source address", changed(11, 2)),
        ("version", changed(14, 0x10)),
        ("SOF", changed(27, 0x2d)),
        ("EOF", changed(2168, 0x49)),
        ("D_ID", changed(31, 2)),
        ("S_ID", changed(35, 2)),
        ("length", plain[..2170].to_vec()),
        ("more than Fibre Channel has", rig.frame(2176)),
        ("the VLAN of others", tagged(&plain, 0x6005)),
        ("the tag of no VLAN", tagged(&plain, 0x6000)),
    ] {
        rig.send(&frame);
        assert_eq!(rig.goes_up(&frame), None, "{what}");
    }
    quiet(&mut rig.hosts[1]);
    rig.send(&plain);
    rig.goes_on(&plain);
}

fn no_frame_overtakes_one_that_went_up() {
    let mut rig = Rig::new(None);
    let frame = rig.frame(64);
    rig.send(&frame);
    let route = rig.insert();
    for _ in 0..3 {
        rig.send(&frame);
    }
    // The first one came before the pair was there.
    let numbers = rig.go_up(4, &frame);
    assert_eq!(numbers[0], None);
    // The last one has not left yet.
    rig.path.has_left(route, numbers[2].unwrap());
    rig.send(&frame);
    let last = rig.goes_up(&frame).unwrap();
    rig.path.has_left(route, last);
    rig.send(&frame);
    rig.goes_on(&frame);
}

/// A host puts into reserved bytes what it likes.
fn a_number_that_a_frame_came_with_is_no_number() {
    let (mut rig, route) = Rig::open(None);
    rig.path.remove(&rig.pair, route).unwrap();
    rig.insert();
    let plain = rig.frame(64);
    let mut forged = plain.clone();
    forged[18..22].fill(0xff);
    for sent in [&forged, &plain] {
        rig.send(sent);
        assert!(rig.goes_up(&plain).is_some());
    }
}

fn a_pair_that_was_taken_out_goes_up() {
    let (mut rig, route) = Rig::open(None);
    let frame = rig.frame(64);
    rig.send(&frame);
    rig.goes_on(&frame);
    rig.path.remove(&rig.pair, route).unwrap();
    rig.send(&frame);
    assert_eq!(rig.goes_up(&frame), None);
    quiet(&mut rig.hosts[1]);
}

fn a_fabric_on_a_vlan_has_its_tag_and_priority() {
    let (mut rig, _) = Rig::open(Some(0x6098));
    let frame = rig.frame(2172);
    // Whatever priority it came with.
    let mut other = frame.clone();
    other[14] = 0x20;
    for sent in [&frame, &other] {
        rig.send(sent);
        rig.goes_on(&frame);
    }
    let untagged = [&frame[..12], &frame[16..]].concat();
    rig.send(&untagged);
    assert_eq!(rig.goes_up(&untagged), None);
}

/// Where the network stack has taken a tag out and keeps it beside the frame, the program cannot
/// see it: as a bridge does, which sends by `vb` what comes in by `vg`.
fn a_tag_beside_a_frame_is_not_lost() {
    let (mut rig, _) = Rig::open(None);
    ip("link add ve mtu 2500 type veth peer name vg mtu 2500");
    ip("link set ve up");
    ip("link set vg up");
    ip("link add name bridge0 type bridge");
    ip("link set bridge0 up");
    ip("link set vg master bridge0");
    ip("link set vb master bridge0");
    let beside = Place::Interface("ve".into());
    let mut beside = EtherPort::open(&beside, &EtherOptions::default()).unwrap();
    let frame = rig.frame(64);
    send(&mut beside, &tagged(&frame, 0x6005));
    // In the VLAN of others, it stays there.
    assert_eq!(receive(&mut rig.hosts[1], 1)[0].1, Some(0x6005));
    assert_eq!(rig.path.counters(0).unwrap().frames, 1, "in the kernel");
}

fn what_is_too_long_for_its_egress_goes_up() {
    let mut rig = Rig::new(None);
    rig.pair.mtu = 1500;
    let route = rig.insert();
    let (fits, long) = (rig.frame(1512), rig.frame(1516));
    rig.send(&fits);
    let number = rig.goes_up(&fits).unwrap();
    rig.path.has_left(route, number);
    rig.send(&fits);
    rig.goes_on(&fits);
    rig.send(&long);
    assert_eq!(rig.goes_up(&long), None);
}

fn an_egress_that_is_gone_sends_frames_up() {
    let (mut rig, _) = Rig::open(None);
    ip("link del vc");
    let frame = rig.frame(64);
    rig.send(&frame);
    // Its addresses are those of the way out, so no port takes it.
    quiet(&mut rig.switch[0]);
    rig.path.detach(1);
    assert_eq!(rig.path.insert(&rig.pair).unwrap(), None);
}

/// As a guest with many N_Ports would have it: its port has half of all pairs, and no more.
fn one_ingress_does_not_take_the_pairs_of_another() {
    let mut rig = Rig::new(None);
    let pair = rig.pair;
    let from = |ingress, s_id| ForwardedPair {
        ingress,
        s_id,
        ..pair
    };
    let mut insert = |pair| rig.path.insert(&pair).unwrap();
    let taken = (0..20_000).take_while(|s_id| insert(from(0, *s_id)).is_some());
    assert_eq!(taken.count(), 8_192);
    let other = insert(from(1, 1)).unwrap();
    assert!(insert(from(0, 20_001)).is_none());
    // What is taken out makes room at its own ingress.
    rig.path.remove(&from(1, 1), other).unwrap();
    let mut insert = |pair| rig.path.insert(&pair).unwrap();
    assert!(insert(from(0, 20_001)).is_none());
    let first = insert(from(1, 2)).unwrap();
    rig.path.remove(&from(1, 2), first).unwrap();
}

fn interfaces_that_cannot_have_it_are_named() {
    let mut rig = Rig::new(None);
    let mut refused = |port: &EtherPort| {
        let refused = rig.path.attach(0, port).unwrap_err();
        // Else pairs towards an interface that was made anew would go to the one that is gone.
        assert!(!rig.path.is_attached(0));
        refused
    };
    let open = |place: &str| EtherPort::open(&place.parse().unwrap(), &EtherOptions::default());
    let xdp = open("xdp:vd").unwrap();
    assert!(matches!(refused(&xdp), FastPathError::NoInterface));
    let beside = open("vd").unwrap();
    assert!(matches!(refused(&beside), FastPathError::Occupied(name) if name == "vd"));
    drop(rig);
    // What was attached is gone with it.
    XdpPort::open("va", &EtherOptions::default()).unwrap();
    assert!(matches!(
        XdpPort::open("no", &EtherOptions::default()),
        Err(EtherOpenError::Missing(_))
    ));
}
