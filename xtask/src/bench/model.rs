//! What the CPU an I/O that was measured means where this machine cannot measure: on other networks
//! and more cores. Every assumption is a line of what it prints.

#[cfg(test)]
mod tests;

use std::hint::black_box;
use std::time::{Duration, Instant};

use bench::numbers::{block_size, digits, percent, whole};
use bench::report::ReportTable;

/// CPU an I/O as a straight line over its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// What an I/O of no bytes takes, in microseconds.
    pub(super) fixed_us: f64,
    /// What each byte adds, in nanoseconds.
    pub(super) byte_ns: f64,
}

impl Line {
    /// The line whose squared relative errors are the least: a percent of a small I/O is worth as
    /// much as one of a large. `None` of less than two sizes.
    pub(super) fn fit(points: &[(u32, f64)]) -> Option<Self> {
        let mut sums = [0.0; 5];
        for (bytes, us) in points {
            let (x, y) = (f64::from(*bytes), *us);
            for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
                *sum += term / (y * y);
            }
        }
        let [one, x, y, xx, xy] = sums;
        let spread = one * xx - x * x;
        let slope = (one * xy - x * y) / spread;
        (points.len() > 1 && spread > 0.0).then(|| Self {
            fixed_us: (y - slope * x) / one,
            byte_ns: slope * 1e3,
        })
    }

    fn us(self, bytes: u32) -> f64 {
        self.fixed_us + self.byte_ns * f64::from(bytes) / 1e3
    }
}

/// What was measured one way: bytes, and microseconds of target CPU an I/O.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) points: Vec<(u32, f64)>,
}

/// A network, and what surrounds each segment of TCP on it.
#[derive(Clone, Copy)]
struct Network {
    mtu: u32,
    /// Bytes of TCP's header.
    tcp: u32,
}

/// Preamble, header, check sequence and gap of Ethernet: IEEE 802.3 §3.1.1, §4.4.2.
const FRAME: u32 = 8 + 14 + 4 + 12;
/// IPv4 without options.
const IP: u32 = 20;
/// TCP without options, as offload cards do it, and with padded time stamps, as Linux does:
/// RFC 9293 §3.1, RFC 7323 §3.2.
const TCP: [u32; 2] = [20, 20 + 12];
/// A basic header segment, the only one of a command or of a Data-In with status.
const PDU: u32 = 48;

impl Network {
    /// Bytes of a stream in each segment.
    fn segment(self) -> f64 {
        f64::from(self.mtu - IP - self.tcp)
    }

    /// Segments of an I/O, the way its data goes. Under load PDUs follow each other without gaps:
    /// segments are full.
    fn segments(self, bytes: u32) -> f64 {
        f64::from(PDU + bytes) / self.segment()
    }

    /// Bytes of wire of an I/O, the way its data goes, where acknowledgements of the other way
    /// travel with its commands or answers.
    fn wire(self, bytes: u32) -> f64 {
        f64::from(PDU + bytes) + self.segments(bytes) * f64::from(FRAME + IP + self.tcp)
    }

    /// I/Os a second that fill a link of this many Gb/s.
    fn iops(self, gbps: f64, bytes: u32) -> f64 {
        gbps * 1e9 / 8.0 / self.wire(bytes)
    }

    /// From how many bytes on one core fills the link; `None` where it never does.
    fn one_core_fills(self, gbps: f64, line: Line) -> Option<f64> {
        let byte_wire_ns = 8.0 / gbps * self.wire(0) / f64::from(PDU);
        let gap_ns = byte_wire_ns - line.byte_ns;
        let lacking_ns = line.fixed_us * 1e3 - byte_wire_ns * f64::from(PDU);
        (gap_ns > 0.0).then(|| (lacking_ns / gap_ns).max(0.0))
    }
}

/// Gigabytes a second that one core copies, piece by piece, from places all over memory that is in
/// no cache.
pub(super) fn copy_gb_s() -> f64 {
    const PIECE: usize = 64 << 10;
    const TIME: Duration = Duration::from_millis(300);
    let memory = vec![0x5a_u8; super::VOLUME as usize];
    let mut piece = vec![0; PIECE];
    let (start, mut copied) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        // An odd stride far from a page or a piece: all places of a power of two come up.
        let at = copied / PIECE * 2741 % (memory.len() / PIECE) * PIECE;
        piece.copy_from_slice(&memory[at..at + PIECE]);
        black_box(&mut piece);
        copied += PIECE;
    }
    copied as f64 / start.elapsed().as_secs_f64() / 1e9
}

