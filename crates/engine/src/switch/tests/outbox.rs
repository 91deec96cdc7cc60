//! A control frame leaves, and an order is answered, when the table of that moment is in force on
//! all cores.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use ::io::ring::Waker;
use fc::fabric::zones::Zones;
use fc::fabric::{PortNumber, SwitchConfig};
use fc::tests::{EnodeFrames, fcf_mac, switch_of};
use fc::wire::ethernet::Mac;

use super::super::cores::{FIRST_VERSION, SwitchCores};
use super::super::fast_path::SwitchFastPath;
use super::super::lldp::LldpAgents;
use super::super::machine::{OrderAnswer, SwitchMachine};
use super::super::options::Place;
use super::super::orders::{OrderSender, SwitchOrder};
use super::super::outbox::{ACKNOWLEDGE_MAX, CONTROL_MAX, Outbox};
use super::super::ports::{CorePorts, PortBoard};

const SECOND: Duration = Duration::from_secs(1);

struct Rig {
    cores: Arc<SwitchCores>,
    machine: SwitchMachine,
    outbox: Outbox,
    orders: OrderSender,
}

impl Rig {
    /// Two ports on two of three cores, which have sent what they send at first.
    fn new() -> Self {
        let config = SwitchConfig {
            zones: Arc::new(Zones::open()),
            ..SwitchConfig::default()
        };
        let switch = switch_of(&config, 2);
        let waker = || Waker::detached().unwrap();
        let (orders, heard) = OrderSender::new(waker());
        let (table, board) = (switch.forwarding(), PortBoard::new(2));
        let wakers = (0..3).map(|_| waker()).collect();
        let cores = Arc::new(SwitchCores::new(wakers, vec![0, 1], table, board.clone()));
        let lldp = LldpAgents::none(2);
        let places = ["a", "b"].map(|name| Place::Cable(name.into())).to_vec();
        let machines = (switch, Arc::new(Zones::open()), lldp);
        let fast_path = SwitchFastPath::default();
        let machine = SwitchMachine::new(machines, (places, board), fast_path, heard);
        let outbox = Outbox::new(Arc::clone(&cores));
        let mut rig = Self {
            cores,
            machine,
            outbox,
            orders,
        };
        rig.fill(FIRST_VERSION);
        rig.released(SECOND, FIRST_VERSION);
        rig
    }

    fn fill(&mut self, version: u64) {
        self.outbox.fill(&mut self.machine, version);
    }

    /// By which ports control frames leave now.
    fn released(&mut self, now: Duration, version: u64) -> Vec<u16> {
        let (mut ports, cores) = (Vec::new(), Arc::clone(&self.cores));
        self.outbox
            .release(now, version, |PortNumber(port), bytes| {
                let unsent = &cores.unsent[usize::from(port)].bytes;
                unsent.fetch_sub(bytes.len(), SeqCst);
                ports.push(port);
            });
        ports
    }

    /// A host at a port asks for something that is answered at once.
    fn log_in(&mut self, port: u8) {
        let host = EnodeFrames::new(Mac([2, 0, 0, 0, 0, port]), fcf_mac(port));
        let flogi = host.flogi(1);
        let number = PortNumber(port.into());
        self.machine.switch.receive(SECOND, number, &flogi);
    }

    fn acknowledges(&self, core: usize, version: u64) {
        self.cores.posts[core].acknowledged.store(version, Release);
    }
}

#[test]
fn an_answer_waits_for_the_slowest_core() {
    let mut rig = Rig::new();
    rig.log_in(1);
    rig.outbox.publishes(SECOND, FIRST_VERSION);
    rig.fill(2);
    assert_eq!(rig.released(SECOND, 2), Vec::<u16>::new());
    rig.acknowledges(1, 2);
    assert_eq!(rig.released(SECOND, 2), Vec::<u16>::new());
    rig.acknowledges(2, 2);
    assert_eq!(rig.released(SECOND, 2), [1_u16]);
}

