//! What an entry of the queue is for.

/// What an entry is for, and how the kernel carries it.
#[derive(Clone, Copy)]
pub(super) enum Op {
    Bell,
    Cancel,
    Accept(u32),
    Receive(u32),
    Send(u32),
    File(u32),
    Watch(u32),
    Pause(u32),
}

impl Op {
    pub(super) fn data(self) -> u64 {
        let (kind, key) = match self {
            Self::Bell => (0, 0),
            Self::Cancel => (1, 0),
            Self::Accept(key) => (2, key),
            Self::Receive(key) => (3, key),
            Self::Send(key) => (4, key),
            Self::File(key) => (5, key),
            Self::Watch(key) => (6, key),
            Self::Pause(key) => (7, key),
        };
        kind << 32 | u64::from(key)
    }

    pub(super) fn of(data: u64) -> Self {
        let key = data as u32;
        match data >> 32 {
            0 => Self::Bell,
            2 => Self::Accept(key),
            3 => Self::Receive(key),
            4 => Self::Send(key),
            5 => Self::File(key),
            6 => Self::Watch(key),
            7 => Self::Pause(key),
            _ => Self::Cancel,
        }
    }
}
