//! Where machines put Ethernet frames, each written in place.

/// Memory for frames on their way out: a transmit ring, or [`HeapFrames`].
pub trait FrameSink {
    /// Memory for one frame of up to `len` bytes; what it holds is not told. `None` when no more
    /// fits now. A slot that is not committed is given again.
    fn slot(&mut self, len: usize) -> Option<&mut [u8]>;

    /// The slot given last holds a frame of `len` bytes, at most what was asked for.
    fn commit(&mut self, len: usize);
}

/// Frames on the heap, for tests and simulations.
#[derive(Clone, Debug, Default)]
pub struct HeapFrames {
    /// What was committed and not yet taken, oldest first.
    pub frames: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl FrameSink for HeapFrames {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.open.clear();
        // Not zero, so that bytes which were never written are seen.
        self.open.resize(len, 0xa5);
        Some(&mut self.open)
    }

    fn commit(&mut self, len: usize) {
        self.open.truncate(len);
        self.frames.push(std::mem::take(&mut self.open));
    }
}