/// However fast changes come, what was answered before does not wait for them.
#[test]
fn later_changes_hold_no_earlier_answer_up() {
    let mut rig = Rig::new();
    rig.log_in(1);
    rig.outbox.publishes(SECOND, FIRST_VERSION);
    rig.fill(2);
    rig.log_in(0);
    rig.outbox.publishes(SECOND, 2);
    rig.fill(3);
    (1..3).for_each(|core| rig.acknowledges(core, 2));
    assert_eq!(rig.released(SECOND, 3), [1_u16]);
    (1..3).for_each(|core| rig.acknowledges(core, 3));
    assert_eq!(rig.released(SECOND, 3), [0_u16]);
}

#[test]
fn a_core_that_does_not_run_is_not_waited_for_for_ever() {
    let mut rig = Rig::new();
    rig.log_in(1);
    // It was heard of last when nothing had changed for a while.
    let now = 60 * SECOND;
    rig.outbox.publishes(now, FIRST_VERSION);
    rig.fill(2);
    rig.acknowledges(1, 2);
    assert_eq!(rig.released(now, 2), Vec::<u16>::new());
    assert_eq!(rig.outbox.next_deadline(), Some(now + ACKNOWLEDGE_MAX));
    assert_eq!(rig.released(now + ACKNOWLEDGE_MAX, 2), [1_u16]);
    assert_eq!(rig.outbox.next_deadline(), None);
    // It is waited for again once it goes on.
    rig.acknowledges(2, 2);
    assert_eq!(rig.released(now + ACKNOWLEDGE_MAX, 2), Vec::<u16>::new());
    rig.outbox.publishes(now + ACKNOWLEDGE_MAX, 2);
    rig.log_in(0);
    rig.fill(3);
    rig.acknowledges(1, 3);
    assert_eq!(rig.released(now + ACKNOWLEDGE_MAX, 3), Vec::<u16>::new());
}

/// What does not fit waits in the machine, and the port tells when it has room.
#[test]
fn a_port_says_no_more_than_has_room() {
    let mut rig = Rig::new();
    let unsent = |rig: &Rig| rig.cores.unsent[1].bytes.load(SeqCst);
    let host = EnodeFrames::new(Mac([2, 0, 0, 0, 0, 1]), fcf_mac(1));
    let request = host.vlan_request();
    for number in 0..2000_u32 {
        let now = SECOND * (number + 1);
        rig.machine.switch.receive(now, PortNumber(1), &request);
    }
    rig.fill(FIRST_VERSION);
    assert!(unsent(&rig) <= CONTROL_MAX && unsent(&rig) > CONTROL_MAX / 2);
    let has_more = &rig.cores.unsent[1].has_more;
    assert!(has_more.load(SeqCst));
    let first = rig.released(SECOND, FIRST_VERSION).len();
    rig.fill(FIRST_VERSION);
    assert_eq!(first + rig.released(SECOND, FIRST_VERSION).len(), 2000);
}

/// Other zones, and then a question whose answer tells that they hold.
#[test]
fn an_order_is_answered_when_its_table_is_in_force() {
    let mut rig = Rig::new();
    let (asker, answers) = channel();
    let closed = SwitchOrder::SetZones(Arc::new(Zones::closed()));
    for order in [closed, SwitchOrder::Survey(asker)] {
        rig.orders.give(order);
    }
    rig.machine
        .run_orders(SECOND, &mut CorePorts::new(0, Vec::new()));
    rig.outbox.publishes(2 * SECOND, FIRST_VERSION);
    rig.fill(2);
    let next = |rig: &mut Rig, in_force| rig.outbox.answer(in_force);
    rig.acknowledges(1, 2);
    let in_force = rig.outbox.release(2 * SECOND, 2, |_, _| {});
    assert_eq!(in_force, FIRST_VERSION);
    assert!(next(&mut rig, in_force).is_none());
    // Core 0 does not wait for ever.
    let until = 2 * SECOND + ACKNOWLEDGE_MAX;
    assert_eq!(rig.outbox.next_deadline(), Some(until));
    rig.acknowledges(2, 2);
    let in_force = rig.outbox.release(2 * SECOND, 2, |_, _| {});
    assert!(matches!(next(&mut rig, in_force), Some(OrderAnswer::Zones)));
    assert!(answers.try_recv().is_err());
    let survey = next(&mut rig, in_force);
    assert!(matches!(survey, Some(OrderAnswer::Survey(_))));
    assert!(next(&mut rig, in_force).is_none());
}
