//! Any trees, for tests of properties.

use std::time::Duration;

use address::{ByteRate, ItemCount, Size, Time};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::check::check;
use crate::secret::SecretSource;
use crate::tree::{
    Access, ChapRow, DigestUse, FastPathUse, GroupRow, HashName, LimitRow, LldpUse, LoginRow,
    LunNumber, LunRow, LunRows, PortalGroupTag, PortalIser, PortalRow, Portals, SwitchRow,
    TargetRow, Tree, VolumeRow,
};

const VOLUMES: [&str; 4] = ["a", "b", "vm1", "long name"];
const LLDP_USES: [LldpUse; 3] = [LldpUse::Send, LldpUse::Listen, LldpUse::Off];
const FAST_PATH_USES: [FastPathUse; 2] = [FastPathUse::Auto, FastPathUse::Off];
const GROUPS: [&str; 3] = ["cluster", "guests", "g"];

/// A tree whose references lead somewhere, if `volume` and `group` have such rows.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let volumes = btree_map(prop::sample::select(&VOLUMES[..]), volume(), 0..4);
    let groups = btree_map(prop::sample::select(&GROUPS[..]), group(), 0..3);
    let targets = btree_map(0_u8..3, target(), 0..3);
    let switches = btree_map(0_u8..2, switch(), 0..2);
    let rows = (volumes, groups, targets, switches);
    rows.prop_map(|(volumes, groups, targets, switches)| Tree {
        switch: switches
            .into_iter()
            .map(|(number, row)| (format!("s{number}"), row))
            .collect(),
        volume: volumes
            .into_iter()
            .map(|(name, row)| (name.to_owned(), row))
            .collect(),
        group: groups
            .into_iter()
            .map(|(name, row)| (name.to_owned(), row))
            .collect(),
        target: targets
            .into_iter()
            .map(|(number, row)| (format!("iqn.2026-11.org.example:t{number}"), row))
            .collect(),
        ..Tree::default()
    })
}

/// Initiators of a [`tree_of_views`], and one that none of its rows names.
pub(crate) const ISCSI_NAMES: &[&str] = &[
    "iqn.2026-11.org.example:h0",
    "iqn.2026-11.org.example:h1",
    "iqn.2026-11.org.example:h2",
    "iqn.2026-11.org.example:stranger",
];
pub(crate) const PORT_NAMES: &[&str] = &[
    "20:00:00:00:5e:00:53:00",
    "20:00:00:00:5e:00:53:0a",
    "20:00:00:00:5e:00:53:ff",
];

/// The same as rows name them, in any spelling.
const NAMED: [&str; 6] = [
    "*",
    "iqn.2026-11.org.example:h0",
    "iqn.2026-11.org.example:H1",
    "iqn.2026-11.org.example:h2",
    "20:00:00:00:5e:00:53:00",
    "20:00:00:00:5E:00:53:0A",
];
/// What a name of `allow` can be: a group, or one of [`NAMED`].
const ALLOWED: [&str; 9] = [
    GROUPS[0], GROUPS[1], GROUPS[2], NAMED[0], NAMED[1], NAMED[2], NAMED[3], NAMED[4], NAMED[5],
];

/// A tree in which nothing is wrong, with targets of both kinds that let initiators in, and show
/// them LUNs, in all ways that there are.
pub(crate) fn tree_of_views() -> impl Strategy<Value = Tree> {
    let named = || vec(prop::sample::select(&NAMED[..]), 0..4);
    let trees = (
        [named(), named(), named()],
        target_of_views(portals_of_iscsi()),
        target_of_views(Just(Portals::One(vec!["fcoe:int0".into()]))),
    );
    let trees = trees.prop_map(|(groups, iscsi, port)| {
        let group = |(name, names): (&&str, Vec<&str>)| {
            let row = GroupRow {
                initiators: owned(&names),
                ..GroupRow::default()
            };
            ((*name).to_owned(), row)
        };
        let volume = |name: &&str| ((*name).to_owned(), VolumeRow::new("null:1G".to_owned()));
        Tree {
            volume: SEEN.iter().map(volume).collect(),
            group: GROUPS.iter().zip(groups).map(group).collect(),
            target: [
                ("iqn.2026-11.org.example:san".to_owned(), iscsi),
                ("20:00:ac:de:48:23:45:67".to_owned(), port),
            ]
            .into(),
            ..Tree::default()
        }
    });
    trees.prop_filter("it has to pass", |tree| check(tree).problems.is_empty())
}

const SEEN: [&str; 2] = ["a", "b"];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn target_of_views(portals: impl Strategy<Value = Portals>) -> impl Strategy<Value = TargetRow> {
    let allow = vec(prop::sample::select(&ALLOWED[..]), 0..4);
    let view = btree_map(prop::sample::select(&GROUPS[..]), luns_of(&SEEN), 0..3);
    (portals, luns_of(&SEEN), allow, view).prop_map(|(portals, luns, allow, view)| {
        let view = view.into_iter();
        TargetRow {
            portals,
            luns,
            allow: owned(&allow),
            view: view.map(|(name, luns)| (name.to_owned(), luns)).collect(),
            ..TargetRow::default()
        }
    })
}

fn portals_of_iscsi() -> impl Strategy<Value = Portals> {
    const PORTALS: [&str; 5] = [
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]:3261",
        "[::]:3261",
    ];
    let own = vec(portal(prop::sample::select(&PORTALS[..])), 1..3);
    let groups = btree_map((1_u16..4).prop_map(PortalGroupTag), own, 1..3);
    groups.prop_map(Portals::Groups)
}

