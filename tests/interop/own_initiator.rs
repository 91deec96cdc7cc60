//! Our own initiator, over a socket, with somebody else's target (tgtd) and with our own.

mod link;
mod tgtd;

use iscsi::auth::Hash;
use iscsi::initiator::config::{Auth, Digest, InitiatorChap, InitiatorConfig, Mutual};
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{Data, InitiatorEvent, Tmf};
use scsi::medium::{HeapLease, Lease};
use scsi::wire::lun::Lun;

use tests::server::Server;

use self::link::Link;
use self::tgtd::{TARGET, Tgtd};
use crate::{lunar_says, says};

const INITIATOR: &str = "iqn.2026-11.org.lunar:own";
const ISID: [u8; 6] = [0x80, 0, 0, 0, 0, 7];
const SECRET: &[u8] = b"a secret of twenty o";
const THEIRS: &[u8] = b"another secret, yes.";
/// More than a burst, and not a multiple of any.
const LEN: usize = 1_500_160;
const LENGTHS: [usize; 4] = [LEN, 65_536, 4096, 512];

/// A CDB of READ(10) or WRITE(10) from block 3 on.
fn cdb(opcode: u8, bytes: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[5] = 3;
    let blocks = u16::try_from(bytes / 512).unwrap();
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at / 251 + at + seed) as u8).collect()
}

/// Writes, reads back, resets, and leaves.
#[track_caller]
fn use_it(mut link: Link, lun: Lun, seed: usize) {
    let mut bytes = Vec::new();
    for (number, len) in LENGTHS.into_iter().enumerate() {
        // Of each write there is something left to be read that no other one wrote.
        let data = pattern(LENGTHS.len() * seed + number);
        bytes.splice(..len.min(bytes.len()), data[..len].iter().copied());
        let from = HeapLease::from_bytes(bytes[..len].to_vec());
        let write = link.execute(lun, cdb(0x2a, len), &Data::Out(from));
        assert_eq!(write.status, 0, "write {number}: {:?}", write.sense);
    }
    let into = HeapLease::from_bytes(vec![0; LEN]);
    let read = link.execute(lun, cdb(0x28, LEN), &Data::In(into));
    let Data::In(into) = read.data else {
        panic!("another lease");
    };
    let mut back = vec![0; LEN];
    into.copy_out(0, &mut back);
    assert!(back == bytes, "what was read is not what was written");
    // More is expected than the unit has to say, then a CDB that it refuses.
    let into = HeapLease::from_bytes(vec![0; 4096]);
    let mut inquiry = [0; 16];
    (inquiry[0], inquiry[3]) = (0x12, 0x10);
    let inquiry = link.execute(lun, inquiry, &Data::In(into));
    assert_eq!(inquiry.status, 0);
    let refused = link.execute(lun, [0xff; 16], &Data::None);
    assert_eq!(refused.status, 2);
    assert_eq!(refused.sense.as_slice()[2] & 15, 5, "ILLEGAL REQUEST");
    link.manage(lun, Tmf::LogicalUnitReset);
    match link.event() {
        InitiatorEvent::Managed { response, .. } => assert_eq!(response, Some(0)),
        other => panic!("{other:?} where task management was expected"),
    }
    assert_eq!(link.leave(), SessionEnd::LoggedOut);
}

fn credentials(mutual: bool) -> InitiatorChap {
    InitiatorChap {
        user: "user".into(),
        secret: SECRET.to_vec().into(),
        mutual: mutual.then(|| Mutual {
            name: Some("them".into()),
            secret: THEIRS.to_vec().into(),
        }),
        hashes: vec![Hash::Md5],
    }
}

/// Every way to have digests and to announce data.
fn combinations(target: &str) -> Vec<InitiatorConfig> {
    let base = InitiatorConfig::normal(INITIATOR, ISID, target);
    let digests = [Digest::Never, Digest::Require];
    let mut all = Vec::new();
    for digest in digests {
        for (initial_r2t, immediate_data) in [(false, true), (true, false), (true, true)] {
            let mut config = base.clone();
            config.offer.header_digest = digest;
            config.offer.data_digest = digest;
            config.offer.keys.initial_r2t = initial_r2t;
            config.offer.keys.immediate_data = immediate_data;
            all.push(config);
        }
    }
    all
}

