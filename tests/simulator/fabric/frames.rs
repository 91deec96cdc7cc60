//! Ethernet frames that are made and looked at by hand.

use fc::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use fc::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use fc::wire::frame::FrameHeader;
use fc::wire::names::FcId;
use fc::wire::{fcoe, fip::Encapsulated};

/// A FIP frame.
pub(crate) fn fip_frame(
    (src, dst): (Mac, Mac),
    operation: FipOperation,
    flags: Flags,
    parts: &[Descriptor<'_>],
) -> Vec<u8> {
    tagged(None, (src, dst), (operation, flags, parts))
}

/// The same on a VLAN.
pub(crate) fn tagged(
    vlan: Option<VlanTag>,
    (src, dst): (Mac, Mac),
    (operation, flags, parts): (FipOperation, Flags, &[Descriptor<'_>]),
) -> Vec<u8> {
    let header = EthernetHeader {
        vlan,
        ..EthernetHeader::new(src, dst, ethernet::FIP)
    };
    let bytes = fip::encode(operation, flags, parts);
    let mut frame = vec![0; header.len() + bytes.len()];
    header.put(&mut frame).copy_from_slice(&bytes);
    frame.resize(frame.len().max(ethernet::MIN_LEN), 0);
    frame
}

/// A frame of FIP, if it is one.
pub(crate) fn fip(frame: &[u8]) -> Option<(EthernetHeader, FipMessage<'_>)> {
    let (header, payload) = EthernetHeader::parse(frame).ok()?;
    let is_fip = header.ethertype == ethernet::FIP;
    Some((header, FipMessage::parse(payload).ok().filter(|_| is_fip)?))
}

/// The link service that a FIP message carries.
pub(crate) fn els<'a>(message: &FipMessage<'a>) -> Option<Encapsulated<'a>> {
    match message.descriptors().next() {
        Some(Ok(Descriptor::Els(els))) => Some(els),
        _ => None,
    }
}

/// From which port to which, of an FCoE frame.
pub(crate) fn pair(frame: &[u8]) -> Option<(FcId, FcId)> {
    let (header, payload) = EthernetHeader::parse(frame).ok()?;
    if header.ethertype != ethernet::FCOE {
        return None;
    }
    let header = fcoe::inspect(payload).ok()?.header;
    Some((header.s_id, header.d_id))
}

/// A frame in a line.
pub(crate) fn line(frame: &[u8]) -> String {
    let Ok((ethernet, payload)) = EthernetHeader::parse(frame) else {
        return "no frame".to_owned();
    };
    let (src, dst) = (ethernet.src, ethernet.dst);
    match fip(frame) {
        Some((_, message)) => {
            let els = els(&message).map(|els| els.payload[0]);
            let (operation, flags) = (message.operation, message.flags);
            format!("{src} > {dst} {operation:?} {:04x} {els:02x?}", flags.0)
        }
        None => match fcoe::decode(payload) {
            Ok(frame) => {
                let FrameHeader {
                    r_ctl, s_id, d_id, ..
                } = frame.header;
                let code = frame.payload.first().copied().unwrap_or_default();
                format!(
                    "{s_id:?} > {d_id:?} {r_ctl:?} {code:02x}, {} bytes",
                    frame.payload.len()
                )
            }
            Err(error) => error.to_string(),
        },
    }
}
