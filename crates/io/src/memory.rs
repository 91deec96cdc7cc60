//! Memory for data: pools of buffers, and regions for RAM volumes. All access is by raw copies;
//! nobody holds a slice over octets that another core or the kernel may write.

/// A counted claim on a piece of memory of a [`Pool`], a region, or the heap. It stays valid until
/// the last claim is dropped, and is bound to its core.
#[derive(Clone, Debug)]
pub struct Buffer {
    bytes: std::rc::Rc<[u8]>,
}

impl Buffer {
    /// Its length in octets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Buffers of one core, given out and taken back without a lock.
#[derive(Clone, Debug)]
pub struct Pool {
    _free: std::rc::Rc<()>,
}
