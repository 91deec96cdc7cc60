//! The series at `/metrics`: docs/manual/metrics.md tells of each.

/// What a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the daemon starts again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many took how long.
    Histogram,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A family of series that differ by their labels.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name; that of a counter without `_total`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it is measured in, which ends its name; nothing where things are counted.
    pub unit: &'static str,
    /// What it is, in words.
    pub help: &'static str,
}

impl Family {
    const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Counter,
            unit,
            help,
        }
    }

    const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Gauge,
            unit,
            help,
        }
    }

    const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Histogram,
            unit: "seconds",
            help,
        }
    }

    /// The name by which it is asked for.
    #[must_use]
    pub fn told(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

pub(super) const OPERATIONS: Family = Family::counter(
    "lunar_volume_operations",
    "",
    "Commands that ended with a status, those that failed among them.",
);
pub(super) const ERRORS: Family = Family::counter(
    "lunar_volume_errors",
    "",
    "Commands that ended with another status than GOOD.",
);
pub(super) const BYTES: Family = Family::counter(
    "lunar_volume_bytes",
    "bytes",
    "Bytes that commands which ended well have read and written.",
);
pub(super) const LATENCY: Family = Family::histogram(
    "lunar_volume_latency_seconds",
    "Time from a command to its status.",
);
pub(super) const MEDIUM_LATENCY: Family = Family::histogram(
    "lunar_volume_medium_latency_seconds",
    "Time that commands were at the volume.",
);
pub(super) const QUEUE: Family = Family::gauge(
    "lunar_volume_queue_depth",
    "",
    "Commands that have not ended.",
);
pub(super) const CAPACITY: Family =
    Family::gauge("lunar_volume_capacity_bytes", "bytes", "Capacity.");
pub(super) const USED: Family =
    Family::gauge("lunar_volume_used_bytes", "bytes", "Storage in use.");
pub(super) const STATE: Family = Family::gauge(
    "lunar_volume_state",
    "",
    "1 for the state that the volume is in: online or absent.",
);
pub(super) const RETRIES: Family = Family::counter(
    "lunar_retries",
    "",
    "Commands that were sent again to the target that has a volume's storage.",
);
pub(super) const SESSIONS: Family = Family::gauge(
    "lunar_sessions",
    "",
    "Sessions, by their target and what carries them.",
);
pub(super) const SESSION_COMMANDS: Family = Family::counter(
    "lunar_session_commands",
    "",
    "Commands of sessions that are there.",
);
pub(super) const SESSION_BYTES: Family = Family::counter(
    "lunar_session_bytes",
    "bytes",
    "Bytes that commands of sessions that are there asked to move.",
);
pub(super) const SESSION_LATENCY: Family = Family::histogram(
    "lunar_session_latency_seconds",
    "Time from a command of a session that is there to its end.",
);
pub(super) const LOGINS: Family = Family::counter(
    "lunar_logins",
    "",
    "Logins, by the portal that they came to and what became of them.",
);
pub(super) const VIOLATIONS: Family = Family::counter(
    "lunar_violations",
    "",
    "How often peers broke a rule, or were refused by it.",
);
pub(super) const DIGEST_ERRORS: Family = Family::counter(
    "lunar_digest_errors",
    "",
    "PDUs of iSCSI with a wrong header or data digest.",
);
pub(super) const FRAMES_LOST: Family = Family::counter(
    "lunar_fc_frames_lost",
    "",
    "Frames of Fibre Channel over Ethernet that were lost on this machine.",
);
pub(super) const SWITCH_LOGINS: Family = Family::gauge(
    "lunar_switch_logins",
    "",
    "Ports that are logged in to the fabric of a switch, by the port of the switch.",
);
pub(super) const SWITCH_FRAMES: Family = Family::counter(
    "lunar_switch_frames",
    "",
    "Frames that a switch forwarded, by the port that they came in at.",
);
pub(super) const SWITCH_BYTES: Family = Family::counter(
    "lunar_switch_bytes",
    "bytes",
    "Bytes of frames that a switch forwarded, by the port that they came in at.",
);
pub(super) const SWITCH_DROPPED: Family = Family::counter(
    "lunar_switch_dropped_frames",
    "",
    "Frames that a switch dropped, by the port that they came in at and the reason.",
);
pub(super) const CORE_BUSY: Family = Family::counter(
    "lunar_core_busy_seconds",
    "seconds",
    "Time that a reactor spent with something to do.",
);
pub(super) const CORE_IDLE: Family = Family::counter(
    "lunar_core_idle_seconds",
    "seconds",
    "Time that a reactor slept, or looked for work in vain.",
);
pub(super) const UNCOPIED: Family = Family::counter(
    "lunar_sent_uncopied_bytes",
    "bytes",
    "Bytes sent over TCP that the kernel did not copy.",
);
pub(super) const MEMORY: Family = Family::gauge(
    "lunar_memory_bytes",
    "bytes",
    "Memory, by what it is for; resident is all of the process.",
);
pub(super) const MEMORY_LIMIT: Family = Family::gauge(
    "lunar_memory_limit_bytes",
    "bytes",
    "The most memory that volumes may take.",
);
pub(super) const GENERATION: Family = Family::gauge(
    "lunar_config_generation",
    "",
    "The generation of the configuration that is served.",
);
pub(super) const ALARM: Family =
    Family::gauge("lunar_alarm", "", "1 for what somebody should look at.");

/// All of them, in the order in which they are told.
pub const ALL: [Family; 29] = [
    OPERATIONS,
    ERRORS,
    BYTES,
    LATENCY,
    MEDIUM_LATENCY,
    QUEUE,
    CAPACITY,
    USED,
    STATE,
    RETRIES,
    SESSIONS,
    SESSION_COMMANDS,
    SESSION_BYTES,
    SESSION_LATENCY,
    LOGINS,
    VIOLATIONS,
    DIGEST_ERRORS,
    FRAMES_LOST,
    SWITCH_LOGINS,
    SWITCH_FRAMES,
    SWITCH_BYTES,
    SWITCH_DROPPED,
    CORE_BUSY,
    CORE_IDLE,
    UNCOPIED,
    MEMORY,
    MEMORY_LIMIT,
    GENERATION,
    ALARM,
];
