//! The machine of the switch: frames between two VN_Ports, untagged and on a VLAN, with zones and
//! without; and frames that it drops.

use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{DropReason, PortNumber, Switch, SwitchConfig, SwitchPortConfig, Verdict};
use fc::frames::FrameSink;
use fc::tests::{EnodeFrames, fcf_mac, switch_port};
use fc::wire::ethernet::{Mac, VlanTag};
use fc::wire::frame::{FrameType, RCtl};
use fc::wire::names::FcId;
use io::counting::allocations;

/// A switch of two ports with a host at each, and a slot where frames leave.
struct Rig {
    switch: Switch,
    vlan: Option<VlanTag>,
    slot: Vec<u8>,
}

/// Longer than any frame.
const SLOT: usize = 2500;

/// What the switch itself says is of no interest.
struct Unheard([u8; SLOT]);

impl FrameSink for Unheard {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.get_mut(..len)
    }

    fn commit(&mut self, _len: usize) {}
}

/// The host at this port.
fn host(port: u8, vlan: Option<VlanTag>) -> EnodeFrames {
    EnodeFrames {
        vlan,
        ..EnodeFrames::new(Mac([2, 0, 0, 0, 0, port]), fcf_mac(port))
    }
}

impl Rig {
    fn new(zones: Zones, vlan: Option<VlanTag>) -> Self {
        let config = SwitchConfig {
            zones: Arc::new(zones),
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(&config, Duration::ZERO, [1; 8]);
        for port in 0..2 {
            let number = switch.add_port(SwitchPortConfig {
                tag: vlan,
                ..switch_port(port)
            });
            switch.link(Duration::ZERO, number, true);
            switch.receive(Duration::ZERO, number, &host(port, vlan).flogi(1));
        }
        let slot = vec![0; SLOT];
        let mut rig = Self { switch, vlan, slot };
        assert_eq!(rig.switch.logins().count(), 2);
        rig.settle();
        rig
    }

    fn settle(&mut self) {
        while self.switch.poll().is_some() {}
        for port in 0..2 {
            let mut unheard = Unheard([0; SLOT]);
            self.switch.transmit(PortNumber(port), &mut unheard);
        }
    }

    /// The N_Port_ID of the host at a port.
    fn id(&self, port: u16) -> FcId {
        let mut logins = self.switch.logins();
        let login = logins.find(|login| login.port == PortNumber(port));
        login.unwrap().fc_id
    }

    /// A full frame of a VN_Port at port 0.
    fn frame(&self, ids: (FcId, FcId)) -> Vec<u8> {
        let kind = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
        host(0, self.vlan).fcoe(kind, ids, 7, &[0x5a; 2112])
    }

    /// A frame from the one host to the other.
    fn passing(&self) -> Vec<u8> {
        self.frame((self.id(0), self.id(1)))
    }

    /// A frame comes in at port 0, and goes out if it may.
    fn take(&mut self, frame: &[u8]) -> Result<usize, DropReason> {
        match self.switch.receive(Duration::ZERO, PortNumber(0), frame) {
            Verdict::Forward(way) => Ok(way.write(frame, &mut self.slot)),
            Verdict::Dropped(reason) => Err(reason),
            Verdict::Taken => panic!("for the switch itself"),
        }
    }

    /// After the first one, 100,000 frames that come to the same do not use the heap.
    #[track_caller]
    fn costs_nothing(&mut self, frame: &[u8], outcome: Result<usize, DropReason>) {
        assert_eq!(self.take(frame), outcome);
        self.settle();
        let before = allocations();
        for _ in 0..100_000 {
            assert_eq!(self.take(frame), outcome);
        }
        assert_eq!(allocations() - before, 0, "{outcome:?}");
    }

    #[track_caller]
    fn passes_for_nothing(&mut self) {
        let frame = self.passing();
        self.costs_nothing(&frame, Ok(frame.len()));
    }
}

/// One zone has both hosts, among others.
fn zoned() -> Zones {
    let text = "zone one = port:eth0\n\
                zone two = port:eth1\n\
                zone both = port:eth0 port:eth1\n\
                zoneset all = one two both\n\
                active all";
    Zones::parse(text).unwrap()
}

const VLAN: VlanTag = VlanTag {
    priority: 3,
    dei: false,
    vid: 152,
};

#[test]
fn frames_that_a_switch_forwards_do_not_use_the_heap() {
    for zones in [Zones::open(), zoned()] {
        Rig::new(zones.clone(), None).passes_for_nothing();
        Rig::new(zones, Some(VLAN)).passes_for_nothing();
    }
}

#[test]
fn frames_that_a_switch_drops_do_not_use_the_heap() {
    let mut rig = Rig::new(Zones::closed(), None);
    let frame = rig.passing();
    rig.costs_nothing(&frame, Err(DropReason::Zoned));
    let spoofed = rig.frame((rig.id(1), rig.id(0)));
    rig.costs_nothing(&spoofed, Err(DropReason::Spoofed));
    let stranger = rig.frame((FcId(0x01_0900), rig.id(1)));
    rig.costs_nothing(&stranger, Err(DropReason::NotLoggedIn));
}

/// It is told by Clear Virtual Links that it is, once a second.
#[test]
fn frames_of_a_port_that_was_logged_out_do_not_use_the_heap() {
    let mut rig = Rig::new(Zones::open(), Some(VLAN));
    let (frame, gone) = (rig.passing(), rig.id(0));
    let logo = host(0, rig.vlan).logo(gone, 2);
    rig.switch.receive(Duration::ZERO, PortNumber(0), &logo);
    rig.settle();
    rig.costs_nothing(&frame, Err(DropReason::NotLoggedIn));
}
