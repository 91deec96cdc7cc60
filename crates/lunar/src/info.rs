//! `lunar info`: what a volume says of itself, and what it is made of.

use std::collections::BTreeMap;
use std::process::ExitCode;

use address::Address;
use clap::Args;
use client::open::{self, Details, OpenOptions};
use serde::Serialize;

use crate::client::{address, open_options};
use crate::units::{counted, human_size};
use crate::{VerbError, documents, log};

/// Print what a volume reports about itself
///
/// Prints capacity, caching, provisioning, features and identity; for a remote unit also what was
/// negotiated with its target; and the same for each volume inside a composed one.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Address of the volume
    #[arg(value_name = "ADDR")]
    volume: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A volume, as `--json` prints it.
#[derive(Serialize)]
struct InfoReport<'a> {
    address: String,
    size_bytes: u64,
    block_size: u32,
    physical_block_bytes: u64,
    read_only: bool,
    write_cache: bool,
    unmap_granularity_bytes: Option<u64>,
    anchor: bool,
    atomic_write_bytes: Option<u64>,
    solid_state: bool,
    identity: Option<&'a str>,
    serial: Option<String>,
    #[serde(flatten)]
    groups: BTreeMap<&'static str, BTreeMap<&'static str, &'a str>>,
    parts: Vec<InfoReport<'a>>,
}

pub(crate) fn run(args: &InfoArgs) -> Result<ExitCode, VerbError> {
    let address = address(&args.volume)?;
    let options = OpenOptions {
        as_is: true,
        ..open_options()?
    };
    log::start();
    let volume = open::volume(&address, &options).map_err(VerbError::failed)?;
    let particulars = volume.particulars();
    let report = InfoReport::of(&address, &particulars);
    if args.json {
        return documents::print_json(&report);
    }
    let mut text = String::new();
    report.write(&mut text, &particulars, 0);
    documents::print(text.as_bytes())
}

impl<'a> InfoReport<'a> {
    fn of(address: &Address, particulars: &'a Details) -> Self {
        let traits = &particulars.traits;
        let bytes = |blocks: u64| blocks * u64::from(traits.block_size);
        let groups = particulars.groups.iter().map(|group| {
            let values = group.values.iter();
            let values = values.map(|(name, value)| (*name, value.as_str()));
            (group.heading, values.collect())
        });
        let parts = address.inner().iter().zip(&particulars.parts);
        Self {
            address: address.to_string(),
            size_bytes: bytes(traits.blocks),
            block_size: traits.block_size,
            physical_block_bytes: bytes(1) << traits.physical_exponent,
            read_only: traits.read_only,
            write_cache: traits.write_cache,
            unmap_granularity_bytes: traits.unmap_granularity.map(|n| bytes(n.into())),
            anchor: traits.anchor,
            atomic_write_bytes: traits.atomic.map(|atomic| bytes(atomic.max_blocks.into())),
            solid_state: traits.solid_state,
            identity: particulars.identity.as_deref(),
            serial: particulars.serial(),
            groups: groups.collect(),
            parts: parts
                .map(|(address, part)| Self::of(address, part))
                .collect(),
        }
    }

    /// A line a fact; what is inside stands further to the right.
    fn write(&self, text: &mut String, particulars: &Details, depth: usize) {
        let indent = "  ".repeat(depth);
        *text += &format!("{indent}{}\n", self.address);
        let mut line = |name: &str, value: &str| {
            let line = format!("{indent}  {name:<34}  {value}");
            *text += line.trim_end();
            text.push('\n');
        };
        for (name, value) in self.lines() {
            line(name, &value);
        }
        for group in &particulars.groups {
            line(group.heading, "");
            for (name, value) in &group.values {
                line(&format!("  {name}"), value);
            }
        }
        for (part, particulars) in self.parts.iter().zip(&particulars.parts) {
            part.write(text, particulars, depth + 1);
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let yes_no = |yes| if yes { "yes" } else { "no" }.to_owned();
        let or_no = |bytes: Option<u64>, how: &str| match bytes {
            Some(bytes) => format!("yes, {how} {}", human_size(bytes)),
            None => yes_no(false),
        };
        let capacity = format!(
            "{} ({} bytes, {} of {})",
            human_size(self.size_bytes),
            self.size_bytes,
            counted(self.size_bytes / u64::from(self.block_size), "block"),
            self.block_size
        );
        let cache = if self.write_cache {
            "yes: a write is durable after a flush, or with FUA"
        } else {
            "no"
        };
        let medium = if self.solid_state {
            "solid state"
        } else {
            "rotating"
        };
        let identity = self.identity.unwrap_or("none: it changes at each restart");
        let serial = self.serial.as_deref().unwrap_or("a new one at each start");
        vec![
            ("capacity", capacity),
            ("physical block", human_size(self.physical_block_bytes)),
            ("can be written", yes_no(!self.read_only)),
            ("write cache", cache.to_owned()),
            (
                "can unmap",
                or_no(self.unmap_granularity_bytes, "in units of"),
            ),
            ("can anchor", yes_no(self.anchor)),
            ("atomic writes", or_no(self.atomic_write_bytes, "up to")),
            ("medium", medium.to_owned()),
            ("identity", identity.to_owned()),
            ("serial when served", serial.to_owned()),
        ]
    }
}
