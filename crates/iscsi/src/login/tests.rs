//! Logins as packet traces. A request is written as its stage, `S` or `O`, with the stage that it
//! asks for (`S>O`, `O>F`) or `C` for the C bit, and its text with blanks in place of nulls; so is
//! a response, after its status.

use std::collections::BTreeSet;
use std::time::Duration;

use scsi::medium::HeapLease;

use super::admission::WEAK_HASH;
use super::*;
use crate::auth::Hash;
use crate::parameters::SessionPurpose;
use crate::target::{
    AccessGroup, ChapUser, InitiatorPort, Initiators, IserPortals, NodeAccess, SessionScope,
    TargetChap, TargetLimits,
};
use crate::test_support::{self, nulls};
use crate::wire::bhs::{BHS_LEN, Itt};
use crate::wire::login::LoginResponse;
use crate::wire::serial::{CmdSn, StatSn};

mod bad_peers;
mod captures;
mod groups;
mod iser;
mod logins;
mod nodes;
mod portals;
mod stories;

const INITIATOR: &str = "InitiatorName=iqn.2026-01.test:ini";
const TARGET: &str = "TargetName=iqn.2026-11.org.lunar:a";

fn node(letter: char, access: NodeAccess) -> Arc<TargetNode> {
    let name = format!("iqn.2026-11.org.lunar:{letter}");
    Arc::new(TargetNode::new(name, access))
}

fn only(names: &[&str]) -> NodeAccess {
    NodeAccess::only(names.iter().map(|&name| name.to_owned()).collect())
}

fn chap() -> NodeAccess {
    let users = vec![ChapUser {
        name: "user1".to_owned(),
        initiator: None,
        secret: b"secretsecret1".to_vec(),
    }];
    let mutual = Some(("tuser1".to_owned(), b"tsecretsecret1".to_vec()));
    let group = AccessGroup {
        initiators: Initiators::Everybody,
        chap: Some(TargetChap {
            users,
            mutual,
            minimum: Hash::Md5,
        }),
    };
    group.into()
}

fn config(nodes: Vec<Arc<TargetNode>>) -> Arc<TargetConfig> {
    Arc::new(TargetConfig {
        nodes,
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: vec![],
        limits: TargetLimits::default(),
    })
}

/// Node `a` for everybody, `b` for `iqn.2026-01.test:other`, `c` with CHAP.
fn three_nodes() -> Arc<TargetConfig> {
    config(vec![
        node('a', NodeAccess::default()),
        node('b', only(&["iqn.2026-01.test:other"])),
        node('c', chap()),
    ])
}

fn endpoints() -> Endpoints {
    Endpoints {
        local: "10.9.0.1:3260".parse().unwrap(),
        peer: "10.9.0.2:40000".parse().unwrap(),
    }
}

/// What a login sends.
#[derive(Default)]
struct Sent(Vec<u8>);

impl PduSink<HeapLease> for Sent {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn lease(&mut self, _data: HeapLease) {
        panic!("a login sends no data");
    }

