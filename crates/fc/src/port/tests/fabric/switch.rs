//! Ports at a switch of our own: what one end takes for granted, the other does.

use std::sync::Arc;

use scsi::medium::{HeapLease, Now};

use super::rig::{End, in_fabric};
use crate::fabric::zones::Zones;
use crate::fabric::{PortNumber, Switch, SwitchConfig, SwitchPortConfig, Verdict};
use crate::fip::enode::FabricConfig;
use crate::initiator::{Data, FcpInitiator, FcpInitiatorConfig};
use crate::port::tests::rig::ms;
use crate::port::{Fc4Layer, NameWalkState, PortConfig, PortMode};
use crate::remote::RemoteId;
use crate::target::{FcpLimits, FcpTarget};
use crate::tests::disk::Disk;
use crate::tests::pair::lease;
use crate::tests::{HeapFrames, command, sent};
use crate::wire::ethernet::{Mac, VlanTag};
use crate::wire::names::Wwn;

/// A target at port 0 of a switch, and an initiator at port 1.
struct Rig {
    now: Now,
    switch: Switch,
    target: End<FcpTarget<HeapLease>>,
    /// Further ports of its ENode.
    further: Vec<End<FcpTarget<HeapLease>>>,
    initiator: End<FcpInitiator<HeapLease>>,
    disk: Disk,
    done: usize,
}

const TARGET: PortNumber = PortNumber(0);
const INITIATOR: PortNumber = PortNumber(1);

