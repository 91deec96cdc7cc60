//! What initiators can set of a unit, reservations aside: mode parameters, whether the medium is
//! loaded and may be removed, the timestamp and the buffers.

mod mode;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::medium::{Now, Traits};
use crate::nexus::NexusIdentity;
use crate::owner::Effect;
use crate::task::CommandFailure;
use crate::unit::{EffectScope, UnitState};
use crate::wire::asc;
use crate::wire::sense::{Format, Sense, SenseKey};

pub use mode::{ModeChange, ModeParameter, ModeParameters};

/// Settings of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSettings {
    /// What MODE SELECT can change.
    pub mode: ModeParameters,
    /// The medium is there; only a removable one can be ejected.
    pub loaded: bool,
    /// The nexuses that prevent its removal (SPC-5 §6.14, PREVENT ALLOW MEDIUM REMOVAL).
    pub prevented_by: Vec<Arc<NexusIdentity>>,
    /// How often it was stopped.
    pub stops: u32,
    /// How often it was ejected.
    pub ejects: u32,
    /// The clock of REPORT TIMESTAMP.
    pub timestamp: Timestamp,
    /// The echo buffer of each nexus that wrote one, the latest last.
    pub echoes: Vec<(Arc<NexusIdentity>, Arc<[u8]>)>,
    /// The data buffer of READ BUFFER and WRITE BUFFER, [`DATA_BUFFER_BYTES`] long; empty until it
    /// was written.
    pub buffer: Arc<[u8]>,
}

/// SPC-5 §5.3: a clock in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// What it showed at `at`; `None` if it was never set, and counts from power on.
    pub set_ms: Option<u64>,
    /// When that was.
    pub at: Now,
}

/// A change of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// MODE SELECT.
    Mode(ModeChange),
    /// START STOP UNIT with START = 0.
    Stop,
    /// START STOP UNIT with LOEJ = 1 and START = 0.
    Eject,
    /// START STOP UNIT with LOEJ = 1 and START = 1.
    Load,
    /// PREVENT ALLOW MEDIUM REMOVAL.
    Prevent(bool),
    /// SET TIMESTAMP.
    Timestamp(Timestamp),
    /// WRITE BUFFER, echo mode.
    Echo(Arc<[u8]>),
    /// WRITE BUFFER, data mode. The end must lie within [`DATA_BUFFER_BYTES`].
    Buffer {
        /// Where to.
        offset: usize,
        /// The bytes of the buffer.
        data: Arc<[u8]>,
    },
}

/// Size of the data buffer.
pub const DATA_BUFFER_BYTES: usize = 64 << 10;

/// Size of an echo buffer (ECHO BUFFER CAPACITY; the field holds 13 bits).
pub const ECHO_BUFFER_BYTES: usize = 4 << 10;

/// How many nexuses have an echo buffer at the same time: 256 KiB a unit. The oldest goes first.
const ECHO_BUFFERS: usize = 64;

impl UnitSettings {
    /// Settings at power on.
    #[must_use]
    pub fn new(traits: &Traits) -> Self {
        Self {
            mode: ModeParameters::new(traits),
            loaded: true,
            prevented_by: Vec::new(),
            stops: 0,
            ejects: 0,
            timestamp: Timestamp::default(),
            echoes: Vec::new(),
            buffer: Arc::default(),
        }
    }

    /// What the nexus wrote into its echo buffer.
    #[must_use]
    pub fn echo(&self, nexus: &NexusIdentity) -> Option<&Arc<[u8]>> {
        let of_nexus = |(who, _): &&(Arc<NexusIdentity>, _)| **who == *nexus;
        self.echoes.iter().find(of_nexus).map(|(_, data)| data)
    }
}

/// Makes a change that `nexus` asks for.
///
/// # Errors
/// MEDIUM REMOVAL PREVENTED; nothing has changed then.
pub fn apply(
    state: &mut UnitState,
    nexus: &Arc<NexusIdentity>,
    setting: &SettingChange,
) -> Result<Vec<Effect>, CommandFailure> {
    let settings = Arc::make_mut(&mut state.settings);
    let attention = match setting {
        SettingChange::Mode(change) => settings.set_mode(*change),
        SettingChange::Eject => settings.move_medium(false)?,
        SettingChange::Load => settings.move_medium(true)?,
        SettingChange::Stop => {
            settings.stops = settings.stops.saturating_add(1);
            None
        }
        SettingChange::Prevent(prevent) => {
            settings.prevent(nexus, *prevent);
            None
        }
        SettingChange::Timestamp(timestamp) => {
            settings.timestamp = *timestamp;
            Some(asc::TIMESTAMP_CHANGED)
        }
        SettingChange::Echo(data) => {
            settings.write_echo(nexus, data);
            None
        }
        SettingChange::Buffer { offset, data } => {
            settings.write_buffer(*offset, data);
            None
        }
    };
    let others = |code| Effect::Attention(EffectScope::AllBut(nexus.clone()), code);
    Ok(attention.map(others).into_iter().collect())
}

/// LOGICAL UNIT RESET: mode parameters are as at power on, as none are saved (SPC-5 §7.5.2),
/// removal is not prevented (SPC-5 §6.14), there are no echoes. WCE stays: a host that switched the
/// cache off does not flush any more, and does not check again after a reset by another host.
/// Returns whether a mode parameter has changed.
pub fn reset(state: &mut UnitState) -> bool {
    let settings = Arc::make_mut(&mut state.settings);
    let mut kept = ModeChange::default();
    kept.set(ModeParameter::Wce, settings.mode.is_set(ModeParameter::Wce));
    let mode = ModeParameters::new(&state.traits).with(kept);
    settings.prevented_by.clear();
    settings.echoes.clear();
    std::mem::replace(&mut settings.mode, mode) != mode
}

