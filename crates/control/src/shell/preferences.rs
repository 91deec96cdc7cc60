//! Preferences: the group `global`, bookmarks, and attributes without a place in the tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Preferences of a user. The caller stores them from one shell to the next. They hold no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Preferences {
    /// Paths by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bookmarks: BTreeMap<String, String>,
    /// Settings of the group `global` that were changed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub global: BTreeMap<String, String>,
    /// Attributes of targets that are kept here because the tree has no place for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, BTreeMap<String, String>>,
}

/// A setting of the group `global`.
pub(super) struct Preference {
    pub(super) name: &'static str,
    pub(super) default: &'static str,
    pub(super) purpose: &'static str,
}

const fn preference(
    name: &'static str,
    default: &'static str,
    purpose: &'static str,
) -> Preference {
    Preference {
        name,
        default,
        purpose,
    }
}

/// Settings of the group `global` that have an effect.
pub(super) const PREFERENCES: &[Preference] = &[
    preference(
        "auto_add_default_portal",
        "false",
        "A new iSCSI target listens at [::]:3260.",
    ),
    preference(
        "auto_add_mapped_luns",
        "true",
        "Maps new LUNs to existing ACLs, and existing LUNs to new ACLs.",
    ),
    preference(
        "auto_cd_after_create",
        "false",
        "A created node becomes the current node.",
    ),
    preference("color_mode", "true", "A terminal shows colors."),
    preference(
        "prompt_length",
        "30",
        "How long the path in the prompt may be; 0: any length.",
    ),
    preference(
        "tree_max_depth",
        "0",
        "How deep ls shows the tree; 0: all of it.",
    ),
    preference(
        "tree_round_nodes",
        "true",
        "Nodes are drawn as o, else as +.",
    ),
    preference(
        "tree_show_root",
        "true",
        "ls shows the node that it starts at.",
    ),
    preference(
        "tree_status_mode",
        "true",
        "ls shows the state of each node.",
    ),
];

impl Preferences {
    /// A setting of the group `global`; empty if the name is unknown.
    #[must_use]
    pub fn value(&self, name: &str) -> &str {
        let row = PREFERENCES.iter().find(|row| row.name == name);
        let set = self.global.get(name).map(String::as_str);
        set.or(row.map(|row| row.default)).unwrap_or_default()
    }

    /// Whether a setting of the group `global` is true.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.value(name) == "true"
    }

    /// An attribute of a target that was kept.
    pub(super) fn kept(&self, target: &str, name: &str) -> Option<&str> {
        self.kept.get(target)?.get(name).map(String::as_str)
    }

    pub(super) fn keep(&mut self, target: &str, name: &str, value: &str) {
        let of_target = self.kept.entry(target.to_owned()).or_default();
        of_target.insert(name.to_owned(), value.to_owned());
    }
}
