//! Every state of a remote port by everything that can happen to it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use insta::assert_snapshot;

use super::*;
use crate::wire::els::{Adisc, Code, Els, FcpParameters, Logo, LsRejectReason, Reply, ServicePage};
use crate::wire::els::{explanation, reason};
use crate::wire::ethernet::Mac;
use crate::wire::frame::RxId;
use crate::wire::names::FcId;

const OURS: Wwn = Wwn(5);

fn local(role: Role) -> LocalPort {
    LocalPort {
        in_fabric: false,
        role,
        address: PeerAddress {
            fc_id: FcId(1),
            mac: Mac::of_port(Mac::VN2VN_FC_MAP, FcId(1)),
        },
        wwpn: OURS,
        wwnn: OURS,
        tag: None,
        payload_max: 2112,
        e_d_tov: Duration::from_secs(2),
        r_a_tov: Duration::from_secs(4),
        offer: PrliOffer::default(),
        partners: Partners::Any,
    }
}

/// The machine with what it lives by.
struct Rig {
    remote: RemotePort,
    local: LocalPort,
    now: Now,
    ox_ids: OxIds,
    outputs: VecDeque<(RemoteId, RemoteOutput)>,
}

impl Rig {
    fn new(role: Role, theirs: Wwn) -> Self {
        let local = local(role);
        let neighbour = Neighbour {
            fc_id: FcId(2),
            mac: Mac::of_port(Mac::VN2VN_FC_MAP, FcId(2)),
            enode: Mac([2, 0, 0, 0, 0, 2]),
            wwpn: theirs,
            wwnn: theirs,
            payload_max: 2112,
            target: None,
            initiator: None,
        };
        Self {
            remote: RemotePort::new(RemoteId(0), neighbour, &local),
            local,
            now: Duration::from_secs(100),
            ox_ids: OxIds::new(0),
            outputs: VecDeque::new(),
        }
    }

