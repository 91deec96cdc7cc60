//! Two switches of the same names on the same Ethernets.

use super::rig::{
    ask, fcf, fip_frame, frames, host, ms, open, port_config, receive, sent, switch_of, told,
};
use crate::fabric::{PortNumber, Switch, SwitchConfig};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::{FcId, Wwn};

/// Switches on two Ethernets, that hear each other.
struct Two {
    switches: [Switch; 2],
    now: u64,
    /// What passes between them.
    is_joined: bool,
}

fn config(standby: bool) -> SwitchConfig {
    SwitchConfig {
        switch_name: Some(Wwn(0x1000_0000_0000_0001)),
        fabric_name: Some(Wwn(0x2001_0000_0000_0001)),
        standby,
        ..open()
    }
}

impl Two {
    /// A pair that begins at 0, of which the second has no link.
    fn new() -> Self {
        let mut two = Self {
            switches: [1, 2].map(|number| switch_of(number, &config(true), 2)),
            now: 0,
            is_joined: true,
        };
        two.link(1, false);
        two
    }

    /// A pair of which the first has become active at 20 s, and has told the second.
    fn settled() -> Self {
        let mut two = Self::new();
        assert_eq!(two.run(20_000), ["1: is active, as no other was heard"]);
        two.link(1, true);
        assert!(two.run(40_000).is_empty());
        two
    }

    /// Both have become active, the second after so long, without hearing each other.
    fn apart(second: u64) -> Self {
        let mut two = Self::new();
        two.is_joined = false;
        two.run(second);
        two.link(1, true);
        two.run(second + 20_000);
        assert_eq!(two.active(), [true, true]);
        two
    }

    /// A switch has its links up or down.
    fn link(&mut self, switch: usize, up: bool) {
        for port in 0..2 {
            self.switches[switch].link(ms(self.now), PortNumber(port), up);
        }
    }

    /// A switch is started again.
    fn restart(&mut self, switch: usize) {
        let number = switch as u8 + 1;
        let mut new = Switch::new(&config(true), ms(self.now), [number; 8]);
        for port in 0..2 {
            let port = new.add_port(port_config(number, port));
            new.link(ms(self.now), port, true);
        }
        self.switches[switch] = new;
    }

    /// A host at an Ethernet logs in to a switch.
    fn log_in(&mut self, switch: usize, number: u8) {
        let mut flogi = host(0, number).flogi(1);
        flogi[..6].copy_from_slice(&fcf(1 + switch as u8, 0).0);
        let switch = &mut self.switches[switch];
        switch.receive(ms(self.now), PortNumber(0), &flogi);
        assert_eq!(switch.logins().count(), 1);
        told(switch);
        sent(switch, 0);
    }

    /// Goes on until then; returns what is told, with the number of the switch before it.
    fn run(&mut self, until: u64) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            self.exchange(&mut lines);
            let deadlines = self.switches.iter().filter_map(Switch::next_deadline);
            let Some(next) = deadlines.min().filter(|at| *at <= ms(until)) else {
                break;
            };
            self.now = self.now.max(next.as_micros().div_ceil(1000) as u64);
            for switch in &mut self.switches {
                switch.expire(next);
            }
        }
        self.now = until;
        lines
    }

    fn exchange(&mut self, lines: &mut Vec<String>) {
        for from in 0..2 {
            for port in 0..2 {
                for frame in frames(&mut self.switches[from], port) {
                    if self.is_joined {
                        let to = &mut self.switches[1 - from];
                        to.receive(ms(self.now), PortNumber(port.into()), &frame);
                    }
                }
            }
            let told = told(&mut self.switches[from]);
            lines.extend(told.into_iter().map(|line| format!("{}: {line}", from + 1)));
        }
    }

    fn active(&self) -> [bool; 2] {
        self.switches.each_ref().map(Switch::is_active)
    }
}

