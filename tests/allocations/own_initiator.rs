//! The initiator by itself, with a target that answers at once.

use std::sync::Arc;
use std::time::Duration;

use iscsi::initiator::config::{Digest, InitiatorConfig};
use iscsi::initiator::{ClientCommand, Data, Initiator, InitiatorEvent};
use iscsi::pdu_sink::Digests;
use iscsi::wire::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use iscsi::wire::data::{DataIn, DataInStatus, DataOut, R2t};
use iscsi::wire::framer::{Framer, PduPiece};
use iscsi::wire::login::{LoginRequest, LoginResponse};
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use iscsi::wire::serial::{CmdSn, DataSn, StatSn};
use scsi::residual::Residual;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::{Batch, LENGTH, Nowhere, cost};

const NOW: Duration = Duration::ZERO;

/// The bytes that count as random.
const RANDOM: [u8; 37] = [7; 37];

/// The CmdSN that comes of them.
const FIRST: CmdSn = CmdSn(0x0707_0707);

struct Rig {
    initiator: Initiator<Nowhere>,
    batch: Batch,
    framer: Framer,
    digests: Digests,
    /// What the target sends.
    stream: Batch,
    stat_sn: StatSn,
}

impl Rig {
    fn new(initial_r2t: bool, digests: bool) -> Self {
        let host = "iqn.2026-11.org.lunar:initiator";
        let mut config = InitiatorConfig::normal(host, [0; 6], "iqn.2026-11.org.lunar:test");
        let digest = if digests {
            Digest::Require
        } else {
            Digest::Never
        };
        config.offer.header_digest = digest;
        config.offer.data_digest = digest;
        config.offer.keys.initial_r2t = initial_r2t;
        config.offer.keys.immediate_data = !initial_r2t;
        let initiator = Initiator::new(Arc::new(config), NOW, RANDOM);
        let mut rig = Self {
            initiator: initiator.unwrap(),
            batch: Batch::default(),
            framer: Framer::new(1 << 20),
            digests: Digests::default(),
            stream: Batch::default(),
            stat_sn: StatSn(0),
        };
        rig.log_in();
        rig.digests = Digests {
            header: digests,
            data: digests,
        };
        rig.framer.set_digests(digests, digests);
        rig
    }

    /// Echoes what is offered.
    fn log_in(&mut self) {
        while self.initiator.outcome().is_none() {
            self.batch.0.clear();
            self.initiator.transmit(&mut self.batch);
            let request = Bhs(*self.batch.0.first_chunk().unwrap());
            let end = 48 + request.data_len() as usize;
            let text = self.batch.0[48..end].split(|byte| *byte == 0);
            let answered = text.filter(|pair| {
                let declared = [&b"Init"[..], b"Sess", b"Targ"];
                !pair.is_empty()
                    && (pair.starts_with(b"InitialR2T") || !declared.contains(&&pair[..4]))
            });
            let answer: Vec<u8> = answered.flat_map(|pair| [pair, b"\0"].concat()).collect();
            self.answer_login(&LoginRequest::decode(&request), &answer);
        }
    }

    fn answer_login(&mut self, request: &LoginRequest, text: &[u8]) {
        let response = LoginResponse {
            transit: true,
            more: false,
            current: request.current,
            next: request.next,
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih: 1,
            itt: request.itt,
            stamps: self.status(request.cmd_sn.minus(1)),
            status: 0,
        };
        self.put(response.encode(), text);
        self.give();
    }

    /// The numbers of a status; `last` is the CmdSN that came last.
    fn status(&mut self, last: CmdSn) -> Stamps {
        let stat_sn = self.stat_sn;
        self.stat_sn = stat_sn.next();
        Stamps {
            stat_sn,
            exp_cmd_sn: last.next(),
            max_cmd_sn: last.plus(32),
        }
    }

    fn put(&mut self, bhs: Bhs, data: &[u8]) {
        self.digests.put_bytes(&mut self.stream, bhs, data);
    }

    /// What the target sends arrives.
    fn give(&mut self) {
        let mut rest = &self.stream.0[..];
        while !rest.is_empty() {
            let used = self.initiator.receive(NOW, rest);
            rest = &rest[used..];
            while let Some(event) = self.initiator.poll() {
                let is_good = matches!(event, InitiatorEvent::Done(_) | InitiatorEvent::LoggedIn);
                assert!(is_good, "{event:?}");
            }
        }
        self.stream.0.clear();
    }

    /// Eight commands from their begin to their end.
    fn turn(&mut self, write: bool) {
        for id in 0..8 {
            let lease = Nowhere(LENGTH as usize);
            let data = if write {
                Data::Out(lease)
            } else {
                Data::In(lease)
            };
            let command = ClientCommand {
                id,
                lun: Lun([0; 8]),
                cdb: [0; 16],
                attribute: Attribute::Simple,
                data,
                deadline: None,
            };
            self.initiator.execute(NOW, command).unwrap();
        }
        while !self.initiator.is_idle() {
            self.batch.0.clear();
            while self.initiator.transmit(&mut self.batch) {}
            let batch = std::mem::take(&mut self.batch.0);
            let mut rest = &batch[..];
            while let Ok(Some(piece)) = self.framer.next(&mut rest) {
                if let PduPiece::Header(bhs) = piece {
                    self.answer(&bhs);
                }
            }
            self.give();
            self.batch.0 = batch;
        }
    }

    fn answer(&mut self, bhs: &Bhs) {
        if bhs.opcode() == Opcode::DataOut {
            // A number that does not move on is passed over.
            return self.respond(DataOut::decode(bhs).itt, FIRST);
        }
        let command = ScsiCommand::decode(bhs);
        if command.read {
            let pdu = DataIn {
                last: true,
                acknowledge: false,
                status: Some(DataInStatus {
                    status: 0,
                    residual: Residual::Exact,
                }),
                lun: Lun([0; 8]),
                itt: command.itt,
                ttt: Ttt::NONE,
                stamps: self.status(command.cmd_sn),
                data_sn: DataSn(0),
                offset: 0,
            };
            self.put(pdu.encode(), &[7; LENGTH as usize]);
        } else if bhs.data_len() > 0 {
            self.respond(command.itt, command.cmd_sn);
        } else {
            let stamps = Stamps {
                stat_sn: self.stat_sn,
                exp_cmd_sn: command.cmd_sn.next(),
                max_cmd_sn: command.cmd_sn.plus(32),
            };
            let pdu = R2t {
                lun: command.lun,
                itt: command.itt,
                ttt: Ttt(1),
                stamps,
                r2t_sn: DataSn(0),
                offset: 0,
                desired: LENGTH,
            };
            self.put(pdu.encode(), &[]);
        }
    }

    fn respond(&mut self, itt: Itt, last: CmdSn) {
        let pdu = ScsiResponse {
            residual: Residual::Exact,
            read_residual: Residual::Exact,
            response: 0,
            status: 0,
            qualifier: 0,
            itt,
            snack_tag: 0,
            stamps: self.status(last),
            exp_data_sn: DataSn(0),
        };
        self.put(pdu.encode(), &[]);
    }
}

#[test]
fn an_initiators_reads_and_writes_do_not_use_the_heap() {
    for digests in [false, true] {
        for initial_r2t in [false, true] {
            let mut rig = Rig::new(initial_r2t, digests);
            let agreed = rig.initiator.outcome().unwrap().keys.initial_r2t;
            assert_eq!(agreed, initial_r2t);
            let costs = [false, true].map(|write| cost(|| rig.turn(write)));
            assert_eq!(costs, [0, 0], "digests: {digests}, R2T: {initial_r2t}");
        }
    }
}
