//! The rig over TCP: PDUs one after the other, Data-In and R2Ts.

use std::sync::Arc;
use std::time::Duration;

use scsi::medium::HeapLease;
use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::{Carrier, InitiatorRig, LUN, Rig, pattern, random};
use crate::initiator::Initiator;
use crate::initiator::config::InitiatorConfig;
use crate::initiator::tcp::InitiatorTcpMover;
use crate::parameters::Operational;
use crate::test_support::{self, Sink};
use crate::wire::bhs::{Bhs, Itt, Ttt};
use crate::wire::data::{DataIn, DataInStatus, R2t};
use crate::wire::framer::Framer;
use crate::wire::serial::DataSn;

/// The target's end.
pub(in crate::initiator::tests) struct Tcp {
    wire: Sink,
    framer: Framer,
    digests: (bool, bool),
}

/// What a target answers that agrees with `config`.
pub(in crate::initiator::tests) const AGREED: &str = "HeaderDigest=None|DataDigest=None|\
    MaxConnections=1|InitialR2T=No|ImmediateData=Yes|MaxRecvDataSegmentLength=512|\
    MaxBurstLength=2048|FirstBurstLength=1024|DefaultTime2Wait=2|DefaultTime2Retain=0|\
    MaxOutstandingR2T=2|DataPDUInOrder=Yes|DataSequenceInOrder=Yes|ErrorRecoveryLevel=0|\
    TaskReporting=RFC3720|\
    iSCSIProtocolLevel=2|";

impl Carrier for Tcp {
    type Mover = InitiatorTcpMover;

    const AGREED: &'static str = AGREED;

    fn connect(config: InitiatorConfig) -> (Initiator<HeapLease>, Self) {
        let carrier = Self {
            wire: Sink::default(),
            framer: Framer::new(1 << 20),
            digests: (false, false),
        };
        let initiator = Initiator::new(Arc::new(config), Duration::ZERO, random());
        (initiator.unwrap(), carrier)
    }

    fn agree(&mut self, keys: &Operational) {
        self.digests = (keys.header_digest, keys.data_digest);
        self.framer.set_digests(self.digests.0, self.digests.1);
    }

    fn give(rig: &mut Rig, bhs: Bhs, data: &[u8]) {
        let bytes = rig.bytes(bhs, data);
        rig.give(&bytes);
    }

    fn pdus(rig: &mut Rig) -> Vec<(Bhs, Vec<u8>)> {
        let InitiatorRig {
            initiator, carrier, ..
        } = rig;
        while initiator.transmit(&mut carrier.wire) {}
        let bytes = std::mem::take(&mut carrier.wire.bytes);
        test_support::pdus(&mut carrier.framer, &bytes)
    }
}

impl Rig {
    pub(in crate::initiator::tests) fn bytes(&self, bhs: Bhs, data: &[u8]) -> Vec<u8> {
        test_support::pdu(bhs, &[], data, self.carrier.digests)
    }

    pub(in crate::initiator::tests) fn give(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = self.initiator.receive(self.now, rest);
            rest = &rest[used..];
            self.poll();
            if used == 0 && self.initiator.is_stalled() {
                self.sent();
            }
        }
    }

    pub(in crate::initiator::tests) fn data_in(
        &mut self,
        itt: u32,
        sn: u32,
        at: u32,
        last: bool,
    ) -> DataIn {
        DataIn {
            last,
            acknowledge: false,
            status: None,
            lun: Lun([0; 8]),
            itt: Itt(itt),
            ttt: Ttt::NONE,
            stamps: self.stamps(),
            data_sn: DataSn(sn),
            offset: at,
        }
    }

    /// A Data-In of so many bytes of the pattern.
    pub(in crate::initiator::tests) fn give_data(
        &mut self,
        itt: u32,
        sn: u32,
        at: u32,
        len: usize,
        last: bool,
    ) {
        let pdu = self.data_in(itt, sn, at, last);
        let at = at as usize;
        self.send(pdu.encode(), &pattern(at + len)[at..]);
    }

    /// A Data-In with a status.
    pub(in crate::initiator::tests) fn ending(
        &mut self,
        (itt, sn, at, last): (u32, u32, u32, bool),
        status: u8,
        residual: Residual,
    ) -> DataIn {
        let mut pdu = self.data_in(itt, sn, at, last);
        pdu.stamps = self.next_stamps();
        pdu.status = Some(DataInStatus { status, residual });
        pdu
    }

    /// The last Data-In, with a good status.
    pub(in crate::initiator::tests) fn give_last(
        &mut self,
        itt: u32,
        sn: u32,
        at: u32,
        len: usize,
        residual: Residual,
    ) {
        let pdu = self.ending((itt, sn, at, true), 0, residual);
        let at = at as usize;
        self.send(pdu.encode(), &pattern(at + len)[at..]);
    }

    pub(in crate::initiator::tests) fn r2t(
        &mut self,
        itt: u32,
        ttt: u32,
        sn: u32,
        offset: u32,
        desired: u32,
    ) {
        let pdu = R2t {
            lun: LUN,
            itt: Itt(itt),
            ttt: Ttt(ttt),
            stamps: self.stamps(),
            r2t_sn: DataSn(sn),
            offset,
            desired,
        };
        self.send(pdu.encode(), &[]);
    }
}