    /// Does something, and tells what comes of it.
    fn act(&mut self, act: impl FnOnce(&mut RemotePort, &mut Cx<'_>)) -> String {
        let mut cx = Cx {
            now: self.now,
            local: &self.local,
            ox_ids: &mut self.ox_ids,
            outputs: &mut self.outputs,
        };
        act(&mut self.remote, &mut cx);
        let outputs = self.outputs.drain(..).map(|(_, output)| text(&output));
        outputs.collect::<Vec<_>>().join(", ")
    }

    fn asked(&mut self, ox_id: u16, els: Els) -> String {
        let asked = RequestedExchange {
            ox_id: OxId(ox_id),
            rx_id: RxId::UNASSIGNED,
        };
        self.act(|remote, cx| remote.request_came(cx, asked, els))
    }

    /// The other end sends its PLOGI, or its PRLI.
    fn plogi(&mut self, ox_id: u16) -> String {
        let theirs = self.theirs();
        self.asked(ox_id, Els::Plogi(theirs))
    }

    fn prli(&mut self, ox_id: u16) -> String {
        let page = self.page();
        self.asked(ox_id, Els::Prli(vec![page]))
    }

    /// The other end accepts our PLOGI, or our PRLI.
    fn plogi_accepted(&mut self) -> String {
        self.answered(&Reply::Login(self.theirs()))
    }

    fn prli_accepted(&mut self) -> String {
        let page = self.page().answered(ServicePage::EXECUTED);
        self.answered(&Reply::Process(vec![page]))
    }

    /// Its deadline passes.
    fn wait(&mut self) -> String {
        self.now = self.remote.deadline().unwrap();
        self.act(RemotePort::expire)
    }

    /// The other end logs out.
    fn logo(&mut self) -> String {
        let (fc_id, wwpn) = (FcId(2), self.remote.wwpn());
        self.asked(9, Els::Logo(Logo { fc_id, wwpn }))
    }

    /// The other end asks whether its login holds.
    fn adisc(&mut self) -> String {
        let wwpn = self.remote.wwpn();
        self.asked(
            9,
            Els::Adisc(Adisc {
                hard_address: FcId(0),
                wwpn,
                wwnn: wwpn,
                fc_id: FcId(2),
            }),
        )
    }

    fn answered(&mut self, reply: &Reply) -> String {
        let ox_id = self.remote.asked.unwrap_or(OxId(0));
        self.act(|remote, cx| remote.answer_came(cx, ox_id, &reply.encode()))
    }

    /// The other end, as it sees itself.
    fn other_end(&self) -> LocalPort {
        LocalPort {
            wwpn: self.remote.wwpn(),
            ..self.local.clone()
        }
    }

    fn theirs(&self) -> crate::wire::els::ServiceParameters {
        self.other_end().parameters()
    }

    fn page(&self) -> ServicePage {
        let role = match self.local.role {
            Role::Initiator => Role::Target,
            Role::Target => Role::Initiator,
        };
        local(role).process_login()
    }

    /// On the way that a login takes.
    fn lead_to(&mut self, stage: Stage) {
        self.act(RemotePort::begin);
        match stage {
            Stage::Begun => return,
            Stage::Idle => return self.remote.rest(None),
            _ => {}
        }
        if self.remote.state == RemoteState::Plogi {
            self.plogi_accepted();
        } else {
            self.plogi(1);
        }
        if stage == Stage::LoggedIn {
            return;
        }
        if self.local.role == Role::Initiator {
            self.prli_accepted();
        } else {
            self.prli(2);
        }
        assert!(self.remote.is_up());
        if stage == Stage::Ending {
            self.asked(3, Els::Prlo(vec![ServicePage::fcp(FcpParameters(0))]));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Idle,
    Begun,
    LoggedIn,
    Up,
    /// The nexus is over, and the device server has not ended what was of it.
    Ending,
}

fn text(output: &RemoteOutput) -> String {
    match output {
        RemoteOutput::Send(sending) if sending.is_reply => {
            match Reply::parse(Code::PRLI, &sending.els) {
                Ok(Reply::Reject(why)) => {
                    format!("LS_RJT {:02x}/{:02x}", why.reason, why.explanation)
                }
                Ok(Reply::Process(pages)) => format!("LS_ACC {:02x}", pages[0].flags),
                _ => "LS_ACC".to_owned(),
            }
        }
        RemoteOutput::Send(sending) => Els::parse(&sending.els).unwrap().code().to_string(),
        RemoteOutput::Up(_) => "up".to_owned(),
        RemoteOutput::Down(why) => format!("down: {why:?}"),
        RemoteOutput::Remark(violation) => format!("\"{violation}\""),
    }
}

type Happening = (&'static str, fn(&mut Rig) -> String);

fn reject(rig: &mut Rig, reason: u8, explanation: u8) -> String {
    rig.answered(&Reply::Reject(LsRejectReason::new(reason, explanation)))
}

const HAPPENINGS: &[Happening] = &[
    ("its PLOGI", |rig| rig.plogi(9)),
    ("its PRLI", |rig| rig.prli(9)),
    ("its PRLO", |rig| {
        let page = ServicePage::fcp(FcpParameters(0));
        rig.asked(9, Els::Prlo(vec![page]))
    }),
    ("its LOGO", Rig::logo),
    ("its ADISC", Rig::adisc),
    ("accepted", |rig| match rig.remote.state {
        RemoteState::Prli => rig.prli_accepted(),
        _ => rig.plogi_accepted(),
    }),
    ("busy", |rig| reject(rig, reason::LOGICAL_BUSY, 0)),
    ("in progress", |rig| reject(rig, reason::IN_PROGRESS, 0)),
    ("login required", |rig| {
        reject(rig, reason::UNABLE, explanation::LOGIN_REQUIRED)
    }),
    ("its time", |rig| {
        rig.now += Duration::from_secs(60);
        rig.act(RemotePort::expire)
    }),
    ("a stray", |rig| rig.act(RemotePort::strayed)),
    ("ended", |rig| rig.act(RemotePort::ended)),
    ("lost", |rig| {
        rig.act(|remote, cx| remote.lost(cx, NexusEnd::ByUs))
    }),
];

/// What happens in every stage, as a table.
fn table(role: Role, theirs: Wwn) -> String {
    let mut table = String::new();
    for stage in [
        Stage::Idle,
        Stage::Begun,
        Stage::LoggedIn,
        Stage::Up,
        Stage::Ending,
    ] {
        let mut rig = Rig::new(role, theirs);
        rig.lead_to(stage);
        writeln!(table, "{:?}, {stage:?}", rig.remote.state).unwrap();
        for (name, happen) in HAPPENINGS {
            let mut rig = Rig::new(role, theirs);
            rig.lead_to(stage);
            let before = (rig.remote.state, rig.remote.deadline);
            let outputs = happen(&mut rig);
            let now = (rig.remote.state, rig.remote.deadline);
            if !outputs.is_empty() || now != before {
                writeln!(table, "  {name:14} {:8} {outputs}", format!("{:?}", now.0)).unwrap();
            }
        }
    }
    table
}

#[test]
fn an_initiator_of_the_higher_name() {
    assert_snapshot!(table(Role::Initiator, Wwn(1)));
}

#[test]
fn an_initiator_of_the_lower_name() {
    assert_snapshot!(table(Role::Initiator, Wwn(9)));
}

#[test]
fn a_target_of_the_higher_name() {
    assert_snapshot!(table(Role::Target, Wwn(1)));
}

#[test]
fn a_target_of_the_lower_name() {
    assert_snapshot!(table(Role::Target, Wwn(9)));
}

/// A PLOGI of a port that has begun anew would be taken for a second copy by its OX_ID.
#[test]
fn a_port_that_begins_anew_has_other_numbers() {
    let first = |random| OxIds::new(random).take();
    assert_ne!(first(0x0707), first(0x0808));
    assert!((0..=u16::MAX).all(|random| OxIds::has(first(random))));
    assert!((0..=u16::MAX).all(|random| first(random).0 < SERVICE_OX_IDS));
}

mod logins;
