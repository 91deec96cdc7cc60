//! FCoE instances of the kernel, and the remote ports and units behind them. Ports of this program
//! are among them where they are laid over sysfs in the same form.
//!
//! Below a network interface, libfcoe makes `ctlr_N`; libfc's host is in it, with `fc_host`
//! attributes, FCFs, remote ports (`rport-H:C-N`), and behind these targets and logical units.

use crate::sysfs::SysfsDir;

/// The FCoE instance of a network interface.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The interface, which may be that of a VLAN.
    pub interface: String,
    /// `ctlr_N`, which libfcoe has per instance.
    pub controller: SysfsDir,
    /// `hostN`, the SCSI host of the instance, or `lunar-PID-N`; missing while it is made or
    /// removed.
    pub host: Option<HostPort>,
}

/// Why there is no instance to show or to change. The first words are those of fcoeadm.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// There is no such interface.
    #[error("Invalid interface name {0}: ip link lists those of this machine")]
    NoInterface(String),
    /// There is one, without FCoE.
    #[error("No connection created on interface {0}: fcoeadm -c {0} creates one")]
    NoInstance(String),
    /// The kernel has none at all.
    #[error("No action was taken: the kernel has no FCoE instance (fcoeadm -c creates one)")]
    NoneAtAll,
}

impl Instance {
    /// All instances, by interface.
    #[must_use]
    pub fn all(sysfs: &SysfsDir) -> Vec<Self> {
        let interfaces = sysfs.child("class/net").children("");
        interfaces.iter().flat_map(Self::at).collect()
    }

    /// The instance of an interface.
    ///
    /// # Errors
    /// [`InstanceError::NoInterface`], [`InstanceError::NoInstance`].
    pub fn of(sysfs: &SysfsDir, interface: &str) -> Result<Self, InstanceError> {
        let mut found = Self::all_of(sysfs, interface)?;
        Ok(found.swap_remove(0))
    }

    /// Those of an interface, of which only this program can have several.
    fn all_of(sysfs: &SysfsDir, interface: &str) -> Result<Vec<Self>, InstanceError> {
        let found = Self::at(&interface_dir(sysfs, interface)?);
        Some(found)
            .filter(|found| !found.is_empty())
            .ok_or_else(|| InstanceError::NoInstance(interface.to_owned()))
    }

    /// The instances of one interface, or all that there are.
    ///
    /// # Errors
    /// As [`Self::of`]; [`InstanceError::NoneAtAll`] where no interface is named.
    pub fn chosen(sysfs: &SysfsDir, interface: Option<&str>) -> Result<Vec<Self>, InstanceError> {
        match interface {
            Some(interface) => Self::all_of(sysfs, interface),
            None => Some(Self::all(sysfs))
                .filter(|all| !all.is_empty())
                .ok_or(InstanceError::NoneAtAll),
        }
    }

    fn at(interface: &SysfsDir) -> Vec<Self> {
        let name = shown(&interface.name());
        let controllers = interface.children("ctlr_").into_iter();
        let instances = controllers.map(|controller| Self {
            interface: name.clone(),
            host: HostPort::below(&controller).into_iter().next(),
            controller,
        });
        instances.collect()
    }

    /// Its FCFs, in the order in which they were found.
    #[must_use]
    pub fn fcfs(&self) -> Vec<SysfsDir> {
        self.controller.children("fcf_")
    }
}

/// The name of the directory of an interface, or of a cable, where slashes are as in other names
/// of sysfs.
#[must_use]
pub fn directory_name(interface: &str) -> String {
    if interface.starts_with(CABLE) {
        interface.replace('/', "!")
    } else {
        interface.to_owned()
    }
}

/// The interface, or cable, of a directory.
fn shown(directory: &str) -> String {
    if directory.starts_with(CABLE) {
        directory.replace('!', "/")
    } else {
        directory.to_owned()
    }
}

const CABLE: &str = "cable:";

