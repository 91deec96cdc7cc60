//! How a TCP connection becomes a queue pair: software iWARP, at a target.

#[cfg(test)]
mod tests;

use block::lease::BlockLease;
use iscsi::parameters::{DEFAULT_DATA_SEGMENT, Transport};
use iscsi::target::IserPortals;
use iscsi::wire::iser::{invalidates, longest_message, private_data};
use rdma::iwarp::startup::{FrameKind, FrameReader, StartupConfig, StartupError, StartupFrame};
use rdma::iwarp::stream::{Stream, StreamConfig};
use scsi::violation::Violation;

/// A queue pair that moves what volumes have.
pub(super) type BlockStream = Stream<BlockLease>;

/// RDMA Reads that may be under way, of either end.
const READS: u16 = 32;

/// TargetRecvDataSegmentLength that we declare: a receive takes memory only while it has a message.
pub(super) const DATA_SEGMENT: u32 = 64 << 10;

/// What a connection is offered that begins as one of MPA.
pub(super) struct IwarpOffer {
    startup: StartupConfig,
    segment_size: usize,
    random: [u8; 32],
}

impl IwarpOffer {
    /// `random` are fresh random bytes, `segment_size` those of a segment of TCP.
    pub(super) fn new(portals: &IserPortals, segment_size: usize, random: &[u8; 64]) -> Self {
        Self {
            startup: StartupConfig {
                crc: !portals.without_crc,
                long_fpdus: true,
                ird: READS,
                ord: READS,
            },
            segment_size,
            random: std::array::from_fn(|at| random[at]),
        }
    }

    fn accept(&self, request: &StartupFrame) -> IwarpAccepted {
        let can_invalidate = invalidates(&request.private);
        let private = private_data(can_invalidate);
        // A peer that sends none is of another kind, and may take what it did not ask for amiss.
        let private = if request.private.is_empty() {
            &[][..]
        } else {
            &private
        };
        let (reply, agreed) = self.startup.accept(request, private);
        let config = StreamConfig {
            segment_size: self.segment_size,
            // More only in a session: who has proven nothing holds little.
            max_receive: longest_message(DEFAULT_DATA_SEGMENT),
            can_invalidate,
            random: self.random,
        };
        IwarpAccepted {
            reply: reply.encode(),
            stream: Box::new(Stream::new(agreed, &config)),
            transport: Transport::Iser {
                data_segment: DATA_SEGMENT,
            },
        }
    }
}

/// A connection whose Request is coming.
pub(super) struct IwarpStartup {
    offer: IwarpOffer,
    reader: FrameReader,
}

/// A connection whose Request has come.
pub(super) struct IwarpAccepted {
    /// The Reply Frame, to be sent before anything else.
    pub(super) reply: Vec<u8>,
    pub(super) stream: Box<BlockStream>,
    pub(super) transport: Transport,
}

impl IwarpStartup {
    pub(super) const fn new(offer: IwarpOffer) -> Self {
        Self {
            offer,
            reader: FrameReader::new(FrameKind::Request),
        }
    }

    /// Takes all bytes; the rule that they break ends the connection without a word.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Option<IwarpAccepted>, Violation> {
        let request = self.reader.receive(bytes);
        let request = request.map_err(StartupError::violation)?;
        Ok(request.map(|request| self.offer.accept(&request)))
    }
}
