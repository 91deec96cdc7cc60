//! What goes to the volumes of a core.

use ::io::ring::Ring;
use block::volume::{Context, Handle, HandleEvent, HandleId};
use scsi::medium::Now;

use super::Core;
use super::timers::Timer;
use crate::mailbox::Mailer;
use block::volumes::SharedResources;

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Lets a volume act.
    pub(super) fn submit(
        &mut self,
        now: Now,
        volume: u32,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        let mut around = SharedResources {
            ring: &mut self.ring,
            done: &mut self.done,
            now,
        };
        if let Some(at) = self.volumes.act(volume, &mut around, act) {
            self.timers.set(at, Timer::Volume(volume));
        }
    }

    /// Tells the volume of a node what has happened.
    pub(super) fn tell_volume(
        &mut self,
        now: Now,
        (node, slot): (HandleId, u32),
        event: HandleEvent<'_>,
    ) {
        if let Some(volume) = self.volumes.of_node(node) {
            self.submit(now, volume, |handle, cx| {
                handle.event(cx, node, slot, event);
            });
        }
    }

    /// An instant has come that was set for a volume.
    pub(super) fn volume_expired(&mut self, now: Now, volume: u32) {
        if self.volumes.expired(volume, now) {
            self.submit(now, volume, |handle, cx| handle.resume(cx));
        }
    }
}
