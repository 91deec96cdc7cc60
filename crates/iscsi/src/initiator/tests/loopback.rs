//! This initiator and our own target, joined in memory: what the one sends, the other understands,
//! however the two streams are cut.

mod iser;
mod target;

use std::sync::Arc;
use std::time::Duration;

use scsi::medium::{HeapLease, Lease};
use scsi::wire::lun::Lun;

use self::target::{Guard, Target};
use super::logins::{HASHES, chap};
use super::rig::{INITIATOR, ISID, Sink, TARGET, bytes_of, config, pattern, random};
use crate::initiator::config::{Auth, Digest, InitiatorConfig};
use crate::initiator::error::SessionEnd;
use crate::initiator::mover::InitiatorMover;
use crate::initiator::{ClientCommand, Data, Initiator, InitiatorEvent, Tmf};
use crate::parameters::Operational;

const LEN: usize = 1500;

/// What the two of them said to each other came to.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    told: Vec<String>,
    disk: Vec<u8>,
    keys: Option<Operational>,
    /// Bytes that went each way.
    moved: [usize; 2],
}

/// One way of the connection, cut at a place.
struct Stream {
    wire: Sink,
    cut: usize,
    moved: usize,
}

impl Stream {
    fn new(cut: usize) -> Self {
        Self {
            wire: Sink::default(),
            cut,
            moved: 0,
        }
    }

    /// The pieces of what was sent; `cut` 0 means byte by byte.
    fn pieces(&mut self) -> Vec<Vec<u8>> {
        let bytes = std::mem::take(&mut self.wire.bytes);
        let start = self.moved;
        self.moved += bytes.len();
        if self.cut == 0 {
            return bytes.chunks(1).map(<[u8]>::to_vec).collect();
        }
        let at = self.cut.saturating_sub(start).min(bytes.len());
        let (head, tail) = bytes.split_at(at);
        let pieces = [head, tail].map(<[u8]>::to_vec);
        pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect()
    }
}

/// Asks for the next thing, when the last has ended.
fn step<M: InitiatorMover>(initiator: &mut Initiator<HeapLease, M>, number: usize) {
    let now = Duration::ZERO;
    let command = |opcode, data| {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        ClientCommand {
            id: number as u64,
            lun: Lun::from_index(0),
            cdb,
            attribute: scsi::task::Attribute::Simple,
            data,
            deadline: None,
        }
    };
    let discovery = initiator.config().is_discovery();
    match number {
        0..=3 if discovery => initiator.send_targets(now, "All").unwrap(),
        0 => {
            let from = HeapLease::from_bytes(pattern(LEN));
            let write = command(0x2a, Data::Out(from));
            initiator.execute(now, write).unwrap();
        }
        1 => {
            let into = HeapLease::from_bytes(vec![0; LEN + 100]);
            let read = command(0x28, Data::In(into));
            initiator.execute(now, read).unwrap();
        }
        2 => {
            let lun = Lun::from_index(0);
            let function = Tmf::LogicalUnitReset;
            initiator.manage(now, 2, lun, function).unwrap();
        }
        3 => initiator.send_targets(now, "").unwrap(),
        _ => initiator.logout(now).unwrap(),
    }
}

fn run(config: InitiatorConfig, guard: Guard, cut: usize) -> Story {
    let mut initiator = Initiator::new(Arc::new(config), Duration::ZERO, random()).unwrap();
    let mut target = Target::new(guard);
    let (mut out, mut back) = (Stream::new(cut), Stream::new(cut));
    let mut told = Vec::new();
    let mut number = 0;
    loop {
        while initiator.transmit(&mut out.wire) {}
        for piece in out.pieces() {
            target.receive(&piece, &mut back.wire);
        }
        let pieces = back.pieces();
        if pieces.is_empty() && out.wire.bytes.is_empty() {
            break;
        }
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let used = initiator.receive(Duration::ZERO, rest);
                rest = &rest[used..];
                while let Some(event) = initiator.poll() {
                    told.push(show(&event));
                    if !matches!(event, InitiatorEvent::Ended(_)) {
                        step(&mut initiator, number);
                        number += 1;
                    }
                }
                while initiator.transmit(&mut out.wire) {}
            }
        }
    }
    Story {
        told,
        disk: target.disk.0,
        keys: initiator.outcome().map(|outcome| outcome.keys),
        moved: [out.moved, back.moved],
    }
}

