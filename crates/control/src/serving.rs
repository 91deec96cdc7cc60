//! The engine behind the gate: it reads secrets, and serves the inventory of a tree.

mod ports;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use engine::inventory::Inventory;
use engine::mailbox::SessionInfo;
use engine::serve::options::MachineMisuse;
use engine::server::ServerHandle;
use runtime::secret;
use zeroize::Zeroizing;

use crate::alarm::{Alarm, AlarmBoard, AlarmKind};
use crate::api::{ApiListeners, PreparedListeners};
use crate::gate::{Engine, Persist};
use crate::lower::{Machine, inventory, sources};
use crate::plan::{FabricLoginFact, FabricLogins, SessionFact};
use crate::secret::SecretSource;
use crate::switches::Switches;
use crate::tree::{ApiRow, DaemonRow, Tree, VolumeRow, pairs};

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
    /// The inventory of a tree, with its secrets. Files are made for rows that are not `known`; of
    /// those that are, `before` was the inventory.
    ///
    /// # Errors
    ///
    /// All that cannot be had.
    pub fn inventory(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, VolumeRow>,
        before: &Inventory,
    ) -> Result<Inventory, Vec<String>> {
        let (secrets, problems) = self.secrets(tree);
        if !problems.is_empty() {
            return Err(problems.into_iter().map(|(_, cause)| cause).collect());
        }
        let ports = ports::given(&self.state, tree).map_err(|cause| vec![cause])?;
        self.with_secrets(tree, (known, before), (secrets, ports))
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
    ) -> Result<(Inventory, Vec<Alarm>), Vec<String>> {
        let (mut secrets, problems) = self.secrets(tree);
        for source in sources(tree) {
            // Nobody knows it.
            let closed = || secret::generate(32).as_bytes().to_vec().into();
            secrets.entry(source).or_insert_with(closed);
        }
        let alarm = |(source, cause): (SecretSource, String)| {
            let detail = format!("{cause}: who has to know it cannot log in");
            Alarm::new(AlarmKind::Secret, detail)
                .at(source.to_string())
                .way_out("put it back, then systemctl reload lunar")
        };
        let mut alarms: Vec<_> = problems.into_iter().map(alarm).collect();
        let ports = ports::given(&self.state, tree).unwrap_or_else(|cause| {
            let detail = format!("{cause}: ports have new identifiers, and nothing can be changed");
            let alarm = Alarm::new(AlarmKind::PortIds, detail);
            alarms.push(alarm.way_out("put it back or remove it, then systemctl reload lunar"));
            ports::anew(tree)
        });
        let inventory =
            self.with_secrets(tree, (known, &Inventory::default()), (secrets, ports))?;
        Ok((inventory, alarms))
    }

    fn with_secrets(
        &self,
        tree: &Tree,
        (known, before): (&BTreeMap<String, VolumeRow>, &Inventory),
        (secrets, ports): (Secrets, Ports),
    ) -> Result<Inventory, Vec<String>> {
        let machine = Machine {
            id: self.machine.clone(),
            ports,
            secrets,
        };
        let makes = |name: &str, row: &VolumeRow| known.get(name) != Some(row);
        inventory(tree, &machine, before, makes)
    }

    /// The path of a secret.
    ///
    /// # Errors
    ///
    /// There are no credentials, or a file of the state directory is named by its path.
    pub fn path(&self, source: &SecretSource) -> Result<PathBuf, String> {
        match source {
            SecretSource::File(path) => self.outside(path),
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

    /// A path that does not lead to what the daemon keeps for itself, such as tokens.
    fn outside(&self, path: &str) -> Result<PathBuf, String> {
        let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let state = fs::canonicalize(&self.state).unwrap_or_else(|_| self.state.clone());
        if resolved.starts_with(state) {
            return Err(format!(
                "file:{path} lies in the state directory: name a secret of it as state:NAME"
            ));
        }
        Ok(resolved)
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
    fn secrets(&self, tree: &Tree) -> (Secrets, Vec<(SecretSource, String)>) {
        let (mut secrets, mut problems) = (Secrets::new(), Vec::new());
        for source in sources(tree) {
            let path = self.path(&source);
            let read = path.and_then(|path| secret::read(&path).map_err(|error| error.to_string()));
            match read {
                Ok(secret) => drop(secrets.insert(source, secret)),
                Err(cause) => problems.push((source, cause)),
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
    tree: Arc<Tree>,
    listeners: Arc<ApiListeners>,
    switches: Arc<Switches>,
    alarms: Arc<AlarmBoard>,
}

impl ServedTree {
    /// A server that serves this tree.
    #[must_use]
    pub(crate) fn new(
        server: ServerHandle,
        places: Places,
        tree: Arc<Tree>,
        (listeners, switches): (Arc<ApiListeners>, Arc<Switches>),
        alarms: Arc<AlarmBoard>,
    ) -> Self {
        Self {
            server,
            places,
            tree,
            listeners,
            switches,
            alarms,
        }
    }

    /// The same server for who only asks which sessions there are.
    #[must_use]
    pub(crate) fn onlooker(&self) -> Self {
        Self::new(
            Arc::clone(&self.server),
            self.places.clone(),
            Arc::default(),
            (Arc::clone(&self.listeners), Arc::clone(&self.switches)),
            Arc::clone(&self.alarms),
        )
    }

    /// The switches of this daemon.
    pub(crate) fn switches(&self) -> &Switches {
        &self.switches
    }

    /// The listeners of a tree. What has nothing to do with them is not refused because they
    /// cannot be had any more: those that there are stay.
    fn prepare_api(&self, row: &ApiRow) -> Result<Option<PreparedListeners>, Vec<String>> {
        match self.listeners.prepare(row, &self.places) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(cause) if *row == self.tree.api => {
                self.alarms.raise(api_alarm(&cause));
                Ok(None)
            }
            Err(cause) => Err(vec![cause]),
        }
    }
}

/// The CPUs count at the next start, and one that is not there would keep the daemon from it.
fn can_pin(row: &DaemonRow) -> Result<(), Vec<String>> {
    let list = row.pin.as_ref().and_then(|list| list.parse().ok());
    let found = list.map_or(Ok(()), |list| MachineMisuse::look_for(&list));
    found.map_err(|misuse| vec![format!("daemon.pin: {misuse}")])
}

/// What of `[api]` cannot be had.
pub(crate) fn api_alarm(cause: &str) -> Alarm {
    let detail = format!("{cause}; the API stays as it is, and its socket is always there");
    Alarm::new(AlarmKind::Api, detail).way_out("mend it, then systemctl reload lunar")
}

impl Engine for ServedTree {
    fn sessions(&self) -> Result<Vec<SessionFact>, String> {
        let told = self.server.ask_sessions();
        let sessions = told.ok_or("the cores do not tell which sessions there are")?;
        Ok(sessions.into_iter().filter_map(fact).collect())
    }

    fn fabric_logins(&self) -> FabricLogins {
        let mut known = FabricLogins::default();
        for (switch, survey) in self.switches.surveys() {
            let Some(survey) = survey else {
                known.silent.push(switch);
                continue;
            };
            let logins = survey.logins.into_iter();
            known.logins.extend(logins.map(|login| FabricLoginFact {
                switch: switch.clone(),
                wwpn: login.wwpn.to_string(),
            }));
        }
        known
    }

    fn keep_secret(&mut self, name: &str, secret: &str) -> Result<(), String> {
        self.places.keep_secret(name, secret)
    }

    fn refresh(&mut self, tree: &Arc<Tree>) -> Result<(), Vec<String>> {
        self.apply(tree, true, &mut |_| Ok(()))
    }

    fn apply(
        &mut self,
        tree: &Arc<Tree>,
        absent_ok: bool,
        persist: Persist<'_>,
    ) -> Result<(), Vec<String>> {
        if tree.daemon.pin != self.tree.daemon.pin {
            can_pin(&tree.daemon)?;
        }
        let before = self.server.inventory();
        let inventory = self.places.inventory(tree, &self.tree.volume, &before)?;
        let listeners = self.prepare_api(&tree.api)?;
        let switches = self.switches.prepare(tree, &self.tree)?;
        // What works does not give way to what cannot be opened, whatever is allowed.
        let needed = pairs(&self.tree.volume, &tree.volume).filter(|(name, old, new)| {
            new.is_some() && old != new && (!absent_ok || self.server.has_volume(name))
        });
        let required = needed.map(|(name, ..)| name.clone()).collect();
        let mut persist = || persist(&self.sessions()?);
        let applied = self.server.apply_after(inventory, &required, &mut persist);
        applied.map_err(|error| vec![error.to_string()])?;
        self.tree = Arc::clone(tree);
        self.switches.switch(switches);
        if let Some(prepared) = listeners {
            self.listeners.switch(prepared);
            self.alarms.clear(AlarmKind::Api);
        }
        // All that the tree names was read.
        for kind in [AlarmKind::Secret, AlarmKind::PortIds, AlarmKind::Reload] {
            self.alarms.clear(kind);
        }
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
