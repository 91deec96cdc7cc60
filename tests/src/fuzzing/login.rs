//! The login phase: an initiator that says anything, in any pieces, and knows the secret or not.
//!
//! Random bytes do not get past the first stage, so most of what it says is made of login
//! requests with plausible keys; the script may put bytes of its own in at any place.

mod initiator;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use iscsi::auth::Hash;
use iscsi::login::{Login, LoginEvent};
use iscsi::parameters::{DEFAULT_DATA_SEGMENT, Operational};
use iscsi::target::{
    AccessGroup, ChapUser, Endpoints, Initiators, IserPortals, NodeAccess, NodeLogin, TargetChap,
    TargetConfig, TargetNode,
};
use iscsi::test_support::{Sink, limits, pdus};
use iscsi::wire::bhs::Opcode;
use iscsi::wire::framer::Framer;
use iscsi::wire::login::LoginResponse;
use scsi::medium::HeapLease;

use self::initiator::Initiator;
use super::script::Script;
use super::text::within_bounds;

/// The secret of every user.
const SECRET: &[u8] = b"a secret of twenty o";
const USER: &str = "user";

/// See docs/fuzzing.md.
pub fn login(data: &[u8]) {
    let mut script = Script::new(data);
    let config = Arc::new(config(script.byte()));
    let mut dialogue = Dialogue::new(config);
    while !script.is_over() && dialogue.goes_on() {
        dialogue.act(&mut script);
    }
    dialogue.end(&mut script);
}

/// A login between the two of them.
struct Dialogue {
    login: Login<HeapLease>,
    initiator: Initiator,
    now: Duration,
    sink: Sink,
    framer: Framer,
    asked: bool,
    admitted: bool,
    done: bool,
    closed: bool,
    responses: usize,
}

impl Dialogue {
    fn new(config: Arc<TargetConfig>) -> Self {
        let local = ([127, 0, 0, 1], 3260).into();
        let peer = ([127, 0, 0, 1], 40_000).into();
        let endpoints = Endpoints { local, peer };
        let random = std::array::from_fn(|at| at as u8 ^ 0x5a);
        Self {
            login: Login::new(Duration::ZERO, config, endpoints, random),
            initiator: Initiator::default(),
            now: Duration::ZERO,
            sink: Sink::default(),
            framer: Framer::new(DEFAULT_DATA_SEGMENT),
            asked: false,
            admitted: false,
            done: false,
            closed: false,
            responses: 0,
        }
    }

    fn goes_on(&self) -> bool {
        !self.closed && !self.done
    }

    fn act(&mut self, script: &mut Script<'_>) {
        match script.byte() & 7 {
            0 => {
                let len = script.below(256);
                self.give(script.take(len), 1 + script.below(64));
            }
            1 => self.transmit(),
            2 => self.decide(script),
            3 => {
                self.now += Duration::from_secs(u64::from(script.byte()));
                self.login.timeout(self.now);
            }
            _ => {
                let bytes = self.initiator.request(script);
                self.give(&bytes, 1 + script.below(256));
                if script.flag() {
                    self.transmit();
                }
            }
        }
        self.events();
    }

