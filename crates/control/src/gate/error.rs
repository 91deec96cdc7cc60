//! Why a change is not made, and the way out.

use std::path::Path;

use super::{Candidate, Outcome};
use crate::check::TreeProblem;
use crate::document::DocumentProblem;

/// Why nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GateError {
    /// Somebody else has changed it meanwhile.
    #[error("generation {is} is served by now, and this was made from {was}: look at it again")]
    Stale {
        /// What is served.
        is: u64,
        /// What the author had seen.
        was: u64,
    },
    /// The file was edited and not applied.
    #[error(
        "the configuration file was edited and not applied: lunar plan shows what has changed, \
         lunar apply takes it, lunar rollback {0} drops it"
    )]
    Edited(u64),
    /// There is no file.
    #[error(
        "the configuration file is missing: lunar rollback {0} writes what is served, and any \
         other change writes what is served then"
    )]
    NoFile(u64),
    /// The document is no tree.
    #[error(transparent)]
    Document(#[from] DocumentProblem),
    /// The tree does not fit together.
    #[error("{}", lines(.0))]
    Tree(Vec<TreeProblem>),
    /// One of these two, of the configuration file.
    #[error("{file}: {cause}")]
    InFile {
        /// The file.
        file: String,
        /// What is wrong in it.
        cause: Box<GateError>,
    },
    /// It would do more than was allowed.
    #[error("this needs {way_out}")]
    Refused {
        /// What it would do.
        outcome: Box<Outcome>,
        /// The options that allow it.
        way_out: String,
    },
    /// It changes where tokens are shown, which the author may not.
    #[error("[api] is changed by the role admin alone: tokens are shown there")]
    Api,
    /// Another change is under way.
    #[error(
        "{0} is not done yet, and others wait for it: try again later, GET /v1/status \
         answers meanwhile"
    )]
    Busy(String),
    /// A row that may lose its data, and is in neither tree.
    #[error("there is no row {0:?} that could lose anything: lunar plan names those that do")]
    NoRow(String),
    /// No such generation is kept.
    #[error("generation {0} is not kept: lunar history lists those that are")]
    NoGeneration(u64),
    /// Something of it cannot be had, all of which is told.
    #[error("{}", .0.join("\n"))]
    Failed(Vec<String>),
    /// The file cannot be read or written.
    #[error("{0}")]
    Store(String),
}

impl GateError {
    /// What is wrong in the configuration file is told with its name.
    pub(crate) fn placed(self, candidate: &Candidate, config: &Path) -> Self {
        let is_of_text = matches!(self, Self::Document(_) | Self::Tree(_));
        if !is_of_text || *candidate != Candidate::File {
            return self;
        }
        Self::InFile {
            file: config.display().to_string(),
            cause: Box::new(self),
        }
    }
}

fn lines(problems: &[TreeProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(TreeProblem::to_string).collect();
    lines.join("\n")
}
