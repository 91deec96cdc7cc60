//! Volumes: addresses, the rows that they name, and what hosts know them by.

use std::collections::{BTreeMap, BTreeSet};

use ::io::memory::GRANULE;
use address::{Address, RamAddress, Size};

use super::{Findings, check_row_name};
use crate::tree::{LunRow, Tree, VolumeRow};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let mut serials: BTreeMap<&str, &str> = BTreeMap::new();
    let mut named = NamedRows::new();
    let mut locked = LockedRam::default();
    for (name, row) in &tree.volume {
        check_row_name("volume", name, findings);
        // It is read once: reading 10,000 of them is most of what a look at a tree costs.
        let address = parse(row);
        if let Ok(address) = &address {
            let rows: Vec<_> = rows_of(address).map(str::to_owned).collect();
            if !rows.is_empty() {
                named.insert(name, rows);
            }
            locked.add(name, address);
        }
        match address.and_then(|address| with_size(address, row)) {
            Ok(_) => check_address(tree, name, named.get(&**name), findings),
            Err(cause) => findings.problem(
                format_args!("volume.{name}.address"),
                cause,
                "see VOLUMES in lunar-serve(1)",
            ),
        }
        check_names(name, row, findings);
        check_numbers(name, row, findings);
        if let Some(serial) = &row.serial
            && let Some(other) = serials.insert(serial, name)
        {
            findings.problem(
                format_args!("volume.{name}.serial"),
                format_args!("volume.{other} has this serial number too"),
                "give each its own: hosts would take them for one disk",
            );
        }
    }
    if !named.is_empty() {
        check_parts(tree, &named, findings);
        check_cycles(&named, findings);
    }
    if let Some(limit) = tree.daemon.memory_limit {
        locked.check(limit, findings);
    }
}

/// The RAM disks that hold all of their memory from the start on, and could not be opened above the
/// limit: that is told now, and not by their absence after the next start.
#[derive(Default)]
struct LockedRam<'a> {
    volumes: Vec<&'a str>,
    bytes: u64,
}