#[test]
fn a_standby_says_that_it_takes_no_logins() {
    let mut standby = switch_of(1, &config(true), 2);
    standby.expire(ms(0));
    let expected = [
        "fcf1.0 > enodes ClearVirtualLinks",
        "fcf1.0 > enodes Advertisement",
        "fcf1.0 > fcfs Advertisement",
    ];
    assert_eq!(sent(&mut standby, 0), expected);
    let host = host(0, 1);
    assert_eq!(
        ask(&mut standby, 1, 0, &host.solicitation(1500)),
        ["fcf1.0 > host1 Advertisement S, 1512 bytes"]
    );
    assert_eq!(
        ask(&mut standby, 1, 0, &host.flogi(1)),
        ["fcf1.0 > host1 ElsReply LS_RJT 05/00 of 0001 to 000000"]
    );
}

/// It may have been active before, and its Clear Virtual Links may have been lost when it stood
/// down: its ENode would never log in to the other one.
#[test]
fn a_standby_tells_an_enode_that_it_is_not_logged_in() {
    let mut standby = switch_of(1, &config(true), 2);
    standby.expire(ms(0));
    sent(&mut standby, 0);
    let host = host(0, 1);
    assert_eq!(
        ask(&mut standby, 1, 0, &host.keep_alive()),
        ["fcf1.0 > host1 ClearVirtualLinks"]
    );
    let port = host.port_keep_alive(FcId(0x01_0100));
    assert_eq!(
        ask(&mut standby, 1, 0, &port),
        ["fcf1.0 > host1 ClearVirtualLinks 010100"]
    );
    let mut of_other = host.keep_alive();
    of_other[..6].copy_from_slice(&fcf(2, 0).0);
    assert!(ask(&mut standby, 2000, 0, &of_other).is_empty());
}

#[test]
fn a_standby_listens_while_the_active_one_is_heard() {
    let mut two = Two::settled();
    assert!(two.run(100_000).is_empty());
    assert_eq!(two.active(), [true, false]);
}

#[test]
fn a_standby_takes_over_after_two_and_a_half_periods() {
    let mut two = Two::settled();
    two.is_joined = false;
    assert!(two.run(40_000 + 11_800).is_empty());
    assert_eq!(two.run(40_000 + 20_000), ["2: takes over"]);
    let expected = [
        "fcf2.1 > enodes Advertisement A",
        "fcf2.1 > fcfs Advertisement A",
    ];
    two.switches[1].expire(ms(80_000));
    assert_eq!(sent(&mut two.switches[1], 1), expected);
}

/// Both listen at first. They begin at once, so that the addresses decide.
#[test]
fn of_two_that_begin_together_one_becomes_active() {
    let mut two = Two::new();
    two.link(1, true);
    let lines = two.run(100_000);
    let expected = [
        "1: is active, as no other was heard",
        "2: is active, as no other was heard",
        "2: stands down for fcf1.0, heard from fcf1.0 at eth0",
    ];
    assert_eq!(lines, expected);
    assert_eq!(two.active(), [true, false]);
}

#[test]
fn a_switch_that_ends_hands_over_at_once() {
    let mut two = Two::settled();
    two.switches[0].shut_down(ms(40_001));
    assert_eq!(two.run(40_001), ["2: takes over"]);
    assert_eq!(two.active(), [false, true]);
    assert!(
        two.run(100_000).is_empty(),
        "the first one says nothing more"
    );
}

/// A standby hears nothing while its links are down, and has to listen again then.
#[test]
fn silence_counts_only_while_a_port_is_up() {
    let mut two = Two::settled();
    two.link(1, false);
    assert!(two.run(100_000).is_empty());
    two.link(1, true);
    assert!(two.run(200_000).is_empty());
    two.switches[1].link(ms(200_000), PortNumber(0), false);
    assert!(two.run(300_000).is_empty(), "it is heard at the other one");
    two.is_joined = false;
    assert_eq!(two.run(320_000), ["2: takes over"]);
}

/// The other one has taken over, and keeps it.
#[test]
fn a_switch_that_is_started_again_listens_first() {
    let mut two = Two::settled();
    two.is_joined = false;
    two.run(80_000);
    two.log_in(1, 1);
    two.restart(0);
    two.is_joined = true;
    assert_eq!(two.run(200_000), ["2: 010100 out, EnodeSilent"]);
    assert_eq!(two.active(), [false, true]);
}

