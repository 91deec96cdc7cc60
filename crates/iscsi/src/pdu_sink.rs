//! The boundary of RFC 5047: what is above it speaks of data in leases, below it are bytes. And
//! PDUs over TCP: segments one after the other, padded, with the digests agreed upon (RFC 7143
//! §11.2). The way in is [`crate::wire::framer`].

use scsi::medium::Lease;

use crate::wire::bhs::{BHS_LEN, Bhs};
use crate::wire::framer::{DIGEST_LEN, crc32c, crc32c_padded, padding};

/// Where a machine puts what is to be sent, in order.
pub trait PduSink<L> {
    /// Bytes to copy.
    fn bytes(&mut self, bytes: &[u8]);

    /// Data to send from where it lies.
    fn lease(&mut self, data: L);

    /// Data to copy, so that it cannot change any more: returns the copy, for a digest.
    fn copied(&mut self, data: &L) -> &[u8];

    /// Whether more should wait for the next batch.
    fn is_full(&self) -> bool;
}

/// Which digests PDUs are sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// HeaderDigest=CRC32C.
    pub header: bool,
    /// DataDigest=CRC32C.
    pub data: bool,
}

impl Digests {
    /// Puts a PDU without additional header segments; its DataSegmentLength is set here.
    pub fn put_bytes<L>(self, out: &mut impl PduSink<L>, mut bhs: Bhs, data: &[u8]) {
        bhs.set_data_len(data.len() as u32);
        self.put_header(out, &bhs);
        if !data.is_empty() {
            out.bytes(data);
            let digest = self.data.then(|| crc32c_padded(data));
            put_trailer(out, data.len() as u32, digest);
        }
    }

    /// Puts a PDU whose data segment is not empty and leaves from where it lies; with a data
    /// digest, from a copy: the memory is the volume's own and may change, and the digest must be
    /// that of the bytes that leave.
    pub fn put_lease<L: Lease>(self, out: &mut impl PduSink<L>, mut bhs: Bhs, data: L) {
        let len = data.len() as u32;
        bhs.set_data_len(len);
        self.put_header(out, &bhs);
        let digest = if self.data {
            Some(crc32c_padded(out.copied(&data)))
        } else {
            out.lease(data);
            None
        };
        put_trailer(out, len, digest);
    }

    fn put_header<L>(self, out: &mut impl PduSink<L>, bhs: &Bhs) {
        if !self.header {
            out.bytes(&bhs.0);
            return;
        }
        let mut header = [0; BHS_LEN + DIGEST_LEN];
        header[..BHS_LEN].copy_from_slice(&bhs.0);
        header[BHS_LEN..].copy_from_slice(&crc32c(&bhs.0));
        out.bytes(&header);
    }
}

fn put_trailer<L>(out: &mut impl PduSink<L>, len: u32, digest: Option<[u8; DIGEST_LEN]>) {
    let padding = usize::from(padding(len));
    let mut trailer = [0; 3 + DIGEST_LEN];
    let mut end = padding;
    if let Some(digest) = digest {
        end += DIGEST_LEN;
        trailer[padding..end].copy_from_slice(&digest);
    }
    if end > 0 {
        out.bytes(&trailer[..end]);
    }
}
