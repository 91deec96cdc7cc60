//! Bytes to PDUs.

use std::hint::black_box;

use iscsi::wire::bhs::{Bhs, Itt};
use iscsi::wire::framer::Framer;
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::{CmdSn, StatSn};
use scsi::wire::lun::Lun;
use tests::cdb;

use super::{COMMANDS, Counts};

fn command(number: u64, bytes: u32) -> Bhs {
    let command = ScsiCommand {
        immediate: false,
        last: true,
        read: bytes == 0,
        write: bytes > 0,
        attribute: 1,
        priority: 0,
        lun: Lun::from_index(0),
        itt: Itt(number as u32),
        expected: bytes,
        cmd_sn: CmdSn(number as u32),
        exp_stat_sn: StatSn(0),
        cdb: cdb::read(number, 8),
    };
    let mut bhs = command.encode();
    bhs.set_data_len(bytes);
    bhs
}

/// The headers of SCSI commands.
pub(crate) fn parse() {
    let headers: Vec<Bhs> = (0..COMMANDS).map(|number| command(number, 0)).collect();
    Counts::Yes.run(|| {
        for header in &headers {
            black_box(ScsiCommand::decode(black_box(header)));
        }
    });
}

/// A stream of PDUs with so much data.
pub(crate) fn frame(bytes: u32) {
    let mut stream = Vec::new();
    for number in 0..COMMANDS {
        stream.extend_from_slice(&command(number, bytes).0);
        stream.resize(stream.len() + bytes as usize, 7);
    }
    let mut framer = Framer::new(1 << 20);
    Counts::Yes.run(|| {
        let mut rest = &stream[..];
        while let Some(piece) = framer.next(&mut rest).expect("sound PDUs") {
            black_box(piece);
        }
    });
}
