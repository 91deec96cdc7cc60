//! From the row of a switch to its options.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use address::Time;
use engine::switch::options::{FastPathChoice, LldpMode, RingKind, SwitchOptions, Zoning, place};
use fc::fabric::zones::Zones;

use crate::tree::{FastPathUse, LldpUse, SwitchRow};

/// The options of a row that was checked, with its zones. N_Port_IDs are remembered in the state
/// directory where the row says nothing else.
pub(crate) fn switch_options(
    (name, row): (&str, &SwitchRow),
    zones: Arc<Zones>,
    (state, ring): (&Path, RingKind),
) -> SwitchOptions {
    let places = row.places.iter().filter_map(|written| place(written).ok());
    let default = SwitchOptions::new(places.collect());
    let wwn = |written: &Option<String>| written.as_ref().and_then(|name| name.parse().ok());
    let own = || state.join("switches").join(name);
    SwitchOptions {
        name: Some(name.to_owned()),
        domain: row.domain.unwrap_or(default.domain),
        vlan: row.vlan,
        priority: row.priority.unwrap_or(default.priority),
        fka: row.fka.map_or(default.fka, |Time(period)| period),
        fc_map: row
            .fc_map
            .as_ref()
            .and_then(|map| map.parse().ok())
            .unwrap_or_default(),
        fabric_name: wwn(&row.fabric_name),
        switch_name: wwn(&row.switch_name),
        zoning: Zoning::Given(zones),
        state: Some(row.state.as_ref().map_or_else(own, Into::into)),
        lldp: row.lldp.map_or(default.lldp, |lldp| match lldp {
            LldpUse::Send => LldpMode::Send,
            LldpUse::Listen => LldpMode::Listen,
            LldpUse::Off => LldpMode::Off,
        }),
        fast_path: row.fast_path.map_or(default.fast_path, |used| match used {
            FastPathUse::Auto => FastPathChoice::Auto,
            FastPathUse::Off => FastPathChoice::Off,
        }),
        threads: row.threads.and_then(|n| NonZeroUsize::new(n.into())),
        standby: row.standby,
        ring,
        ..default
    }
}

#[cfg(test)]
mod tests;
