//! Outcomes for tests: numbers like those of a real run, always the same.

use crate::outcome::race::{Contender, TurnResult};
use crate::outcome::{
    AccessOrder, DataDirection, HostFacts, Load, OperationTotals, Race, ResultRow, RowInterval,
    RunResult,
};

const RUNTIME_S: u64 = 10;

const DIRECTIONS: [DataDirection; 3] = [
    DataDirection::Read,
    DataDirection::Write,
    DataDirection::Mixed,
];

/// Seven block sizes, three directions, floors, and a stall in one row.
pub(crate) fn sweep() -> RunResult {
    let directions = DIRECTIONS.into_iter();
    let loads = directions.flat_map(|way| (9..16).map(move |power| load(way, 1 << power)));
    let rows = |address, speed| loads.clone().map(move |load| row(address, load, speed));
    let mut outcome = outcome("bench --sweep iscsi://san/iqn.2026-11.org.example:a/0");
    outcome.rows = rows("iscsi://san/iqn…/0", 1.0).collect();
    outcome.floors = rows("tcp://san", 1.15).collect();
    outcome.rows[10].series[6].bytes /= 8;
    outcome
}

/// Three directions, without floors; one of them had failures.
pub(crate) fn one_address() -> RunResult {
    let mut outcome = outcome("bench --rw randread ram:1G");
    let row = |direction| row("ram:1G", load(direction, 4096), 1.0);
    outcome.rows = DIRECTIONS.map(row).to_vec();
    outcome.rows[1]
        .writes
        .fail(|| "the medium <b>failed</b>".to_owned());
    outcome
}

/// The same load twice, without CPU times; a name that is markup.
pub(crate) fn two_addresses() -> RunResult {
    let mut outcome = outcome("bench \"<script>alert(1)</script>\" ram:1G");
    let row = |address| row(address, load(DataDirection::Read, 65_536), 1.0);
    outcome.rows = ["file:/tmp/<script>alert(1)</script>&\"'", "ram:1G"]
        .map(row)
        .to_vec();
    for row in &mut outcome.rows {
        (row.cpu_us, row.target_cpu_us) = (None, None);
    }
    outcome
}

/// Two addresses by turns, the second always faster.
pub(crate) fn race() -> RunResult {
    let mut outcome = two_addresses();
    outcome.races = vec![by_turns(&outcome.rows)];
    outcome
}

pub(crate) fn by_turns(rows: &[ResultRow]) -> Race {
    let lane = |(row, ios): (&ResultRow, u64)| Contender {
        address: row.address.clone(),
        turns: vec![
            TurnResult {
                runtime_us: 500_000,
                ios,
                cpu_us: row.cpu_us.map(|_| ios * 2),
                target_cpu_us: row.target_cpu_us.map(|_| ios * 3),
                ..TurnResult::default()
            };
            20
        ],
        losses: None,
    };
    Race {
        load: rows[0].load,
        lanes: rows.iter().zip([4_000, 5_000]).map(lane).collect(),
    }
}

pub(crate) fn outcome(words: &str) -> RunResult {
    let machine = HostFacts {
        host: "san".to_owned(),
        processor: "Example CPU @ 3.0 GHz".to_owned(),
        cores: 8,
        memory_bytes: 16 << 30,
        kernel: "Linux 6.12".to_owned(),
        version: "0.1.0".to_owned(),
    };
    RunResult {
        words: words.to_owned(),
        begin_unix_s: 1_795_309_471,
        machine,
        ..RunResult::default()
    }
}

pub(crate) fn load(direction: DataDirection, block_bytes: u32) -> Load {
    Load {
        direction,
        order: AccessOrder::Random,
        block_bytes,
        depth: 32,
        jobs: 1,
    }
}

/// Costs of an I/O and of a byte, as a wire has them; each 500th I/O is late.
pub(crate) fn row(address: &str, load: Load, speed: f64) -> ResultRow {
    let way = match load.direction {
        DataDirection::Read => 1.0,
        DataDirection::Write => 0.8,
        DataDirection::Mixed => 0.9,
    };
    let each_ns = (3_400.0 + f64::from(load.block_bytes) * 0.22) / way / speed;
    let ios = (RUNTIME_S as f64 * 1e9 / each_ns) as u64;
    let mut tally = OperationTotals::default();
    for nth in 0..2_000u64 {
        let late = if nth.is_multiple_of(500) { 40.0 } else { 1.0 };
        let ns = each_ns * 32.0 * late * (0.7 + 0.6 * (nth % 97) as f64 / 97.0);
        tally.record(0, ns as u64);
    }
    (tally.ios, tally.bytes) = (ios, ios * u64::from(load.block_bytes));
    let interval = |nth: u64| {
        let wobble = 100 + (nth * 7 + u64::from(load.block_bytes) / 512) % 5;
        let bytes = tally.bytes / RUNTIME_S * wobble / 102;
        RowInterval {
            end_ms: nth * 1_000,
            ios: ios / RUNTIME_S,
            bytes,
        }
    };
    let series = (1..=RUNTIME_S).map(interval).collect();
    let (reads, writes) = match load.direction {
        DataDirection::Read | DataDirection::Mixed => (tally, OperationTotals::default()),
        DataDirection::Write => (OperationTotals::default(), tally),
    };
    ResultRow {
        address: address.to_owned(),
        load,
        runtime_us: RUNTIME_S * 1_000_000,
        reads,
        writes,
        cpu_us: Some(ios * 17 / 10),
        target_cpu_us: Some(ios * 22 / 10),
        series,
    }
}
