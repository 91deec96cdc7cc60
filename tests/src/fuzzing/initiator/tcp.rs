//! TCP: bytes in any pieces.

use std::sync::Arc;
use std::time::Duration;

use iscsi::initiator::Initiator;
use iscsi::initiator::config::{InitiatorConfig, Misconfigured};
use iscsi::initiator::tcp::InitiatorTcpMover;
use iscsi::test_support::Sink;
use scsi::medium::HeapLease;

use super::super::script::Script;
use super::{Carrier, Play};

/// What the initiator sends.
pub(super) struct Tcp(Sink);

impl Carrier for Tcp {
    type Mover = InitiatorTcpMover;

    fn new(_: &mut Script<'_>) -> Self {
        Self(Sink::default())
    }

    fn initiator(
        config: Arc<InitiatorConfig>,
        random: [u8; 37],
    ) -> Result<Initiator<HeapLease>, Misconfigured> {
        Initiator::new(config, Duration::ZERO, random)
    }

    fn knows(&self) -> bool {
        true
    }

    /// Bytes arrive in pieces; what is not taken is given again.
    fn give(play: &mut Play<Self>, bytes: &[u8], step: usize) {
        for piece in bytes.chunks(step) {
            let mut rest = piece;
            while !rest.is_empty() && !play.ended {
                let used = play.initiator.receive(play.now, rest);
                assert!(used <= rest.len());
                play.watch.given(&rest[..used]);
                rest = &rest[used..];
                if play.events() == 0 && used == 0 {
                    assert!(
                        play.initiator.is_stalled(),
                        "bytes are left without a reason"
                    );
                    play.transmit(0);
                }
            }
        }
    }

    fn transmit(play: &mut Play<Self>, limit: usize) {
        let sink = &mut play.carrier.0;
        sink.limit = limit;
        play.initiator.transmit(sink);
        let bytes = std::mem::take(&mut sink.bytes);
        play.watch.sent(&bytes);
    }

    fn told(_: &mut Play<Self>) {}

    fn is_over(play: &mut Play<Self>) {
        assert_eq!(play.initiator.receive(play.now, b"more"), 4);
        let sink = &mut play.carrier.0;
        sink.bytes.clear();
        assert!(
            !play.initiator.transmit(sink),
            "something is sent after the end"
        );
    }
}