impl<'a> LockedRam<'a> {
    fn add(&mut self, name: &'a str, address: &Address) {
        let bytes = address.leaves().map(|leaf| match leaf {
            Address::Ram(RamAddress { size, locked: true }) => {
                size.0.checked_next_multiple_of(GRANULE).unwrap_or(u64::MAX)
            }
            _ => 0,
        });
        let bytes = bytes.fold(0, u64::saturating_add);
        if bytes > 0 {
            self.volumes.push(name);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn check(&self, limit: Size, findings: &mut Findings) {
        // Of what is less than a granule it is told already.
        if !(GRANULE..self.bytes).contains(&limit.0) {
            return;
        }
        let (takes, volumes) = (Size(self.bytes), self.volumes.join(", "));
        findings.problem(
            "daemon.memory-limit",
            format_args!("{limit} is less than the {takes} of locked RAM disks: {volumes}"),
            &format!("give at least {takes}, or make these smaller, or open them without ?locked"),
        );
    }
}

/// The rows that the addresses of volumes name, of those that name any.
type NamedRows<'a> = BTreeMap<&'a str, Vec<String>>;

/// A volume is opened once: it is a disk of its own, or a part of one other volume.
fn check_parts(tree: &Tree, named: &NamedRows<'_>, findings: &mut Findings) {
    let shown: BTreeSet<&str> = tree
        .target
        .values()
        .flat_map(|row| row.view.values().chain([&row.luns]))
        .flat_map(|luns| luns.values().map(LunRow::volume))
        .collect();
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, parts) in named {
        // One that is made of itself is told as that.
        for part in parts.iter().filter(|part| part != name) {
            let at = format!("volume.{name}.address");
            if shown.contains(&**part) {
                findings.problem(
                    &at,
                    format_args!("{part} is a LUN itself"),
                    "a volume is a disk of its own, or a part of one other: show one of the two",
                );
            }
            if let Some(other) = users.insert(part, name) {
                findings.problem(
                    &at,
                    format_args!("{part} is a part of volume.{other} already"),
                    "a volume can be a part of one other, once",
                );
            }
        }
    }
}

/// The volumes that are parts of others, and so no disks of their own.
pub(crate) fn parts(tree: &Tree) -> BTreeSet<String> {
    let rows = tree.volume.values().filter(|row| names_rows(row));
    let addresses: Vec<_> = rows.filter_map(|row| parse(row).ok()).collect();
    let parts = addresses.iter().flat_map(rows_of);
    parts.map(str::to_owned).collect()
}

/// True for every row whose address names others, and for some whose address does not.
pub(crate) fn names_rows(row: &VolumeRow) -> bool {
    row.address.contains(ROW_SCHEME)
}

/// How [`Address::Row`] is written.
const ROW_SCHEME: &str = "vol:";

/// The address of a volume, with the size that its row gives.
///
/// # Errors
///
/// What is wrong with it, in a line.
pub fn address_of(row: &VolumeRow) -> Result<Address, String> {
    with_size(parse(row)?, row)
}

fn parse(row: &VolumeRow) -> Result<Address, String> {
    let address = row.address.parse();
    address.map_err(|error: address::ParseError| format!("{:?}: {}", row.address, error.one_line()))
}

fn with_size(address: Address, row: &VolumeRow) -> Result<Address, String> {
    let Some(size) = row.size else {
        return Ok(address);
    };
    match address {
        // What the row says counts: it is what `lunar set` changes.
        Address::File(mut file) => {
            file.size = Some(size);
            Ok(Address::File(file))
        }
        Address::Ram(RamAddress { size: known, .. }) | Address::Null(known) if known == size => {
            Ok(address)
        }
        Address::Ram(_) | Address::Null(_) => Err(format!(
            "its size is {size} by the row, and another one here"
        )),
        _ => Err(format!(
            "the row gives it the size {size}, which only a file can be given"
        )),
    }
}

fn check_address(tree: &Tree, name: &str, rows: Option<&Vec<String>>, findings: &mut Findings) {
    for other in rows.into_iter().flatten() {
        if !tree.volume.contains_key(other) {
            let near = address::nearest(other, tree.volume.keys().map(String::as_str));
            findings.problem(
                format_args!("volume.{name}.address"),
                format_args!("there is no volume {other:?}"),
                &super::access::did_you_mean(near),
            );
        }
    }
}

/// Texts that INQUIRY and VPD pages have room for (SPC-5 §6.7.2, §7.7).
fn check_names(name: &str, row: &VolumeRow, findings: &mut Findings) {
    let texts = [
        ("vendor", &row.vendor, 8),
        ("product", &row.product, 16),
        ("serial", &row.serial, 36),
    ];
    for (key, text, most) in texts {
        let Some(text) = text else { continue };
        let is_printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if !is_printable || text.trim().is_empty() || text.len() > most {
            findings.problem(
                format_args!("volume.{name}.{key}"),
                format_args!("{text:?} does not fit"),
                &format!("write 1 to {most} printable ASCII characters, not all blank"),
            );
        }
    }
    if let Some(naa) = &row.naa
        && naa_bytes(naa).is_none()
    {
        findings.problem(
            format_args!("volume.{name}.naa"),
            format_args!("{naa:?} is not an NAA designator"),
            "write 16 hexadecimal digits that begin with 2, 3 or 5, or 32 that begin with 6",
        );
    }
}

/// An NAA designator as it goes into VPD page 83h (SPC-5 §7.7.6.6).
pub(crate) fn naa_bytes(text: &str) -> Option<Vec<u8>> {
    let length = match text.as_bytes().first()? {
        b'2' | b'3' | b'5' => 16,
        b'6' => 32,
        _ => return None,
    };
    let digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    digits.then(|| (0..length).step_by(2).map(byte).collect::<Option<_>>())?
}

fn check_numbers(name: &str, row: &VolumeRow, findings: &mut Findings) {
    if let Some(size) = row.block_size
        && ![512, 4096].contains(&size)
    {
        findings.problem(
            format_args!("volume.{name}.block-size"),
            format_args!("{size} is not the size of a block"),
            "write 512 or 4096",
        );
    }
    if row
        .limit
        .as_ref()
        .is_some_and(|limit| limit.iops.is_none() && limit.rate.is_none())
    {
        findings.problem(
            format_args!("volume.{name}.limit"),
            "this limits nothing",
            "give iops, rate or both, or leave limit out",
        );
    }
    if row.size == Some(Size(0)) {
        findings.problem(
            format_args!("volume.{name}.size"),
            "a volume of no size holds nothing",
            "give it a size",
        );
    }
}

/// A volume that is made of itself. Each cycle is told once.
fn check_cycles(named: &NamedRows<'_>, findings: &mut Findings) {
    let mut done = BTreeSet::new();
    for start in named.keys() {
        let (mut path, mut at) = (Vec::new(), Some(*start));
        let mut left: Vec<(usize, &str)> = Vec::new();
        while let Some(name) = at.take() {
            if path.contains(&name) {
                findings.problem(
                    format_args!("volume.{name}.address"),
                    "this volume is made of itself",
                    "give it an address that does not lead back to it",
                );
                return;
            }
            if done.insert(name) {
                let depth = path.len() + 1;
                let inner = named.get(name).into_iter().flatten();
                left.extend(inner.map(|inner| (depth, &**inner)));
                path.push(name);
            }
            if let Some((depth, next)) = left.pop() {
                path.truncate(depth);
                at = Some(next);
            }
        }
    }
}

/// The rows that an address names.
fn rows_of(address: &Address) -> impl Iterator<Item = &str> {
    address.leaves().filter_map(|leaf| match leaf {
        Address::Row(name) => Some(&**name),
        _ => None,
    })
}
