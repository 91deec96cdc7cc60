//! Addresses that are right read back as they are written; those that are wrong say why.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::any::any_address;
use super::*;

fn parse(text: &str) -> Address {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The messages for several addresses that are wrong.
fn errors(texts: &[&str]) -> String {
    let message = |text: &&str| match text.parse::<Address>() {
        Ok(address) => format!("{text} is accepted: {address:?}"),
        Err(error) => error.to_string(),
    };
    texts.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn every_example_of_the_manual_is_written_as_it_was_read() {
    for text in [
        "ram:1G",
        "ram:1G?locked",
        "null:1T",
        "file:/path",
        "file:/path?size=10G&sparse",
        "file:/path?direct&sync",
        "file:/path?readonly",
        "block:/dev/nvme0n1",
        "block:/dev/nvme0n1?readonly",
        "scsi:/dev/sg3",
        "rbd:pool/image@snap",
        "rbd:pool/image",
        "iscsi://user@host:3260/iqn.2026-11.org.example:disk0/0",
        "iser://host:3260/iqn.2026-11.org.example:disk0/3",
        "iser://host:3260/iqn.2026-11.a:b/0?via=soft&crc=off",
        "iser://host:3260/iqn.2026-11.a:b/0?via=device&sessions=2",
        "iser://host:3260/iqn.2026-11.a:b/0?via=mlx5_0",
        "iscsi://me@host:3260/iqn.2026-11.a:b/0?mutual&digests=none&timeout=5s&replacement=2m",
        "iscsi://host:3260/iqn.2026-11.a:b/0?digests=crc32c",
        "iscsi://host:3260/iqn.2026-11.a:b/0?initiator=iqn.2026-11.org.example:host",
        "iscsi://host:3260/iqn.2026-11.a:b/0?key=1f00d&write-cache=off",
        "iscsi://host:3260/iqn.2026-11.a:b/0?key=ffffffffffffffff&write-cache=on",
        "iscsi://host:3260/iqn.2026-11.a:b/0?timeout=5s&sessions=64",
        "iscsi://me@host:3260/iqn.2026-11.a:b/0?secret-file=/etc/me%26us&mutual-secret-file=them",
        "iscsi://me@host:3260/iqn.2026-11.a:b/0?chap-hash=sha3-256&digests=none",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0",
        "fcoe://eth0.100/20:00:ac:de:48:23:45:67/3?e_d_tov=100ms&replacement=2m",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?key=1f00d&write-cache=off",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=auto&e_d_tov=100ms",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=152&fcf=00:0d:ec:6d:8f:00",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&fcf=20:98:00:0d:ec:6d:8f:01",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&fabric=20:98:00:0d:ec:6d:8f:01",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&npiv=20:00:ac:de:48:23:45:68",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&npiv=20:00:ac:de:48:23:45:68+\
         20:00:ac:de:48:23:45:69",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&dcb=required&replacement=2m",
        "fcoe://xdp:eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=auto&dcb=apply",
        "fcoe://cable:/run/x.sock/20:00:ac:de:48:23:45:67/0",
        "fcoe://xdp:eth0/20:00:ac:de:48:23:45:67/0",
        "stripe:64k(ram:1G,ram:1G)",
        "concat(ram:1G,file:/path?size=1G&direct)",
        "mirror(ram:1G,ram:1G)",
        "limit:iops=10k,rate=100M(null:1T)",
        "limit:rate=100M,burst=500ms(null:1T)",
        "delay:5ms(ram:1G)",
        "fault:read=0.5,write=enospc@10G,flush=gone,torn,seed=7(ram:1G)",
        "verify(ram:1G)",
        "stats(ram:1G)",
        "readonly(mirror(stripe:4k(ram:1G,ram:1G),file:/a%2Cb))",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn what_an_iscsi_address_leaves_out_is_filled_in() {
    let Address::Iscsi(unit) = parse("iscsi://[2001:db8::1]/iqn.2026-11.org.example:d") else {
        panic!("another scheme");
    };
    assert_eq!(unit.user, None);
    assert_eq!((unit.portal.port, unit.lun), (3260, 0));
    let written = unit.to_string();
    assert_eq!(written, "[2001:db8::1]:3260/iqn.2026-11.org.example:d/0");
}

#[test]
fn letters_of_sizes_are_binary_and_those_of_counts_decimal() {
    assert_eq!(parse("ram:3K"), Address::Ram(Size(3072).into()));
    assert_eq!(parse("ram:1024k"), Address::Ram(Size(1 << 20).into()));
    for same in ["1.5G", "1536MiB", "1610612736B", "1.50GiB"] {
        assert_eq!(
            parse(&format!("ram:{same}")),
            Address::Ram(Size(3 << 29).into()),
            "{same}"
        );
    }
    assert_eq!(parse("ram:2P"), Address::Ram(Size(1 << 51).into()));
    let limit = parse("limit:iops=2k,rate=2k(null:1k)");
    let Address::Limit { iops, rate, .. } = limit else {
        panic!("another wrapper");
    };
    assert_eq!((iops, rate), (Some(ItemCount(2000)), Some(ByteRate(2048))));
}

#[test]
fn a_comma_and_a_parenthesis_end_a_leaf_only_inside_parentheses() {
    let path = |text| match parse(text) {
        Address::File(file) => file.path,
        other => panic!("{other:?}"),
    };
    assert_eq!(path("file:/a,b)c"), PathBuf::from("/a,b)c"));
    assert_eq!(path("file:/a%28b%25"), PathBuf::from("/a(b%"));
    assert_eq!(parse("concat(file:/a,file:/b)").inner().len(), 2);
}

#[test]
fn leaves_are_told_in_the_order_in_which_they_are_written() {
    for text in [
        "ram:1M",
        "concat(ram:1M,stats(stripe:64k(ram:2M,ram:3M)),ram:4M)",
    ] {
        let address = parse(text);
        let leaves: Vec<_> = address.leaves().map(Address::to_string).collect();
        let expected = text.split([',', '(', ')']);
        let expected: Vec<_> = expected.filter(|word| word.starts_with("ram")).collect();
        assert_eq!(leaves, expected);
    }
}

#[test]
fn portals_come_with_and_without_a_scheme() {
    for (text, written) in [
        ("192.0.2.1", "iscsi://192.0.2.1:3260"),
        ("storage.example:0", "iscsi://storage.example:0"),
        ("[fe80::1%25eth0]:860", "iscsi://[fe80::1%25eth0]:860"),
        ("iser://host", "iser://host:3260"),
        ("fcoe://eth0", "fcoe://eth0"),
        ("fcoe://cable:/run/x.sock", "fcoe://cable:/run/x.sock"),
    ] {
        let portal: PortalAddress = text.parse().unwrap();
        assert_eq!(portal.to_string(), written);
        assert_eq!(written.parse::<PortalAddress>().unwrap(), portal);
    }
    for unit in [
        "fcoe://eth0/20:00",
        "fcoe://eth0?mode=vn2vn",
        "iscsi://host/iqn.2026-11.a",
    ] {
        assert!(unit.parse::<PortalAddress>().is_err(), "{unit}");
    }
}

#[test]
fn error_unknown_scheme() {
    assert_snapshot!(errors(&[
        "",
        " ram:1G",
        "/srv/disk.img",
        "disk.img",
        "/dev/sdb",
        "/dev/sg3",
        "fiel:/x",
        "rma:1G",
        "http://x/",
        ":1G",
        "mirror(ram:1G, ram:1G)",
        "Ram:1G",
    ]));
}

#[test]
fn error_body() {
    assert_snapshot!(errors(&[
        "ram",
        "ram:",
        "file:",
        "file:?size=1G",
        "file:/a(1)",
        "file:/a&direct",
        "file:/50%",
        "file:/%0g",
        "file:/a%00b",
        "rbd:image",
        "rbd:a/b/c",
        "iscsi:host",
        "scsi:/dev/sg0?direct",
    ]));
}

#[test]
fn error_number() {
    assert_snapshot!(errors(&[
        "ram:0",
        "ram:G",
        "ram:1.3k",
        "ram:1.k",
        "ram:1GB",
        "ram:-1",
        "ram:1E",
        "ram:99999999999999999999",
        "ram:16777216T",
        "delay:5h(ram:1G)",
        "delay:ms(ram:1G)",
        "limit:iops=0(ram:1G)",
        "limit:rate=fast(ram:1G)",
        "limit:burst=1s(ram:1G)",
        "limit:iops=1,burst=long(ram:1G)",
        "stripe:0(ram:1G,ram:1G)",
    ]));
}

#[test]
fn error_option() {
    assert_snapshot!(errors(&[
        "file:/x?sise=1G",
        "file:/x?color=red",
        "ram:1G?direct",
        "ram:1G?locked=yes",
        "ram:1G?locked&locked",
        "ram:1G?lock",
        "null:1G?locked",
        "file:/x?locked",
        "block:/dev/sdb?locked",
        "iser://host/iqn.2026-11.a?locked",
        "stripe:64k(ram:1G,ram:1G)?locked",
        "file:/x?direct=1",
        "file:/x?size",
        "file:/x?size=",
        "file:/x?direct&direct",
        "file:/x?size=1G?direct",
        "file:/x?",
        "file:/x?size=1G&readonly",
        "block:/dev/sdb?read-only",
        "file:/x?direct(",
    ]));
}

#[test]
fn error_remote() {
    assert_snapshot!(errors(&[
        "iscsi://",
        "iscsi:///iqn.2026-11.org.example:d",
        "iscsi://host",
        "iscsi://host/",
        "iscsi://host/disk0",
        "iscsi://host:99999/iqn.2026-11.a",
        "iscsi://host:0/iqn.2026-11.a",
        "iscsi://::1/iqn.2026-11.a",
        "iscsi://[::1/iqn.2026-11.a",
        "iscsi://[::1]x/iqn.2026-11.a",
        "iscsi://[::g]/iqn.2026-11.a",
        "iscsi://ho_st!/iqn.2026-11.a",
        "iscsi://1.2.3/iqn.2026-11.a",
        "iscsi://host/iqn.2026-11.a/x",
        "iscsi://host/iqn.2026-11.a/16384",
        "iscsi://host/iqn.2026-11.a/0/1",
        "iscsi://@host/iqn.2026-11.a",
        "iscsi://host/iqn.2026-11.a?mutual",
        "iscsi://host/iqn.2026-11.a?digests=md5",
        "iscsi://host/iqn.2026-11.a?digests",
        "iscsi://host/iqn.2026-11.a?timeout=0s",
        "iscsi://host/iqn.2026-11.a?replacement=2h",
        "iscsi://host/iqn.2026-11.a?secret-file=/secret",
        "iscsi://host/iqn.2026-11.a?mutual-secret-file=/secret",
        "iscsi://host/iqn.2026-11.a?chap-hash=md5",
        "iscsi://me@host/iqn.2026-11.a?chap-hash=sha512",
        "iscsi://me@host/iqn.2026-11.a?chap-hash",
        "iscsi://me@host/iqn.2026-11.a?secret-file",
        "iscsi://me@host/iqn.2026-11.a?secret-file=",
        "iscsi://host/iqn.2026-11.a?sessions=0",
        "iscsi://host/iqn.2026-11.a?sessions=65",
        "iscsi://host/iqn.2026-11.a?sessions=99999999999999999999",
        "iscsi://host/iqn.2026-11.a?sessions=+2",
        "iscsi://host/iqn.2026-11.a?sessions=two",
        "iscsi://host/iqn.2026-11.a?sessions=",
        "iscsi://host/iqn.2026-11.a?sessions",
        "iscsi://host/iqn.2026-11.a?key=0",
        "iscsi://host/iqn.2026-11.a?key=12345678901234567",
        "iscsi://host/iqn.2026-11.a?key=+1",
        "iscsi://host/iqn.2026-11.a?key=secret",
        "iscsi://host/iqn.2026-11.a?key",
        "iscsi://host/iqn.2026-11.a?initiator=host",
        "iscsi://host/iqn.2026-11.a?initiator",
        "iscsi://host/iqn.2026-11.a?write-cache=yes",
        "iscsi://host/iqn.2026-11.a?write-cache",
        "iscsi://host/iqn.2026-11.a?retries=2",
        "iscsi://me:geheim@host/iqn.2026-11.a",
        "iscsi://host/iqn.2026-11.a?via=soft",
        "iser://host/iqn.2026-11.a?via",
        "iser://host/iqn.2026-11.a?via=",
        "iser://host/iqn.2026-11.a?via=mlx5/0",
        "iser://host/iqn.2026-11.a?via=Soft",
        "iser://host/iqn.2026-11.a?crc=off&via=device",
        "iser://host/iqn.2026-11.a?via=rxe0&crc=on",
        "iser://host/iqn.2026-11.a?via=soft&digests=none",
    ]));
}

#[test]
fn error_fcoe() {
    assert_snapshot!(errors(&[
        "fcoe://eth0",
        "fcoe://eth0/20:00",
        "fcoe:///20:00:ac:de:48:23:45:67",
        "fcoe://eth0/20:00:ac:de:48:23:45:67:00/0",
        "fcoe://cable:/run/x.sock",
        "fcoe://cable:/run/x.sock/20:00:ac:de:48:23:45:67/disk",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=star",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?vlan=152",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=vn2vn&fcf=00:0d:ec:6d:8f:00",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=4095",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=+5",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&fcf=switch",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&fabric=20:98",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&npiv=20:98",
        "fcoe://cable:/x/20:00:ac:de:48:23:45:67/0?mode=fabric&npiv=20:00:ac:de:48:23:45:68",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?dcb=required",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&dcb=on",
        "fcoe://cable:/x/20:00:ac:de:48:23:45:67/0?mode=fabric&dcb=apply",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?e_d_tov=0s",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?e_d_tov=11s",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?e_d_tov=fast",
        "fcoe://eth0/20:00:ac:de:48:23:45:67/0?user=me",
    ]));
}

#[test]
fn error_wrapper() {
    assert_snapshot!(errors(&[
        "stripe:64k",
        "stripe(ram:1G,ram:1G)",
        "mirror",
        "mirror()",
        "mirror(ram:1G)",
        "mirror:2(ram:1G,ram:1G)",
        "readonly(ram:1G,ram:1G)",
        "readonly(ram:1G",
        "readonly(ram:1G))",
        "readonly(readonly(ram:1G)x)",
        "limit(ram:1G)",
        "limit:10k(ram:1G)",
        "limit:ipos=1(ram:1G)",
        "limit:iops=1,iops=2(ram:1G)",
        "fault:(ram:1G)",
        "fault:a=%(ram:1G)",
        "ram:1G,ram:1G)",
        "concat(ram:1G,,ram:1G)",
    ]));
}

#[test]
fn error_nesting_is_bounded() {
    let deep = format!("{}ram:1G{}", "verify(".repeat(5000), ")".repeat(5000));
    let error = deep.parse::<Address>().unwrap_err();
    assert_eq!(*error.problem(), SyntaxProblem::TooDeep);
}

#[test]
fn error_hides_a_secret() {
    let text = "iscsi://me:geheim@host/iqn.2026-11.a";
    let error = text.parse::<Address>().unwrap_err();
    assert!(!error.to_string().contains("geheim"));
    assert!(!format!("{error:?}").contains("geheim"));
}

#[test]
fn error_portal() {
    let message = |text: &str| match text.parse::<PortalAddress>() {
        Ok(portal) => format!("{text} is accepted: {portal:?}"),
        Err(error) => error.to_string(),
    };
    let all = [
        "",
        "::1",
        "[::1",
        "host:http",
        "nvme://host",
        "iscsi://host/iqn.2026-11.a",
        "fcoe://",
        "fcoe://cable:",
        "fcoe://eth0/20:00:ac:de:48:23:45:67",
    ];
    assert_snapshot!(all.map(message).join("\n\n"));
}

proptest! {
    #[test]
    fn any_address_reads_back_as_it_is_written(address in any_address()) {
        let text = address.to_string();
        let read = text.parse::<Address>();
        prop_assert_eq!(read.map_err(|error| error.to_string()), Ok(address), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_span_inside_it(text in "\\PC{0,40}") {
        if let Err(error) = text.parse::<Address>() {
            prop_assert!(text.get(error.span()).is_some());
            prop_assert!(error.to_string().contains('^'));
        }
    }

    #[test]
    fn any_text_near_the_grammar_is_read_or_refused(
        text in NEAR_THE_GRAMMAR,
    ) {
        match text.parse::<Address>() {
            Ok(address) => prop_assert_eq!(address.to_string().parse(), Ok(address)),
            Err(error) => prop_assert!(text.get(error.span()).is_some()),
        }
    }
}

const NEAR_THE_GRAMMAR: &str = concat!(
    "((ram|file|iscsi|fcoe|rbd|limit|stripe|readonly|fault)",
    "[:/?&=%@,()\\[\\]a-z0-9]{0,9}){1,4}",
);
