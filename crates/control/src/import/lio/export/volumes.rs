//! Volumes as storage objects of LIO.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use address::{Address, FileAddress};
use serde_json::{Map, Value, json};

use super::LeftOuts;
use crate::import::lio::{VENDOR, naa, product};
use crate::tree::{Tree, VolumeRow};

/// The storage objects, and what of them the targets need.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) json: Vec<Value>,
    /// The path of each volume's object, `/backstores/block/vm1`.
    pub(super) paths: BTreeMap<String, String>,
    /// Volumes that only a mapping can protect, as their plugin has no `readonly`.
    pub(super) protected: BTreeSet<String>,
}

/// Every volume that LIO can have.
pub(super) fn objects(tree: &Tree, left: &mut LeftOuts) -> Objects {
    let mut objects = Objects::default();
    let mut names = BTreeSet::new();
    for (name, row) in &tree.volume {
        let path = format!("volume.{name}");
        let Some(mut object) = backstore(row, &path, left) else {
            continue;
        };
        let kept = object_name(name);
        if kept != *name {
            left.add(
                &path,
                format!("the storage object is called {kept}: LIO has no such names"),
            );
        }
        let plugin = object["plugin"].as_str().unwrap_or_default().to_owned();
        if !names.insert((plugin.clone(), kept.clone())) {
            left.add(&path, "there is a storage object of this name already");
            continue;
        }
        object.insert("name".to_owned(), json!(kept));
        rows(&mut object, &plugin, &kept, row, &path, left);
        if row.readonly && plugin != "block" {
            objects.protected.insert(name.clone());
        }
        objects
            .paths
            .insert(name.clone(), format!("/backstores/{plugin}/{kept}"));
        objects.json.push(Value::Object(object));
    }
    objects
}

/// rtslib takes no slash and no white space in a name.
fn object_name(name: &str) -> String {
    let is_wrong = |c: char| c == '/' || c.is_whitespace() || c.is_control();
    name.chars()
        .map(|c| if is_wrong(c) { '-' } else { c })
        .collect()
}

/// Plugin and medium.
fn backstore(row: &VolumeRow, path: &str, left: &mut LeftOuts) -> Option<Map<String, Value>> {
    let address = row.address.parse::<Address>();
    let object = match &address {
        Ok(Address::Ram(ram)) => json!({ "plugin": "ramdisk", "size": ram.size.0 }),
        Ok(Address::Null(size)) => {
            json!({ "plugin": "ramdisk", "size": size.0, "nullio": true })
        }
        Ok(Address::Block(block)) => json!({
            "plugin": "block",
            "dev": text(&block.device)?,
            "readonly": row.readonly || block.read_only,
            "write_back": false,
        }),
        Ok(Address::File(file)) => file_object(file, row, path, left)?,
        Ok(Address::Scsi(device)) => json!({ "plugin": "pscsi", "dev": text(device)? }),
        Ok(_) => {
            left.add(path, format!("LIO has no backstore for {}", row.address));
            return None;
        }
        Err(_) => {
            left.add(path, "the address cannot be read");
            return None;
        }
    };
    match object {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn file_object(
    file: &FileAddress,
    row: &VolumeRow,
    path: &str,
    left: &mut LeftOuts,
) -> Option<Value> {
    let size = file.size.or(row.size);
    if file.read_only {
        left.add(
            path,
            "LIO opens a file for writing too: every LUN of it is write-protected",
        );
    }
    let mut object = json!({
        "plugin": "fileio",
        "dev": text(&file.path)?,
        "write_back": !file.sync,
        "aio": file.direct,
    });
    match size {
        Some(size) => object["size"] = json!(size.0),
        None => left.add(path, "LIO needs a size where the file is not there yet"),
    }
    Some(object)
}

/// A path as text: JSON cannot hold other bytes.
fn text(path: &Path) -> Option<&str> {
    path.to_str()
}

/// Identity, and what else a row has.
fn rows(
    object: &mut Map<String, Value>,
    plugin: &str,
    name: &str,
    row: &VolumeRow,
    path: &str,
    left: &mut LeftOuts,
) {
    if plugin != "pscsi" {
        identity(object, name, row, path, left);
    }
    let mut attributes = json!({ "emulate_model_alias": 1 });
    if let Some(size) = row.block_size {
        attributes["block_size"] = json!(size);
    }
    if plugin != "pscsi" {
        object.insert("attributes".to_owned(), attributes);
    }
    if row.limit.is_some() {
        left.add(format!("{path}.limit"), "LIO limits no volume");
    }
    if row.removable {
        left.add(format!("{path}.removable"), "LIO has no removable disks");
    }
}

fn identity(
    object: &mut Map<String, Value>,
    name: &str,
    row: &VolumeRow,
    path: &str,
    left: &mut LeftOuts,
) {
    if row.vendor.as_deref() != Some(VENDOR) {
        left.add(format!("{path}.vendor"), "the vendor is LIO-ORG there");
    }
    if row.product.as_deref() != Some(&*product(name)) {
        left.add(
            format!("{path}.product"),
            "the product is the name of the volume there",
        );
    }
    let Some(serial) = &row.serial else {
        let why = "LIO makes a serial number up, so hosts see another disk: set the one that \
                   lunar info shows";
        return left.add(format!("{path}.serial"), why);
    };
    object.insert("wwn".to_owned(), json!(serial));
    if row.naa.as_deref() != Some(&*naa(serial)) {
        let why = format!(
            "the designator follows from the serial number there: {}",
            naa(serial)
        );
        left.add(format!("{path}.naa"), why);
    }
}
