use super::*;

#[tokio::test]
async fn a_user_that_is_not_known_may_do_nothing() {
    let users = Users::default();
    let stranger = PeerCredentials {
        uid: 4_000_000_000,
        gid: 4_000_000_000,
    };
    let user = users.user(stranger).await;
    assert_eq!((&*user.name, user.role), ("uid 4000000000", Role::None));
    assert_eq!(users.fresh(stranger), Some(user));
}

#[tokio::test]
async fn the_daemons_own_user_may_do_everything() {
    let own = PeerCredentials {
        uid: uzers::get_effective_uid(),
        gid: uzers::get_effective_gid(),
    };
    assert_eq!(Users::default().user(own).await.role, Role::Admin);
}

#[test]
fn what_is_remembered_is_bounded() {
    let users = Users::default();
    for uid in 0..2 * KNOWN_MAX as u32 {
        let user = User {
            name: String::new(),
            role: Role::None,
        };
        users.remember(PeerCredentials { uid, gid: 0 }, user);
    }
    let known = users.known.lock().unwrap();
    assert_eq!(known.len(), KNOWN_MAX);
}
