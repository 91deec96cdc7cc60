//! However the bytes of a conversation are cut into pieces, the answers are the same.

use scsi::medium::Extent;
use sim::{DiskKind, EventWeights};
use tests::initiator::Reply;
use tests::iser_end::IserSettings;

use crate::lab::{Lab, Shape};
use crate::oracle::Pattern;

const HOST: usize = 0;

type Keys = &'static [(&'static str, &'static str)];

/// Everything in one PDU, or in as many as can be.
const HOSTS: [HostRow; 6] = [
    (DiskKind::Apart, None, &[]),
    (
        DiskKind::Memory,
        None,
        &[
            ("HeaderDigest", "CRC32C"),
            ("DataDigest", "CRC32C"),
            ("InitialR2T", "Yes"),
            ("ImmediateData", "No"),
            ("MaxBurstLength", "1024"),
        ],
    ),
    (
        DiskKind::Apart,
        None,
        &[
            ("DataDigest", "CRC32C"),
            ("FirstBurstLength", "1024"),
            ("MaxBurstLength", "1024"),
            ("MaxRecvDataSegmentLength", "512"),
        ],
    ),
    // FPDUs with CRCs, as long as they can be.
    (DiskKind::Apart, Some(IserSettings::usual), &[]),
    // Without, of a segment of TCP each; one RDMA Read after the other.
    (
        DiskKind::Memory,
        Some(short_fpdus),
        &[("MaxBurstLength", "2048")],
    ),
    // CRCs, short FPDUs, no invalidation, and all data by RDMA Read.
    (DiskKind::Apart, Some(plain), &[("ImmediateData", "No")]),
];

type HostRow = (DiskKind, Option<fn() -> IserSettings>, Keys);

fn short_fpdus() -> IserSettings {
    IserSettings {
        crc: false,
        long_fpdus: false,
        reads: 1,
        solicited_only: Some(false),
        hello: true,
        data_segment: 512,
        ..IserSettings::usual()
    }
}

pub(super) fn plain() -> IserSettings {
    IserSettings {
        long_fpdus: false,
        can_invalidate: false,
        solicited_only: Some(true),
        ..IserSettings::usual()
    }
}

/// How what the host sends is cut.
#[derive(Clone, Copy)]
enum Cut {
    /// Not at all.
    Nowhere,
    /// After so many bytes of the whole conversation.
    After(usize),
    /// Into pieces of so many.
    Every(usize),
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    for host in HOSTS {
        let (answers, bytes) = conversation(host, Cut::Nowhere);
        assert_eq!(answers.len(), 11, "{} answers", answers.len());
        for at in 1..bytes {
            let (cut, _) = conversation(host, Cut::After(at));
            assert!(cut == answers, "cut after {at} of {bytes} bytes, {host:?}");
        }
    }
}

#[test]
fn pieces_of_any_size_change_nothing() {
    for host in HOSTS {
        let (answers, _) = conversation(host, Cut::Nowhere);
        for size in (1..8).chain([16, 47, 48, 49, 52, 511, 512]) {
            let (cut, _) = conversation(host, Cut::Every(size));
            assert!(cut == answers, "in pieces of {size} bytes, {host:?}");
        }
    }
}

#[test]
fn over_iser_the_answers_are_those_over_tcp() {
    let usual = conversation(HOSTS[0], Cut::Nowhere).0;
    for host in HOSTS {
        assert_eq!(conversation(host, Cut::Nowhere).0, usual, "{host:?}");
    }
}

/// One command after the other, so that the answers come in one order. Returns these, and how many
/// bytes the host has sent.
fn conversation((kind, iser, keys): HostRow, cut: Cut) -> (Vec<Reply>, usize) {
    let mut lab = Lab::new(0, Shape::new(2, kind));
    lab.world.pace = EventWeights {
        pieces: false,
        ..EventWeights::default()
    };
    lab.add_host();
    let keys = keys.iter().map(|(key, value)| (*key, (*value).to_owned()));
    lab.hosts[HOST].settings.keys = keys.collect();
    lab.hosts[HOST].settings.iser = iser.map(|settings| settings());
    lab.dial(HOST);
    let mut sent = 0;
    for step in STEPS {
        step(&mut lab);
        sent = pass_on(&mut lab, cut, sent);
    }
    let told = std::mem::take(&mut lab.hosts[HOST].told);
    lab.is_left_by_all();
    (told.into(), sent)
}

/// What is said, one after the other.
pub(super) const STEPS: [fn(&mut Lab); 9] = [
    |_| {},
    // Unit attention.
    |lab| {
        lab.flush(HOST, 0);
    },
    |lab| {
        lab.write(HOST, 0, Extent::new(3, 2), Pattern::Each);
    },
    |lab| {
        lab.write(HOST, 0, Extent::new(1, 7), Pattern::Each);
    },
    |lab| {
        lab.read(HOST, 0, Extent::new(0, 9));
    },
    |lab| {
        lab.write(HOST, 0, Extent::new(2, 3), Pattern::Zeros);
    },
    |lab| {
        lab.compare_and_write(HOST, 0, Extent::new(4, 1));
    },
    |lab| lab.reset_unit(HOST, 0),
    talk_of_other_things,
];

fn talk_of_other_things(lab: &mut Lab) {
    let link = lab.hosts[HOST].link.as_mut().expect("a connection");
    link.initiator.ping(b"ping");
    link.initiator.text("SendTargets", "");
    link.initiator.log_out();
}

/// Sends what there is to send, cut as told, and lets everything happen that comes of each piece.
fn pass_on(lab: &mut Lab, cut: Cut, mut sent: usize) -> usize {
    loop {
        lab.settle(HOST);
        let unsent = lab.hosts[HOST].unsent();
        if unsent == 0 {
            return sent;
        }
        let piece = match cut {
            Cut::After(at) if sent < at => unsent.min(at - sent),
            Cut::Every(size) => unsent.min(size),
            Cut::Nowhere | Cut::After(_) => unsent,
        };
        lab.hosts[HOST].send(piece);
        sent += piece;
    }
}