const NETWORKS: [Network; 2] = [
    Network {
        mtu: 1500,
        tcp: TCP[1],
    },
    Network {
        mtu: 9000,
        tcp: TCP[1],
    },
];
const LINKS_GBPS: [f64; 3] = [10.0, 40.0, 100.0];
const SIZES: [u32; 10] = [
    512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144,
];

const LARGEST: u32 = SIZES[SIZES.len() - 1];

/// Chelsio's T5, 40 Gb/s, MTU 1500, random reads of a target without memory: bytes and IOPS. Its
/// 16 cores are all busy at the first two.
const SEED: [(u32, f64); 7] = [
    (512, 2_893_351.0),
    (1024, 2_902_067.0),
    (2048, 2_219_828.0),
    (4096, 1_141_913.0),
    (8192, 574_122.7),
    (16_384, 287_054.6),
    (32_768, 143_723.1),
];
const SEED_CORES: f64 = 16.0;
const SEED_GBPS: f64 = 40.0;
const SEED_NETWORK: Network = Network {
    mtu: 1500,
    tcp: TCP[0],
};

/// What a driver and its interrupts take for each packet, beside what loopback takes: assumed, from
/// 10 M packets a second and core of drivers that poll, to 3 M of those that are interrupted.
const PACKET_NS: [f64; 2] = [100.0, 330.0];

/// All that the model says; nothing where less than two sizes were measured.
pub(super) fn tables(ways: &[Way], copy_gb_s: f64) -> Vec<ReportTable> {
    let lines: Vec<_> = ways
        .iter()
        .filter_map(|way| Some((way, Line::fit(&way.points)?)))
        .collect();
    let Some((reads, read)) = lines.first() else {
        return Vec::new();
    };
    let mut tables = vec![fits(&lines, copy_gb_s), check(ways), seed(reads, *read)];
    tables.extend(NETWORKS.map(|network| links(network, &lines)));
    tables.push(memory(copy_gb_s));
    tables
}

fn fits(lines: &[(&Way, Line)], copy_gb_s: f64) -> ReportTable {
    let fit = |(way, line): &(&Way, Line)| {
        let fills = |gbps| {
            let bytes = NETWORKS[0].one_core_fills(gbps, *line);
            let bytes = bytes.filter(|bytes| *bytes < f64::from(LARGEST));
            bytes.map_or("never".to_owned(), |bytes| format!("{bytes:.0} bytes"))
        };
        let costs = [
            way.name.to_owned(),
            format!("{:.2} us", line.fixed_us),
            format!("{:.3} ns", line.byte_ns),
        ];
        costs.into_iter().chain(LINKS_GBPS.map(fills)).collect()
    };
    ReportTable {
        caption: format!(
            "Target CPU of an I/O: a fixed part and one of each byte, fitted to all sizes; from \
             which size on one core fills a link of MTU 1500. Copying alone, from random places of \
             memory that is in no cache, was measured at {copy_gb_s:.1} GB/s: {:.3} ns a byte",
            1.0 / copy_gb_s
        ),
        head: words(&[
            "",
            "fixed",
            "a byte",
            "10 Gb/s from",
            "40 Gb/s from",
            "100 Gb/s from",
        ]),
        lines: lines.iter().map(fit).collect(),
    }
}

/// Each size against what the line through the others says.
fn check(ways: &[Way]) -> ReportTable {
    let line = |way: &Way, (bytes, us): (u32, f64)| {
        let others: Vec<_> = way
            .points
            .iter()
            .filter(|(other, _)| *other != bytes)
            .copied()
            .collect();
        let said = Line::fit(&others)?.us(bytes);
        Some(vec![
            format!("{} {}", block_size(bytes), way.name),
            digits(us),
            digits(said),
            format!("{:+.0} %", (said / us - 1.0) * 100.0),
        ])
    };
    let each = |way: &'_ Way| {
        way.points
            .iter()
            .filter_map(|point| line(way, *point))
            .collect::<Vec<_>>()
    };
    ReportTable {
        caption: "The model against what was measured: us of target CPU an I/O, and what the line \
                  through the other sizes says of this one"
            .to_owned(),
        head: words(&["", "measured", "modelled", "off by"]),
        lines: ways.iter().flat_map(each).collect(),
    }
}

