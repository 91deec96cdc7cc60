//! From options to an inventory: targets, LUNs, and the volumes behind them.

use std::collections::BTreeSet;

use fc::remote::Partners;
use iscsi::names;
use iscsi::target::{AccessGroup, Initiators, IserPortals, NodeAccess};

use super::options::{
    BlockSizeOption, FcoePort, IserProvider, ServeError, ServeMisuse, ServeOptions, TargetChap,
};
use crate::inventory::{FcPortRow, Inventory, LunRow, TargetRow, UnitRow};
use ::io::ether::Place;
use address::{Address, RamAddress, Size};

/// What these options ask for, and the names of its units in the order of the command. Every
/// address and name is parsed: nothing is tried before all of them are right.
pub(super) fn inventory(options: &ServeOptions) -> Result<(Inventory, Vec<String>), ServeError> {
    let (volumes, serials) = (options.numbered()?, options.serials()?);
    let access = access(options)?;
    let (mut inventory, mut order, mut luns) = (Inventory::default(), Vec::new(), Vec::new());
    for (number, written) in volumes {
        let name = number.to_string();
        let serial = serials.get(&number).map(|serial| (*serial).to_owned());
        let unit = unit(options, written, serial)?;
        let (target, lun) = if options.target_per_volume {
            (format!("{}:{number}", options.iqn), 0)
        } else {
            (options.iqn.clone(), number)
        };
        let target = inventory.targets.entry(normalise(&target)?);
        let target = target.or_insert_with(|| TargetRow {
            access: access.clone(),
            ..TargetRow::default()
        });
        let row = LunRow::new(lun, name.clone());
        target.luns.push(row.clone());
        luns.push(row);
        inventory.units.insert(name.clone(), unit.into());
        order.push(name);
    }
    inventory.portals.clone_from(&options.listen);
    inventory.iser = iser(options);
    inventory.advertise.clone_from(&options.advertise);
    let port = |port: FcoePort| FcPortRow {
        luns: luns.clone(),
        groups: Vec::new(),
        partners: options.partners(&port),
        port_id: None,
        port,
    };
    inventory.fc_ports = options
        .fcoe
        .iter()
        .flat_map(FcoePort::ports)
        .map(port)
        .collect();
    Ok((inventory, order))
}

/// Every portal takes it, or none does.
fn iser(options: &ServeOptions) -> IserPortals {
    let all_if = |is_so: fn(IserProvider) -> bool| match options.iser {
        Some(provider) if is_so(provider) => options.listen.clone(),
        _ => Vec::new(),
    };
    IserPortals {
        portals: all_if(IserProvider::is_software),
        devices: all_if(IserProvider::is_device),
        without_crc: !options.iser_crc,
    }
}

fn unit(
    options: &ServeOptions,
    written: &str,
    serial: Option<String>,
) -> Result<UnitRow, ServeError> {
    let address: Address = written.parse()?;
    let block_size = options.units.block_size.map(BlockSizeOption::bytes);
    if let Some(block_size) = block_size {
        has_block(&address, block_size)?;
    }
    Ok(UnitRow {
        serial,
        vendor: options.units.vendor.clone(),
        product: options.units.product.clone(),
        removable: options.units.removable,
        read_only: options.units.readonly,
        block_size,
        sole_gateway: options.units.sole_gateway,
        may_be_absent: !options.wait.is_zero(),
        ..UnitRow::new(address, written.to_owned())
    })
}

/// Whether every volume in memory has a block.
fn has_block(address: &Address, block_size: u32) -> Result<(), ServeMisuse> {
    address.leaves().try_for_each(|leaf| match leaf {
        Address::Ram(RamAddress {
            size: Size(size), ..
        })
        | Address::Null(Size(size))
            if *size < block_size.into() =>
        {
            Err(ServeMisuse::NoBlock {
                address: leaf.to_string(),
                block_size,
            })
        }
        _ => Ok(()),
    })
}

fn normalise(given: &str) -> Result<String, ServeError> {
    names::normalise(given).map_err(|cause| ServeError::Name {
        name: given.to_owned(),
        cause: cause.to_string(),
    })
}

fn access(options: &ServeOptions) -> Result<NodeAccess, ServeError> {
    let allow = options.allowed_names().into_iter().map(normalise);
    let allow = allow.collect::<Result<BTreeSet<_>, _>>()?;
    let group = AccessGroup {
        initiators: if allow.is_empty() {
            Initiators::Everybody
        } else {
            Initiators::Named(allow)
        },
        chap: options.chap.as_ref().map(bound_users).transpose()?,
    };
    Ok(group.into())
}

/// The credentials, with the names of initiators as logins compare them.
fn bound_users(chap: &TargetChap) -> Result<TargetChap, ServeError> {
    let mut chap = chap.clone();
    for user in &mut chap.users {
        user.initiator = user.initiator.as_deref().map(normalise).transpose()?;
    }
    Ok(chap)
}

impl ServeOptions {
    /// The initiators that a port admits. Where none is named, the other end of a cable may log in.
    fn partners(&self, port: &FcoePort) -> Partners {
        let allowed = self.allowed_ports();
        match &port.place {
            _ if self.open => Partners::Any,
            Place::Cable(_) if allowed.is_empty() => Partners::Any,
            _ => Partners::Only(allowed.into_iter().collect()),
        }
    }
}
