//! A PDU as the message that is sent.

use rdma::verbs::{SendHeader, Stag, Work};
use scsi::medium::Lease;

use crate::wire::bhs::Bhs;
use crate::wire::framer::padding;
use crate::wire::iser::{AdvertisedBuffers, IserHeader};

/// A Send of a PDU without additional header segments, with its data segment padded; its
/// DataSegmentLength is set here. What is short costs no memory of its own.
// It is not a call for either kind of queue pair.
#[inline(always)]
pub(crate) fn send<L: Lease>(
    buffers: AdvertisedBuffers,
    (mut bhs, data): (Bhs, &[u8]),
    invalidate: Option<Stag>,
) -> Option<Work<L>> {
    let length = data.len() as u32;
    bhs.set_data_len(length);
    let iser = IserHeader::Control(buffers).encode();
    if length == 0 {
        return Some(Work::Send {
            header: SendHeader::new(&[&iser, &bhs.0])?,
            data: None,
            invalidate,
        });
    }
    let padding = &[0; 3][..usize::from(padding(length))];
    let whole = SendHeader::new(&[&iser, &bhs.0, data, padding]);
    let long = || {
        let data = L::from_bytes([data, padding].concat());
        Some((SendHeader::new(&[&iser, &bhs.0])?, Some(data)))
    };
    let (header, data) = whole.map(|header| (header, None)).or_else(long)?;
    Some(Work::Send {
        header,
        data,
        invalidate,
    })
}

/// A Send of a PDU whose data segment leaves from where it lies, without padding, as ib_iser does.
pub(crate) fn send_lease<L: Lease>(
    buffers: AdvertisedBuffers,
    mut bhs: Bhs,
    data: L,
) -> Option<Work<L>> {
    bhs.set_data_len(data.len() as u32);
    let iser = IserHeader::Control(buffers).encode();
    Some(Work::Send {
        header: SendHeader::new(&[&iser, &bhs.0])?,
        data: Some(data),
        invalidate: None,
    })
}
