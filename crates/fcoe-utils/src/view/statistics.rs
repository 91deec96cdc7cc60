//! `fcoeadm -s` and `-b`: what a port has counted, a row at a time.

use crate::instance::Instance;

/// Rows below which the header is printed again.
pub const ROWS: usize = 52;

/// A table whose rows are told one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTable {
    /// Frames, errors and requests (`-s`).
    Port,
    /// The Link Error Status Block of FC-BB-6 (`-b`).
    LinkErrors,
}

/// A counter of `fc_host/hostN/statistics`: attribute, factor, width of its column.
type PortColumn = (&'static str, u64, usize);

/// Words of Fibre Channel have four bytes.
const WORD: u64 = 4;

/// The columns of [`RowTable::Port`] after the seconds.
const PORT_COLUMNS: [PortColumn; 13] = [
    ("tx_frames", 1, 9),
    ("tx_words", WORD, 12),
    ("rx_frames", 1, 9),
    ("rx_words", WORD, 14),
    ("error_frames", 1, 4),
    ("invalid_crc_count", 1, 4),
    ("invalid_tx_word_count", WORD, 4),
    ("link_failure_count", 1, 4),
    ("fcp_control_requests", 1, 4),
    ("fcp_input_requests", 1, 9),
    ("fcp_input_megabytes", 1, 9),
    ("fcp_output_requests", 1, 9),
    ("fcp_output_megabytes", 1, 9),
];

/// The columns of [`RowTable::LinkErrors`]: attribute of `lesb`, title.
const LINK_COLUMNS: [(&str, &str); 6] = [
    ("link_fail", "LinkFail"),
    ("vlink_fail", "VLinkFail"),
    ("miss_fka", "MissFKA"),
    ("symb_err", "SymbErr"),
    ("err_block", "ErrBlkCnt"),
    ("fcs_error", "FCSErrCnt"),
];

impl RowTable {
    /// The lines above the rows, with the seconds between these.
    #[must_use]
    pub fn header(self, interface: &str, interval: u32) -> String {
        let first = format!("{interface:<15} interval: {interval:<2}");
        match self {
            Self::Port => port_header(&first),
            Self::LinkErrors => {
                let titles = LINK_COLUMNS.map(|(_, title)| title);
                let dashes = titles.map(|title| "-".repeat(title.len()));
                let first = first.trim_end();
                format!("\n{first}\n{}\n{}\n", titles.join(" "), dashes.join(" "))
            }
        }
    }

    /// The counters now, of all instances of an interface together: only this program has several.
    /// `since` is the second of the first row, by the kernel's count, and becomes so by the first
    /// one.
    #[must_use]
    pub fn row(self, instances: &[Instance], since: &mut Option<u64>) -> String {
        let cells = match self {
            Self::Port => port_cells(instances, since),
            Self::LinkErrors => link_cells(instances),
        };
        format!("{}\n", cells.join(" ").trim_end())
    }
}

fn port_header(first: &str) -> String {
    let above = "Err  Inv  IvTx Link Cntl Input     Input     Output    Output";
    let titles = "Seconds TxFrames  TxBytes      RxFrames  RxBytes        Frms CRC  Byte Fail Reqs \
                  Requests  MBytes    Requests  MBytes";
    let widths = PORT_COLUMNS.map(|(_, _, width)| "-".repeat(width));
    format!(
        "\n{first:<56}{above}\n{titles}\n{} {}\n",
        "-".repeat(7),
        widths.join(" ")
    )
}

fn port_cells(instances: &[Instance], since: &mut Option<u64>) -> Vec<String> {
    let hosts = instances.iter().filter_map(|one| one.host.as_ref());
    let counters: Vec<_> = hosts
        .map(|host| host.attributes().child("statistics"))
        .collect();
    let told = |name| counters.iter().filter_map(move |dir| dir.number(name));
    let seconds = told("seconds_since_last_reset").max().unwrap_or(0);
    let begun = *since.get_or_insert(seconds);
    let mut cells = vec![format!("{:<7}", seconds.saturating_sub(begun))];
    cells.extend(PORT_COLUMNS.map(|(name, factor, width)| {
        // Libfc tells what it does not count as all ones.
        let value = sum(told(name)).wrapping_mul(factor);
        format!("{value:<width$}")
    }));
    cells
}

fn link_cells(instances: &[Instance]) -> Vec<String> {
    let counters: Vec<_> = instances
        .iter()
        .map(|one| one.controller.child("lesb"))
        .collect();
    let cells = LINK_COLUMNS.map(|(name, title)| {
        let told = counters.iter().filter_map(|dir| dir.number(name));
        let value = if name == OF_THE_CARD {
            told.max().unwrap_or(0)
        } else {
            sum(told)
        };
        let width = title.len();
        format!("{value:<width$}")
    });
    cells.to_vec()
}

/// The attribute of `lesb` that the card has counted for all instances of its interface.
const OF_THE_CARD: &str = "fcs_error";

fn sum(told: impl Iterator<Item = u64>) -> u64 {
    told.fold(0, u64::wrapping_add)
}
