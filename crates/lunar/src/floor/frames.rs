//! The floor of Ethernet.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bench::floor::{self, ether};
use bench::run::begun;

use super::args::{FCOE, FloorArgs};
use super::{SIZE, no_room};
use crate::measuring::{self, StatusLine, typed};
use crate::progress_display::{ENDED, heed_signals};
use crate::{VerbError, documents};

/// Measures frames from the other end of the interface, and to it.
pub(super) fn run(args: &FloorArgs, place: &ether::Place) -> Result<ExitCode, VerbError> {
    let words = args.load.frames()?;
    let size = words.size.unwrap_or(SIZE);
    floor::has_room(size).map_err(no_room)?;
    let frames = ether::FloorRequest {
        place,
        crc: args.crc,
        size,
    };
    let mut line = StatusLine::new(words.runtime);
    let mut outcome = begun(typed());
    let ended = measuring::watched(&mut line, |watch| {
        ether::rows(frames, &words, &mut outcome, watch)
    })?;
    measuring::tell(&outcome, args.json, None)?;
    ended.exit()
}

/// Is the other end until a signal ends it.
pub(super) fn answer(place: &ether::Place, size: u64) -> Result<ExitCode, VerbError> {
    floor::has_room(size).map_err(no_room)?;
    let failed = |cause: String| VerbError::failed(format!("--listen: {cause}"));
    let listener = ether::FloorResponder::new(place, size);
    let mut listener = listener.map_err(|cause| failed(cause.to_string()))?;
    let stop: Arc<AtomicBool> = Arc::default();
    heed_signals(Arc::clone(&stop), ENDED.to_owned());
    documents::print(format!("{FCOE}{place}\n").as_bytes())?;
    let answered = listener.run(&stop);
    answered.map_err(|cause| failed(format!("{FCOE}{place}: {cause}")))?;
    Ok(ExitCode::SUCCESS)
}
