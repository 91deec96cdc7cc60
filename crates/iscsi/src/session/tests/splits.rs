//! A stream split anywhere leads to the same outputs.

use proptest::prelude::*;
use scsi::task::FunctionResult;

use super::rig::{Rig, keys, pattern};
use crate::parameters::Operational;
use crate::session::SessionEvent;
use crate::wire::bhs::Ttt;
use crate::wire::data::DataOut;
use crate::wire::serial::{DataSn, StatSn};

/// Carries out whatever the session wants, as a device server would that answers at once.
fn serve(rig: &mut Rig, told: &mut Vec<String>) {
    while let Some(event) = rig.event() {
        match event {
            SessionEvent::Execute(command) if command.expected_out > 0 => {
                rig.grant(command.tag, 0, command.expected_out as usize);
            }
            SessionEvent::Execute(command) => {
                rig.data_in(command.tag, 0, &pattern(command.expected_in as usize));
                rig.good(command.tag, u64::from(command.expected_in), 0);
            }
            SessionEvent::DataOut { tag, offset, data } => {
                told.push(format!("{offset} {:?}", super::rig::bytes_of(&data)));
                rig.good(
                    tag,
                    0,
                    u64::from(offset) + scsi::medium::Lease::len(&data) as u64,
                );
            }
            SessionEvent::Manage { id, .. } => rig.managed(id, FunctionResult::Complete),
            other => told.push(format!("{other:?}")),
        }
    }
}

/// A stream that an initiator sends, with the R2Ts of the write answered as if they had come.
fn stream(rig: &mut Rig) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = rig.read_pdu(1, 100);
    bytes.extend(rig.bytes(read.encode(), &[], &[]));
    let write = rig.write_pdu(2, 900, false);
    bytes.extend(rig.bytes(write.encode(), &[], &pattern(900)[..301]));
    let rest = DataOut {
        last: true,
        lun: super::rig::LUN,
        itt: crate::wire::bhs::Itt(2),
        ttt: Ttt::NONE,
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(0),
        offset: 301,
    };
    bytes.extend(rig.bytes(rest.encode(), &[], &pattern(900)[301..]));
    let ping = rig.nop_pdu(crate::wire::bhs::Itt(3));
    bytes.extend(rig.bytes(ping.encode(), &[], b"ping"));
    let reset = rig.task_pdu(4, 5);
    bytes.extend(rig.bytes(reset.encode(), &[], &[]));
    let stray = DataOut {
        itt: crate::wire::bhs::Itt(9),
        ..rest
    };
    bytes.extend(rig.bytes(stray.encode(), &[], b"stray"));
    let text = rig.text_pdu(5);
    bytes.extend(rig.bytes(text.encode(), &[], b"SendTargets=\0"));
    let logout = rig.logout_pdu(6, 0);
    bytes.extend(rig.bytes(logout.encode(), &[], &[]));
    bytes
}

fn outcome(digests: (bool, bool), cuts: &[usize]) -> (Vec<String>, Vec<u8>) {
    let mut rig = Rig::with(Operational {
        header_digest: digests.0,
        data_digest: digests.1,
        ..keys()
    });
    let stream = stream(&mut rig);
    let mut told = Vec::new();
    let mut sent = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        let mut rest = &stream[start..end];
        while !rest.is_empty() {
            let used = rig.session.receive(rig.now, rest);
            rest = &rest[used..];
            serve(&mut rig, &mut told);
            sent.extend(rig.transmitted());
        }
        start = end;
    }
    (told, sent)
}

const DIGESTS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

#[test]
fn split_at_every_byte() {
    for digests in DIGESTS {
        let whole = outcome(digests, &[]);
        assert!(!whole.1.is_empty());
        let mut rig = Rig::with(Operational {
            header_digest: digests.0,
            data_digest: digests.1,
            ..keys()
        });
        let len = stream(&mut rig).len();
        for at in 0..len {
            assert_eq!(outcome(digests, &[at]), whole, "split at {at}");
        }
        let all: Vec<usize> = (0..len).collect();
        assert_eq!(outcome(digests, &all), whole);
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        discovery: bool,
    ) {
        let mut rig = if discovery { Rig::discovery() } else { Rig::new() };
        let mut told = Vec::new();
        rig.give(&bytes);
        serve(&mut rig, &mut told);
        rig.transmitted();
    }

    #[test]
    fn pdus_of_any_header_never_panic(
        headers in prop::collection::vec((0u8..8, any::<[u8; 47]>(), 0usize..64), 1..40),
    ) {
        let mut rig = Rig::new();
        let mut told = Vec::new();
        for (opcode, rest, len) in headers {
            let mut bhs = crate::wire::bhs::Bhs([0; 48]);
            bhs.0[0] = opcode | rest[0] & 0x40;
            bhs.0[1..].copy_from_slice(&rest);
            // Tags and numbers from small sets, so that PDUs have to do with each other.
            for at in [16, 20, 24, 32, 36] {
                bhs.0[at..at + 3].fill(0);
                bhs.0[at + 3] &= 3;
            }
            bhs.0[27] += super::rig::FIRST_CMD_SN as u8;
            bhs.0[8..16].fill(0);
            let bytes = rig.bytes(bhs, &[], &pattern(len));
            rig.give(&bytes);
            if len % 3 != 0 {
                serve(&mut rig, &mut told);
                rig.transmitted();
            }
        }
    }
}
