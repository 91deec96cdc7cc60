//! A stream on its way to another thread, where the memory of its user is of another kind.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::Stream;
use super::reads::OwnReads;
use crate::verbs::Completion;

/// A stream that holds no memory of its user.
#[derive(Debug)]
pub struct RestingStream(Stream<Infallible>);

impl<L> Stream<L> {
    /// Lets it rest.
    ///
    /// # Errors
    ///
    /// Gives it back if memory is advertised, posted or being filled.
    pub fn rest(self) -> Result<RestingStream, Box<Self>> {
        let is_free = self.tags.is_empty() && self.outbound.len() == 0 && self.own_reads.len() == 0;
        if is_free {
            Ok(RestingStream(self.with_other_memory()))
        } else {
            Err(Box::new(self))
        }
    }

    /// The same, without what it has of its user's memory.
    fn with_other_memory<M>(self) -> Stream<M> {
        Stream {
            agreed: self.agreed,
            max_receive: self.max_receive,
            can_invalidate: self.can_invalidate,
            mulpdu: self.mulpdu,
            tags: self.tags.with_other_memory(),
            reader: self.reader,
            inbound: self.inbound,
            writer: self.writer,
            outbound: self.outbound.with_other_memory(),
            own_reads: OwnReads::new(),
            peer_reads: self.peer_reads,
            completions: news(self.completions),
            is_message_waiting: self.is_message_waiting,
            terminate: self.terminate,
            has_ended: self.has_ended,
        }
    }
}

/// What its next user has to know: not what became of what the last one had posted.
fn news<L, M>(completions: VecDeque<Completion<L>>) -> VecDeque<Completion<M>> {
    let news = completions.into_iter().filter_map(|one| match one {
        Completion::Received { bytes, invalidated } => {
            Some(Completion::Received { bytes, invalidated })
        }
        Completion::Ended(why) => Some(Completion::Ended(why)),
        _ => None,
    });
    news.collect()
}

impl RestingStream {
    /// Goes on where it was.
    #[must_use]
    pub fn wake<L>(self) -> Stream<L> {
        self.0.with_other_memory()
    }
}
