//! Storage objects of LIO become volumes.

use std::collections::HashMap;
use std::path::PathBuf;

use address::{Address, FileAddress, RbdAddress, Size};

use super::fields::Fields;
use super::known::{self, Kind};
use super::{VENDOR, naa, product};
use crate::import::draft::{Draft, null_address, path_address};
use crate::import::json::Json;
use crate::tree::VolumeRow;

/// The names of volumes by the path of their storage object, `/backstores/block/vm1`.
pub(super) type Units = HashMap<String, String>;

/// Adds all storage objects.
pub(super) fn read(draft: &mut Draft, objects: &[Json]) -> Units {
    let mut units = Units::new();
    for (number, object) in objects.iter().enumerate() {
        let path = format!("storage_objects[{number}]");
        if let Some((place, volume)) = one(draft, object, &path) {
            units.insert(place, volume);
        }
    }
    units
}

fn one(draft: &mut Draft, object: &Json, path: &str) -> Option<(String, String)> {
    let Some(mut fields) = Fields::of(object, path) else {
        draft.leave(object.line, path, "this is not an object");
        return None;
    };
    let (line, name, plugin) = (fields.line, fields.text("name"), fields.text("plugin"));
    let (Some(name), Some(plugin)) = (name, plugin) else {
        draft.leave(line, path, "a storage object has a name and a plugin");
        return None;
    };
    let Some(plugin) = Plugin::of(&plugin) else {
        let why = "backstores are fileio, block, ramdisk, pscsi and user";
        draft.leave(line, format!("{path}: {plugin}/{name}"), why);
        return None;
    };
    let address = match plugin.address(&mut fields) {
        Ok(address) => address,
        Err(why) => {
            draft.leave(line, format!("{path}: {}/{name}", plugin.name), why);
            return None;
        }
    };
    let mut row = VolumeRow::new(address.to_string());
    row.readonly = fields.flag("readonly").unwrap_or(false);
    if plugin.kind != PluginKind::Scsi {
        identity(draft, &mut fields, &mut row);
    }
    attributes(draft, &mut fields, &plugin, &name, &mut row);
    rest(draft, &mut fields, &plugin);
    let volume = draft.volume(line, &name, row);
    Some((format!("/backstores/{}/{name}", plugin.name), volume))
}

/// A kind of backstore.
struct Plugin {
    /// Its name today.
    name: &'static str,
    /// PRODUCT IDENTIFICATION without `emulate_model_alias`.
    product: &'static str,
    kind: PluginKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PluginKind {
    File,
    Block,
    Ram,
    Scsi,
    User,
}

impl Plugin {
    fn of(name: &str) -> Option<Self> {
        let (name, product, kind) = match name {
            "fileio" => ("fileio", "FILEIO", PluginKind::File),
            "block" | "iblock" => ("block", "IBLOCK", PluginKind::Block),
            "ramdisk" | "rd_mcp" => ("ramdisk", "RAMDISK-MCP", PluginKind::Ram),
            "pscsi" => ("pscsi", "", PluginKind::Scsi),
            "user" => ("user", "USER", PluginKind::User),
            _ => return None,
        };
        Some(Self {
            name,
            product,
            kind,
        })
    }

