//! Frames that can never leave. They are taken none the less: the sender would keep it
//! for ever, and all that is behind it.

use super::HEADER_MAX;

/// Memory for one such frame.
#[derive(Debug)]
pub(super) struct LostFrameMemory {
    payload_max: usize,
    bytes: Vec<u8>,
    /// Bytes of the slot that was given, if it was given last.
    given: Option<usize>,
}

impl LostFrameMemory {
    /// Beside slots for frames with this many bytes behind their header.
    pub(super) fn new(payload_max: usize) -> Self {
        Self {
            payload_max,
            bytes: Vec::new(),
            given: None,
        }
    }

    /// Whether the next frame goes here, as it is too long for a slot.
    pub(super) fn takes(&mut self, len: usize, mtu: u32) -> bool {
        self.given = None;
        len > self.payload_max.min(mtu as usize) + HEADER_MAX
    }

    pub(super) fn slot(&mut self, len: usize) -> &mut [u8] {
        self.given = Some(len);
        self.bytes.resize(len.max(self.bytes.len()), 0);
        &mut self.bytes[..len]
    }

    /// Whether the slot that holds a frame now is of here.
    pub(super) fn commit(&mut self, len: usize) -> bool {
        let given = self.given.take();
        assert!(
            given.is_none_or(|given| len <= given),
            "{len} bytes in a slot of {given:?}"
        );
        given.is_some()
    }
}
