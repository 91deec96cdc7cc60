//! Two switches of the same names on the same Ethernets.

use super::rig::{ask, fcf, frames, host, ms, open, sent, switch_of, told};
use crate::fabric::{PortNumber, Switch, SwitchConfig};
use crate::wire::names::{FcId, Wwn};

/// Switches on two Ethernets, that hear each other.
struct Two {
    switches: [Switch; 2],
    now: u64,
    /// What passes between them.
    is_joined: bool,
}

impl Two {
    fn of(standby: [bool; 2]) -> Self {
        let config = |standby| SwitchConfig {
            switch_name: Some(Wwn(0x1000_0000_0000_0001)),
            fabric_name: Some(Wwn(0x2001_0000_0000_0001)),
            standby,
            ..open()
        };
        Self {
            switches: [
                switch_of(1, &config(standby[0]), 2),
                switch_of(2, &config(standby[1]), 2),
            ],
            now: 0,
            is_joined: true,
        }
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
    let mut two = Two::of([true, true]);
    let standby = &mut two.switches[0];
    standby.expire(ms(0));
    let expected = [
        "fcf1.0 > enodes Advertisement",
        "fcf1.0 > fcfs Advertisement",
    ];
    assert_eq!(sent(standby, 0), expected);
    let host = host(0, 1);
    assert_eq!(
        ask(standby, 1, 0, &host.solicitation(1500)),
        ["fcf1.0 > host1 Advertisement S, 1512 bytes"]
    );
    assert_eq!(
        ask(standby, 1, 0, &host.flogi(1)),
        ["fcf1.0 > host1 ElsReply LS_RJT 05/00 of 0001 to 000000"]
    );
}

/// It may have been active before, and its Clear Virtual Links may have been lost when it stood
/// down: its ENode would never log in to the other one.
#[test]
fn a_standby_tells_an_enode_that_it_is_not_logged_in() {
    let mut two = Two::of([true, true]);
    let standby = &mut two.switches[0];
    standby.expire(ms(0));
    sent(standby, 0);
    let host = host(0, 1);
    assert_eq!(
        ask(standby, 1, 0, &host.keep_alive()),
        ["fcf1.0 > host1 ClearVirtualLinks"]
    );
    let port = host.port_keep_alive(FcId(0x01_0100));
    assert_eq!(
        ask(standby, 1, 0, &port),
        ["fcf1.0 > host1 ClearVirtualLinks 010100"]
    );
    let mut of_other = host.keep_alive();
    of_other[..6].copy_from_slice(&fcf(2, 0).0);
    assert!(ask(standby, 2000, 0, &of_other).is_empty());
}

#[test]
fn a_standby_listens_while_the_active_one_is_heard() {
    let mut two = Two::of([false, true]);
    assert!(two.run(100_000).is_empty());
    assert_eq!(two.active(), [true, false]);
}

#[test]
fn a_standby_takes_over_after_two_and_a_half_periods() {
    let mut two = Two::of([false, true]);
    two.run(10_000);
    two.is_joined = false;
    let heard = 8_000;
    assert!(two.run(heard + 19_999).is_empty());
    assert_eq!(two.run(heard + 20_100), ["2: takes over"]);
    let expected = [
        "fcf2.1 > enodes Advertisement A",
        "fcf2.1 > fcfs Advertisement A",
    ];
    two.switches[1].expire(ms(heard + 40_000));
    assert_eq!(sent(&mut two.switches[1], 1), expected);
}

#[test]
fn a_standby_that_hears_no_other_takes_over() {
    let mut two = Two::of([true, true]);
    two.is_joined = false;
    assert_eq!(two.run(20_000), ["1: takes over", "2: takes over"]);
}

#[test]
fn a_switch_that_ends_hands_over_at_once() {
    let mut two = Two::of([false, true]);
    two.run(10_000);
    two.switches[0].shut_down(ms(10_001));
    assert_eq!(two.run(10_001), ["2: takes over"]);
    assert_eq!(two.active(), [false, true]);
    assert!(
        two.run(100_000).is_empty(),
        "the first one says nothing more"
    );
}

/// They were apart, and both took logins. Each hears the other on both Ethernets; that of the
/// higher address stands down, once.
#[test]
fn of_two_that_are_active_the_one_of_the_higher_address_stands_down() {
    let mut two = Two::of([false, false]);
    two.is_joined = false;
    two.run(9_000);
    for switch in 0..2_u8 {
        let mut flogi = host(0, 1 + switch).flogi(1);
        flogi[..6].copy_from_slice(&fcf(1 + switch, 0).0);
        let second = &mut two.switches[usize::from(switch)];
        second.receive(ms(9_000), PortNumber(0), &flogi);
        assert_eq!(told(second).len(), 2);
        assert_eq!(sent(second, 0).len(), 1);
    }
    two.is_joined = true;
    let lines = two.run(17_000);
    assert_eq!(
        lines,
        ["2: stands down for fcf1.0", "2: 010100 out, StoodDown"]
    );
    assert_eq!(two.active(), [true, false]);
    assert_eq!(two.switches[0].logins().count(), 1, "it keeps its own");
}

/// Its ENodes are told to look for the other one.
#[test]
fn what_stands_down_clears_its_links() {
    let mut two = Two::of([false, false]);
    let [one, second] = &mut two.switches;
    one.expire(ms(0));
    second.expire(ms(0));
    sent(second, 0);
    let mut flogi = host(0, 1).flogi(1);
    flogi[..6].copy_from_slice(&fcf(2, 0).0);
    assert_eq!(ask(second, 1, 0, &flogi).len(), 1);
    let mut lines = Vec::new();
    for frame in frames(one, 0) {
        lines.extend(ask(second, 2, 0, &frame));
    }
    let expected = [
        "fcf2.0 > enodes Advertisement",
        "fcf2.0 > fcfs Advertisement",
        "fcf2.0 > host1 ClearVirtualLinks",
    ];
    assert_eq!(lines, expected);
}