    /// The address of what an object stores on.
    fn address(&self, fields: &mut Fields<'_>) -> Result<Address, &'static str> {
        const DEVICE: &str = "a storage object of this plugin has a dev";
        match self.kind {
            PluginKind::File => file(fields).ok_or(DEVICE),
            PluginKind::Block => fields
                .text("dev")
                .map(|dev| path_address(&dev))
                .ok_or(DEVICE),
            PluginKind::Ram => ram(fields).ok_or("a RAM disk has a size"),
            PluginKind::Scsi => match fields.text("dev") {
                Some(dev) if dev.starts_with('/') => Ok(Address::Scsi(PathBuf::from(dev))),
                _ => Err("a SCSI device is named by its node in /dev here: scsi:/dev/sg3"),
            },
            PluginKind::User => {
                let config = fields.text("config").unwrap_or_default();
                let why = "of tcmu-runner's handlers rbd is known, as rbd/POOL/IMAGE";
                let address = rbd(&config).ok_or(why);
                let _size = fields.take("size");
                address
            }
        }
    }
}

/// A file; `size` is kept, so that a file that is not there is made as LIO makes it.
fn file(fields: &mut Fields<'_>) -> Option<Address> {
    let dev = fields.text("dev")?;
    let size = fields.take("size").and_then(Json::number);
    let direct = fields.flag("aio").unwrap_or(false);
    let write_back = fields.flag("write_back").unwrap_or(true);
    let address = path_address(&dev);
    let Address::File(file) = address else {
        return Some(address);
    };
    let size = size.filter(|size| *size >= 512).map(Size);
    Some(Address::File(FileAddress {
        size,
        sparse: size.is_some(),
        direct,
        sync: !write_back,
        ..file
    }))
}

fn ram(fields: &mut Fields<'_>) -> Option<Address> {
    let size = fields.take("size").and_then(Json::number)?;
    let null = null_address(size)?;
    match fields.flag("nullio") {
        Some(true) => Some(null),
        _ => Some(Address::Ram(Size(size).into())),
    }
}

/// `rbd/POOL/IMAGE`, behind which options may follow.
fn rbd(config: &str) -> Option<Address> {
    let image = config.strip_prefix("rbd/")?;
    let image = image.split(';').next().unwrap_or(image);
    let (pool, image) = image.split_once('/')?;
    if pool.is_empty() || image.is_empty() || image.contains(['/', '@']) || pool.contains('@') {
        return None;
    }
    Some(Address::Rbd(RbdAddress {
        pool: pool.to_owned(),
        image: image.to_owned(),
        snapshot: None,
    }))
}

fn identity(draft: &mut Draft, fields: &mut Fields<'_>, row: &mut VolumeRow) {
    row.vendor = Some(VENDOR.to_owned());
    let Some(wwn) = fields.take("wwn") else {
        return;
    };
    let Some(serial) = wwn.text().filter(|text| !text.is_empty()) else {
        return;
    };
    row.naa = Some(naa(&serial));
    let is_printable = serial.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if serial.len() <= SERIAL_CHARS && is_printable {
        row.serial = Some(serial);
    } else {
        let text = fields.shown("wwn", wwn);
        let why = "a serial number has up to 36 printable characters; the NAA designator is kept";
        draft.leave(wwn.line, text, why);
    }
}

fn attributes(
    draft: &mut Draft,
    fields: &mut Fields<'_>,
    plugin: &Plugin,
    name: &str,
    row: &mut VolumeRow,
) {
    let mut attributes = fields.object("attributes");
    let alias = attributes.as_mut();
    let alias = alias.and_then(|attributes| attributes.flag("emulate_model_alias"));
    if plugin.kind != PluginKind::Scsi {
        row.product = Some(match alias {
            Some(true) => product(name),
            _ => plugin.product.to_owned(),
        });
    }
    let Some(mut attributes) = attributes else {
        return;
    };
    if let Some(size) = attributes.take("block_size") {
        match size.number() {
            Some(512) => {}
            Some(4096) => row.block_size = Some(4096),
            _ => known::leave_one(draft, Kind::StorageObject, &attributes, "block_size", size),
        }
    }
    if plugin.kind == PluginKind::File && !row.address.starts_with("block:") {
        write_cache(draft, &mut attributes, row);
    }
    known::leave(draft, Kind::StorageObject, &attributes);
}

/// The write cache of a file follows from `write_back`, as `?sync` does.
fn write_cache(draft: &mut Draft, attributes: &mut Fields<'_>, row: &VolumeRow) {
    let key = "emulate_write_cache";
    let Some(value) = attributes.take(key) else {
        return;
    };
    let address = row.address.parse::<Address>();
    let is_sync = matches!(address, Ok(Address::File(FileAddress { sync: true, .. })));
    if value.flag() == Some(is_sync) {
        known::leave_one(draft, Kind::StorageObject, attributes, key, value);
    }
}

fn rest(draft: &mut Draft, fields: &mut Fields<'_>, plugin: &Plugin) {
    if let Some(groups) = fields.take("alua_tpgs") {
        let text = fields.shown("alua_tpgs", groups);
        let why = "target port groups of ALUA are not configured here";
        match groups.items().unwrap_or_default() {
            [] => {}
            [one] if is_default_group(one) => draft.leave_default(groups.line, text, why),
            _ => draft.leave(groups.line, text, why),
        }
    }
    if plugin.kind == PluginKind::Block {
        default_flag(
            draft,
            fields,
            "write_back",
            "a block device has its own write cache",
            false,
        );
        default_flag(
            draft,
            fields,
            "exclusive",
            "a volume is always opened by one server",
            true,
        );
    }
    fields.leave_rest(draft, "Lunar has no such setting");
}

/// Names a flag, if it is not what is done anyway.
fn default_flag(draft: &mut Draft, fields: &mut Fields<'_>, key: &str, why: &str, same: bool) {
    let Some(value) = fields.take(key) else {
        return;
    };
    if value.flag() != Some(same) {
        draft.leave(value.line, fields.shown(key, value), why);
    }
}

fn is_default_group(group: &Json) -> bool {
    let Some(mut fields) = Fields::of(group, "") else {
        return false;
    };
    let name = fields.text("name");
    let state = fields.take("alua_access_state").and_then(Json::number);
    name.as_deref() == Some("default_tg_pt_gp") && state.unwrap_or(0) == 0
}

/// UNIT SERIAL NUMBER here; a UUID just fits.
const SERIAL_CHARS: usize = 36;
