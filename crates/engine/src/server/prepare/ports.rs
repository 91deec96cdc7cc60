//! Portals and Fibre Channel ports that a change opens and closes.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use super::super::portals::{self, OtherPortals};
use super::super::{Portal, Served, fc_ports};
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
                });
                made.listen
                    .extend(listener.map(|listener| (number, listener)));
            }
            Step::ClosePortal(asked) => {
                let mut portals = served.portals.iter();
                if let Some(at) = portals.position(|portal| portal.asked == asked) {
                    let portal = served.portals.remove(at);
                    if portal.missing.is_none() {
                        made.close.push(portal.number);
                        made.closing.push(portal.bound);
                    }
                }
            }
            Step::OpenFcPort(row) => {
                let (name, attachment) =
                    fc_ports::open(&row, &self.config.limits, served.fc_count)?;
                served.fc_count += 1;
                served.fc_ports.push(name);
                made.open_fc.push(attachment);
            }
            Step::SetFcPort(row) => {
                let mut ports = served.fc_ports.iter();
                let port = ports.find(|port| port.place == row.port.place);
                let partners = port.map(|port| (port.wwpn, row.partners));
                made.partners.extend(partners);
            }
            Step::CloseFcPort(row) => {
                let mut ports = served.fc_ports.iter();
                if let Some(at) = ports.position(|port| port.place == row.port.place) {
                    made.close_fc.push(served.fc_ports.remove(at).wwpn);
                }
            }
            _ => {}
        }
        Ok(())
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
}
