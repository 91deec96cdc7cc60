//! Portals and Fibre Channel ports that a change opens and closes.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::io::rdma::RdmaListener;
use iscsi::target::IserPortals;

use super::super::portals::{self, OtherPortals};
use super::super::{DeviceListening, Portal, Served, fc_ports};
use super::{Prepared, Preparing, Steps};
use crate::inventory::Step;
use crate::serve::options::ServeError;

/// A portal as it was bound, or as it was asked for, and why it is not.
type Bound = (Option<OwnedFd>, SocketAddr, Option<String>);

impl Preparing<'_> {
    pub(super) fn port(
        &self,
        served: &mut Served,
        step: Step,
        made: &mut Steps,
    ) -> Result<(), ServeError> {
        match step {
            Step::OpenPortal(asked) => {
                let listening = served
                    .portals
                    .iter()
                    .filter(|portal| portal.missing.is_none());
                let staying: Vec<_> = listening.map(|portal| portal.bound).collect();
                let others = OtherPortals {
                    closing: &made.closing,
                    staying: &staying,
                };
                let (listener, bound, missing) = self.bind(asked, others)?;
                let number = served.portal_count;
                served.portal_count += 1;
                served.portals.push(Portal {
                    number,
                    asked,
                    bound,
                    missing,
                    by_devices: DeviceListening::No,
                });
                made.listen
                    .extend(listener.map(|listener| (number, listener)));
            }
            Step::ClosePortal(asked) => {
                let mut portals = served.portals.iter();
                if let Some(at) = portals.position(|portal| portal.asked == asked) {
                    let portal = served.portals.remove(at);
                    if portal.by_devices == DeviceListening::Yes {
                        made.close_devices.push(portal.number);
                    }
                    if portal.missing.is_none() {
                        made.close.push(portal.number);
                        made.closing.push(portal.bound);
                    }
                }
            }
            Step::OpenFcPort(row) => {
                let (limits, others) = (&self.config.limits, &served.fc_ports);
                let (name, attachment) = fc_ports::open(&row, limits, others, served.fc_count)?;
                served.fc_count += 1;
                served.fc_ports.push(name);
                made.open_fc.push(attachment);
            }
            Step::SetFcPort(row) => {
                let mut ports = served.fc_ports.iter();
                let port = ports.find(|port| port.is_of(&row));
                let partners = port.map(|port| (port.wwpn, row.partners));
                made.partners.extend(partners);
            }
            Step::CloseFcPort(row) => {
                let mut ports = served.fc_ports.iter();
                if let Some(at) = ports.position(|port| port.is_of(&row)) {
                    made.close_fc.push(served.fc_ports.remove(at).wwpn);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Has RDMA devices listen on the portals that want that, and on no others. One on which
    /// nothing listens waits until it is there.
    pub(super) fn devices(
        &self,
        served: &mut Served,
        iser: &IserPortals,
        made: &mut Steps,
    ) -> Result<(), ServeError> {
        for portal in &mut served.portals {
            let wanted = iser.devices.contains(&portal.asked);
            match &portal.by_devices {
                DeviceListening::Yes if wanted => {}
                DeviceListening::Yes => {
                    made.close_devices.push(portal.number);
                    portal.by_devices = DeviceListening::No;
                }
                _ if wanted && portal.missing.is_none() => {
                    let overlaps = |old: &&SocketAddr| portals::overlap(**old, portal.bound);
                    if let Some(old) = made.closing.iter().find(overlaps) {
                        // rdma_cm has no SO_REUSEPORT: the next try finds the port free.
                        let cause = format!("its port is free when {old} is closed");
                        portal.by_devices = DeviceListening::Missing(cause);
                        continue;
                    }
                    let listener = self.listen_by_devices(portal)?;
                    let number = portal.number;
                    let listener = listener.map(|listener| (number, listener));
                    made.listen_by_devices.extend(listener);
                }
                _ => portal.by_devices = DeviceListening::No,
            }
        }
        Ok(())
    }

    /// Listens by devices where a portal is bound; later, if it cannot be now and may be missing.
    fn listen_by_devices(&self, portal: &mut Portal) -> Result<Option<RdmaListener>, ServeError> {
        let listener = self.config.rdma.listen(portal.bound);
        match listener {
            Ok(listener) => {
                portal.by_devices = DeviceListening::Yes;
                Ok(Some(listener))
            }
            // A device that is away keeps no change of something else from being made.
            Err(_) if matches!(portal.by_devices, DeviceListening::Missing(_)) => Ok(None),
            Err(error) if self.may_miss_portals => {
                let cause = error.to_string();
                tracing::error!("no iSER by devices on {} yet: {cause}", portal.bound);
                portal.by_devices = DeviceListening::Missing(cause);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn bind(&self, asked: SocketAddr, others: OtherPortals<'_>) -> Result<Bound, ServeError> {
        match portals::bind(asked, others, &self.config.limits) {
            Ok((listener, bound)) => Ok((Some(listener), bound, None)),
            Err(ServeError::Listen { portal, cause }) if self.may_miss_portals => {
                tracing::error!("cannot listen on {portal} yet: {cause}");
                Ok((None, asked, Some(cause)))
            }
            Err(error) => Err(error),
        }
    }

    /// A portal that was missing is listened to; `served` tells so.
    pub(in super::super) fn listen(
        &self,
        served: &mut Served,
        asked: SocketAddr,
        listener: OwnedFd,
    ) -> Option<Prepared> {
        let mut portals = served.portals.iter_mut();
        let portal = portals.find(|portal| portal.asked == asked && portal.missing.is_some())?;
        portal.missing = None;
        let steps = Steps {
            listen: vec![(portal.number, listener)],
            ..Steps::default()
        };
        Some(self.prepared(served, steps))
    }

    /// What `served` tells, with nothing opened or closed.
    pub(in super::super) fn unchanged(&self, served: &Served) -> Prepared {
        self.prepared(served, Steps::default())
    }

    /// Has devices listen where they do not though they should; `None` where that changes nothing.
    pub(in super::super) fn try_devices(&self, served: &mut Served) -> Option<Prepared> {
        let (mut steps, inventory) = (Steps::default(), Arc::clone(&served.inventory));
        // What cannot be listened on is missing still.
        self.devices(served, &inventory.iser, &mut steps).ok()?;
        (!steps.listen_by_devices.is_empty()).then(|| self.prepared(served, steps))
    }
}
