//! Storage objects: volumes of the tree, created from the parameters of LIO's backstores.

use std::path::PathBuf;

use address::{Address, BlockAddress, FileAddress, Size};

use super::Refusal;
use super::access;
use super::command::{Args, Done};
use super::kind::BackstoreKind;
use super::luns;
use super::node::Node;
use super::run::Run;
use crate::check::is_row_name;
use crate::tree::{LunRow, VolumeRow};

/// `rd_mcp create name size`, `null create name size`.
pub(super) fn create_sized(run: &mut Run<'_>, args: &Args) -> Done {
    let (name, text) = (args.need("name")?, args.need("size")?);
    if args.flag("nullio", false)? {
        let what = "A RAM disk that discards its data is a null volume in Lunar.";
        return Err(
            Refusal::new(what).way_out(format!("Use /backstores/null create {name} {text}."))
        );
    }
    let size = size(text)?;
    let (address, what) = match run.node {
        Node::Backstore(BackstoreKind::Null) => (Address::Null(size), "null storage object"),
        _ => (Address::Ram(size.into()), "rd_mcp ramdisk"),
    };
    add(
        run,
        args,
        &address,
        format!("Created {what} {name} with size {text}."),
    )
}

/// `iblock create name dev`.
pub(super) fn create_block(run: &mut Run<'_>, args: &Args) -> Done {
    let (name, device) = (args.need("name")?, args.need("dev")?);
    let address = Address::Block(BlockAddress {
        device: absolute(device)?,
        read_only: args.flag("readonly", false)?,
    });
    add(
        run,
        args,
        &address,
        format!("Created iblock storage object {name} using {device}."),
    )
}

/// `fileio create name file_or_dev [size]`.
pub(super) fn create_file(run: &mut Run<'_>, args: &Args) -> Done {
    let (name, path) = (args.need("name")?, args.need("file_or_dev")?);
    let size = args.get("size").map(size).transpose()?;
    let address = Address::File(FileAddress {
        path: absolute(path)?,
        sparse: size.is_some() && args.flag("sparse", true)?,
        size,
        direct: false,
        sync: !args.flag("write_back", true)?,
        read_only: false,
    });
    add(
        run,
        args,
        &address,
        format!("Created fileio storage object {name}."),
    )
}

/// `address create name address`.
pub(super) fn create_address(run: &mut Run<'_>, args: &Args) -> Done {
    let (name, text) = (args.need("name")?, args.need("address")?);
    let address = text.parse::<Address>();
    let address = address.map_err(|error| Refusal::new(error.one_line()))?;
    add(
        run,
        args,
        &address,
        format!("Created storage object {name} of {text}."),
    )
}

/// `pscsi create` is refused.
pub(super) fn create_pscsi(_: &mut Run<'_>, args: &Args) -> Done {
    let device = args.get("dev").unwrap_or("/dev/…");
    let what =
        "Lunar has no pscsi: it executes SCSI commands itself and does not pass them through.";
    let way_out = format!("For a disk, use /backstores/iblock create name=NAME dev={device}.");
    Err(Refusal::new(what).way_out(way_out))
}

fn size(text: &str) -> Result<Size, Refusal> {
    text.parse()
        .map_err(|error: address::ParseError| Refusal::new(error.one_line()))
}

fn absolute(path: &str) -> Result<PathBuf, Refusal> {
    if path.starts_with('/') {
        Ok(path.into())
    } else {
        let what = format!("{path} is not an absolute path.");
        Err(Refusal::new(what)
            .way_out("The daemon does not share the working directory of the shell."))
    }
}

/// Adds a volume row. The gate finds out whether it can be opened.
fn add(run: &mut Run<'_>, args: &Args, address: &Address, answer: String) -> Done {
    let name = args.need("name")?;
    check_name(run, name)?;
    let mut row = VolumeRow::new(address.to_string());
    if let Err(error) = row.address.parse::<Address>() {
        return Err(Refusal::new(error.one_line()));
    }
    row.serial = args.get("wwn").map(str::to_owned);
    row.readonly = !matches!(address, Address::Block(_)) && args.flag("readonly", false)?;
    let kind = BackstoreKind::of(&row);
    if row.serial.is_none() {
        run.say("Generating a wwn serial.");
    }
    run.edit().volume.insert(name.to_owned(), row);
    run.say(answer);
    run.made(Node::StorageObject(kind, name.to_owned()));
    Ok(())
}

fn check_name(run: &Run<'_>, name: &str) -> Done {
    if !is_row_name(name) {
        let what = format!("{name:?} cannot name a storage object.");
        return Err(Refusal::new(what).way_out("Use 1 to 64 letters, digits, '.', '_' and '-'."));
    }
    let Some(row) = run.tree().volume.get(name) else {
        return Ok(());
    };
    let path = Node::StorageObject(BackstoreKind::of(row), name.to_owned()).path();
    Err(Refusal::new(format!(
        "A storage object {name} already exists: {path}."
    )))
}

/// `delete name`: deletes the volume and its LUNs.
pub(super) fn delete(run: &mut Run<'_>, args: &Args) -> Done {
    let name = args.need("name")?;
    let node = run.node.child(run.tree(), name);
    let Some(Node::StorageObject(_, name)) = node else {
        return Err(Refusal::new(format!("No storage object named {name}.")));
    };
    let shown: Vec<_> = luns::showing(run.tree(), &name).collect();
    for (target, number) in shown {
        luns::take(run.edit(), &target, number);
        run.say(format!("Deleted LUN {number} of {target}."));
    }
    let targets: Vec<_> = run.tree().target.keys().cloned().collect();
    for target in targets {
        let is_gone = |lun: &LunRow| lun.volume() == name;
        access::drop_from_views(run.edit(), &target, &is_gone);
    }
    run.edit().volume.remove(&name);
    run.say(format!("Deleted storage object {name}."));
    Ok(())
}

/// The volume that a value names: by path, `KIND/NAME`, name, or device. A volume is created for a
/// device that has none.
pub(super) fn named(run: &mut Run<'_>, text: &str) -> Result<String, Refusal> {
    if run.tree().volume.contains_key(text) {
        return Ok(text.to_owned());
    }
    if text.starts_with("/dev/") {
        return of_device(run, text);
    }
    let below = Node::Backstores;
    let mut words = text.split('/').filter(|word| !word.is_empty());
    let kind_and_name = words.next_back().zip(words.next_back());
    let found = kind_and_name
        .and_then(|(name, kind)| below.child(run.tree(), kind)?.child(run.tree(), name));
    match found {
        Some(Node::StorageObject(_, name)) => Ok(name),
        _ => super::navigation::path_from(run, text).and_then(|node| match node {
            Node::StorageObject(_, name) => Ok(name),
            _ => Err(Refusal::new(format!("{text} is not a storage object."))),
        }),
    }
}

fn of_device(run: &mut Run<'_>, device: &str) -> Result<String, Refusal> {
    let address = Address::Block(BlockAddress {
        device: device.into(),
        read_only: false,
    });
    let address = address.to_string();
    let mut known = run.tree().volume.iter();
    if let Some((name, _)) = known.find(|(_, row)| row.address == address) {
        return Ok(name.clone());
    }
    let name = device.rsplit('/').next().unwrap_or(device).to_owned();
    check_name(run, &name)?;
    run.edit()
        .volume
        .insert(name.clone(), VolumeRow::new(address));
    run.say(format!("Created storage object {name}."));
    Ok(name)
}