/// They were apart, and both took logins. Each hears the other on both Ethernets; one stands down,
/// once.
#[test]
fn of_two_with_logins_that_are_active_as_long_the_lower_address_stays() {
    let mut two = Two::apart(0);
    two.log_in(0, 1);
    two.log_in(1, 2);
    two.is_joined = true;
    let lines = two.run(29_000);
    let expected = [
        "2: stands down for fcf1.0, heard from fcf1.0 at eth0",
        "2: 010100 out, StoodDown",
    ];
    assert_eq!(lines, expected);
    assert_eq!(two.active(), [true, false]);
    assert_eq!(two.switches[0].logins().count(), 1, "it keeps its own");
}

#[test]
fn of_two_that_are_active_the_one_with_logins_stays() {
    let mut two = Two::apart(0);
    two.log_in(1, 1);
    two.is_joined = true;
    let lines = two.run(29_000);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("1: stands down for fcf2.0"),
        "{lines:?}"
    );
    assert_eq!(two.switches[1].logins().count(), 1);
}

/// What is heard at ten Ethernets in one period is one dispute. After eight periods in which they
/// have not agreed the addresses decide.
#[test]
fn ten_ethernets_between_two_that_are_active() {
    let mut two = [1, 2].map(|number| {
        let mut switch = switch_of(number, &config(true), 10);
        switch.expire(ms(20_000));
        assert!(switch.is_active());
        switch
    });
    let [one, second] = &mut two;
    let to_second = |mut frame: Vec<u8>| {
        frame[..6].copy_from_slice(&fcf(2, 0).0);
        frame
    };
    ask(second, 20_000, 0, &to_second(host(0, 1).flogi(1)));
    for period in 1..=9 {
        let at = 20_000 + 9_000 * period;
        assert!(second.is_active(), "{period}");
        ask(second, at, 0, &to_second(host(0, 1).keep_alive()));
        one.expire(ms(at));
        for port in 0..10 {
            for mut frame in frames(one, port) {
                receive(second, at, port, &mut frame);
            }
        }
    }
    assert!(!second.is_active());
}

#[test]
fn of_two_without_logins_the_one_that_is_active_longer_stays() {
    let mut two = Two::apart(60_000);
    two.restart(0);
    two.run(140_000);
    assert_eq!(two.active(), [true, true]);
    two.is_joined = true;
    let lines = two.run(160_000);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("1: stands down for fcf2.0"),
        "{lines:?}"
    );
}

/// Its ENodes are told to look for the other one.
#[test]
fn what_stands_down_clears_its_links() {
    let mut two = Two::apart(0);
    two.log_in(0, 2);
    two.log_in(1, 1);
    let [one, second] = &mut two.switches;
    one.expire(ms(40_000));
    let mut lines = Vec::new();
    for frame in frames(one, 0) {
        lines.extend(ask(second, 40_000, 0, &frame));
    }
    let expected = [
        "fcf2.0 > enodes Advertisement",
        "fcf2.0 > fcfs Advertisement",
        "fcf2.0 > host1 ClearVirtualLinks",
    ];
    assert_eq!(lines[lines.len() - 3..], expected);
}

