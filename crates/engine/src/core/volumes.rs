//! The volumes of a core: what goes to them, and what comes back.

use std::io;
use std::sync::Arc;

use ::io::memory::Recall;
use ::io::ring::Ring;
use block::volume::{Context, CoreContext, Handle, Node, Volume};
use scsi::medium::Now;

use super::Core;
use super::timers::volume_timer;
use crate::mail::Post;

/// Handles on the volumes of a process, in their order.
#[derive(Default)]
pub struct Volumes {
    volumes: Vec<Attached>,
    /// Which volume each node belongs to.
    of_node: Vec<u32>,
}

struct Attached {
    handle: Box<dyn Handle>,
    /// The instant for which it is in the heap of timers.
    timer: Option<Now>,
}

impl Volumes {
    /// Handles on these volumes.
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

    /// One more, the last that was attached to this core.
    pub fn add(&mut self, handle: Box<dyn Handle>, core: &CoreContext) {
        let volume = self.volumes.len() as u32;
        self.of_node.resize(core.next_node().0 as usize, volume);
        let timer = None;
        self.volumes.push(Attached { handle, timer });
    }

    pub(super) fn len(&self) -> usize {
        self.volumes.len()
    }

    pub(super) fn recall(&mut self, volume: u32) -> Option<Recall> {
        self.volumes.get_mut(volume as usize)?.handle.recall()
    }
}

impl<R: Ring, P: Post> Core<R, P> {
    /// Lets a volume act.
    pub(super) fn submit(
        &mut self,
        now: Now,
        volume: u32,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        let Some(attached) = self.volumes.volumes.get_mut(volume as usize) else {
            return;
        };
        let mut call = None;
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut self.done,
            now,
            call: &mut call,
        };
        act(&mut *attached.handle, &mut cx);
        if let Some(at) = call
            && attached.timer.is_none_or(|set| at < set)
        {
            attached.timer = Some(at);
            self.timers.set(at, volume_timer(volume));
        }
    }

    /// Tells the volume of a node what has ended.
    pub(super) fn with_node(
        &mut self,
        now: Now,
        node: Node,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        if let Some(&volume) = self.volumes.of_node.get(node.0 as usize) {
            self.submit(now, volume, act);
        }
    }

    /// The instant has come that was set for a volume.
    pub(super) fn volume_expired(&mut self, now: Now, at: Now, volume: u32) {
        let Some(attached) = self.volumes.volumes.get_mut(volume as usize) else {
            return;
        };
        if attached.timer == Some(at) {
            attached.timer = None;
            self.submit(now, volume, |handle, cx| handle.expire(cx));
        }
    }
}
