//! Addresses of every shape.

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use ::io::ether::Place;
use fc::fip::enode::FcfPin;
use fc::wire::ethernet::Mac;
use iscsi::initiator::config::HASHES;
use proptest::prelude::*;

use super::fault_tests::any_faults;
use super::*;
use crate::SESSIONS_MAX;

pub(super) fn any_address() -> impl Strategy<Value = Address> {
    any_leaf().prop_recursive(4, 24, 3, |inner| {
        let one = || inner.clone().prop_map(Box::new);
        let several = || prop::collection::vec(inner.clone(), 2..4);
        let limits = prop_oneof![
            (1u64.., any::<Option<u64>>()).prop_map(|(a, b)| (Some(a), b)),
            (1u64..).prop_map(|b| (None, Some(b))),
        ];
        prop_oneof![
            (size(), several()).prop_map(|(chunk, volumes)| Address::Stripe { chunk, volumes }),
            several().prop_map(Address::Concat),
            several().prop_map(Address::Mirror),
            (limits, prop::option::of(any::<u32>()), one()).prop_map(
                |((iops, rate), burst, volume)| Address::Limit {
                    iops: iops.map(ItemCount),
                    rate: rate.map(|rate| ByteRate(rate.max(1))),
                    burst: burst.map(|micros| Time(Duration::from_micros(micros.into()))),
                    volume,
                }
            ),
            (any::<u64>(), one()).prop_map(|(micros, volume)| Address::Delay {
                time: Duration::from_micros(micros),
                volume,
            }),
            (any_faults(), one()).prop_map(|(faults, volume)| Address::Fault { faults, volume }),
            one().prop_map(Address::Verify),
            one().prop_map(Address::Readonly),
        ]
    })
}

fn any_leaf() -> impl Strategy<Value = Address> {
    prop_oneof![
        (size(), any::<bool>())
            .prop_map(|(size, locked)| Address::Ram(RamAddress { size, locked })),
        size().prop_map(Address::Null),
        any_file().prop_map(Address::File),
        (path(), any::<bool>())
            .prop_map(|(device, read_only)| Address::Block(BlockAddress { device, read_only })),
        path().prop_map(Address::Scsi),
        (word(), word(), prop::option::of(word())).prop_map(|(pool, image, snapshot)| {
            Address::Rbd(RbdAddress {
                pool,
                image,
                snapshot,
            })
        }),
        any_unit().prop_map(Address::Iscsi),
        (any_unit(), any_provider()).prop_map(|(unit, (via, crc))| {
            let session = SessionOptions {
                digests: None,
                via,
                crc,
                ..unit.session
            };
            Address::Iser(UnitAddress { session, ..unit })
        }),
        any_fcoe().prop_map(Address::Fcoe),
        "[a-z]{1,8}".prop_map(Address::Row),
    ]
}

/// What RDMA is done by, and whether CRCs are asked for.
fn any_provider() -> impl Strategy<Value = (Option<RdmaProvider>, Option<bool>)> {
    let soft = prop::option::of(Just(RdmaProvider::Software));
    let named = "[A-Za-z0-9_.-]{1,15}".prop_filter("a word of its own", |name| {
        !["soft", "device"].contains(&&*name.to_lowercase())
    });
    let device = prop_oneof![
        Just(RdmaProvider::Device),
        named.prop_map(RdmaProvider::Named)
    ];
    prop_oneof![
        (soft, any::<Option<bool>>()),
        device.prop_map(|device| (Some(device), None)),
    ]
}

fn any_file() -> impl Strategy<Value = FileAddress> {
    let flags = any::<[bool; 4]>();
    (path(), prop::option::of(size()), flags).prop_map(
        |(path, size, [sparse, direct, sync, read_only])| FileAddress {
            path,
            read_only: read_only && size.is_none(),
            size,
            sparse,
            direct,
            sync,
        },
    )
}

fn any_unit() -> impl Strategy<Value = UnitAddress> {
    let user = prop::option::of(word());
    let place = (any_host(), 1u16..);
    (user, place, ISCSI_NAME, 0..=LUN_MAX, any_session()).prop_map(
        |(user, (host, port), target, lun, session)| UnitAddress {
            session: match user {
                Some(_) => session,
                None => SessionOptions {
                    secret_file: None,
                    mutual: false,
                    mutual_secret_file: None,
                    chap_hash: None,
                    ..session
                },
            },
            user,
            portal: HostPort { host, port },
            target,
            lun,
        },
    )
}

