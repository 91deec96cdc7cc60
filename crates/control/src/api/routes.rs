//! Every route with the least role that may use it. The router and the description of the API are
//! made of this one table.

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::caller::Role;
use super::{ApiState, changes, events, rows, tokens};

/// A method of a path.
pub(super) struct Route {
    #[cfg_attr(not(test), expect(dead_code, reason = "the table of roles reads it"))]
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What somebody has to be for all of it. A dry run asks for less.
    pub(super) least: Role,
    /// Whether it is a change, of which a dry run is for all who may look.
    pub(super) is_change: bool,
    pub(super) handler: MethodRouter<ApiState>,
}

impl Route {
    fn new<T: 'static>(
        method: Method,
        path: &'static str,
        least: Role,
        handler: impl Handler<T, ApiState>,
    ) -> Self {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self {
            method,
            path,
            least,
            is_change: false,
            handler: on(filter, handler),
        }
    }

    /// A change that goes through the gate.
    fn change<T: 'static>(
        method: Method,
        path: &'static str,
        handler: impl Handler<T, ApiState>,
    ) -> Self {
        Self {
            is_change: true,
            ..Self::new(method, path, Role::Operate, handler)
        }
    }

    /// Who is let in before the request is read.
    pub(super) fn entry(&self) -> Role {
        if self.is_change {
            Role::View
        } else {
            self.least
        }
    }
}

/// All routes.
pub(super) fn all() -> Vec<Route> {
    let mut routes = looks();
    routes.extend(writes());
    routes.extend(section::<Volumes>());
    routes.extend(section::<Groups>());
    routes.extend(section::<Targets>());
    routes
}

fn looks() -> Vec<Route> {
    let get = Method::GET;
    vec![
        Route::new(get.clone(), "/v1/status", Role::View, super::status),
        Route::new(get.clone(), "/v1/config", Role::View, super::config),
        Route::new(get.clone(), "/v1/history", Role::View, super::history),
        Route::new(
            get.clone(),
            "/v1/history/{generation}",
            Role::View,
            super::generation,
        ),
        Route::new(get.clone(), "/v1/stats", Role::View, events::stats),
        Route::new(get.clone(), "/v1/alarms", Role::View, super::alarms),
        Route::new(get.clone(), "/v1/events", Role::View, events::events),
        Route::new(get.clone(), "/v1/sessions", Role::View, super::sessions),
        Route::new(get, "/metrics", Role::View, super::metrics),
    ]
}

fn writes() -> Vec<Route> {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    vec![
        Route::change(put.clone(), "/v1/config", changes::put_config),
        Route::new(post.clone(), "/v1/plan", Role::View, changes::plan),
        Route::change(post.clone(), "/v1/apply", changes::apply),
        Route::change(post.clone(), "/v1/set", changes::set),
        Route::change(post, "/v1/rollback/{generation}", changes::rollback),
        Route::new(Method::GET, "/v1/tokens", Role::Admin, tokens::list),
        Route::new(Method::POST, "/v1/tokens", Role::Admin, tokens::create),
        Route::new(
            delete.clone(),
            "/v1/tokens/{name}",
            Role::Admin,
            tokens::revoke,
        ),
        Route::new(put, "/v1/secrets/{name}", Role::Admin, changes::put_secret),
        Route::new(
            delete,
            "/v1/sessions/{id}",
            Role::Operate,
            super::drop_session,
        ),
    ]
}

/// A section of the tree, as paths name it and as documents do.
pub(super) trait Section: Send + Sync + 'static {
    const KEY: &'static str;
    const ALL: &'static str;
    const ONE: &'static str;
}

struct Volumes;
struct Groups;
struct Targets;

impl Section for Volumes {
    const KEY: &'static str = "volume";
    const ALL: &'static str = "/v1/volumes";
    const ONE: &'static str = "/v1/volumes/{name}";
}

impl Section for Groups {
    const KEY: &'static str = "group";
    const ALL: &'static str = "/v1/groups";
    const ONE: &'static str = "/v1/groups/{name}";
}

impl Section for Targets {
    const KEY: &'static str = "target";
    const ALL: &'static str = "/v1/targets";
    const ONE: &'static str = "/v1/targets/{name}";
}

fn section<S: Section>() -> Vec<Route> {
    vec![
        Route::new(Method::GET, S::ALL, Role::View, rows::all::<S>),
        Route::new(Method::GET, S::ONE, Role::View, rows::one::<S>),
        Route::change(Method::PUT, S::ONE, rows::put::<S>),
        Route::change(Method::PATCH, S::ONE, rows::patch::<S>),
        Route::change(Method::DELETE, S::ONE, rows::remove::<S>),
    ]
}
