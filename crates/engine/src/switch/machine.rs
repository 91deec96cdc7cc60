//! The machine of a switch, and what goes on around it: orders, the log, and what other programs
//! are told. It lives on core 0.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use ::io::ether::{LinkStatus, Place};
use fc::fabric::Switch;
use fc::fabric::zones::Zones;
use fc::wire::ethernet::VlanTag;
use runtime::journal::Journal;
use runtime::n_port::FrameLosses;
use scsi::medium::Now;

use super::core::number;
use super::cores::FIRST_VERSION;
use super::fast_path::SwitchFastPath;
use super::ids_keeper::{IdsKeeper, WritePace};
use super::lldp::LldpAgents;
use super::login_log::LoginLog;
use super::mail::MailItem;
use super::orders::SwitchOrder;
use super::pfc_watch::PfcWatch;
use super::ports::{CorePorts, PortBoard};
use super::status::SwitchTeller;
use super::survey::SwitchSurvey;

/// A switch without its ports.
pub(super) struct SwitchMachine {
    pub(super) switch: Switch,
    pub(super) lldp: LldpAgents,
    /// Those that are active.
    pub(super) zones: Arc<Zones>,
    /// Where its ports are.
    pub(super) places: Vec<Place>,
    pub(super) board: PortBoard,
    orders: Receiver<SwitchOrder>,
    /// Answers to orders, which wait until the table of their moment is in force.
    pub(super) answers: Vec<OrderAnswer>,
    pub(super) ids: Option<IdsKeeper>,
    pub(super) ids_pace: WritePace,
    pub(super) fast_path: SwitchFastPath,
    pub(super) logins: LoginLog,
    pub(super) journal: Journal,
    /// What tells other programs of the switch.
    pub(super) teller: Option<SwitchTeller>,
    /// When errors that interfaces count are to be read again.
    pub(super) errors_due: Now,
    /// What tells which interfaces have PFC.
    pub(super) pfc: Option<PfcWatch>,
    /// Of each port: frames that were lost there, as far as the log has told, and those that came
    /// in there and found no room at their egress.
    pub(super) told: Vec<(FrameLosses, u64)>,
    /// The number that the table will have which other cores are given next.
    pub(super) next_version: u64,
    /// All ports were logged out. It ends when that has been sent, or then.
    ends: Option<Now>,
}

/// The answer to an order, for the thread that gave it or for the log.
#[derive(Debug)]
pub(super) enum OrderAnswer {
    /// The log: other zones are active.
    Zones,
    /// The survey that this sender's thread waits for.
    Survey(Sender<SwitchSurvey>),
}

/// For how long a switch that ends waits for its last frames to leave.
const LINGER: Duration = Duration::from_secs(1);

impl SwitchMachine {
    pub(super) fn new(
        (switch, zones, lldp): (Switch, Arc<Zones>, LldpAgents),
        (places, board): (Vec<Place>, PortBoard),
        fast_path: SwitchFastPath,
        orders: Receiver<SwitchOrder>,
    ) -> Self {
        let ports = places.len();
        Self {
            switch,
            lldp,
            zones,
            places,
            board,
            orders,
            answers: Vec::new(),
            ids: None,
            ids_pace: WritePace::default(),
            fast_path,
            logins: LoginLog::new(ports),
            journal: Journal::default(),
            teller: None,
            errors_due: Now::ZERO,
            pfc: None,
            told: vec![(FrameLosses::default(), 0); ports],
            next_version: FIRST_VERSION + 1,
            ends: None,
        }
    }

    /// All ports were logged out. The switch ends when that has been sent, or then.
    pub(super) const fn ends(&self) -> Option<Now> {
        self.ends
    }

    /// When it has something to do.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.switch.next_deadline(),
            self.lldp.next_deadline(),
            self.ends,
            self.logins.next_deadline(),
            self.ids_pace.due(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Now) {
        if self.switch.next_deadline().is_some_and(|at| at <= now) {
            self.switch.expire(now);
        }
        self.lldp.expire(now);
    }

    /// Takes a frame of LLDP that came in at a port.
    pub(super) fn hear_lldp(&mut self, now: Now, at: usize, frame: &[u8], tag: Option<VlanTag>) {
        if let Err((from, violation)) = self.lldp.receive(now, at, frame, tag) {
            self.tell_violation(now, &self.places[at], from, violation);
        }
    }

    /// Takes what came in at a port of another core.
    pub(super) fn handle_mail(&mut self, now: Now, at: usize, item: MailItem, frame: &[u8]) {
        match item {
            MailItem::Frame(tag) => {
                // It is FIP or to a service of the fabric, so it goes nowhere else.
                self.switch.receive_tagged(now, number(at), frame, tag);
            }
            MailItem::Dropped(reason) => self.switch.heed_drop(now, number(at), reason, frame),
            MailItem::Lldp(tag) => self.hear_lldp(now, at, frame, tag),
            MailItem::Link(link, is_up) => self.hear_link(now, at, (link, is_up)),
        }
    }

    /// The link of a port has changed.
    pub(super) fn hear_link(&mut self, now: Now, at: usize, (link, is_up): (LinkStatus, bool)) {
        self.switch.resize(now, number(at), link.mtu as usize);
        self.switch.link(now, number(at), is_up);
        self.lldp.link(now, at, is_up);
    }

    /// Carries out the orders of other threads. Returns the ports of which the kernel's forwarding
    /// is to be set up anew.
    pub(super) fn run_orders(&mut self, now: Now, ports: &mut CorePorts) -> Vec<usize> {
        let mut anew = Vec::new();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                SwitchOrder::Stop => {
                    self.switch.shut_down(now);
                    self.lldp.shut_down(now);
                    self.ids_pace.hurry();
                    self.ends = Some(now + LINGER);
                }
                SwitchOrder::SetZones(zones) => {
                    self.switch.set_zones(now, Arc::clone(&zones));
                    let table = self.switch.forwarding();
                    self.fast_path
                        .keep(self.next_version, |egress, s_id, d_id| {
                            table.allows(egress, (s_id, d_id)).is_ok()
                        });
                    self.zones = zones;
                    self.answers.push(OrderAnswer::Zones);
                }
                SwitchOrder::Tell => self.tell_counters(ports),
                SwitchOrder::PfcChanged(at) => anew.push(at),
                SwitchOrder::RestoreIds(ids) => self.restore_ids(ids),
                SwitchOrder::Survey(asker) => self.answers.push(OrderAnswer::Survey(asker)),
            }
        }
        anew
    }

    /// Answers an order whose table is in force.
    pub(super) fn answer_order(&mut self, answer: OrderAnswer, ports: &mut CorePorts) {
        match answer {
            OrderAnswer::Zones => self.tell_zones(),
            // The thread that asked may wait no longer.
            OrderAnswer::Survey(asker) => drop(asker.send(self.survey(ports))),
        }
    }
}
