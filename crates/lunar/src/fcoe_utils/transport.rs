//! By which port requests go: by a host of the kernel, or by a running port of this program.

use std::io;

use fcoe_utils::fc_names::{FcId, Wwn};
use fcoe_utils::transport::{FcTransport, KernelHost};
use runtime::n_port::PortStatus;

use super::no_device;
use super::own_ports::OwnPorts;
use crate::VerbError;

/// A local port that sends requests.
#[derive(Debug)]
pub(super) enum PortTransport<'a> {
    Kernel(KernelHost),
    Own(&'a PortStatus),
}

impl<'a> PortTransport<'a> {
    /// The port that is called `hostN`, or `lunar-PID-N` among these.
    pub(super) fn open(host: &str, own: &'a OwnPorts) -> Result<Self, VerbError> {
        if let Some(port) = own.named(host) {
            return Ok(Self::Own(port));
        }
        let opened = KernelHost::open(host);
        opened
            .map(Self::Kernel)
            .map_err(|cause| no_device(host, &cause))
    }

    /// The port without a fabric whose names are to be looked up among its neighbours.
    pub(super) fn without_fabric(&self) -> Option<&'a PortStatus> {
        match self {
            Self::Own(port) => Some(*port).filter(|port| port.mode == "vn2vn"),
            Self::Kernel(_) => None,
        }
    }
}

/// The N_Port_ID of the neighbour that has this WWPN or WWNN.
pub(super) fn neighbour(port: &PortStatus, wwpn: Option<Wwn>, wwnn: Option<Wwn>) -> Option<FcId> {
    let is = |text: &str, name: Option<Wwn>| name.is_some_and(|name| text == name.to_string());
    let found = port
        .remotes
        .iter()
        .find(|remote| is(&remote.port_name, wwpn) || is(&remote.node_name, wwnn))?;
    fcoe_utils::local_port::fc_id(&found.fc_id)
}

impl FcTransport for PortTransport<'_> {
    fn els(&mut self, to: FcId, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Kernel(host) => host.els(to, request, answer_max),
            Self::Own(port) => up_to(answer_max, port.ask_els(to, request)),
        }
    }

    fn ct(&mut self, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Kernel(host) => host.ct(request, answer_max),
            Self::Own(port) => {
                let answer = up_to(answer_max, port.ask_ct(request));
                answer
                    .map_err(|cause| io::Error::new(cause.kind(), format!("not answered: {cause}")))
            }
        }
    }
}

fn up_to(max: usize, answer: io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    answer.map(|mut payload| {
        payload.truncate(max);
        payload
    })
}