/// The directory of an interface.
pub(crate) fn interface_dir(sysfs: &SysfsDir, interface: &str) -> Result<SysfsDir, InstanceError> {
    let directory = directory_name(interface);
    // A name with a slash in it would lead elsewhere.
    let is_name = !directory.is_empty() && !directory.contains('/') && !directory.starts_with('.');
    let dir = sysfs.child("class/net").child(directory);
    if is_name && dir.exists() {
        Ok(dir)
    } else {
        Err(InstanceError::NoInterface(interface.to_owned()))
    }
}

/// A local N_Port: a SCSI host, with its attributes of Fibre Channel.
#[derive(Clone, Debug)]
pub struct HostPort {
    dir: SysfsDir,
}

impl HostPort {
    fn below(dir: &SysfsDir) -> Vec<Self> {
        let hosts = dir.children("").into_iter().map(|dir| Self { dir });
        hosts.filter(|host| host.attributes().exists()).collect()
    }

    /// `hostN`, or `lunar-PID-N`.
    #[must_use]
    pub fn name(&self) -> String {
        self.dir.name()
    }

    /// Its `fc_host` attributes.
    #[must_use]
    pub fn attributes(&self) -> SysfsDir {
        self.dir.child("fc_host").child(self.name())
    }

    /// Its attributes as a SCSI host.
    #[must_use]
    pub fn scsi_host(&self) -> SysfsDir {
        self.dir.child("scsi_host").child(self.name())
    }

    /// Whether it is logged in to the fabric, or in VN2VN has its address.
    #[must_use]
    pub fn is_online(&self) -> bool {
        let state = self.attributes().text("port_state");
        state.is_some_and(|state| state.starts_with("Online"))
    }

    /// N_Ports that it has by NPIV.
    #[must_use]
    pub fn virtual_ports(&self) -> Vec<Self> {
        let ports = self.dir.children("vport-");
        ports.iter().flat_map(Self::below).collect()
    }

    /// Other ports that it knows.
    #[must_use]
    pub fn remote_ports(&self) -> Vec<RemotePort> {
        let ports = self.dir.children("rport-").into_iter();
        ports.map(|dir| RemotePort { dir }).collect()
    }
}

/// A port that a local one knows.
#[derive(Clone, Debug)]
pub struct RemotePort {
    dir: SysfsDir,
}

impl RemotePort {
    /// `rport-H:C-N`.
    #[must_use]
    pub fn name(&self) -> String {
        self.dir.name()
    }

    /// Its `fc_remote_ports` attributes.
    #[must_use]
    pub fn attributes(&self) -> SysfsDir {
        self.dir.child("fc_remote_ports").child(self.name())
    }

    /// Whether it has said in PRLI that it is an FCP target.
    #[must_use]
    pub fn is_target(&self) -> bool {
        let roles = self.attributes().text("roles");
        roles.is_some_and(|roles| roles.starts_with("FCP Target"))
    }

    /// Its logical units that are disks.
    #[must_use]
    pub fn disks(&self) -> Vec<Disk> {
        let targets = self.dir.children("target");
        let units = targets.iter().flat_map(|target| target.children(""));
        units.filter_map(|unit| Disk::at(&unit)).collect()
    }
}

/// A logical unit that Linux has as a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The number of its target among those of the host.
    pub target: u32,
    /// LUN, as Linux numbers it.
    pub lun: u64,
    /// The name of the block device, such as `sdb`.
    pub device: String,
    /// Vendor, product and revision, of its INQUIRY data.
    pub description: String,
    /// Capacity, in units of 512 bytes.
    pub sectors: u64,
    /// Bytes of a logical block.
    pub block_size: u64,
}

impl Disk {
    /// From the directory of a SCSI device, `H:C:T:L`.
    fn at(unit: &SysfsDir) -> Option<Self> {
        let name = unit.name();
        let mut numbers = name.split(':').skip(2);
        let (target, lun) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let block = unit.child("block").children("").into_iter().next()?;
        let part = |attribute| unit.text(attribute).unwrap_or_default();
        let (vendor, model, revision) = (part("vendor"), part("model"), part("rev"));
        Some(Self {
            target,
            lun,
            device: block.name(),
            description: format!("{vendor} {model} (rev {revision})"),
            sectors: block.number("size").unwrap_or(0),
            block_size: block.number("queue/hw_sector_size").unwrap_or(0),
        })
    }
}
