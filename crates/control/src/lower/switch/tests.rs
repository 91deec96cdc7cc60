//! Rows of switches as the engine has them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::switch::options::{FastPathChoice, LldpMode, RingKind, SwitchOptions, Zoning};
use fc::fabric::zones::Zones;

use super::switch_options;
use crate::document::parse;

fn options(keys: &str) -> SwitchOptions {
    let text = format!("version = 1\n[switch.a]\nplaces = [\"eth1\", \"cable:/run/b\"]\n{keys}");
    let tree = parse(&text).unwrap();
    let place = (Path::new("/state"), RingKind::Epoll);
    switch_options(("a", &tree.switch["a"]), Arc::new(Zones::open()), place)
}

#[test]
fn what_a_row_leaves_out_is_as_lunar_switch_has_it() {
    let options = options("");
    assert_eq!(options.validate(), Ok(()));
    let default = SwitchOptions::new(options.places.clone());
    assert_eq!(
        (options.domain, options.priority),
        (default.domain, default.priority)
    );
    assert_eq!((options.fka, options.fc_map), (default.fka, default.fc_map));
    assert_eq!((options.vlan, options.standby), (None, false));
    assert_eq!(
        (options.lldp, options.fast_path),
        (LldpMode::Send, FastPathChoice::Auto)
    );
    assert_eq!(options.zoning, Zoning::Given(Arc::new(Zones::open())));
    assert_eq!(
        options.state.as_deref(),
        Some(Path::new("/state/switches/a"))
    );
}

#[test]
fn what_a_row_says_counts() {
    let options = options(
        "domain = 9\nvlan = 152\npriority = 3\nfka = \"500ms\"\nfc-map = \"0e:fc:07\"\n\
         fabric-name = \"20:98:00:00:00:00:00:01\"\nswitch-name = \"10:00:00:00:00:00:00:02\"\n\
         state = \"/srv/ids\"\nlldp = \"listen\"\nfast-path = \"off\"\n\
         threads = 3\nstandby = true\n",
    );
    assert_eq!(options.validate(), Ok(()));
    assert_eq!(
        (options.domain, options.vlan, options.priority),
        (9, Some(152), 3)
    );
    assert_eq!(options.fka, Duration::from_millis(500));
    assert_eq!(options.fc_map.to_string(), "0e:fc:07");
    let names = [options.fabric_name, options.switch_name].map(|name| name.unwrap().to_string());
    assert_eq!(
        names,
        ["20:98:00:00:00:00:00:01", "10:00:00:00:00:00:00:02"]
    );
    assert_eq!(options.state.as_deref(), Some(Path::new("/srv/ids")));
    assert_eq!(
        (options.lldp, options.fast_path),
        (LldpMode::Listen, FastPathChoice::Off)
    );
    assert!(options.standby);
    assert_eq!(options.threads, NonZeroUsize::new(3));
}
