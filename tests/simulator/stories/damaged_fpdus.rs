//! One byte is damaged on its way, of any FPDU in either direction, while a host uses iSER with
//! CRCs. The connection ends, nothing wrong is stored, read or answered, and the host logs in
//! again.
//!
//! It stands for what `damage` tells of digests, which there are none of over iSER: a damaged PDU
//! is not rejected, nor its command retried, as an FPDU that is damaged ends the stream. The frames
//! that it begins with have no CRC.

use std::time::Duration;

use scsi::medium::Extent;
use sim::{DiskKind, EventWeights};
use tests::initiator::Reply;

use super::splits::{STEPS, plain};
use crate::host::{TO_HOST, TO_TARGET};
use crate::lab::{Lab, Shape};

const HOST: usize = 0;

/// Bytes of a Request and of its Reply: depths and four bytes of private data.
const STARTUP: usize = 28;

/// From one byte that is damaged to the next one, in the next world.
const STEP: usize = 7;

#[test]
fn a_damaged_byte_ends_the_connection_and_nothing_else() {
    let mut whole = lab(None);
    let answers = converse(&mut whole);
    assert_eq!(answers.len(), 11);
    for way in [TO_TARGET, TO_HOST] {
        for at in (STARTUP..whole.hosts[HOST].line.passed[way]).step_by(STEP) {
            let mut lab = lab(Some((way, at)));
            let told = converse(&mut lab);
            assert!(answers.starts_with(&told), "way {way}, byte {at}: {told:?}");
            ends(&mut lab);
            comes_again(&mut lab);
        }
    }
}

/// A host that begins to log in.
fn lab(damage: Option<(usize, usize)>) -> Lab {
    let mut lab = Lab::new(0, Shape::new(2, DiskKind::Apart));
    lab.world.pace = EventWeights {
        pieces: false,
        ..EventWeights::default()
    };
    lab.add_host();
    lab.hosts[HOST].settings.iser = Some(plain());
    lab.hosts[HOST].line.damage = damage;
    lab.dial(HOST);
    lab
}

/// What the host is told, as far as it comes.
fn converse(lab: &mut Lab) -> Vec<Reply> {
    for step in STEPS {
        if is_over(lab) {
            break;
        }
        step(lab);
        exchange(lab);
    }
    std::mem::take(&mut lab.hosts[HOST].told).into()
}

fn exchange(lab: &mut Lab) {
    loop {
        lab.settle(HOST);
        let unsent = lab.hosts[HOST].unsent();
        if unsent == 0 {
            return;
        }
        lab.hosts[HOST].send(unsent);
    }
}

fn is_over(lab: &Lab) -> bool {
    let host = &lab.hosts[HOST];
    host.line.has_ended || host.is_cut_off()
}

/// Where a damaged length has the target wait for more, it finds the host silent.
fn ends(lab: &mut Lab) {
    for _ in 0..30 {
        if lab.hosts[HOST].is_cut_off() {
            break;
        }
        lab.world.pass(Duration::from_secs(5));
        exchange(lab);
    }
    assert!(is_over(lab), "it is still open");
    if let Some(wire) = lab.hosts[HOST].hang_up() {
        wire.cut();
    }
}

fn comes_again(lab: &mut Lab) {
    lab.hosts[HOST].line.damage = None;
    lab.log_in(HOST);
    let all = Extent::new(0, lab.disks[0].traits().blocks);
    lab.insist(HOST, |lab| lab.read(HOST, 0, all));
    lab.leave();
}