fn any_fcoe() -> impl Strategy<Value = FcoeAddress> {
    let place = prop_oneof![
        "[^\\pC/ ]{1,3}".prop_map(Place::Interface),
        "[^\\pC/ ]{1,3}".prop_map(Place::Xdp),
        path().prop_map(Place::Cable),
    ];
    let time = |us: Range<u64>| prop::option::of(us.prop_map(|us| Time(Duration::from_micros(us))));
    let times = (time(1_000..10_000_000), time(1..u64::MAX));
    let wishes = (prop::option::of(1..=u64::MAX), any::<Option<bool>>());
    (place, any::<u64>(), 0..=LUN_MAX, any_mode(), times, wishes).prop_map(
        |(place, port_name, lun, mode, (e_d_tov, replacement), (key, write_cache))| FcoeAddress {
            place,
            port_name: Wwn(port_name),
            lun,
            options: FcoeOptions {
                mode,
                e_d_tov,
                replacement,
                key,
                write_cache,
            },
        },
    )
}

fn any_mode() -> impl Strategy<Value = FcoeMode> {
    let vlan = prop_oneof![
        Just(FabricVlan::None),
        Just(FabricVlan::Auto),
        (1_u16..=4094).prop_map(FabricVlan::Id),
    ];
    let fcf = prop_oneof![
        any::<[u8; 6]>().prop_map(|mac| FcfPin::Mac(Mac(mac))),
        any::<u64>().prop_map(|name| FcfPin::Switch(Wwn(name))),
    ];
    let name = any::<u64>().prop_map(Wwn);
    let options = (vlan, prop::option::of(fcf), prop::option::of(name));
    let fabric = options.prop_map(|(vlan, fcf, fabric)| {
        FcoeMode::Fabric(FabricOptions {
            vlan,
            fcf,
            fabric,
            ..FabricOptions::default()
        })
    });
    prop_oneof![Just(FcoeMode::Vn2Vn), fabric]
}

fn any_session() -> impl Strategy<Value = SessionOptions> {
    let time = || prop::option::of((1..u64::MAX).prop_map(|us| Time(Duration::from_micros(us))));
    let digests = prop::option::of(any::<bool>());
    let sessions = prop::option::of(1..=SESSIONS_MAX);
    let wishes = prop::option::of((1..=u64::MAX, any::<bool>()));
    let file = || prop::option::of(path());
    let hash = prop::option::of(prop::sample::select(HASHES.to_vec()));
    (
        (any::<bool>(), hash),
        (file(), file()),
        digests,
        (time(), time()),
        sessions,
        (wishes, prop::option::of(ISCSI_NAME)),
    )
        .prop_map(
            |(
                (mutual, chap_hash),
                (secret_file, mutual_secret_file),
                digests,
                (timeout, replacement),
                sessions,
                (wishes, initiator),
            )| {
                SessionOptions {
                    key: wishes.map(|(key, _)| key),
                    write_cache: wishes.map(|(_, on)| on),
                    secret_file,
                    mutual: mutual || mutual_secret_file.is_some(),
                    mutual_secret_file,
                    chap_hash,
                    digests,
                    via: None,
                    crc: None,
                    timeout,
                    replacement,
                    sessions,
                    initiator,
                }
            },
        )
}

/// A regular expression of iSCSI names.
const ISCSI_NAME: &str =
    "(iqn\\.20[0-9]{2}-0[1-9]\\.[a-z0-9][a-z0-9.:_ä-]{0,20}|(eui|naa)\\.[0-9a-f]{16})";

fn any_host() -> impl Strategy<Value = Host> {
    prop_oneof![
        "[a-z][a-z0-9.-]{0,9}".prop_map(Host::Name),
        any::<u32>().prop_map(|number| Host::V4(Ipv4Addr::from(number))),
        (any::<u128>(), prop::option::of(word()))
            .prop_map(|(number, zone)| Host::V6(Ipv6Addr::from(number), zone)),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    let exact = prop_oneof![1u64..5000, 1u64..];
    (exact, 0u32..5).prop_map(|(n, power)| Size(n.saturating_mul(1024u64.pow(power)).max(512)))
}

/// Any bytes but NUL.
fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(1u8.., 1..12).prop_map(|bytes| OsString::from_vec(bytes).into())
}

fn word() -> impl Strategy<Value = String> {
    "\\PC{1,8}"
}