/// The Advertisement by which an active partner of the lower address would have switch 2 stand
/// down, with something else in it.
fn forged(dst: Mac, flags: Flags, spoil: impl Fn(&mut [Descriptor<'_>])) -> Vec<u8> {
    let mut other = switch_of(1, &config(false), 1);
    other.expire(ms(0));
    let advertisement = frames(&mut other, 0).pop().unwrap();
    let (_, payload) = EthernetHeader::parse(&advertisement).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    let mut parts: Vec<_> = message.descriptors().map(Result::unwrap).collect();
    spoil(&mut parts);
    let flags = flags.with(Flags::FPMA).with(Flags::F_PORT);
    let flags = flags.with(Flags::AVAILABLE);
    fip_frame(fcf(1, 0), dst, (FipOperation::Advertisement, flags, &parts))
}

/// What switch 2, which was started on its own, tells when it hears this at a port.
fn hears(mut switch: Switch, frame: &[u8]) -> Vec<String> {
    switch.expire(ms(20_000));
    told(&mut switch);
    receive(&mut switch, 20_001, 0, &mut frame.to_vec());
    assert!(switch.is_active() || !told(&mut switch).is_empty());
    let mut lines = told(&mut switch);
    lines.push(format!("active: {}", switch.is_active()));
    lines
}

#[test]
fn only_what_a_partner_says_is_heeded() {
    let paired = || switch_of(2, &config(true), 1);
    let fcfs = Mac::ALL_FCF;
    let sound = |_: &mut [Descriptor<'_>]| {};
    assert_eq!(
        hears(paired(), &forged(fcfs, Flags::FCF, sound)),
        ["active: false"]
    );
    let spoilt: [fn(&mut [Descriptor<'_>]); 4] = [
        |parts| parts[3] = fabric([0x0e, 0xfc, 1], 0x2001_0000_0000_0001),
        |parts| parts[3] = fabric(Mac::FC_MAP, 0x2001_0000_0000_0002),
        |parts| {
            parts[4] = Descriptor::FkaAdvPeriod {
                disabled: false,
                period_ms: 90_000,
            };
        },
        |parts| {
            parts[5] = Descriptor::Unknown {
                kind: parts[5].kind(),
                body: &[0; 6],
            };
        },
    ];
    let mut others = Vec::from(spoilt.map(|spoil| (paired(), forged(fcfs, Flags::FCF, spoil))));
    others.push((paired(), forged(fcfs, Flags::default(), sound)));
    others.push((paired(), forged(Mac::ALL_ENODE, Flags::FCF, sound)));
    others.push((
        switch_of(2, &config(false), 1),
        forged(fcfs, Flags::FCF, sound),
    ));
    others.push((on_cable(), forged(fcfs, Flags::FCF, sound)));
    for (at, (switch, frame)) in others.into_iter().enumerate() {
        let lines = hears(switch, &frame);
        assert_eq!(lines.last().unwrap(), "active: true", "{at}");
    }
}

fn fabric(fc_map: [u8; 3], name: u64) -> Descriptor<'static> {
    Descriptor::Fabric {
        vf_id: 0,
        fc_map,
        name: Wwn(name),
    }
}

/// One of a pair, which hears its partner at its second port only.
fn on_cable() -> Switch {
    let mut switch = Switch::new(&config(true), ms(0), [2; 8]);
    for (port, hears_partner) in [(0, false), (1, true)] {
        let number = switch.add_port(crate::fabric::SwitchPortConfig {
            hears_partner,
            ..port_config(2, port)
        });
        switch.link(ms(0), number, true);
    }
    switch
}

/// It has not been told that there is another one; that there is, is told.
#[test]
fn a_switch_that_is_not_of_a_pair_tells_of_another_of_its_name() {
    let mut switch = switch_of(2, &config(false), 1);
    let frame = forged(Mac::ALL_FCF, Flags::FCF, |_| {});
    for _ in 0..2 {
        receive(&mut switch, 1, 0, &mut frame.clone());
    }
    let told = told(&mut switch);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("eth0: fcf1.0: another FCF has the Switch_Name of this one"));
}

/// Whatever else comes, from whatever address, the active one is heard.
#[test]
fn a_flood_does_not_silence_the_active_one() {
    let mut two = Two::settled();
    let end = two.now + 28_000;
    while two.now < end {
        for number in 0..=255 {
            let mac = Mac([2, 0, 0, 0, 1, number]);
            let parts = (FipOperation::VlanRequest, Flags::FPMA, &[][..]);
            let frame = fip_frame(mac, Mac::ALL_FCF, parts);
            for _ in 0..600 {
                two.switches[1].receive(ms(two.now), PortNumber(0), &frame);
            }
        }
        two.switches[1].link(ms(two.now), PortNumber(1), false);
        let next = two.now + 4_000;
        let lines = two.run(next);
        assert!(
            !lines.iter().any(|line| line.contains("takes over")),
            "{lines:?}"
        );
    }
    assert_eq!(two.active(), [true, false]);
}