fn show(event: &InitiatorEvent<HeapLease>) -> String {
    match event {
        InitiatorEvent::Done(done) => {
            let data = match &done.data {
                Data::In(into) => bytes_of(into),
                _ => Vec::new(),
            };
            format!("{} {} {:?} {data:?}", done.id, done.status, done.residual)
        }
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check(story: &Story) {
    let mut filled = pattern(LEN);
    filled.extend([0; 100]);
    let portal = "ReportedPortal { host: \"192.0.2.1\", port: 3260, group: Some(1) }";
    let expected = [
        "LoggedIn".to_owned(),
        "0 0 Exact []".to_owned(),
        format!("1 0 Underflow(100) {filled:?}"),
        "Managed { id: 2, response: Some(0), information: [0, 0, 0] }".to_owned(),
        format!("Targets([TargetRecord {{ name: \"{TARGET}\", portals: [{portal}] }}])"),
        "Ended(LoggedOut)".to_owned(),
    ];
    assert_eq!(story.told, expected);
    assert_eq!(story.disk, pattern(LEN));
}

/// Every way to have digests, to announce data, and to bound it.
fn combinations() -> Vec<InitiatorConfig> {
    let mut all = Vec::new();
    for bits in 0..16 {
        for (first, burst) in [(512, 512), (512, 1024), (1024, 2048), (65_536, 262_144)] {
            let mut config = config();
            let digest = |bit| match bits & bit {
                0 => Digest::Never,
                _ => Digest::Require,
            };
            config.offer.header_digest = digest(1);
            config.offer.data_digest = digest(2);
            config.offer.keys.initial_r2t = bits & 4 != 0;
            config.offer.keys.immediate_data = bits & 8 != 0;
            config.offer.keys.first_burst = first;
            config.offer.keys.max_burst = burst;
            config.offer.keys.own_data_segment = burst.min(4096);
            config.offer.keys.outstanding_r2t = 1 + first as u16 / 1024;
            all.push(config);
        }
    }
    all
}

#[test]
fn every_combination_of_keys() {
    for config in combinations() {
        let offer = config.offer;
        let story = run(config, Guard::Open, usize::MAX);
        check(&story);
        let keys = story.keys.unwrap();
        assert_eq!(keys.header_digest, offer.header_digest == Digest::Require);
        assert_eq!(keys.data_digest, offer.data_digest == Digest::Require);
        assert_eq!(keys.initial_r2t, offer.keys.initial_r2t);
        assert_eq!(keys.immediate_data, offer.keys.immediate_data);
        assert_eq!(keys.max_burst, offer.keys.max_burst);
        assert_eq!(keys.protocol_level, 2);
    }
}

#[test]
fn cut_into_single_bytes() {
    for config in combinations() {
        check(&run(config, Guard::Open, 0));
    }
}

#[test]
fn cut_at_every_byte() {
    for mut config in combinations().into_iter().step_by(13) {
        // Data out of order is asked for too.
        config.offer.keys.pdu_in_order = config.offer.keys.initial_r2t;
        config.offer.keys.sequence_in_order = config.offer.keys.initial_r2t;
        let whole = run(config.clone(), Guard::Open, usize::MAX);
        check(&whole);
        for at in 1..whole.moved.into_iter().max().unwrap() {
            assert_eq!(run(config.clone(), Guard::Open, at), whole, "cut at {at}");
        }
    }
}

#[test]
fn chap_with_our_own_target() {
    for hash in HASHES {
        for mutual in [false, true] {
            let mut config = chap(mutual);
            let Auth::Chap(chap) = &mut config.auth else {
                panic!("CHAP is configured");
            };
            chap.hashes = vec![hash];
            check(&run(config, Guard::Chap, usize::MAX));
        }
    }
    let whole = run(chap(true), Guard::Chap, usize::MAX);
    check(&whole);
    for at in 1..2000 {
        assert_eq!(run(chap(true), Guard::Chap, at), whole, "cut at {at}");
    }
}

#[test]
fn refused_by_our_own_target() {
    let mut wrong = chap(false);
    let Auth::Chap(credentials) = &mut wrong.auth else {
        panic!("CHAP is configured");
    };
    credentials.secret.push(b'!');
    let mut stranger = config();
    stranger.initiator = "iqn.2026-11.org.lunar:stranger".into();
    let mut elsewhere = config();
    elsewhere.purpose =
        crate::initiator::config::InitiatorPurpose::Normal("iqn.2026-11.org.x:y".into());
    let stories = [
        (wrong, Guard::Chap, "rejected CHAP user"),
        (
            config(),
            Guard::Chap,
            "requires CHAP: give a user and secret",
        ),
        (chap(false), Guard::Open, "rejected CHAP user"),
        (
            stranger,
            Guard::Listed,
            "add iqn.2026-11.org.lunar:stranger to its access list",
        ),
        (elsewhere, Guard::Open, "this portal has no such target"),
    ];
    for (config, guard, expected) in stories {
        let mut initiator = Initiator::new(Arc::new(config), Duration::ZERO, random()).unwrap();
        let mut target = Target::new(guard);
        let (mut out, mut back) = (Sink::default(), Sink::default());
        for _ in 0..5 {
            while initiator.transmit(&mut out) {}
            target.receive(&std::mem::take(&mut out.bytes), &mut back);
            initiator.receive(Duration::ZERO, &std::mem::take(&mut back.bytes));
        }
        match initiator.poll() {
            Some(InitiatorEvent::Ended(end @ SessionEnd::Login(_))) => {
                assert!(end.to_string().contains(expected), "{end}");
            }
            other => panic!("{other:?} where a refusal was expected"),
        }
    }
}

#[test]
fn discovery_at_our_own_target() {
    let config = InitiatorConfig::discovery(INITIATOR, ISID);
    let whole = run(config.clone(), Guard::Open, usize::MAX);
    assert_eq!(whole.told.len(), 6, "{:?}", whole.told);
    assert!(whole.told[1].contains(TARGET));
    assert_eq!(whole.told[5], "Ended(LoggedOut)");
    for at in 1..whole.moved.into_iter().max().unwrap() {
        assert_eq!(run(config.clone(), Guard::Open, at), whole, "cut at {at}");
    }
}