impl Rig {
    fn new([target, initiator]: [&PortConfig; 2], tag: Option<VlanTag>) -> Self {
        let config = SwitchConfig {
            zones: Arc::new(Zones::open()),
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(&config, ms(0), [3; 8]);
        for number in 0..2 {
            let port = switch.add_port(SwitchPortConfig {
                place: format!("cable:{number}").into(),
                mac: Mac([2, 0xff, 0, 0, 0, number]),
                mtu: 2500,
                tag,
                hears_partner: false,
            });
            switch.link(ms(0), port, true);
        }
        let fcp = FcpInitiator::new(FcpInitiatorConfig::default());
        Self {
            now: ms(0),
            switch,
            target: End::new(target, FcpTarget::new(FcpLimits::default())),
            further: Vec::new(),
            initiator: End::new(initiator, fcp),
            disk: Disk::new(vec![0; 64 << 10]),
            done: 0,
        }
    }

    /// Both are logged in with each other, at 4 s.
    fn up() -> Self {
        let mut rig = Self::new([&in_fabric(2), &in_fabric(1)], None);
        rig.run(ms(4000));
        assert_eq!(rig.target.told.last().unwrap(), "up 0");
        assert_eq!(rig.initiator.told.last().unwrap(), "up 0");
        (rig.target.told, rig.initiator.told) = (Vec::new(), Vec::new());
        rig
    }

    fn run(&mut self, until: Now) {
        loop {
            while self.turn() {}
            let times = [
                self.target.port.next_deadline(),
                self.initiator.port.next_deadline(),
                self.switch.next_deadline(),
            ];
            let further = self.further.iter().map(|end| end.port.next_deadline());
            let next = times.into_iter().chain(further).flatten().min();
            match next.filter(|next| *next <= until) {
                Some(next) => self.now = self.now.max(next),
                None => break,
            }
            self.target.port.expire(self.now);
            self.initiator.port.expire(self.now);
            for end in &mut self.further {
                end.port.expire(self.now);
            }
            self.switch.expire(self.now);
        }
        self.now = until;
    }

    /// What all of them send; whether there was anything.
    fn turn(&mut self) -> bool {
        while let Some(event) = self.target.port.poll() {
            if let crate::port::PortEvent::Down(id, _) = event {
                self.target.port.ended(self.now, id);
            }
            if let Some(event) = self.target.told(event) {
                self.disk.serve(self.target.port.fc4_mut(), event);
            }
        }
        for end in &mut self.further {
            while let Some(event) = end.port.poll() {
                if let crate::port::PortEvent::Down(id, _) = event {
                    end.port.ended(self.now, id);
                }
                end.told(event);
            }
        }
        while let Some(event) = self.initiator.port.poll() {
            self.done += usize::from(self.initiator.told(event).is_some());
        }
        let mut any = false;
        let frames = sent(&mut self.target.port);
        any |= self.forward(TARGET, frames);
        for at in 0..self.further.len() {
            let frames = sent(&mut self.further[at].port);
            any |= self.forward(TARGET, frames);
        }
        let frames = sent(&mut self.initiator.port);
        any |= self.forward(INITIATOR, frames);
        for number in [TARGET, INITIATOR] {
            let mut out = HeapFrames::default();
            self.switch.transmit(number, &mut out);
            for frame in out.frames {
                any = true;
                self.deliver(number, &frame);
            }
        }
        any
    }

    fn forward(&mut self, from: PortNumber, frames: Vec<Vec<u8>>) -> bool {
        let any = !frames.is_empty();
        for frame in frames {
            if let Verdict::Forward(way) = self.switch.receive(self.now, from, &frame) {
                let mut slot = vec![0; way.len(frame.len())];
                let len = way.write(&frame, &mut slot);
                self.deliver(way.egress, &slot[..len]);
            }
        }
        any
    }

    fn deliver(&mut self, number: PortNumber, frame: &[u8]) {
        match number {
            TARGET => {
                self.target.port.receive(self.now, frame, None);
                for end in &mut self.further {
                    end.port.receive(self.now, frame, None);
                }
            }
            _ => self.initiator.port.receive(self.now, frame, None),
        }
    }
}

/// Each port is told once, by N_Port_ID, the one that asks among them.
#[test]
fn a_walk_finds_all_ports_of_the_name_server() {
    let mut rig = Rig::up();
    assert_eq!(rig.initiator.port.walk_state(), NameWalkState::NotBegun);
    assert!(rig.initiator.port.walk_names(rig.now));
    rig.run(rig.now + ms(10));
    let port = &rig.initiator.port;
    assert_eq!(port.walk_state(), NameWalkState::Whole);
    let found = port.walked().iter();
    let found: Vec<_> = found.map(|entry| (entry.fc_id, entry.wwpn)).collect();
    let [ours, target] = [port.wwpn(), rig.target.port.wwpn()];
    let ids = [port.address(), rig.target.port.address()];
    let [our_id, target_id] = ids.map(|address| address.unwrap().fc_id);
    let mut expected = [(our_id, ours), (target_id, target)];
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn without_a_fabric_there_is_no_walk() {
    let mut rig = Rig::new([&in_fabric(2), &in_fabric(1)], None);
    assert!(!rig.initiator.port.walk_names(rig.now));
}

fn last<F: Fc4Layer>(end: &End<F>) -> &str {
    end.told.last().map_or("", String::as_str)
}

#[test]
fn a_command_goes_through() {
    let mut rig = Rig::up();
    let inquiry = command(1, &[0x12, 0, 0, 0, 36, 0], Data::In(lease(vec![0; 36])));
    let initiator = rig.initiator.port.fc4_mut();
    initiator.execute(rig.now, RemoteId(0), inquiry).unwrap();
    rig.run(ms(4001));
    assert_eq!(rig.done, 1);
}

#[test]
fn logins_last_while_keep_alives_come() {
    let mut rig = Rig::up();
    rig.run(ms(400_000));
    assert_eq!(rig.switch.logins().count(), 2);
    assert!(rig.target.told.is_empty() && rig.initiator.told.is_empty());
}

#[test]
fn what_is_registered_is_what_the_port_is() {
    let rig = Rig::up();
    let ports: Vec<_> = rig.switch.registered().collect();
    assert_eq!(ports.len(), 2);
    let names = [rig.target.port.wwpn(), rig.initiator.port.wwpn()];
    assert!(ports.iter().all(|port| names.contains(&port.login.wwpn)));
}

#[test]
fn zones_that_close_end_the_nexus_and_zones_that_open_bring_it_back() {
    let mut rig = Rig::up();
    rig.switch.set_zones(rig.now, Arc::new(Zones::closed()));
    rig.run(ms(6000));
    assert_eq!(last(&rig.initiator), "down 0: Lost(Departed)");
    assert_eq!(last(&rig.target), "down 0: Lost(Departed)");
    rig.switch.set_zones(rig.now, Arc::new(Zones::open()));
    rig.run(ms(9000));
    assert_eq!((last(&rig.initiator), last(&rig.target)), ("up 0", "up 0"));
}

#[test]
fn a_switch_that_ends_tells_both() {
    let mut rig = Rig::up();
    rig.switch.shut_down(rig.now);
    rig.run(ms(4100));
    for told in [&rig.initiator.told, &rig.target.told] {
        assert_eq!(told[..2], ["down 0: Lost(Cleared)", "offline"]);
    }
}

#[test]
fn a_target_that_logs_out_is_gone_for_the_initiator_and_comes_back() {
    let mut rig = Rig::up();
    rig.target.port.log_out(rig.now);
    rig.run(ms(4100));
    assert_eq!(rig.switch.logins().count(), 1);
    rig.target.port.link(rig.now, false);
    rig.run(ms(5000));
    assert!(rig.initiator.port.remotes().next().is_none());
    rig.target.port.link(rig.now, true);
    rig.run(ms(9000));
    assert_eq!((last(&rig.initiator), last(&rig.target)), ("up 0", "up 0"));
}

#[test]
fn the_vlan_is_the_one_that_the_switch_tells() {
    let discovering = |low| PortConfig {
        mode: PortMode::Fabric(FabricConfig {
            discovers_vlan: true,
            ..FabricConfig::default()
        }),
        ..in_fabric(low)
    };
    let tag = VlanTag {
        priority: 3,
        dei: false,
        vid: 152,
    };
    let mut rig = Rig::new([&discovering(2), &discovering(1)], Some(tag));
    rig.run(ms(5000));
    assert_eq!((last(&rig.initiator), last(&rig.target)), ("up 0", "up 0"));
    let enode = rig.initiator.port.enode().unwrap();
    assert_eq!(enode.tag(), Some(tag));
}

/// Two further ports at the target's ENode, all logged in with the initiator, at 4 s.
fn with_further_ports() -> Rig {
    let mut rig = Rig::new([&in_fabric(2), &in_fabric(1)], None);
    for number in 1..=2 {
        let config = PortConfig {
            wwpn: Wwn(0x2100_0000_0000_0000 | u64::from(number)),
            further: Some(number),
            ..in_fabric(2)
        };
        let target = FcpTarget::new(FcpLimits::default());
        rig.further.push(End::new(&config, target));
    }
    rig.run(ms(4000));
    assert_eq!(rig.initiator.told[1..], ["up 0", "up 1", "up 2"]);
    rig
}

#[test]
fn further_ports_have_n_port_ids_of_their_own_and_are_kept_alive() {
    let mut rig = with_further_ports();
    rig.run(ms(600_000));
    assert_eq!(rig.switch.logins().count(), 4);
    assert_eq!(rig.initiator.told.len(), 4);
    for end in &rig.further {
        assert_eq!(last(end), "up 0");
        assert_eq!(end.notices.len(), 1, "{:?}", end.notices);
    }
}

#[test]
fn a_further_port_logs_out_by_itself() {
    let mut rig = with_further_ports();
    rig.further[0].port.log_out(rig.now);
    rig.run(ms(4100));
    rig.further[0].port.link(rig.now, false);
    rig.run(ms(20_000));
    assert_eq!(rig.switch.logins().count(), 3);
    assert_eq!(rig.initiator.told.len(), 5, "{:?}", rig.initiator.told);
    assert_eq!((last(&rig.target), last(&rig.further[1])), ("up 0", "up 0"));
}

/// The switch ends all logins of an ENode that sends FLOGI, without a word to it.
#[test]
fn further_ports_follow_an_enode_that_begins_anew() {
    let mut rig = with_further_ports();
    rig.target.port.link(rig.now, false);
    rig.target.port.link(rig.now, true);
    rig.run(ms(8000));
    assert_eq!(rig.switch.logins().count(), 4);
    for end in &rig.further {
        assert_eq!(
            end.told[1..4],
            ["up 0", "down 0: Lost(Restarted)", "offline"]
        );
        assert_eq!(last(end), "up 0");
    }
    assert_eq!(last(&rig.target), "up 0");
}
