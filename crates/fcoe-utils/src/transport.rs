//! How requests reach other ports: by a port of this machine.

use std::io;
use std::path::Path;
use std::time::Duration;

use ::io::bsg::{FcHostDevice, FcHostRequest};
use fc::wire::names::FcId;

/// A local port that sends one request at a time and waits for the answer.
pub trait FcTransport {
    /// Sends an extended link service (FC-LS-3), and gives the payload of the answer, LS_ACC or
    /// LS_RJT, up to `answer_max` bytes.
    ///
    /// # Errors
    /// No answer came.
    fn els(&mut self, to: FcId, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>>;

    /// Sends a request of Common Transport (FC-GS-7), with its header, to the name server; gives
    /// the answer in the same way.
    ///
    /// # Errors
    /// No answer came.
    fn ct(&mut self, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>>;
}

/// The port of a host of the kernel.
#[derive(Debug)]
pub struct KernelHost(FcHostDevice);

impl KernelHost {
    /// Opens the device of a host, such as `host5`.
    ///
    /// # Errors
    /// It is missing, or this user may not use it.
    pub fn open(host: &str) -> io::Result<Self> {
        let device = Path::new("/dev/bsg").join(format!("fc_{host}"));
        FcHostDevice::open(&device).map(Self)
    }
}

impl FcTransport for KernelHost {
    fn els(&mut self, to: FcId, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        let to = (FcHostRequest::Els, to.bytes());
        self.0.request(to, request, answer_max, ELS_TIMEOUT)
    }

    fn ct(&mut self, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        let to = (FcHostRequest::Ct, FcId::DIRECTORY.bytes());
        let answer = self.0.request(to, request, answer_max, CT_TIMEOUT);
        answer.map_err(|cause| io::Error::new(cause.kind(), format!("ioctl failed: {cause}")))
    }
}

/// Twice R_A_TOV, after which an exchange can be given up, and what fcnsq waits.
const ELS_TIMEOUT: Duration = Duration::from_secs(20);
const CT_TIMEOUT: Duration = Duration::from_secs(1);
