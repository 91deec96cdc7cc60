//! Requests to other ports by the kernel's Fibre Channel hosts: SG_IO of version 4 on `/dev/bsg`
//! (`linux/bsg.h`, `scsi/scsi_bsg_fc.h`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

/// The bsg device of a Fibre Channel host.
#[derive(Debug)]
pub struct FcHostDevice(File);

/// What is sent to a port, by its address identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcHostRequest {
    /// An extended link service; no login is needed.
    Els,
    /// A request of Common Transport.
    Ct,
}

impl FcHostDevice {
    /// Opens a device, such as `/dev/bsg/fc_host5`.
    ///
    /// # Errors
    ///
    /// When it cannot be opened to be read and written, which takes root.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self(file))
    }

    /// Sends `payload`, and gives at most `answer_max` bytes of the answer. It may wait longer than
    /// `timeout`, as the driver does not end before E_D_TOV.
    ///
    /// # Errors
    ///
    /// When the payload has not its header, or no answer came.
    pub fn request(
        &self,
        (kind, to): (FcHostRequest, [u8; 3]),
        payload: &[u8],
        answer_max: usize,
        timeout: Duration,
    ) -> io::Result<Vec<u8>> {
        let command = command((kind, to), payload).ok_or(io::ErrorKind::InvalidInput)?;
        let mut answer = vec![0; answer_max];
        let mut status = [0_u8; STATUS_MAX];
        let mut request = SgIo {
            guard: i32::from(b'Q'),
            subprotocol: SUBPROTOCOL_TRANSPORT,
            request_len: command.len() as u32,
            request: command.as_ptr().expose_provenance() as u64,
            max_response_len: status.len() as u32,
            response: status.as_mut_ptr().expose_provenance() as u64,
            dout_xfer_len: payload.len().try_into().map_err(io::Error::other)?,
            dout_xferp: payload.as_ptr().expose_provenance() as u64,
            din_xfer_len: answer_max.try_into().map_err(io::Error::other)?,
            din_xferp: answer.as_mut_ptr().expose_provenance() as u64,
            timeout: timeout.as_millis().try_into().unwrap_or(u32::MAX),
            ..SgIo::default()
        };
        // SAFETY: the request names four pieces of memory with their lengths, which live until the
        // call returns; the kernel writes to the two of them that are ours alone and mutable.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SG_IO, &raw mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let left = usize::try_from(request.din_resid).unwrap_or(0);
        answer.truncate(answer_max.saturating_sub(left));
        Ok(answer)
    }
}

/// `struct fc_bsg_request`: the code of a message to a host, whom it is for, and what the header of
/// the payload says.
fn command((kind, to): (FcHostRequest, [u8; 3]), payload: &[u8]) -> Option<[u8; COMMAND_LEN]> {
    let mut command = [0; COMMAND_LEN];
    let (code, first, preamble) = match kind {
        FcHostRequest::Els => (HOST_ELS, *payload.first()?, None),
        FcHostRequest::Ct => (HOST_CT, 0, Some(payload.first_chunk::<PREAMBLE_LEN>()?)),
    };
    command[..4].copy_from_slice(&code.to_ne_bytes());
    command[4] = first;
    command[5..8].copy_from_slice(&to);
    if let Some(preamble) = preamble {
        command[8..].copy_from_slice(preamble);
    }
    Some(command)
}

/// `struct sg_io_v4` (`linux/bsg.h`).
#[repr(C)]
#[derive(Default)]
struct SgIo {
    guard: i32,
    protocol: u32,
    subprotocol: u32,
    request_len: u32,
    request: u64,
    request_tag: u64,
    request_attr: u32,
    request_priority: u32,
    request_extra: u32,
    max_response_len: u32,
    response: u64,
    dout_iovec_count: u32,
    dout_xfer_len: u32,
    din_iovec_count: u32,
    din_xfer_len: u32,
    dout_xferp: u64,
    din_xferp: u64,
    timeout: u32,
    flags: u32,
    usr_ptr: u64,
    spare_in: u32,
    driver_status: u32,
    transport_status: u32,
    device_status: u32,
    retry_delay: u32,
    info: u32,
    duration: u32,
    response_len: u32,
    din_resid: i32,
    dout_resid: i32,
    generated_tag: u64,
    spare_out: u32,
    padding: u32,
}

const _: () = assert!(size_of::<SgIo>() == 160);

const SG_IO: libc::Ioctl = 0x2285;

/// BSG_SUB_PROTOCOL_SCSI_TRANSPORT.
const SUBPROTOCOL_TRANSPORT: u32 = 2;

/// FC_BSG_HST_ELS_NOLOGIN and FC_BSG_HST_CT.
const HOST_ELS: u32 = 0x8000_0003;
const HOST_CT: u32 = 0x8000_0004;

/// Bytes of the code and the longest of its data; of the header of CT that it repeats; and of what
/// the kernel says about a request.
const COMMAND_LEN: usize = 20;
const PREAMBLE_LEN: usize = 12;
const STATUS_MAX: usize = 96;

#[cfg(test)]
mod tests;
