//! The engine behind the gate: it reads secrets, and serves the inventory of a tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::inventory::Inventory;
use engine::mailbox::SessionInfo;
use engine::server::ServerHandle;
use runtime::secret;
use zeroize::Zeroizing;

use crate::gate::Engine;
use crate::lower::{Machine, inventory, sources};
use crate::plan::SessionFact;
use crate::secret::SecretSource;
use crate::tree::{Tree, VolumeRow};

/// Where this machine keeps what a tree only names.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of `state:NAME`.
    pub state: PathBuf,
    /// The folder of `credential:NAME`, if the service manager gave one.
    pub credentials: Option<PathBuf>,
    /// What tells this machine from others.
    pub machine: String,
}

impl Places {
    /// The inventory of a tree, and the secrets in it. Every volume may be absent.
    ///
    /// # Errors
    ///
    /// All that cannot be had.
    pub fn inventory(&self, tree: &Tree) -> Result<Inventory, Vec<String>> {
        let machine = Machine {
            id: self.machine.clone(),
            secrets: self.secrets(tree)?,
        };
        inventory(tree, &machine, |_| true)
    }

    /// The path of a secret.
    ///
    /// # Errors
    ///
    /// There are no credentials.
    pub fn path(&self, source: &SecretSource) -> Result<PathBuf, String> {
        match source {
            SecretSource::File(path) => Ok(Path::new(path).to_owned()),
            SecretSource::State(name) => Ok(self.state.join("secrets").join(name)),
            SecretSource::Credential(name) => match &self.credentials {
                Some(folder) => Ok(folder.join(name)),
                None => Err(format!(
                    "{source}: the service manager has given no credentials: set \
                     LoadCredential={name}:PATH in the unit, or name a file"
                )),
            },
        }
    }

    fn secrets(
        &self,
        tree: &Tree,
    ) -> Result<BTreeMap<SecretSource, Zeroizing<Vec<u8>>>, Vec<String>> {
        let (mut secrets, mut problems) = (BTreeMap::new(), Vec::new());
        for source in sources(tree) {
            let read = self
                .path(&source)
                .and_then(|path| secret::read(&path).map_err(|error| error.to_string()));
            match read {
                Ok(secret) => drop(secrets.insert(source, secret)),
                Err(cause) => problems.push(cause),
            }
        }
        if problems.is_empty() {
            Ok(secrets)
        } else {
            Err(problems)
        }
    }
}

/// A server, and the tree that it serves.
pub struct ServedTree {
    server: ServerHandle,
    places: Places,
    volumes: BTreeMap<String, VolumeRow>,
}

impl ServedTree {
    /// A server that serves this tree.
    #[must_use]
    pub fn new(server: ServerHandle, places: Places, tree: &Tree) -> Self {
        Self {
            server,
            places,
            volumes: tree.volume.clone(),
        }
    }
}

impl Engine for ServedTree {
    fn sessions(&self) -> Vec<SessionFact> {
        self.server
            .sessions()
            .into_iter()
            .filter_map(fact)
            .collect()
    }

    fn apply(
        &mut self,
        tree: &Tree,
        absent_ok: bool,
        persist: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), Vec<String>> {
        let inventory = self.places.inventory(tree)?;
        let is_news = |(name, row): &(&String, &VolumeRow)| self.volumes.get(*name) != Some(row);
        let news = tree.volume.iter().filter(is_news).map(|(name, _)| name);
        let required = news.filter(|_| !absent_ok).cloned().collect();
        let applied = self.server.apply_after(inventory, &required, persist);
        applied.map_err(|error| vec![error.to_string()])?;
        self.volumes.clone_from(&tree.volume);
        Ok(())
    }
}

/// Discovery sessions see no LUNs.
fn fact(session: SessionInfo) -> Option<SessionFact> {
    Some(SessionFact {
        target: session.target?,
        initiator: session.initiator.name,
        portal: Some(session.endpoints.local),
    })
}
