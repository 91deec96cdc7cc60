//! What the target sends.

use iscsi::wire::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use iscsi::wire::control::{AsyncMessage, NopIn, Reject, TextResponse};
use iscsi::wire::data::{DataIn, R2t};
use iscsi::wire::framer::{FrameError, PduPiece};
use iscsi::wire::login::{LoginResponse, LogoutResponse};
use iscsi::wire::scsi_command::ScsiResponse;
use iscsi::wire::task_management::TaskResponse;

use super::{Initiator, Reply};

impl Initiator {
    /// Takes bytes of PDUs, all of them.
    pub(super) fn receive_pdus(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        loop {
            let in_full_feature = self.full_feature;
            let Some(piece) = self.framer.next(&mut bytes)? else {
                return Ok(());
            };
            match piece {
                PduPiece::Header(bhs) if bhs.data_len() == 0 => self.pdu(&bhs, Vec::new()),
                PduPiece::Header(bhs) => {
                    let data = self
                        .current
                        .take()
                        .map(|(_, data)| data)
                        .unwrap_or_default();
                    self.current = Some((bhs, data));
                }
                PduPiece::Data { bytes, end } => self.data(bytes, end),
                PduPiece::BadData => self.current = None,
            }
            debug_assert!(self.full_feature || !in_full_feature);
        }
    }

    fn data(&mut self, bytes: &[u8], end: bool) {
        let Some((bhs, mut data)) = self.current.take() else {
            return;
        };
        if self.settings.keep_data || bhs.opcode() != Opcode::DataIn {
            data.extend_from_slice(bytes);
        }
        if !end {
            self.current = Some((bhs, data));
            return;
        }
        self.pdu(&bhs, data);
    }

    fn pdu(&mut self, bhs: &Bhs, data: Vec<u8>) {
        match bhs.opcode() {
            Opcode::DataIn => self.data_in(&DataIn::decode(bhs), &data),
            Opcode::ScsiResponse => self.scsi_response(&ScsiResponse::decode(bhs), &data),
            Opcode::R2t => self.r2t(&R2t::decode(bhs)),
            Opcode::LoginResponse => {
                let response = LoginResponse::decode(bhs);
                self.stamp(response.stamps, true);
                self.login_response(&response, &data);
            }
            Opcode::TaskResponse => {
                let response = TaskResponse::decode(bhs);
                self.end(response.itt, response.stamps);
                self.replies
                    .push_back(Reply::Managed(response.itt, response.response));
            }
            Opcode::NopIn => self.nop_in(&NopIn::decode(bhs), data),
            Opcode::TextResponse => {
                let response = TextResponse::decode(bhs);
                self.end(response.itt, response.stamps);
                self.replies.push_back(Reply::Text(data));
            }
            Opcode::LogoutResponse => {
                let response = LogoutResponse::decode(bhs);
                self.end(response.itt, response.stamps);
                self.replies.push_back(Reply::LoggedOut(response.response));
            }
            Opcode::AsyncMessage => {
                let message = AsyncMessage::decode(bhs);
                self.stamp(message.stamps, true);
                self.replies.push_back(Reply::Async(message.event));
            }
            Opcode::Reject => {
                let reject = Reject::decode(bhs);
                self.stamp(reject.stamps, true);
                self.replies.push_back(Reply::Reject(reject.reason));
            }
            _ => {}
        }
    }

    fn stamp(&mut self, stamps: Stamps, numbered: bool) {
        if numbered {
            self.exp_stat_sn = stamps.stat_sn.next();
        }
        if self.max_cmd_sn.is_before(stamps.max_cmd_sn) {
            self.max_cmd_sn = stamps.max_cmd_sn;
        }
    }

    fn end(&mut self, itt: Itt, stamps: Stamps) {
        self.stamp(stamps, true);
        self.forget(itt);
    }

    fn forget(&mut self, itt: Itt) -> Option<super::Task> {
        let task = self.tasks.get_mut(itt.0 as usize)?.take()?;
        self.free.push(itt.0);
        Some(task)
    }

    fn data_in(&mut self, pdu: &DataIn, data: &[u8]) {
        if let Some(Some(task)) = self.tasks.get_mut(pdu.itt.0 as usize)
            && self.settings.keep_data
        {
            let end = pdu.offset as usize + data.len();
            task.data_in.resize(end.max(task.data_in.len()), 0);
            task.data_in[pdu.offset as usize..end].copy_from_slice(data);
        }
        self.stamp(pdu.stamps, pdu.status.is_some());
        if let Some(ending) = pdu.status {
            self.done(pdu.itt, u16::from(ending.status), Vec::new());
        }
    }

    fn scsi_response(&mut self, pdu: &ScsiResponse, data: &[u8]) {
        self.stamp(pdu.stamps, true);
        let status = match pdu.response {
            0 => u16::from(pdu.status),
            response => 0x100 | u16::from(response),
        };
        let sense = data
            .split_first_chunk::<2>()
            .map_or(&[][..], |(len, rest)| {
                &rest[..rest.len().min(usize::from(u16::from_be_bytes(*len)))]
            });
        self.done(pdu.itt, status, sense.to_vec());
    }

    fn done(&mut self, itt: Itt, status: u16, sense: Vec<u8>) {
        let reply = match self.forget(itt) {
            Some(task) => Reply::Done {
                user: task.user,
                status,
                sense,
                data: task.data_in,
            },
            None => Reply::Stray(itt),
        };
        self.replies.push_back(reply);
    }

    fn r2t(&mut self, pdu: &R2t) {
        self.stamp(pdu.stamps, false);
        if self.withholds {
            return;
        }
        let Some(Some(task)) = self.tasks.get(pdu.itt.0 as usize) else {
            return;
        };
        self.data_out(
            task.lun,
            pdu.itt,
            pdu.ttt,
            pdu.offset,
            pdu.offset + pdu.desired,
        );
    }

    fn nop_in(&mut self, pdu: &NopIn, data: Vec<u8>) {
        if pdu.itt == Itt::NONE {
            self.stamp(pdu.stamps, false);
            if pdu.ttt != Ttt::NONE {
                self.nop_out(Itt::NONE, pdu.ttt, &data);
            }
            return;
        }
        self.end(pdu.itt, pdu.stamps);
        self.replies.push_back(Reply::Nop(pdu.itt, data));
    }
}