/// The volume's own cache was switched on or off, which WCE says.
pub fn follow_cache(state: &mut UnitState) {
    let mut change = ModeChange::default();
    change.set(ModeParameter::Wce, state.traits.write_cache);
    let settings = Arc::make_mut(&mut state.settings);
    settings.mode = settings.mode.with(change);
}

/// A nexus is lost: it no longer prevents removal, its echo is gone.
pub fn nexus_loss(state: &mut UnitState, nexus: &NexusIdentity) {
    let settings = &state.settings;
    if settings.echo(nexus).is_none() && !settings.prevented_by.iter().any(|who| **who == *nexus) {
        return;
    }
    let settings = Arc::make_mut(&mut state.settings);
    settings.prevented_by.retain(|who| **who != *nexus);
    settings.echoes.retain(|(who, _)| **who != *nexus);
}

/// Each gives the unit attention that the others are to have, if any.
impl UnitSettings {
    fn set_mode(&mut self, change: ModeChange) -> Option<u16> {
        let old = self.mode;
        self.mode = old.with(change);
        (self.mode != old).then_some(asc::MODE_PARAMETERS_CHANGED)
    }

    /// Neither out nor in while anybody prevents it; nothing happens where nothing would move.
    fn move_medium(&mut self, load: bool) -> Result<Option<u16>, CommandFailure> {
        if self.loaded == load {
            return Ok(None);
        }
        if !self.prevented_by.is_empty() {
            let sense = Sense::new(SenseKey::IllegalRequest, asc::MEDIUM_REMOVAL_PREVENTED);
            return Err(CommandFailure::Check(sense));
        }
        self.loaded = load;
        if load {
            return Ok(Some(asc::MEDIUM_MAY_HAVE_CHANGED));
        }
        self.ejects = self.ejects.saturating_add(1);
        Ok(None)
    }
}

impl UnitSettings {
    fn prevent(&mut self, nexus: &Arc<NexusIdentity>, prevent: bool) {
        self.prevented_by.retain(|who| who != nexus);
        if prevent {
            self.prevented_by.push(nexus.clone());
        }
    }

    fn write_echo(&mut self, nexus: &Arc<NexusIdentity>, data: &Arc<[u8]>) {
        self.echoes.retain(|(who, _)| who != nexus);
        if self.echoes.len() == ECHO_BUFFERS {
            self.echoes.remove(0);
        }
        self.echoes.push((nexus.clone(), data.clone()));
    }

    fn write_buffer(&mut self, offset: usize, data: &[u8]) {
        let mut buffer = self.buffer.to_vec();
        buffer.resize(DATA_BUFFER_BYTES, 0);
        let end = offset.saturating_add(data.len());
        if let Some(to) = buffer.get_mut(offset..end) {
            to.copy_from_slice(data);
        }
        self.buffer = buffer.into();
    }
}

/// What commands ask of the settings.
impl UnitState {
    /// Whether commands that need the medium may be carried out now.
    ///
    /// # Errors
    /// NOT READY: a long operation is in progress or failed, or there is no medium.
    pub fn ready(&self) -> Result<(), CommandFailure> {
        self.operation.ready()?;
        self.has_medium()
    }

    /// Whether there is a medium, be it ready or not.
    ///
    /// # Errors
    /// NOT READY: MEDIUM NOT PRESENT, or the volume is missing.
    pub fn has_medium(&self) -> Result<(), CommandFailure> {
        let code = if self.is_absent {
            asc::NOT_READY_CAUSE_NOT_REPORTABLE
        } else if self.settings.loaded {
            return Ok(());
        } else {
            asc::MEDIUM_NOT_PRESENT
        };
        Err(CommandFailure::Check(Sense::new(SenseKey::NotReady, code)))
    }

    /// Whether the medium may be written.
    ///
    /// # Errors
    /// DATA PROTECT: WRITE PROTECTED where the volume is read-only, LOGICAL UNIT SOFTWARE WRITE
    /// PROTECTED while SWP is set.
    pub fn writable(&self) -> Result<(), CommandFailure> {
        let code = if self.traits.read_only {
            asc::WRITE_PROTECTED
        } else if self.settings.mode.is_set(ModeParameter::Swp) {
            asc::SOFTWARE_WRITE_PROTECTED
        } else {
            return Ok(());
        };
        Err(CommandFailure::Check(Sense::new(
            SenseKey::DataProtect,
            code,
        )))
    }

    /// How D_SENSE asks for sense data.
    #[must_use]
    pub fn sense_format(&self) -> Format {
        if self.settings.mode.is_set(ModeParameter::DSense) {
            Format::Descriptor
        } else {
            Format::Fixed
        }
    }

    /// TAS: tasks aborted by another nexus end with TASK ABORTED instead of silently.
    #[must_use]
    pub fn tells_aborted(&self) -> bool {
        self.settings.mode.is_set(ModeParameter::Tas)
    }

    /// Whether every write is to be carried out as with FUA = 1: the volume has a cache, and
    /// WCE = 0.
    #[must_use]
    pub fn writes_through(&self) -> bool {
        self.traits.write_cache && !self.caches_writes()
    }

    /// WCE: writes without FUA may be volatile until flushed.
    #[must_use]
    pub fn caches_writes(&self) -> bool {
        self.settings.mode.is_set(ModeParameter::Wce)
    }
}
