//! CHAP secrets of the two roles of a gateway, which is a target and an initiator.
//!
//! A secret that proves an initiator must not prove any target, and the two roles of one machine
//! must not share one (RFC 7143 §9.2.1): a peer that is challenged with the one could have the
//! other role answer it. The secrets of `--chap` and `--mutual-user` alone are compared earlier,
//! with the other options.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::options::{ServeError, ServeMisuse, ServeOptions};
use crate::inventory::UnitRow;
use address::{Address, UnitAddress};
use client::open::{OpenOptions, credentials};

/// A secret of the command.
struct KnownSecret {
    /// Whose it is, for messages.
    whose: String,
    /// Which of the two it proves.
    proves: ProvenSide,
    /// It is of an address: this machine is the initiator.
    is_remote: bool,
    secret: Zeroizing<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProvenSide {
    Initiator,
    Target,
}

/// Refuses a secret that proves an initiator and a target. Warns of one that is of both roles, but
/// proves the same side in each.
pub(super) fn check<'a>(
    options: &ServeOptions,
    units: impl Iterator<Item = &'a Arc<UnitRow>>,
    open: &OpenOptions,
) -> Result<(), ServeError> {
    let own = of_options(options);
    let mut remote = Vec::new();
    for unit in units {
        collect(&unit.address, open, &mut remote);
    }
    let all: Vec<&KnownSecret> = own.iter().chain(&remote).collect();
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            compare(other, one)?;
        }
    }
    Ok(())
}

fn compare(one: &KnownSecret, other: &KnownSecret) -> Result<(), ServeError> {
    if one.secret != other.secret {
        return Ok(());
    }
    if one.proves != other.proves {
        let (initiator, target) = match one.proves {
            ProvenSide::Initiator => (one, other),
            ProvenSide::Target => (other, one),
        };
        return Err(ServeError::Misuse(ServeMisuse::SecretOfBothSides {
            initiator: initiator.whose.clone(),
            target: target.whose.clone(),
        }));
    }
    if one.is_remote != other.is_remote {
        tracing::warn!(
            "{} and {} have the same CHAP secret: whoever challenges this server as an initiator \
             can use its answer to log in to it; give each its own (RFC 7143 §9.2.1)",
            one.whose,
            other.whose
        );
    }
    Ok(())
}

fn of_options(options: &ServeOptions) -> Vec<KnownSecret> {
    let Some(chap) = &options.chap else {
        return Vec::new();
    };
    let known = |whose, proves, secret: &Vec<u8>| KnownSecret {
        whose,
        proves,
        is_remote: false,
        secret: secret.clone().into(),
    };
    let users = chap.users.iter();
    let users = users.map(|user| {
        known(
            format!("--chap {}", user.name),
            ProvenSide::Initiator,
            &user.secret,
        )
    });
    let mutual = chap.mutual.iter();
    let mutual = mutual
        .map(|(name, secret)| known(format!("--mutual-user {name}"), ProvenSide::Target, secret));
    users.chain(mutual).collect()
}

fn collect(address: &Address, open: &OpenOptions, into: &mut Vec<KnownSecret>) {
    if let Address::Iscsi(unit) | Address::Iser(unit) = address {
        into.extend(of_unit(address, unit, open));
    }
    for inner in address.inner() {
        collect(inner, open, into);
    }
}

/// None where they cannot be read: opening the unit says why.
fn of_unit(address: &Address, unit: &UnitAddress, open: &OpenOptions) -> Vec<KnownSecret> {
    let user = unit.user.as_ref();
    let Some(chap) = user.and_then(|user| credentials(user, &unit.session, open).ok()) else {
        return Vec::new();
    };
    let known = |whose, proves, secret| KnownSecret {
        whose,
        proves,
        is_remote: true,
        secret,
    };
    let user = known(address.to_string(), ProvenSide::Initiator, chap.secret);
    let target = |secret| {
        known(
            format!("the target of {address}"),
            ProvenSide::Target,
            secret,
        )
    };
    let target = chap.mutual.map(|mutual| target(mutual.secret));
    [user].into_iter().chain(target).collect()
}

#[cfg(test)]
mod tests;