    fn give(&mut self, bytes: &[u8], step: usize) {
        for piece in bytes.chunks(step) {
            let used = self.login.receive(self.now, piece);
            assert!(used <= piece.len());
            self.events();
            if used < piece.len() {
                assert!(self.asked || self.done, "bytes are left without a reason");
                return;
            }
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.login.poll() {
            assert!(!self.closed, "{event:?} after the end");
            match event {
                LoginEvent::Session { wish, node } => {
                    assert!(!self.asked, "asked twice");
                    self.asked = true;
                    if let Some(node) = node {
                        self.may_have(&node, &wish.initiator.name);
                    }
                }
                LoginEvent::Done => {
                    assert!(self.admitted && !self.done);
                    self.done = true;
                }
                LoginEvent::Close(violation) => {
                    assert!(!violation.rule.is_empty());
                    self.closed = true;
                }
                LoginEvent::Remark(_) => {}
            }
        }
    }

    /// Nobody gets a session who was not allowed or did not prove who it is.
    fn may_have(&self, node: &TargetNode, initiator: &str) {
        let group = node.access.group_of(initiator);
        assert!(group.is_some(), "{initiator} at {}", node.name);
        let group = group.and_then(|group| node.access.groups().get(group));
        let chap = group.and_then(|group| group.chap.as_ref());
        let proven = chap.is_none() || self.initiator.proven;
        assert!(proven, "{initiator} at {} without proof", node.name);
    }

    /// Whether there may be a session: also where nobody asked.
    fn decide(&mut self, script: &mut Script<'_>) {
        if script.flag() {
            self.admitted |= self.asked;
            self.login.admit(script.half() | 1);
        } else {
            self.login.refuse(0x0200 | script.half() & 0x1ff);
        }
    }

    fn transmit(&mut self) {
        self.login.transmit(&mut self.sink);
        let bytes = std::mem::take(&mut self.sink.bytes);
        assert!(
            bytes.len() <= 2 * (48 + DEFAULT_DATA_SEGMENT as usize),
            "one response, a reject"
        );
        let mut text = Vec::new();
        for (bhs, data) in pdus(&mut self.framer, &bytes) {
            assert_eq!(bhs.opcode(), Opcode::LoginResponse);
            self.response(&LoginResponse::decode(&bhs));
            text = data;
        }
        self.initiator.heard(&text);
    }

    fn response(&mut self, response: &LoginResponse) {
        self.responses += 1;
        let finished = response.status == 0 && response.transit && response.next == 3;
        assert!(!finished || self.admitted, "let in without being admitted");
    }

    fn end(&mut self, script: &mut Script<'_>) {
        self.transmit();
        if self.closed {
            assert_eq!(self.login.receive(self.now, b"more"), 4);
            assert!(self.login.poll().is_none() && self.login.outcome().is_none());
            assert!(self.login.next_deadline().is_none());
        } else if !self.done {
            let deadline = self.login.next_deadline();
            self.login.timeout(deadline.unwrap_or_default());
            self.events();
            assert!(self.closed, "a login has a deadline");
        }
        let Some(parameters) = self.login.outcome() else {
            return;
        };
        within_bounds(&parameters.keys);
        if let Some(node) = parameters.node() {
            as_allowed(&parameters.keys, &node.login);
        }
        let login = std::mem::replace(&mut self.login, Dialogue::new(Arc::new(config(0))).login);
        let session = login.into_session(self.now);
        let mut session = session.expect("a login that is done leads to a session");
        session.receive(self.now, script.rest());
    }
}

/// Login keys of a node that differ from the defaults of RFC 7143.
fn strict() -> NodeLogin {
    NodeLogin {
        header_digest: Some(true),
        data_digest: Some(false),
        immediate_data: Some(false),
        max_burst: Some(8192),
        first_burst: Some(4096),
        time2wait: Some(3),
        ..NodeLogin::default()
    }
}

/// No session has a key at a value that its node does not allow, whoever negotiated what.
fn as_allowed(keys: &Operational, node: &NodeLogin) {
    let is = |set: Option<bool>, agreed: bool| set.is_none_or(|set| set == agreed);
    assert!(is(node.header_digest, keys.header_digest), "{keys:?}");
    assert!(is(node.data_digest, keys.data_digest), "{keys:?}");
    assert!(is(node.immediate_data, keys.immediate_data), "{keys:?}");
    assert!(node.max_burst.is_none_or(|most| keys.max_burst <= most));
    assert!(node.first_burst.is_none_or(|most| {
        keys.first_burst <= most || keys.initial_r2t && !keys.immediate_data
    }));
    assert!(node.time2wait.is_none_or(|least| keys.time2wait >= least));
}

/// Three nodes: one for everybody, one for a few, one with CHAP.
fn config(flags: u8) -> TargetConfig {
    let chap = TargetChap {
        users: vec![ChapUser {
            name: USER.into(),
            initiator: None,
            secret: SECRET.to_vec(),
        }],
        mutual: (flags & 1 != 0).then(|| ("us".into(), b"a secret of our own!".to_vec())),
        minimum: [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Sha3][usize::from(flags >> 1 & 3)],
    };
    let open = NodeAccess::default();
    let named = || Initiators::Named(BTreeSet::from(["iqn.2026-11.org.test:listed".into()]));
    let group = |initiators, chap| NodeAccess::from(AccessGroup { initiators, chap });
    let some = match flags & 8 {
        0 => Initiators::Everybody,
        _ => named(),
    };
    let (listed, guarded) = (group(named(), None), group(some, Some(chap)));
    let nodes = [("open", open), ("listed", listed), ("guarded", guarded)];
    // Without the open nodes every initiator has to prove itself.
    let some = if flags & 16 != 0 { 2.. } else { 0.. };
    let nodes = nodes[some].iter().map(|(name, access)| {
        Arc::new(TargetNode {
            alias: (flags & 32 != 0).then(|| "an alias".into()),
            login: if flags & 64 != 0 {
                strict()
            } else {
                NodeLogin::default()
            },
            ..TargetNode::new(format!("iqn.2026-11.org.lunar:{name}"), access.clone())
        })
    });
    TargetConfig {
        nodes: nodes.collect(),
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits: limits(),
    }
}