/// The seed's headline with the CPU that was measured here.
fn seed(reads: &Way, read: Line) -> ReportTable {
    let (bytes, iops) = SEED[0];
    let measured = reads.points.iter().find(|(size, _)| *size == bytes);
    let us = measured.map_or(read.us(bytes), |(_, us)| *us);
    let packets = NETWORKS[0].segments(bytes) + NETWORKS[0].segments(0);
    let cores = |packet_ns: f64| iops * (us + packets * packet_ns / 1e3) / 1e6;
    let [polled, interrupted] = PACKET_NS.map(cores);
    let line = |what: &str, cores: f64| {
        let each = whole(iops / cores);
        vec![what.to_owned(), digits(cores), each]
    };
    ReportTable {
        caption: format!(
            "{} IOPS of 512 B reads, which took 16 cores and an offload card (E5-2687W v2, 3.4 \
             GHz, 2013). Assumed: sessions are spread evenly, cores do not hinder each other, an \
             I/O has {packets:.2} packets (full segments of MTU 1500), which take 100 ns each \
             where the driver polls and 330 ns where it is interrupted, in addition to what \
             loopback takes; what the sender does for the receiver on loopback, each end does for \
             the other",
            whole(iops)
        ),
        head: words(&["", "cores", "IOPS a core"]),
        lines: vec![
            line("the seed, with offload", SEED_CORES),
            line("this target, as on loopback", cores(0.0)),
            line("and a driver that polls", polled),
            line("and a driver that is interrupted", interrupted),
        ],
    }
}

fn links(network: Network, lines: &[(&Way, Line)]) -> ReportTable {
    let cell = |gbps: f64, bytes: u32| {
        let iops = network.iops(gbps, bytes);
        let cores = lines
            .iter()
            .map(|(_, line)| digits(iops * line.us(bytes) / 1e6));
        format!(
            "{} ({})",
            whole(iops),
            cores.collect::<Vec<_>>().join(" / ")
        )
    };
    let of_seed = |bytes: u32| {
        let seed = SEED
            .iter()
            .find(|(size, _)| *size == bytes && network.mtu == 1500);
        seed.map_or(String::new(), |(_, iops)| {
            percent(iops / SEED_NETWORK.iops(SEED_GBPS, bytes))
        })
    };
    let line = |bytes: u32| {
        let mut cells = vec![
            block_size(bytes),
            digits(network.wire(bytes)),
            digits(network.segments(bytes)),
        ];
        cells.extend(LINKS_GBPS.map(|gbps| cell(gbps, bytes)));
        cells.push(of_seed(bytes));
        cells
    };
    let names: Vec<_> = lines.iter().map(|(way, _)| way.name).collect();
    ReportTable {
        caption: format!(
            "Where links saturate, MTU {}: I/Os a second that fill them, and the cores that \
             takes ({}). Of each segment {FRAME} bytes are Ethernet's, with its gap, {IP} IP's \
             and {} TCP's, with time stamps; of each I/O {PDU} are iSCSI's, each way. Full \
             duplex: the way the data goes counts. The last column is what the seed reached of \
             that on 40 Gb/s, and without time stamps, which at 512 and 1k its cores limited",
            network.mtu,
            names.join(" / "),
            network.tcp,
        ),
        head: words(&[
            "",
            "wire bytes",
            "packets",
            "10 Gb/s",
            "40 Gb/s",
            "100 Gb/s",
            "the seed",
        ]),
        lines: SIZES.map(line).to_vec(),
    }
}

/// Memory traffic for each byte of data, by what happens to it.
const TRAFFIC: [(&str, f64); 4] = [
    ("read: copied into the socket, fetched by the NIC", 3.0),
    (
        "read: sent from where it lies (SEND_ZC), fetched by the NIC",
        1.0,
    ),
    ("write: stored by the NIC, copied into the volume", 3.0),
    ("write: the same, with stores that read the line first", 4.0),
];

fn memory(copy_gb_s: f64) -> ReportTable {
    let line = |(what, times): (&str, f64)| {
        let traffic = LINKS_GBPS.map(|gbps| format!("{:.0} GB/s", gbps / 8.0 * times));
        let copies = if times > 1.0 { 1.0 } else { 0.0 };
        let cores = LINKS_GBPS.map(|gbps| digits(gbps / 8.0 * copies / copy_gb_s));
        let mut cells = vec![what.to_owned()];
        cells.extend(traffic);
        cells.push(cores.join(" / "));
        cells
    };
    let small = NETWORKS[0].segments(512);
    ReportTable {
        caption: format!(
            "What memory has to carry for a link that is full of data that is in no cache, and \
             the cores that do nothing but copy it at {copy_gb_s:.1} GB/s. One channel of \
             DDR5-4800 has 38 GB/s. A NIC that does 30 M packets a second is no limit: {} of 512 \
             B, full segments of MTU 1500, are {:.1} M packets a second each way; as a packet for \
             each PDU they would be 2.9 M",
            whole(SEED[0].1),
            SEED[0].1 * small / 1e6
        ),
        head: words(&["", "10 Gb/s", "40 Gb/s", "100 Gb/s", "cores that copy"]),
        lines: TRAFFIC.map(line).to_vec(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
