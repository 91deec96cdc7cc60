//! The fields of an object, of which each is either taken or named as left out.

use crate::import::draft::{Draft, User};
use crate::import::json::{Json, Kind};
use crate::import::words::has_secret;
use zeroize::Zeroizing;

/// An object of the file, and which of its fields were taken.
pub(super) struct Fields<'a> {
    /// The line at which it begins.
    pub(super) line: usize,
    /// Its path, as in `targets[0].tpgs[0]`; empty for the root.
    pub(super) path: String,
    left: Vec<(&'a str, &'a Json)>,
}

impl<'a> Fields<'a> {
    /// The fields of a value, if it is an object.
    pub(super) fn of(value: &'a Json, path: &str) -> Option<Self> {
        let fields = value.fields()?.iter();
        Some(Self {
            line: value.line,
            path: path.to_owned(),
            left: fields.map(|(key, value)| (&**key, value)).collect(),
        })
    }

    /// The value of a key, which is then taken.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a Json> {
        let at = self.left.iter().position(|(known, _)| *known == key)?;
        Some(self.left.remove(at).1)
    }

    /// The same as a text that is not empty.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.take(key)?.text().filter(|text| !text.is_empty())
    }

    /// The same as a flag.
    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key)?.flag()
    }

    /// The same as an object of its own.
    pub(super) fn object(&mut self, key: &str) -> Option<Fields<'a>> {
        let path = self.path_of(key);
        Fields::of(self.take(key)?, &path)
    }

    /// The same as a list, each item with its path.
    pub(super) fn list(&mut self, key: &str) -> Vec<(&'a Json, String)> {
        let path = self.path_of(key);
        let items = self.take(key).and_then(Json::items).unwrap_or_default();
        let numbered = items.iter().enumerate();
        numbered
            .map(|(number, item)| (item, format!("{path}[{number}]")))
            .collect()
    }

    /// A user of CHAP from the two keys that begin with `prefix`.
    pub(super) fn user(&mut self, prefix: &str) -> Option<User> {
        let user = self.take(&format!("{prefix}userid"));
        let secret = self.text(&format!("{prefix}password"));
        let user = user?;
        Some(User {
            line: user.line,
            name: user.text().filter(|name| !name.is_empty())?,
            secret: Zeroizing::new(secret.unwrap_or_default()),
        })
    }

    /// What was not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        self.left.iter().copied()
    }

    /// The path of a field.
    pub(super) fn path_of(&self, key: &str) -> String {
        match &*self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Names all that was not taken.
    pub(super) fn leave_rest(&self, draft: &mut Draft, why: &str) {
        for (key, value) in self.rest() {
            draft.leave(value.line, self.shown(key, value), why);
        }
    }

    /// A field as the list of what is left out shows it.
    pub(super) fn shown(&self, key: &str, value: &Json) -> String {
        let path = self.path_of(key);
        if has_secret(key) && !key.ends_with("userid") {
            return format!("{path} = ***");
        }
        match &value.kind {
            Kind::Array(_) => format!("{path} = […]"),
            Kind::Object(_) => format!("{path} = {{…}}"),
            Kind::Null => format!("{path} = null"),
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                format!("{path} = {}", value.text().unwrap_or_default())
            }
        }
    }
}
