//! The engine behind the gate: it reads secrets, and serves the inventory of a tree.

mod ports;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::inventory::Inventory;
use engine::mailbox::SessionInfo;
use engine::server::ServerHandle;
use runtime::secret;
use zeroize::Zeroizing;

use crate::api::ApiListeners;
use crate::gate::{Engine, Persist};
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
    /// The inventory of a tree, with its secrets. Files are made for rows that are not `known`.
    ///
    /// # Errors
    ///
    /// All that cannot be had.
    pub fn inventory(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, VolumeRow>,
    ) -> Result<Inventory, Vec<String>> {
        let (secrets, problems) = self.secrets(tree);
        if !problems.is_empty() {
            return Err(problems);
        }
        let ports = ports::given(&self.state, tree).map_err(|cause| vec![cause])?;
        self.with_secrets(tree, known, (secrets, ports))
    }

    /// The same at the start, where a secret that cannot be read shuts out those who would have to
    /// know it, and nobody else, and where the identifiers of ports that cannot be read are given
    /// anew. That is told beside.
    ///
    /// # Errors
    ///
    /// All that cannot be had otherwise.
    pub fn first_inventory(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, VolumeRow>,
    ) -> Result<(Inventory, Vec<String>), Vec<String>> {
        let (mut secrets, problems) = self.secrets(tree);
        for source in sources(tree) {
            // Nobody knows it.
            let closed = || secret::generate(32).as_bytes().to_vec().into();
            secrets.entry(source).or_insert_with(closed);
        }
        let alarm = |cause| format!("{cause}: who has to know it cannot log in");
        let mut alarms: Vec<_> = problems.into_iter().map(alarm).collect();
        let ports = ports::given(&self.state, tree).unwrap_or_else(|cause| {
            alarms.push(format!(
                "{cause}: ports have new identifiers until it is put back or removed, and nothing \
                 can be changed"
            ));
            ports::anew(tree)
        });
        let inventory = self.with_secrets(tree, known, (secrets, ports))?;
        Ok((inventory, alarms))
    }

    fn with_secrets(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, VolumeRow>,
        (secrets, ports): (Secrets, Ports),
    ) -> Result<Inventory, Vec<String>> {
        let machine = Machine {
            id: self.machine.clone(),
            ports,
            secrets,
        };
        let makes = |name: &str| known.get(name) != tree.volume.get(name);
        inventory(tree, &machine, makes)
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

    /// Keeps a secret as `state:NAME`; whoever serves the tree reads it afterwards.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub fn keep_secret(&self, name: &str, secret: &str) -> Result<(), String> {
        let path = self.state.join("secrets").join(name);
        let kept = crate::secret::keep(&path, secret);
        kept.map_err(|cause| format!("cannot write {}: {cause}", path.display()))
    }

    /// The secrets that can be read, and why others cannot.
    fn secrets(&self, tree: &Tree) -> (Secrets, Vec<String>) {
        let (mut secrets, mut problems) = (Secrets::new(), Vec::new());
        for source in sources(tree) {
            let path = self.path(&source);
            let read = path.and_then(|path| secret::read(&path).map_err(|error| error.to_string()));
            match read {
                Ok(secret) => drop(secrets.insert(source, secret)),
                Err(cause) => problems.push(cause),
            }
        }
        (secrets, problems)
    }
}

/// Identifiers of ports, by targets and tags.
type Ports = BTreeMap<(String, u16), u16>;

/// Secrets by where they are.
type Secrets = BTreeMap<SecretSource, Zeroizing<Vec<u8>>>;

/// A server, and the tree that it serves.
pub struct ServedTree {
    server: ServerHandle,
    places: Places,
    volumes: BTreeMap<String, VolumeRow>,
    listeners: Arc<ApiListeners>,
}

impl ServedTree {
    /// A server that serves this tree.
    #[must_use]
    pub fn new(
        server: ServerHandle,
        places: Places,
        tree: &Tree,
        listeners: Arc<ApiListeners>,
    ) -> Self {
        Self {
            server,
            places,
            listeners,
            volumes: tree.volume.clone(),
        }
    }

    /// The same server for who only asks which sessions there are.
    #[must_use]
    pub(crate) fn onlooker(&self) -> Self {
        Self::new(
            Arc::clone(&self.server),
            self.places.clone(),
            &Tree::default(),
            Arc::clone(&self.listeners),
        )
    }
}

impl Engine for ServedTree {
    fn sessions(&self) -> Result<Vec<SessionFact>, String> {
        let told = self.server.ask_sessions();
        let sessions = told.ok_or("the cores do not tell which sessions there are")?;
        Ok(sessions.into_iter().filter_map(fact).collect())
    }

    fn keep_secret(&mut self, name: &str, secret: &str) -> Result<(), String> {
        self.places.keep_secret(name, secret)
    }

    fn refresh(&mut self, tree: &Tree) -> Result<(), Vec<String>> {
        self.apply(tree, true, &mut |_| Ok(()))
    }

    fn apply(
        &mut self,
        tree: &Tree,
        absent_ok: bool,
        persist: Persist<'_>,
    ) -> Result<(), Vec<String>> {
        let inventory = self.places.inventory(tree, &self.volumes)?;
        let doors = self.listeners.prepare(&tree.api, &self.places);
        let doors = doors.map_err(|cause| vec![cause])?;
        // What works does not give way to what cannot be opened, whatever is allowed.
        let needed = |(name, row): &(&String, &VolumeRow)| {
            self.volumes.get(*name) != Some(row) && (!absent_ok || self.server.has_volume(name))
        };
        let needed = tree.volume.iter().filter(needed);
        let required = needed.map(|(name, _)| name.clone()).collect();
        let mut persist = || persist(&self.sessions()?);
        let applied = self.server.apply_after(inventory, &required, &mut persist);
        applied.map_err(|error| vec![error.to_string()])?;
        self.volumes.clone_from(&tree.volume);
        self.listeners.switch(doors);
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
