//! The table of commands: one row a command, one list a kind of node.

use super::{Args, Command, Done};
use crate::shell::kind::BackstoreKind;
use crate::shell::node::Node;
use crate::shell::run::Run;
use crate::shell::{
    acls, backstores, common, fabrics, iser, luns, navigation, portals, root, settings,
};

/// The commands that only a node of this kind has.
pub(super) fn own(node: &Node) -> &'static [Command] {
    match node {
        Node::Root => ROOT,
        Node::Backstore(kind) => backstore(*kind),
        Node::Fabric(_) => FABRIC,
        Node::Target(_) => TARGET,
        Node::Tpg(_) => TPG,
        Node::Luns(_) => LUNS,
        Node::Portals(_) => PORTALS,
        Node::Portal(..) => PORTAL,
        Node::Acls(_) => ACLS,
        Node::Acl(..) => ACL,
        Node::StorageObject(..) | Node::Backstores | Node::Lun(..) | Node::MappedLun(..) => &[],
    }
}

fn backstore(kind: BackstoreKind) -> &'static [Command] {
    match kind {
        BackstoreKind::Address => ADDRESS,
        BackstoreKind::FileIo => FILE_IO,
        BackstoreKind::IBlock => IBLOCK,
        BackstoreKind::Null | BackstoreKind::RdMcp => SIZED,
        BackstoreKind::Pscsi => PSCSI,
    }
}

const fn command(
    name: &'static str,
    parameters: &'static [&'static str],
    purpose: &'static str,
    run: fn(&mut Run<'_>, &Args) -> Done,
) -> Command {
    Command {
        name,
        parameters,
        purpose,
        run,
    }
}

/// The commands that every node has.
pub(super) const EVERYWHERE: &[Command] = &[
    command(
        "bookmarks",
        &["action", "[bookmark]"],
        "Manages named paths: add, del, go, show.",
        navigation::bookmarks,
    ),
    command(
        "cd",
        &["[path]"],
        "Changes the current node. `<` and `>` go back and forward.",
        navigation::cd,
    ),
    command("exit", &[], "Ends the shell.", common::exit),
    command(
        "get",
        &["[group]", "[value…]"],
        "Shows settings of a group.",
        settings::get,
    ),
    command("help", &["[command]"], "Describes a command.", common::help),
    command("info", &[], "Shows details of this node.", common::info),
    command(
        "ls",
        &["[path]", "[depth]"],
        "Shows the tree.",
        navigation::ls,
    ),
    command("pwd", &[], "Shows the path of this node.", navigation::pwd),
    command(
        "refresh",
        &[],
        "Does nothing, because the shell never shows old state.",
        common::refresh,
    ),
    command(
        "set",
        &["[group]", "[key=value…]"],
        "Changes settings of a group.",
        settings::set,
    ),
    command(
        "status",
        &[],
        "Shows the state of this node in one line.",
        common::status,
    ),
];

const ROOT: &[Command] = &[
    command(
        "clearconfig",
        &["[confirm]"],
        "Deletes all volumes, groups and targets.",
        root::clearconfig,
    ),
    command(
        "restoreconfig",
        &["[savefile]", "[clear_existing]"],
        "Names the commands that replace it.",
        root::restoreconfig,
    ),
    command(
        "saveconfig",
        &["[savefile]"],
        "Shows where the configuration is kept.",
        root::saveconfig,
    ),
    command(
        "sessions",
        &["[action]", "[sid]"],
        "Lists sessions: list, detail.",
        root::sessions,
    ),
    command("version", &[], "Shows the version.", root::version),
];

const ADDRESS: &[Command] = &[
    command(
        "create",
        &["name", "address", "[wwn]", "[readonly]"],
        "Creates a volume from any address.",
        backstores::create_address,
    ),
    DELETE_VOLUME,
];

