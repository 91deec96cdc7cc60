//! What the tests of this crate, the captured frames and the fuzz targets have in common: bytes
//! that leave, and FPDUs that are made by hand.

use scsi::medium::{HeapLease, Lease};

use crate::iwarp::ddp::{ReadRequest, TaggedHeader, UntaggedHeader};
use crate::iwarp::fpdu::{FpduReader, FpduWriter};
use crate::iwarp::sink::FpduSink;
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::stream::{Stream, StreamConfig};

/// Bytes in the order in which they would leave, up to a limit a batch.
#[derive(Debug, Default)]
pub struct Sink {
    /// What was sent since it was last taken.
    pub bytes: Vec<u8>,
    copy: Vec<u8>,
    /// The batch is full from this many bytes on; 0: never.
    pub limit: usize,
}

impl Sink {
    /// One whose batches are full from this many bytes on; 0: never.
    #[must_use]
    pub fn limited(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

impl FpduSink<HeapLease> for Sink {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy.resize(data.len(), 0);
        data.copy_out(0, &mut self.copy);
        self.bytes.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        self.limit > 0 && self.bytes.len() >= self.limit
    }
}

/// A segment as an FPDU with a CRC.
#[must_use]
pub fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut sink = Sink::default();
    let data = HeapLease::from_bytes(ulpdu.to_vec());
    FpduWriter::new(true, false).put(&mut sink, &[], &[], Some(data));
    sink.bytes
}

/// A tagged segment as an FPDU.
#[must_use]
pub fn tagged(header: &TaggedHeader, payload: &[u8]) -> Vec<u8> {
    fpdu(&[&header.encode()[..], payload].concat())
}

/// An untagged segment as an FPDU.
#[must_use]
pub fn untagged(header: &UntaggedHeader, payload: &[u8]) -> Vec<u8> {
    fpdu(&[&header.encode()[..], payload].concat())
}

/// A read request as an FPDU.
#[must_use]
pub fn read_request(header: &UntaggedHeader, request: &ReadRequest) -> Vec<u8> {
    untagged(header, &request.encode())
}

/// The segments of a stream with CRCs that nothing is wrong with.
#[must_use]
pub fn ulpdus(bytes: &[u8]) -> Vec<Vec<u8>> {
    ulpdus_of(bytes, true)
}

/// The segments of a stream with CRCs that nothing is wrong with, or of one without CRCs.
#[must_use]
pub fn ulpdus_of(bytes: &[u8], has_crc: bool) -> Vec<Vec<u8>> {
    let mut reader = FpduReader::new(has_crc);
    let (mut rest, mut ulpdus) = (bytes, Vec::new());
    while !rest.is_empty() {
        let cut = reader.next(rest).expect("a CRC that is right");
        ulpdus.extend(cut.ulpdu.map(<[u8]>::to_vec));
        rest = &rest[cut.used..];
    }
    assert!(reader.is_between(), "a part of an FPDU leaves");
    ulpdus
}

/// All that a stream has to send.
pub fn sent(stream: &mut Stream<HeapLease>) -> Vec<u8> {
    let mut sink = Sink::default();
    stream.transmit(&mut sink);
    sink.bytes
}

/// The bytes of a lease.
#[must_use]
pub fn bytes_of(lease: &HeapLease) -> Vec<u8> {
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

/// Bytes that tell their place.
#[must_use]
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + at) as u8).collect()
}

/// What two ends agree upon that ask for nothing special: CRCs, and four reads each way.
#[must_use]
pub const fn agreed(role: MpaRole) -> Agreed {
    Agreed {
        role,
        revision: 2,
        crc: true,
        markers: false,
        long_fpdus: false,
        ird: 4,
        ord: 4,
        rtr: false,
        refused: None,
    }
}

/// Segments of 512 bytes, and messages of up to 4 KiB.
#[must_use]
pub const fn config() -> StreamConfig {
    StreamConfig {
        segment_size: 512,
        max_receive: 4096,
        can_invalidate: true,
        random: [7; 32],
    }
}
