//! A whole measurement: one row after the other.

use std::time::{SystemTime, UNIX_EPOCH};

use ::io::ether::Place;
use address::Address;
use block::volumes::tell_gathered;
use client::open::{self, OpenError, OpenOptions};

use crate::floor;
use crate::load::{self, LoadResources, LoadVolume, RunError, UnwrittenRange};
use crate::load_threads::RunObserver;
use crate::outcome::{DataDirection, HostFacts, Load, RunResult};
use crate::plan::{FioOptions, UnfitForVolume};
use crate::processes;

/// What is to be measured.
#[derive(Debug)]
pub struct RunPlan {
    /// The load, as fio names it.
    pub words: FioOptions,
    /// The volumes under load.
    pub subjects: Vec<LoadVolume>,
    /// By what means.
    pub machinery: LoadResources,
    /// Whether everything is written once before.
    pub fill: bool,
    /// The other end of bare TCP, which is measured as well.
    pub floor: Option<floor::FloorPeer>,
}

/// A volume that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot do what it is to do.
    #[error("{address}: {cause}")]
    Unfit {
        /// Its address.
        address: String,
        /// What does not fit.
        cause: UnfitForVolume,
    },
}

impl LoadVolume {
    /// Opens a volume for a load.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or cannot do what the words say.
    pub fn open(
        address: &Address,
        options: &OpenOptions,
        words: &FioOptions,
    ) -> Result<Self, SubjectError> {
        let unfit = |cause| SubjectError::Unfit {
            address: address.to_string(),
            cause,
        };
        if words.jobs > 1 && is_on_a_cable(address) {
            return Err(unfit(UnfitForVolume::Cable(words.jobs)));
        }
        let before = processes::sockets();
        let volume = open::volume(address, options)?;
        Ok(Self {
            sockets: &processes::sockets() - &before,
            address: address.to_string(),
            span: words.fit(&volume.traits()).map_err(unfit)?,
            volume,
        })
    }
}

/// Whether it has a unit at the other end of a cable.
fn is_on_a_cable(address: &Address) -> bool {
    address.leaves().any(|leaf| match leaf {
        Address::Fcoe(unit) => matches!(unit.place, Place::Cable(_)),
        _ => false,
    })
}

/// What a measurement by these words begins with: nothing measured yet, on this machine.
#[must_use]
pub fn begun(words: String) -> RunResult {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    RunResult {
        words,
        begin_unix_s: now.unwrap_or_default().as_secs(),
        machine: HostFacts::here(),
        ..RunResult::default()
    }
}

impl RunPlan {
    /// Measures row after row into `outcome`, until all are, something fails, or it is stopped.
    ///
    /// # Errors
    ///
    /// When it failed; what was measured before is in `outcome`.
    pub fn run(
        &self,
        outcome: &mut RunResult,
        watch: &mut RunObserver<'_>,
    ) -> Result<(), RunError> {
        self.each_load(watch, |load, watch| {
            let (subjects, machinery) = (&self.subjects, &self.machinery);
            let measured = load::measure(subjects, &self.words, load, machinery, watch)?;
            measured.take(&mut outcome.rows)?;
            if let (Some(place), false) = (self.floor, watch.stopped()) {
                let size = subjects.iter().map(|subject| subject.span.bytes());
                let size = size.max().unwrap_or(0);
                let measured = floor::measure(place, &self.words, load, size, watch)?;
                measured.take(&mut outcome.floors)?;
            }
            Ok(())
        })
    }

    /// Measures each load that the words come to, on volumes that are filled if they are to be.
    pub(crate) fn each_load(
        &self,
        watch: &mut RunObserver<'_>,
        measure: impl FnMut(Load, &mut RunObserver<'_>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if self.fill {
            for subject in &self.subjects {
                self.fill(subject, watch)?;
            }
        }
        load::each(self.loads(), watch, measure)
    }

    /// Those of the words that all volumes can do.
    pub(crate) fn loads(&self) -> impl Iterator<Item = Load> {
        let sizes = self.subjects.iter().map(|subject| subject.span.block_size);
        self.words.loads(sizes.max().unwrap_or(1))
    }

    /// Logs what the volumes have gathered of what went through them.
    pub fn tell_gathered(&self) {
        tell_gathered(self.subjects.iter().map(|subject| &subject.volume));
    }

    fn fill(&self, subject: &LoadVolume, watch: &mut RunObserver<'_>) -> Result<(), RunError> {
        let filled = load::fill(subject, self.words.seed, self.machinery.waits.ring, watch);
        filled.map_err(|cause| RunError::Fill {
            address: subject.address.clone(),
            cause,
        })
    }

    /// The volumes that are to be read, though nothing was written to all or some of them yet.
    pub fn holes(&self) -> impl Iterator<Item = (&str, UnwrittenRange)> {
        let mut rws = self.words.rws.iter();
        let asked = !self.fill && rws.any(|rw| rw.direction != DataDirection::Write);
        let subjects = self.subjects.iter().filter(move |_| asked);
        // One that cannot tell may be full; of one that is always empty nothing else is expected.
        subjects.filter_map(|subject| {
            if subject.address.starts_with("null:") {
                return None;
            }
            let holes = load::holes(subject, self.machinery.waits.ring).ok()?;
            (holes != UnwrittenRange::None).then_some((subject.address.as_str(), holes))
        })
    }
}
