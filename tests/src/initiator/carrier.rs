//! Between the initiator and the wire: nothing over TCP, and an end of iSER over iWARP.

use std::fmt;

use iscsi::wire::framer::FrameError;
use scsi::violation::Violation;

use super::Initiator;

/// What came ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// The stream can no longer be cut into PDUs.
    Frame(FrameError),
    /// A rule of iSER or iWARP was broken.
    Iser(Violation),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Iser(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for ReceiveError {}

impl Initiator {
    /// What is to be sent by the wire, until now.
    ///
    /// # Panics
    /// When what carries the initiator makes no PDUs, or the target breaks a rule by what was
    /// withheld until now.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.carry().expect("nothing that ends the connection");
        match &mut self.iser {
            Some(end) => end.to_wire(),
            None => &mut self.out,
        }
    }

    /// Takes bytes that came by the wire, all of them.
    ///
    /// # Errors
    /// When they end the connection.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ReceiveError> {
        let Some(end) = &mut self.iser else {
            return self.receive_pdus(bytes).map_err(ReceiveError::Frame);
        };
        let received = end.receive(bytes).map_err(ReceiveError::Iser);
        self.carry()?;
        received
    }

    /// Hands on what the initiator says and hears, until neither has more.
    fn carry(&mut self) -> Result<(), ReceiveError> {
        while let Some(end) = &mut self.iser {
            end.withhold(self.withholds).map_err(ReceiveError::Iser)?;
            if self.out.is_empty() && end.to_initiator().is_empty() {
                break;
            }
            end.send(&std::mem::take(&mut self.out));
            let heard = std::mem::take(end.to_initiator());
            self.receive_pdus(&heard).map_err(ReceiveError::Frame)?;
        }
        Ok(())
    }
}
