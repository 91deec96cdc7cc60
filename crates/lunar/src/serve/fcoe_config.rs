//! `--fcoe-config`: the ports that fcoemon's files describe.

#[cfg(test)]
mod tests;

use std::path::Path;

use engine::serve::options::FcoePort;
use fcoe_utils::change::FcoeMode;
use fcoe_utils::config::PortConfig;
use fcoe_utils::config::folder;

use crate::VerbError;

/// A port for each file that has FCoE enabled.
pub(super) fn ports(dir: &Path) -> Result<Vec<FcoePort>, VerbError> {
    let shown = dir.display();
    let wrong = |what: String| VerbError::usage(format!("--fcoe-config {shown}: {what}"));
    let files = folder::read(dir).map_err(|cause| wrong(cause.to_string()))?;
    let enabled = files.iter().filter(|(_, config)| config.enabled);
    let ports = enabled.map(|(interface, config)| {
        for (line, name) in &config.unknown {
            tracing::warn!("{shown}/cfg-{interface}: line {line}: {name} means nothing here");
        }
        port(interface, config).map_err(|what| wrong(format!("cfg-{interface}: {what}")))
    });
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    if ports.is_empty() {
        let none = "no file cfg-IFACE there says FCOE_ENABLE=\"yes\": set it in one";
        return Err(wrong(none.to_owned()));
    }
    Ok(ports)
}

/// As `--fcoe` would give it.
fn port(interface: &str, config: &PortConfig) -> Result<FcoePort, String> {
    if config.dcb_required && config.mode == FcoeMode::Vn2vn {
        let what = "DCB_REQUIRED=\"yes\" with MODE=\"vn2vn\": a port waits for PFC in a fabric \
                    alone: set it to \"no\", and look with lunar dcb";
        return Err(what.to_owned());
    }
    let dcb = if config.dcb_required {
        ",dcb=required"
    } else {
        ""
    };
    let words = match (config.mode, config.auto_vlan, config.fip_resp) {
        (FcoeMode::Fabric, false, _) => format!("{interface},mode=fabric{dcb}"),
        (FcoeMode::Fabric, true, _) => format!("{interface},mode=fabric,vlan=auto{dcb}"),
        (FcoeMode::Vn2vn, true, _) => {
            let what = "AUTO_VLAN=\"yes\" with MODE=\"vn2vn\": VLANs are asked of a switch alone: \
                        name the file after the interface of the VLAN";
            return Err(what.to_owned());
        }
        (FcoeMode::Vn2vn, false, true) => format!("{interface},fip-resp=yes"),
        (FcoeMode::Vn2vn, false, false) => interface.to_owned(),
    };
    words.parse().map_err(|cause| format!("{cause}"))
}
