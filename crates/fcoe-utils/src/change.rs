//! `fcoeadm -c`, `-d`, `-r` and `-S`: FCoE instances of the kernel are created, destroyed, reset,
//! and have their targets scanned.
//!
//! The kernel makes an instance when an interface's name is written to `ctlr_create` (Linux 3.9 and
//! later), and starts it when `enabled` is set. Older kernels have parameters of the module in
//! place of both.

use std::io;

use crate::instance::{Instance, InstanceError, interface_dir};
use crate::sysfs::SysfsDir;

/// What an instance speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FcoeMode {
    /// With an FCF.
    #[default]
    Fabric,
    /// Directly with other ports (VN2VN).
    Vn2vn,
}

/// Why an instance was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The interface, or its instance, is not there.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// It has one.
    #[error("Connection already created on interface {0}: fcoeadm -d {0} ends it")]
    Exists(String),
    /// libfcoe is not loaded.
    #[error("the kernel has no FCoE ({0} is missing): modprobe fcoe")]
    NoModule(String),
    /// A right is missing.
    #[error("{0}: no right to change the kernel's FCoE: run as root")]
    Forbidden(String),
    /// The kernel took the name and made nothing.
    #[error("{0}: the kernel has not created an instance: see dmesg")]
    NotMade(String),
    /// The instance has no SCSI host.
    #[error("{0}: the instance has no host now: try again")]
    NoHost(String),
    /// The kernel refuses.
    #[error("{0}: {1}: see dmesg")]
    Refused(String, #[source] io::Error),
}

/// Creates and starts the instance of an interface.
///
/// # Errors
/// See [`ChangeError`].
pub fn create(sysfs: &SysfsDir, interface: &str, mode: FcoeMode) -> Result<(), ChangeError> {
    interface_dir(sysfs, interface)?;
    if Instance::of(sysfs, interface).is_ok() {
        return Err(ChangeError::Exists(interface.to_owned()));
    }
    let parameter = match mode {
        FcoeMode::Fabric => "create",
        FcoeMode::Vn2vn => "create_vn2vn",
    };
    if write_name(sysfs, ["ctlr_create", parameter], interface)? == KernelInterface::Parameters {
        return Ok(());
    }
    match Instance::of(sysfs, interface) {
        Ok(instance) => start(&instance, mode),
        Err(_) => Err(ChangeError::NotMade(interface.to_owned())),
    }
}

/// Starts an instance that was created.
pub(crate) fn start(instance: &Instance, mode: FcoeMode) -> Result<(), ChangeError> {
    let interface = &instance.interface;
    if mode == FcoeMode::Vn2vn {
        write(&instance.controller, "mode", "vn2vn", interface)?;
    }
    write(&instance.controller, "enabled", "1", interface)
}

/// Destroys the instance of an interface. All that its host has is lost to this machine.
///
/// # Errors
/// See [`ChangeError`].
pub fn destroy(sysfs: &SysfsDir, interface: &str) -> Result<(), ChangeError> {
    Instance::of(sysfs, interface)?;
    write_name(sysfs, ["ctlr_destroy", "destroy"], interface).map(drop)
}

/// Has the instance of an interface log out and in again.
///
/// # Errors
/// See [`ChangeError`].
pub fn reset(sysfs: &SysfsDir, interface: &str) -> Result<(), ChangeError> {
    let instance = Instance::of(sysfs, interface)?;
    let host = instance.host.as_ref();
    let host = host.ok_or_else(|| ChangeError::NoHost(interface.to_owned()))?;
    write(&host.attributes(), "issue_lip", "1", interface)
}

/// Has the instance of an interface look for new targets and logical units.
///
/// # Errors
/// See [`ChangeError`].
pub fn scan(sysfs: &SysfsDir, interface: &str) -> Result<(), ChangeError> {
    let instance = Instance::of(sysfs, interface)?;
    let host = instance.host.as_ref();
    let host = host.ok_or_else(|| ChangeError::NoHost(interface.to_owned()))?;
    write(&host.scsi_host(), "scan", "- - -", interface)
}

/// By what the kernel is told the names of interfaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelInterface {
    Bus,
    /// Before Linux 3.9.
    Parameters,
}

/// Writes the name of an interface to an attribute of the bus or, if the kernel has none, to a
/// parameter of the module. Tells which.
fn write_name(
    sysfs: &SysfsDir,
    [attribute, parameter]: [&str; 2],
    interface: &str,
) -> Result<KernelInterface, ChangeError> {
    let (bus, parameters) = (sysfs.child(BUS), sysfs.child(PARAMETERS));
    if bus.child(attribute).exists() {
        write(&bus, attribute, interface, interface)?;
        return Ok(KernelInterface::Bus);
    }
    if !parameters.child(parameter).exists() {
        let missing = bus.path().join(attribute).display().to_string();
        return Err(ChangeError::NoModule(missing));
    }
    write(&parameters, parameter, interface, interface)?;
    Ok(KernelInterface::Parameters)
}

const BUS: &str = "bus/fcoe";
const PARAMETERS: &str = "module/libfcoe/parameters";

fn write(dir: &SysfsDir, attribute: &str, text: &str, interface: &str) -> Result<(), ChangeError> {
    let interface = interface.to_owned();
    dir.write(attribute, text)
        .map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied => ChangeError::Forbidden(interface),
            _ => ChangeError::Refused(interface, cause),
        })
}
