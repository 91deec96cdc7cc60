//! `/v1/tokens`: an administrator makes, lists and revokes tokens.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TokenError, TokenInfo, Tokens, seconds};
use crate::api::body::{JsonBody, Segment};
use crate::api::caller::Role;
use crate::api::{Answer, Caller, Problem, Shared, blocking};
use crate::check::is_row_name;

/// A wish for a token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it shall be called.
    pub name: String,
    /// What it shall be good for: `view`, `operate` or `admin`.
    pub role: Role,
    /// For how long it counts, in seconds; for ever without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub valid_s: Option<u64>,
}

/// A token that was made, and what it is shown by, which is never told again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownToken {
    /// What stands behind `Authorization: Bearer`.
    pub token: String,
    /// What is kept of it.
    #[serde(flatten)]
    pub info: TokenInfo,
}

type Store = State<Arc<Tokens>>;

pub(in crate::api) async fn create(
    State(tokens): Store,
    State(plane): Shared,
    caller: Caller,
    JsonBody(wish): JsonBody<NewToken>,
) -> Answer<(StatusCode, Json<ShownToken>)> {
    let info = info(wish)?;
    let what = format!("make the token {} ({:?})", info.name, info.role);
    let author = caller.author();
    let make = move || plane.audited(&author, what, || Ok((tokens.create(info.clone())?, info)));
    let made = blocking(make).await?.map_err(Problem::from)?;
    let (token, info) = made.map_err(refused)?;
    let token = token.to_string();
    Ok((StatusCode::CREATED, Json(ShownToken { token, info })))
}

fn info(wish: NewToken) -> Answer<TokenInfo> {
    if !is_row_name(&wish.name) {
        let what = format!("{:?} cannot be the name of a token", wish.name);
        return Err(Problem::malformed(&what).at("name").way_out(
            "use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', the first one not '.' or '-'",
        ));
    }
    if wish.role == Role::None {
        return Err(
            Problem::malformed("a token without a role is good for nothing")
                .at("role")
                .way_out("give view, operate or admin"),
        );
    }
    let created = seconds(SystemTime::now());
    Ok(TokenInfo {
        name: wish.name,
        role: wish.role,
        created,
        expires: wish.valid_s.map(|valid| created.saturating_add(valid)),
        used: None,
    })
}

pub(in crate::api) async fn list(State(tokens): Store) -> Json<Vec<TokenInfo>> {
    Json(tokens.list())
}

pub(in crate::api) async fn revoke(
    State(tokens): Store,
    State(plane): Shared,
    caller: Caller,
    Segment(name): Segment<String>,
) -> Answer<StatusCode> {
    let author = caller.author();
    let what = format!("revoke the token {name:?}");
    // A token that has leaked is taken back first: its line may fail where the disk is full.
    let store = Arc::clone(&tokens);
    let revoked = blocking(move || {
        let revoked = store.revoke(&name);
        let told = plane.audited(&author, what, || {
            revoked.as_ref().map_err(TokenError::to_string)
        });
        let told = told.map(|_| ());
        (revoked, told)
    });
    let (revoked, told) = revoked.await?;
    if matches!(revoked, Err(TokenError::NotKept(_))) {
        tokens.retry();
    }
    revoked.map_err(refused)?;
    told.map_err(Problem::from)?;
    Ok(StatusCode::NO_CONTENT)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: TokenError) -> Problem {
    let what = error.to_string();
    match error {
        TokenError::Taken(_) => Problem::conflict(&what)
            .at("name")
            .way_out("revoke it, or give another name"),
        TokenError::Unknown(_) => Problem::not_found(&what)
            .at("the path")
            .way_out("/v1/tokens lists those that there are"),
        TokenError::Full => Problem::conflict(&what).way_out("revoke one that is not used"),
        TokenError::Store(_) => Problem::conflict(&what),
        TokenError::NotKept(_) => Problem::not_kept(&what)
            .way_out("make room in the state directory; it is tried again every 10 s"),
    }
}