#[test]
fn own_initiator_at_tgtd() {
    let tgtd = Tgtd::start("plain", &[]);
    for (seed, config) in combinations(TARGET).into_iter().enumerate() {
        if config.offer.header_digest == Digest::Require {
            tgtd.digests();
        }
        let link = Link::logged_in(tgtd.portal, config);
        use_it(link, Lun::from_index(1), seed);
    }
    let targets = Link::targets(tgtd.portal, InitiatorConfig::discovery(INITIATOR, ISID));
    assert_eq!(targets[0].name, TARGET);
    assert_eq!(targets[0].portals[0].port, tgtd.portal.port());
    let nowhere = InitiatorConfig::normal(INITIATOR, ISID, "iqn.2026-11.org.lunar.test:none");
    let told = Link::refused(tgtd.portal, nowhere);
    says(&told, &["this portal has no such target"]);
}

/// LUN 0 of every target of tgtd is no disk, but a controller.
#[test]
fn ls_tells_the_units_of_tgtd() {
    let tgtd = Tgtd::start("ls", &[]);
    let portal = tgtd.portal.to_string();
    let text = lunar_says(&["ls", &portal]);
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{text}");
    says(rows[0], &["LUN 0: it is not a disk"]);
    let unit = format!("iscsi://{portal}/{TARGET}/1");
    says(rows[1], &["16.0 MiB", &unit]);
}

/// Uses tgtd with CHAP, and not with another secret; gives what is said of that.
fn proves_itself(name: &str, accounts: &[&str], spoil: impl FnOnce(&mut InitiatorChap)) -> String {
    let tgtd = Tgtd::start(name, accounts);
    let mut config = InitiatorConfig::normal(INITIATOR, ISID, TARGET);
    let mut chap = credentials(accounts.len() > 1);
    config.auth = Auth::Chap(chap.clone());
    let link = Link::logged_in(tgtd.portal, config.clone());
    use_it(link, Lun::from_index(1), 1);
    spoil(&mut chap);
    config.auth = Auth::Chap(chap);
    Link::refused(tgtd.portal, config)
}

#[test]
fn own_initiator_proves_itself_to_tgtd() {
    let told = proves_itself("chap", &["user"], |chap| chap.secret.push(b'!'));
    says(&told, &["rejected CHAP user"]);
}

#[test]
fn own_initiator_and_tgtd_prove_themselves() {
    let spoil = |chap: &mut InitiatorChap| {
        let mutual = chap.mutual.as_mut().unwrap();
        mutual.secret.push(b'!');
    };
    let told = proves_itself("mutual", &["user", "them"], spoil);
    says(&told, &["failed mutual CHAP"]);
}

/// tgtd takes the number of SHA-256 for SHA1. What the message advises has to help.
#[test]
fn the_verbs_log_in_to_tgtd_by_the_hash_that_it_knows() {
    let tgtd = Tgtd::start("hash", &["user"]);
    let dir = tests::scratch("tgtd-hash-secret").unwrap();
    let secret = crate::secret(&dir, "secret", std::str::from_utf8(SECRET).unwrap());
    let portal = tgtd.portal.to_string();
    let ls = ["ls", &portal, "--user", "user", "--secret-file", &secret];
    says(&lunar_says(&ls), &["or --chap-hash md5 to lunar ls"]);
    let told = lunar_says(&[&ls[..], &["--chap-hash", "md5"]].concat());
    let address = told.split_whitespace().find(|word| {
        word.starts_with(&format!("iscsi://user@{portal}/{TARGET}/1?"))
            && word.ends_with("&chap-hash=md5")
    });
    let told = lunar_says(&["info", address.expect(&told)]);
    says(&told, &["CHAP with md5"]);
}

#[test]
fn own_initiator_at_our_own_target() {
    let server = Server::start("own-initiator", &["ram:16M"], &[]).unwrap();
    let lun = &server.luns[0];
    let portal = lun.portals[0].parse().unwrap();
    for (seed, config) in combinations(&lun.target).into_iter().enumerate() {
        let link = Link::logged_in(portal, config);
        use_it(link, Lun::from_index(lun.lun), seed);
    }
    let targets = Link::targets(portal, InitiatorConfig::discovery(INITIATOR, ISID));
    assert_eq!(targets[0].name, lun.target);
}