const FILE_IO: &[Command] = &[
    command(
        "create",
        &[
            "name",
            "file_or_dev",
            "[size]",
            "[write_back|buffered]",
            "[sparse]",
            "[wwn]",
        ],
        "Creates a volume from a file. With a size the file is created or extended.",
        backstores::create_file,
    ),
    DELETE_VOLUME,
];

const IBLOCK: &[Command] = &[
    command(
        "create",
        &["name", "dev", "[readonly]", "[wwn]"],
        "Creates a volume from a block device.",
        backstores::create_block,
    ),
    DELETE_VOLUME,
];

const SIZED: &[Command] = &[
    command(
        "create",
        &["name", "size", "[nullio]", "[wwn]"],
        "Creates a volume of a size.",
        backstores::create_sized,
    ),
    DELETE_VOLUME,
];

const PSCSI: &[Command] = &[command(
    "create",
    &["[name]", "[dev]"],
    "Explains why Lunar has no pscsi.",
    backstores::create_pscsi,
)];

const DELETE_VOLUME: Command = command(
    "delete",
    &["name"],
    "Deletes a volume and its LUNs.",
    backstores::delete,
);

const FABRIC: &[Command] = &[
    command(
        "create",
        &["[wwn]", "[interface]"],
        "Creates a target.",
        fabrics::create,
    ),
    command("delete", &["wwn"], "Deletes a target.", fabrics::delete),
    command("version", &[], "Shows the version.", root::version),
];

const TARGET: &[Command] = &[
    command(
        "create",
        &["[tag]"],
        "Creates another portal group.",
        portals::create_group,
    ),
    command(
        "delete",
        &["tag"],
        "Deletes a portal group.",
        portals::delete_group,
    ),
];

const TPG: &[Command] = &[
    command(
        "disable",
        &[],
        "Explains how to close a portal group.",
        fabrics::disable,
    ),
    command(
        "enable",
        &[],
        "Confirms that the portal group is enabled.",
        fabrics::enable,
    ),
];

const LUNS: &[Command] = &[
    command(
        "create",
        &["storage_object", "[lun]", "[add_mapped_luns]"],
        "Exports a volume as a LUN.",
        luns::create,
    ),
    command("delete", &["lun"], "Deletes a LUN.", luns::delete),
];

const PORTALS: &[Command] = &[
    command(
        "create",
        &["[ip_address]", "[ip_port]"],
        "Creates a network portal.",
        portals::create,
    ),
    command(
        "delete",
        &["ip_address", "[ip_port]"],
        "Deletes a network portal.",
        portals::delete,
    ),
];

const PORTAL: &[Command] = &[
    command(
        "enable_iser",
        &["[boolean]"],
        "Enables or disables iSER on this portal.",
        iser::enable_iser,
    ),
    command(
        "iser_disable",
        &[],
        "Disables iSER on this portal.",
        iser::iser_disable,
    ),
    command(
        "iser_enable",
        &["[boolean]"],
        "Enables or disables iSER on this portal.",
        iser::iser_enable,
    ),
];

const ACLS: &[Command] = &[
    command(
        "create",
        &["wwn", "[add_mapped_luns]"],
        "Allows an initiator to log in. A path names an initiatorname.iscsi file.",
        acls::create,
    ),
    command(
        "delete",
        &["wwn"],
        "Stops allowing an initiator to log in.",
        acls::delete,
    ),
    command(
        "tag",
        &["wwn_or_tag", "new_tag"],
        "Moves an initiator into a group.",
        acls::tag,
    ),
    command(
        "untag",
        &["wwn_or_tag"],
        "Replaces a group by an ACL for each of its initiators.",
        acls::untag,
    ),
];

const ACL: &[Command] = &[
    command(
        "create",
        &[
            "mapped_lun",
            "tpg_lun_or_backstore|tpg_lun",
            "[write_protect]",
        ],
        "Maps a LUN of the target to a number for this initiator.",
        acls::map_lun,
    ),
    command(
        "delete",
        &["mapped_lun"],
        "Removes a mapped LUN from this initiator.",
        acls::unmap_lun,
    ),
];