    fn copied(&mut self, _data: &HeapLease) -> &[u8] {
        panic!("a login sends no data");
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// An initiator, and the login that it talks to.
struct Peer {
    login: Login<HeapLease>,
    next: LoginRequest,
    sent: Sent,
}

impl Default for Peer {
    /// It talks to a target with [`three_nodes`].
    fn default() -> Self {
        Self::new(&three_nodes())
    }
}

impl Peer {
    fn new(config: &Arc<TargetConfig>) -> Self {
        let mut random = [0; 64];
        random
            .iter_mut()
            .zip(0..)
            .for_each(|(byte, value)| *byte = value);
        random[60..].copy_from_slice(&1000_u32.to_be_bytes());
        Self {
            login: Login::new(Duration::ZERO, config.clone(), endpoints(), random),
            next: LoginRequest {
                transit: false,
                more: false,
                current: 0,
                next: 0,
                version_max: 0,
                version_min: 0,
                isid: [0, 2, 0x3d, 0, 0, 1],
                tsih: 0,
                itt: Itt(0x77),
                cid: 5,
                cmd_sn: CmdSn(500),
                exp_stat_sn: StatSn(0),
            },
            sent: Sent::default(),
        }
    }

    /// The same over RDMA.
    fn over_rdma(mut self) -> Self {
        self.login.set_transport(Transport::Iser {
            data_segment: 65_536,
        });
        self
    }

    /// The bytes of a request.
    fn request(&self, head: &str, text: &str) -> Vec<u8> {
        let mut request = self.next;
        let mut parts = head.split(['>', ' ']);
        let stage = |name| match name {
            "S" => 0,
            "O" => 1,
            "F" => 3,
            _ => 2,
        };
        request.current = stage(parts.next().unwrap());
        request.transit = head.contains('>');
        request.more = head.contains('C');
        if let Some(next) = parts.next().filter(|_| request.transit) {
            request.next = stage(next);
        }
        let mut data = nulls(text);
        if !request.more && !data.is_empty() {
            data.push(0);
        }
        pdu(request.encode(), &data)
    }

    fn send(&mut self, head: &str, text: &str) {
        let bytes = self.request(head, text);
        self.send_bytes(&bytes);
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let taken = self.login.receive(Duration::ZERO, bytes);
        assert_eq!(taken, bytes.len());
    }

    /// What has been sent since.
    fn recv(&mut self) -> String {
        self.login.transmit(&mut self.sent);
        let bytes = std::mem::take(&mut self.sent.0);
        let mut traces = Vec::new();
        let mut rest = &bytes[..];
        while let Some((head, after)) = rest.split_first_chunk::<BHS_LEN>() {
            let bhs = Bhs(*head);
            assert_eq!(bhs.opcode(), Opcode::LoginResponse);
            let length = bhs.data_len() as usize;
            let response = LoginResponse::decode(&bhs);
            self.check(&response);
            traces.push(trace(&response, &after[..length]));
            rest = &after[length.next_multiple_of(4)..];
        }
        assert!(rest.is_empty());
        traces.join("\n")
    }

    /// What every response must carry.
    fn check(&self, response: &LoginResponse) {
        assert_eq!(
            (response.itt, response.isid),
            (self.next.itt, self.next.isid)
        );
        assert_eq!(response.stamps.exp_cmd_sn, self.next.cmd_sn);
        assert_eq!(response.stamps.max_cmd_sn, self.next.cmd_sn.plus(15));
        assert_eq!((response.version_max, response.version_active), (0, 0));
    }

    fn event(&mut self) -> Option<LoginEvent> {
        self.login.poll()
    }

    /// One request and its response.
    #[track_caller]
    fn exchange(&mut self, head: &str, text: &str, expected: &str) {
        self.send(head, text);
        assert_eq!(self.recv(), expected, "after {head} {text}");
    }

    /// The session that the login asks for.
    #[track_caller]
    fn asks(&mut self) -> (InitiatorPort, Option<String>, SessionScope) {
        match self.event() {
            Some(LoginEvent::Session { wish, node }) => {
                assert_eq!((wish.tsih, wish.cid), (self.next.tsih, self.next.cid));
                let node = node.map(|node| node.name.clone());
                (wish.initiator, node, wish.scope)
            }
            event => panic!("{event:?}"),
        }
    }

    #[track_caller]
    fn closes(&mut self) -> Violation {
        match self.event() {
            Some(LoginEvent::Close(violation)) => {
                assert!(self.event().is_none());
                assert_eq!(self.login.next_deadline(), None);
                violation
            }
            event => panic!("{event:?}"),
        }
    }

    #[track_caller]
    fn breaks(&mut self, rule: &str) {
        assert_eq!(self.closes().rule, rule);
    }

    /// The first request, with both names before its text, and its response.
    #[track_caller]
    fn opens(&mut self, head: &str, text: &str, expected: &str) {
        let text = format!("{INITIATOR} {TARGET} {text}");
        self.exchange(head, text.trim_end(), expected);
    }

    /// A security stage without authentication.
    #[track_caller]
    fn passes_security(&mut self) {
        self.opens("S>O", "", "S>O: TargetPortalGroupTag=1");
    }

    /// One request that has all that a session needs.
    #[track_caller]
    fn asks_at_once(&mut self) {
        self.send("O>F", &format!("{INITIATOR} {TARGET}"));
        self.asks();
    }

    /// It is admitted to a discovery session, which tells it of these targets.
    #[track_caller]
    fn discovers(&mut self) -> Vec<String> {
        let SessionPurpose::Discovery(nodes) = self.admitted(1).1.purpose else {
            panic!("a normal session")
        };
        nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Admits it, and gives the last response and what was agreed.
    #[track_caller]
    fn admitted(&mut self, tsih: u16) -> (String, Parameters) {
        self.login.admit(tsih);
        assert!(matches!(self.event(), Some(LoginEvent::Done)));
        let LoginState::Done(parameters) = &self.login.state else {
            panic!("not done")
        };
        let parameters = (**parameters).clone();
        (self.recv(), parameters)
    }
}

fn pdu(bhs: Bhs, data: &[u8]) -> Vec<u8> {
    test_support::pdu(bhs, &[], data, (false, false))
}

fn trace(response: &LoginResponse, data: &[u8]) -> String {
    let stage = |code: u8| ["S", "O", "?", "F"][usize::from(code)];
    if response.status != 0 {
        assert!(data.is_empty() && !response.transit && !response.more);
        return format!("reject {:04x}", response.status);
    }
    let next = if response.transit {
        format!(">{}", stage(response.next))
    } else {
        String::new()
    };
    let more = if response.more { " C" } else { "" };
    let text = String::from_utf8(data.to_vec()).unwrap().replace('\0', " ");
    format!("{}{next}{more}: {text}", stage(response.current))
        .trim_end()
        .to_owned()
}
