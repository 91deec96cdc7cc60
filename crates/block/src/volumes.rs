//! Handles on the volumes of a thread: what goes to them, and what comes back.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use crate::lease::BlockLease;
use crate::volume::{
    Calls, Context, CoreContext, Handle, HandleEvent, HandleId, Volume, volume_token,
};
use ::io::memory::Recall;
use ::io::ring::{RingEvent, SocketRing};
use scsi::medium::{MediumResult, Now};
use slab::Slab;

/// Logs what volumes have gathered of what went through them.
pub fn tell_gathered<'a>(volumes: impl IntoIterator<Item = &'a Arc<dyn Volume>>) {
    for line in volumes.into_iter().flat_map(|volume| volume.gathered()) {
        tracing::info!("{line}");
    }
}

/// Hands an event of a ring to the handle that began the operation, with the handle's own slot for
/// it. Events of no operation are dropped.
pub fn hand_on<R: Deref<Target = [u8]>>(
    event: RingEvent<R>,
    tell: impl FnOnce(HandleId, u32, HandleEvent<'_>),
) {
    let received;
    let (token, event) = match event {
        RingEvent::File {
            token,
            result,
            buffer,
        } => (token, HandleEvent::File { result, buffer }),
        RingEvent::Received { token, bytes } => {
            received = bytes;
            let bytes = received.as_deref().map_err(|error| error.kind().into());
            (token, HandleEvent::Received(bytes))
        }
        RingEvent::Sent {
            token,
            batch,
            result,
        } => (token, HandleEvent::Sent { batch, result }),
        RingEvent::Ready { token } => (token, HandleEvent::Ready),
        RingEvent::Accepted { .. } | RingEvent::NotAccepted { .. } | RingEvent::Woken => return,
    };
    let (node, slot) = volume_token(token);
    tell(node, slot, event);
}

/// Handles on the volumes of a thread, each known by a key that it has as long as it is here.
#[derive(Default)]
pub struct Volumes {
    volumes: Slab<Attached>,
    /// Which volume each node belongs to, [`NONE`] where that is gone. Nodes are not used again:
    /// what one started may end after it has gone.
    of_node: Vec<u32>,
    /// Those that go on when all has been handed in.
    soon: Vec<u32>,
    /// Those that others have something for.
    calls: Calls,
}

/// No volume.
const NONE: u32 = u32::MAX;

struct Attached {
    handle: Box<dyn Handle>,
    /// The instant for which its owner has set a timer.
    timer: Option<Now>,
    /// It is among those that go on soon.
    soon: bool,
}

/// What the volumes of a thread share while one of them acts.
pub struct SharedResources<'a> {
    /// The ring of the thread.
    pub ring: &'a mut dyn SocketRing,
    /// Where results go.
    pub done: &'a mut Vec<(u64, MediumResult<BlockLease>)>,
    /// What time it is.
    pub now: Now,
}

impl Volumes {
    /// Handles on these volumes, whose keys are their places.
    ///
    /// # Errors
    ///
    /// Of whatever a volume needs for each core.
    pub fn attach(volumes: &[Arc<dyn Volume>], core: &CoreContext) -> io::Result<Self> {
        let mut attached = Self::default();
        for volume in volumes {
            attached.add(volume.attach(core)?, core);
        }
        Ok(attached)
    }

    /// One more, the last that was attached to this core; returns its key.
    pub fn add(&mut self, handle: Box<dyn Handle>, core: &CoreContext) -> u32 {
        let attached = Attached {
            handle,
            timer: None,
            soon: false,
        };
        let volume = self.volumes.insert(attached) as u32;
        // It may have something to begin with.
        self.go_on_soon(volume);
        self.calls = core.calls.clone();
        self.of_node.resize(core.next_node().0 as usize, volume);
        volume
    }

    /// Lets a handle go. What it has started goes nowhere when it ends.
    pub fn remove(&mut self, volume: u32) {
        self.volumes.try_remove(volume as usize);
        self.soon.retain(|soon| *soon != volume);
        let mut nodes = self.of_node.iter_mut();
        // Its nodes came one after the other.
        if let Some(first) = nodes.position(|of| *of == volume) {
            let nodes = self.of_node[first..].iter_mut();
            let own = nodes.take_while(|of| **of == volume);
            own.for_each(|of| *of = NONE);
        }
    }

    /// Their keys.
    #[must_use]
    pub fn keys(&self) -> Vec<u32> {
        self.volumes.iter().map(|(key, _)| key as u32).collect()
    }

    /// The volume to which a node belongs.
    #[must_use]
    pub fn of_node(&self, node: HandleId) -> Option<u32> {
        let volume = self.of_node.get(node.0 as usize).copied();
        volume.filter(|volume| *volume != NONE)
    }

    /// Lets a volume act. Returns when it wants to be called, where that is earlier than it said
    /// before.
    pub fn act(
        &mut self,
        volume: u32,
        around: &mut SharedResources<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) -> Option<Now> {
        let attached = self.volumes.get_mut(volume as usize)?;
        let mut call = None;
        let mut cx = Context {
            ring: &mut *around.ring,
            done: &mut *around.done,
            now: around.now,
            call: &mut call,
        };
        act(&mut *attached.handle, &mut cx);
        while let Some(node) = self.calls.next() {
            if let Some(called) = self.of_node(node) {
                self.go_on_soon(called);
            }
        }
        let at = call?;
        if at <= around.now {
            self.go_on_soon(volume);
            return None;
        }
        let attached = self.volumes.get_mut(volume as usize)?;
        if attached.timer.is_some_and(|set| set <= at) {
            return None;
        }
        attached.timer = Some(at);
        Some(at)
    }

    fn go_on_soon(&mut self, volume: u32) {
        let attached = &mut self.volumes[volume as usize];
        if !std::mem::replace(&mut attached.soon, true) {
            self.soon.push(volume);
        }
    }

    /// The next volume that wanted to be called when all has been handed in. In which order does
    /// not matter: each is called once, and none waits for another.
    pub fn next_soon(&mut self) -> Option<u32> {
        let volume = self.soon.pop()?;
        self.volumes[volume as usize].soon = false;
        Some(volume)
    }

    /// Whether the instant `now` has been waited for; it is over then, and the volume is to be told
    /// that it has expired.
    pub fn expired(&mut self, volume: u32, now: Now) -> bool {
        let attached = self.volumes.get_mut(volume as usize);
        attached.is_some_and(|attached| attached.timer.take_if(|set| *set <= now).is_some())
    }

    /// The earliest instant that is waited for.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let set = self.volumes.iter().filter_map(|(_, one)| one.timer);
        set.min()
    }

    /// Whether all of them have ended what they had with others.
    #[must_use]
    pub fn have_left(&self) -> bool {
        self.volumes.iter().all(|(_, one)| one.handle.has_left())
    }

    /// Whether this one has.
    #[must_use]
    pub fn has_left(&self, volume: u32) -> bool {
        let attached = self.volumes.get(volume as usize);
        attached.is_none_or(|one| one.handle.has_left())
    }

    /// What a volume has lent ([`Handle::recall`]).
    pub fn recall(&mut self, volume: u32) -> Option<Recall> {
        self.volumes.get_mut(volume as usize)?.handle.recall()
    }
}
