//! The owners of units, all on core 0, and what they want persisted.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ::io::ring::{BlockingLane, FileOp, Ring};
use scsi::medium::Now;
use scsi::owner::{Input, OwnerOutput, OwnerRequest};
use scsi::unit::{CoreId, UnitId, UnitState};

use super::Core;
use super::event_key::EventKey;
use crate::mailbox::{CoreMessage, Mailer};

/// Where the state of units is kept over a restart.
pub trait Store: Send + Sync {
    /// Puts `bytes` durably in the place of what was kept under `key`. Called on a thread that may
    /// block.
    fn save(&self, key: &str, bytes: &[u8]) -> io::Result<()>;
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Reports the state of every unit, as its owner has it. The requester may have timed out.
    pub(super) fn tell_unit_states(&self, reply: &Sender<Vec<(UnitId, Arc<UnitState>)>>) {
        let units = self.control.iter().flat_map(|control| control.units());
        let states = units.map(|unit| (unit.id, Arc::clone(unit.owner.state())));
        let _ = reply.send(states.collect());
    }

    pub(super) fn asked(&mut self, unit: UnitId, request: OwnerRequest) {
        let control = self.control.as_ref();
        if control.is_some_and(|control| control.unit(unit).is_some()) {
            return self.owner(unit, Input::Request(request));
        }
        // It is gone, and so are its tasks: what still asks for it only wants to go on.
        self.post(request.core, CoreMessage::Reply(unit, request.id, Ok(())));
    }

    pub(super) fn acknowledged(&mut self, unit: UnitId, core: CoreId, version: u64) {
        self.owner(unit, Input::Acknowledged { core, version });
    }

    pub(super) fn persisted(&mut self, now: Now, unit: UnitId, result: &io::Result<u64>) {
        if let (Err(cause), Some(control)) = (result, &mut self.control)
            && let Some(line) = control.unsaved.tell(now, unit.slot, cause)
        {
            tracing::error!("{line}");
        }
        self.owner(unit, Input::Persisted(result.is_ok()));
    }

    pub(super) fn owner(&mut self, unit: UnitId, input: Input) {
        let control = self.control.as_mut();
        let Some(entry) = control.and_then(|control| control.unit_mut(unit)) else {
            return;
        };
        entry.owner.handle(input);
        while let Some(output) = self
            .control
            .as_mut()
            .and_then(|control| control.poll_owner(unit))
        {
            self.owner_output(unit, output);
        }
    }

    fn owner_output(&mut self, unit: UnitId, output: OwnerOutput) {
        match output {
            OwnerOutput::Publish { to, publication } => {
                for core in to {
                    self.post(core, CoreMessage::Publish(unit, publication.clone()));
                }
            }
            OwnerOutput::Reply { core, id, result } => {
                self.post(core, CoreMessage::Reply(unit, id, result));
            }
            OwnerOutput::Persist(bytes) => self.persist(unit, bytes),
        }
    }

    fn persist(&mut self, unit: UnitId, bytes: Vec<u8>) {
        let Some(control) = &self.control else { return };
        let Some(entry) = control.unit(unit) else {
            return;
        };
        let (store, key) = (Arc::clone(&control.store), entry.key.clone());
        let save = move || store.save(&key, &bytes).map(|()| 0);
        self.ring.file(
            EventKey::Persist(unit).token(),
            FileOp::Apart {
                lane: BlockingLane::Persist,
                call: Box::new(save),
            },
        );
    }
}