/// A portal of this address, with iSER or without.
fn portal<T: Into<String>>(address: impl Strategy<Value = T>) -> impl Strategy<Value = PortalRow> {
    // What LIO has comes back as software iWARP.
    let iser = prop::bool::weighted(0.3).prop_map(PortalIser::from);
    let rows = (address, iser);
    rows.prop_map(|(address, iser)| PortalRow {
        address: address.into(),
        iser,
    })
}

fn volume() -> impl Strategy<Value = VolumeRow> {
    let address = prop_oneof![
        Just("ram:1M".to_owned()),
        (1_u8..9).prop_map(|size| format!("null:{size}G")),
        (0_u8..3).prop_map(|number| format!("file:/srv/{number}.img?size=1G&sparse")),
    ];
    let limit = [1_u64..5000, 1..5000, 0..5000]
        .map(option::of)
        .prop_map(|[iops, rate, burst]| LimitRow {
            iops: iops.map(ItemCount),
            rate: rate.map(|rate| ByteRate(rate << 10)),
            burst: burst.map(|millis| Time(Duration::from_millis(millis))),
        });
    (
        address,
        option::of("[A-Z]{4}"),
        any::<bool>(),
        option::of(limit),
    )
        .prop_map(|(address, serial, readonly, limit)| VolumeRow {
            serial,
            readonly,
            limit,
            ..VolumeRow::new(address)
        })
}

fn group() -> impl Strategy<Value = GroupRow> {
    let chap = "[a-z]{1,5}".prop_map(|user| ChapRow {
        secret: SecretSource::State(user.clone()),
        user,
    });
    (names(), option::of(chap), any::<bool>()).prop_map(|(initiators, chap, weak)| GroupRow {
        initiators,
        chap,
        mutual: None,
        chap_min: weak.then_some(HashName::Md5),
    })
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let name = (0_u8..4).prop_map(|number| format!("iqn.2026-11.org.example:h{number}"));
    vec(name, 0..3)
}

fn luns() -> impl Strategy<Value = LunRows> {
    luns_of(&VOLUMES)
}

fn luns_of(volumes: &'static [&'static str]) -> impl Strategy<Value = LunRows> {
    let lun = (prop::sample::select(volumes), any::<bool>()).prop_map(|(volume, limited)| {
        if limited {
            LunRow::Limited {
                volume: volume.to_owned(),
                access: Access::ReadOnly,
            }
        } else {
            LunRow::Volume(volume.to_owned())
        }
    });
    btree_map((0_u16..12).prop_map(LunNumber), lun, 0..4)
}

fn target() -> impl Strategy<Value = TargetRow> {
    let portals = prop_oneof![
        vec(
            portal((1_u16..4).prop_map(|port| format!("127.0.0.1:{port}"))),
            0..3
        )
        .prop_map(Portals::One),
        btree_map(
            (1_u16..9).prop_map(PortalGroupTag),
            vec(portal(Just("[::1]")), 1),
            1..3
        )
        .prop_map(Portals::Groups),
    ];
    let view = btree_map(prop::sample::select(&GROUPS[..]), luns(), 0..2);
    let alias = option::of("[a-z ]{1,6}");
    (portals, luns(), names(), view, alias, option::of(login())).prop_map(
        |(portals, luns, allow, view, alias, login)| TargetRow {
            alias,
            portals,
            luns,
            allow,
            view: view
                .into_iter()
                .map(|(name, luns)| (name.to_owned(), luns))
                .collect(),
            login,
        },
    )
}

fn switch() -> impl Strategy<Value = SwitchRow> {
    let places = vec((0_u8..4).prop_map(|number| format!("eth{number}")), 1..3);
    let line = (0_u8..4).prop_map(|number| format!("zone z{number} = port:eth{number}"));
    let name = option::of((1_u64..9).prop_map(|name| format!("10:00:00:00:00:00:00:0{name}")));
    let numbers = (
        option::of(1_u8..240),
        option::of(1_u16..4095),
        option::of(1_u16..17),
    );
    let fka = option::of((250_u64..9000).prop_map(|millis| Time(Duration::from_millis(millis))));
    let zoning = (vec(line, 0..3), any::<bool>());
    let uses = (
        option::of(prop::sample::select(&LLDP_USES[..])),
        option::of(prop::sample::select(&FAST_PATH_USES[..])),
    );
    (places, zoning, numbers, fka, name, uses, any::<bool>()).prop_map(
        |(places, (zones, open), (domain, vlan, threads), fka, switch_name, uses, standby)| {
            SwitchRow {
                places,
                zone_file: (!open && zones.is_empty()).then(|| "/etc/lunar/zones".to_owned()),
                open: open && zones.is_empty(),
                zones,
                domain,
                vlan,
                threads,
                fka,
                switch_name,
                lldp: uses.0,
                fast_path: uses.1,
                standby,
                ..SwitchRow::default()
            }
        },
    )
}

fn login() -> impl Strategy<Value = LoginRow> {
    (any::<bool>(), option::of(9_u64..15), option::of(1_u16..200)).prop_map(
        |(digest, burst, outstanding)| LoginRow {
            data_digest: digest.then_some(DigestUse::Crc32c),
            immediate_data: Some(digest),
            max_burst_length: burst.map(|power| Size(1 << power)),
            max_outstanding_r2t: outstanding,
            ..LoginRow::default()
        },
    )
}
