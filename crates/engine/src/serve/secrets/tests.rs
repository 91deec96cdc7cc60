use super::*;
use crate::serve::options::{TargetChap, chap_user};
use crate::serve::plan;

const ADDRESS: &str = "iscsi://us@h/iqn.2026-11.org.lunar:t/0?mutual";

/// With the secrets of `--chap` and `--mutual-user`, of our user, and of its target.
fn checked(alice: &str, san: &str, us: &str, target: &str) -> Result<(), ServeError> {
    let secret = |text: &str| Zeroizing::new(format!("secret of {text}").into_bytes());
    let volumes = vec![format!("readonly({ADDRESS})")];
    let mut options = ServeOptions::new(volumes, "iqn.2026-11.org.lunar:us".into(), None);
    options.chap = Some(TargetChap {
        users: vec![chap_user("alice", secret(alice).to_vec())],
        mutual: Some(("san".into(), secret(san).to_vec())),
        minimum: iscsi::auth::Hash::Md5,
    });
    let open = OpenOptions {
        secret: Some(secret(us)),
        mutual_secret: Some(secret(target)),
        ..OpenOptions::new("iqn.2026-11.org.lunar.test:initiator".into()).unwrap()
    };
    check(&options, plan::inventory(&options)?.0.units.values(), &open)
}

#[test]
fn a_secret_proves_an_initiator_or_a_target() {
    checked("alice", "san", "us", "target").unwrap();
    checked("both", "san", "both", "target").unwrap();
    for (secrets, told) in [
        (
            ["same", "san", "us", "same"],
            ["--chap alice", "the target of iscsi://us@h"],
        ),
        (
            ["alice", "same", "same", "target"],
            ["--mutual-user san", "iscsi://us@h"],
        ),
    ] {
        let [alice, san, us, target] = secrets;
        let error = checked(alice, san, us, target).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        for whose in told {
            assert!(error.to_string().contains(whose), "{error}");
        }
    }
}
