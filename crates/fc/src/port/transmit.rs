//! The way out: FIP first, then link services, then FCP.

use super::{Fc4Layer, Port, PortStatistics};
use crate::frames::{FrameSink, Single};
use crate::remote::{PeerAddress, PendingEls, RemoteId};
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

/// Counts what passes through.
struct Counted<'a, O> {
    out: &'a mut O,
    statistics: &'a mut PortStatistics,
}

impl<O: FrameSink> FrameSink for Counted<'_, O> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.out.slot(len)
    }

    fn commit(&mut self, len: usize) {
        self.statistics.sent_frames += 1;
        self.statistics.sent_bytes += len as u64;
        self.out.commit(len);
    }
}

impl<F: Fc4Layer> Port<F> {
    /// Puts what is to be sent into `out`, until that is full; returns whether there was anything.
    pub fn transmit(&mut self, out: &mut impl FrameSink) -> bool {
        let before = self.statistics.sent_frames;
        let out = &mut Counted {
            out,
            statistics: &mut self.statistics,
        };
        self.fip.transmit(out);
        while let Some(control) = self.controls.front() {
            if !control.put(out) {
                break;
            }
            self.controls.pop_front();
        }
        // What FCP has to say may rest on a link service before it.
        if self.controls.is_empty() {
            self.fip.transmit_last(out);
            self.fc4.transmit(out);
        }
        self.statistics.sent_frames > before
    }

    /// An ELS to a remote port.
    pub(super) fn queue(&mut self, id: RemoteId, sending: PendingEls) {
        let (r_ctl, f_ctl) = if sending.is_reply {
            (RCtl::ELS_REPLY, FCtl::REPLY)
        } else {
            (RCtl::ELS_REQUEST, FCtl::REQUEST)
        };
        let exchange = (sending.ox_id, sending.rx_id);
        self.queue_control(id, (r_ctl, FrameType::ELS), f_ctl, exchange, sending.els);
    }

    pub(super) fn queue_control(
        &mut self,
        id: RemoteId,
        (r_ctl, kind): (RCtl, FrameType),
        f_ctl: FCtl,
        (ox_id, rx_id): (OxId, RxId),
        payload: Vec<u8>,
    ) {
        if let Some(remote) = self.remotes.get(id) {
            self.queue_to(
                remote.address(),
                (r_ctl, kind),
                f_ctl,
                (ox_id, rx_id),
                payload,
            );
        }
    }

    /// To an address, as long as we have one.
    pub(super) fn queue_to(
        &mut self,
        address: PeerAddress,
        (r_ctl, kind): (RCtl, FrameType),
        f_ctl: FCtl,
        (ox_id, rx_id): (OxId, RxId),
        payload: Vec<u8>,
    ) {
        if !self.is_online {
            return;
        }
        if self.controls.len() >= self.limits.controls {
            self.statistics.dropped += 1;
            return;
        }
        let own = self.local.address;
        let ethernet = EthernetHeader {
            vlan: self.local.tag,
            ..EthernetHeader::new(own.mac, address.mac, ethernet::FCOE)
        };
        let ports = (own.fc_id, address.fc_id);
        let header = FrameHeader::new((r_ctl, kind), ports, (ox_id, rx_id));
        self.controls.push_back(Single {
            ethernet,
            header: FrameHeader { f_ctl, ..header },
            payload,
        });
    }
}
