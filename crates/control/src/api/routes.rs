//! Every route with the least role that may use it, and with what it takes and answers. The router
//! and the description of the API are made of this one table.

use std::collections::BTreeMap;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use super::caller::Role;
use super::description::{Description, told};
use super::tokens::{NewToken, ShownToken, TokenInfo};
use super::{
    Alarm, ApiState, Job, SetRequest, Status, VolumeReservations, changes, events, jobs, openapi,
    reservations, rows, tokens,
};
use crate::gate::Generation;
use crate::metrics::VolumeStats;
use crate::plane::{Fabric, Session};
use crate::tree::{GroupRow, SwitchRow, TargetRow, Tree, VolumeRow};

/// A method of a path.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What somebody has to be for all of it. A dry run asks for less.
    pub(super) least: Role,
    /// Whether it is a change, of which a dry run is for all who may look.
    pub(super) is_change: bool,
    pub(super) handler: MethodRouter<ApiState>,
    pub(super) description: Description,
}

impl Route {
    fn new<T: 'static>(
        (method, path): (Method, &'static str),
        least: Role,
        handler: impl Handler<T, ApiState>,
        description: Description,
    ) -> Self {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self {
            method,
            path,
            least,
            is_change: false,
            handler: on(filter, handler),
            description,
        }
    }

    /// What all who may look may ask.
    fn look<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, ApiState>,
        description: Description,
    ) -> Self {
        Self::new((Method::GET, path), Role::View, handler, description)
    }

    /// A change that goes through the gate.
    fn change<T: 'static>(
        at: (Method, &'static str),
        handler: impl Handler<T, ApiState>,
        description: Description,
    ) -> Self {
        Self {
            is_change: true,
            ..Self::new(at, Role::Operate, handler, description.changes())
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
    routes.extend(of_the_engine());
    routes.extend(of_the_tree());
    routes.extend(of_access());
    routes.extend(section::<Volumes>());
    routes.extend(section::<Groups>());
    routes.extend(section::<Targets>());
    routes.extend(section::<Switches>());
    routes
}

const TOML: &str = "application/toml";
const TEXT: &str = "text/plain";
const EVENTS: &str = "text/event-stream";

/// What is configured, and how the daemon is.
fn looks() -> Vec<Route> {
    vec![
        Route::look(
            "/openapi.json",
            openapi::answer,
            told("getDescription", "This description").answers_any(),
        ),
        Route::look(
            "/v1/status",
            super::status,
            told("getStatus", "How the daemon is").answers::<Status>(),
        ),
        Route::look(
            "/v1/config",
            super::config,
            told("getConfig", "The document that is served")
                .answers_text(TOML)
                .tagged(),
        ),
        Route::look(
            "/v1/history",
            super::history,
            told("listGenerations", "The generations that are kept").lists::<Generation>(),
        ),
        Route::look(
            "/v1/history/{generation}",
            super::generation,
            told("getGeneration", "The document of a generation")
                .answers_text(TOML)
                .tagged()
                .problems(&[404]),
        ),
        Route::look(
            "/v1/alarms",
            super::alarms,
            told("listAlarms", "What somebody should look at").lists::<Alarm>(),
        ),
        Route::look(
            "/v1/jobs",
            jobs::jobs,
            told("listJobs", "What takes its time, while it does").lists::<Job>(),
        ),
        Route::look(
            "/v1/events",
            events::events,
            told("readEvents", "What happens, as it does")
                .answers_text(EVENTS)
                .problems(&[503]),
        ),
    ]
}

/// What hosts do, and have done.
fn of_the_engine() -> Vec<Route> {
    let every = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(3600));
    let detail = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["0", "1"]));
    vec![
        Route::look(
            "/v1/sessions",
            super::sessions,
            told("listSessions", "The sessions that there are")
                .lists::<Session>()
                .problems(&[504]),
        ),
        Route::new(
            (Method::DELETE, "/v1/sessions/{id}"),
            Role::Operate,
            super::drop_session,
            told("endSession", "Ends a session, whatever its host does")
                .answers_nothing()
                .problems(&[404, 409, 504]),
        ),
        Route::look(
            "/v1/fabrics",
            super::fabrics,
            told(
                "listFabrics",
                "What switches have: their ports, who is logged in, and what was counted",
            )
            .lists::<Fabric>(),
        ),
        Route::look(
            "/v1/reservations",
            reservations::reservations,
            told(
                "listReservations",
                "The volumes that hosts have registered at or reserved",
            )
            .lists::<VolumeReservations>()
            .problems(&[504]),
        ),
        Route::look(
            "/v1/stats",
            events::stats,
            told(
                "getStats",
                "What volumes have done; as events, again and again",
            )
            .query("every", "How often events come, in seconds", every)
            .lists::<VolumeStats>()
            .answers_text(EVENTS)
            .problems(&[503]),
        ),
        Route::look(
            "/metrics",
            super::metrics,
            told("getMetrics", "All counters, for Prometheus")
                .query("detail", "`1` for more buckets of latencies", detail)
                .query("volume", "Only what is of this volume", String::schema())
                .answers_text(TEXT)
                .answers_text("application/openmetrics-text")
                .problems(&[404]),
        ),
    ]
}

/// What changes what is served as a whole.
fn of_the_tree() -> Vec<Route> {
    let (post, put) = (Method::POST, Method::PUT);
    vec![
        Route::change(
            (put, "/v1/config"),
            changes::put_config,
            told("putConfig", "Serves another document").takes_text(&[TOML, TEXT], true),
        ),
        Route::new(
            (post.clone(), "/v1/plan"),
            Role::View,
            changes::plan,
            told(
                "plan",
                "What a document would change; without one, the file as it was edited",
            )
            .takes_text(&[TOML, TEXT], false)
            .changes(),
        ),
        Route::change(
            (post.clone(), "/v1/apply"),
            changes::apply,
            told(
                "apply",
                "Serves a document; without one, the file as it was edited",
            )
            .takes_text(&[TOML, TEXT], false),
        ),
        Route::change(
            (post.clone(), "/v1/set"),
            changes::set,
            told("set", "Sets values by their paths")
                .takes::<SetRequest>()
                .problems(&[404]),
        ),
        Route::change(
            (post, "/v1/rollback/{generation}"),
            changes::rollback,
            told("rollback", "Serves an earlier generation").problems(&[404]),
        ),
    ]
}

/// Tokens and secrets.
fn of_access() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/tokens"),
            Role::Admin,
            tokens::list,
            told("listTokens", "The tokens that there are").lists::<TokenInfo>(),
        ),
        Route::new(
            (Method::POST, "/v1/tokens"),
            Role::Admin,
            tokens::create,
            told("createToken", "Makes a token, which is shown this once")
                .takes::<NewToken>()
                .creates::<ShownToken>()
                .problems(&[409]),
        ),
        Route::new(
            (Method::DELETE, "/v1/tokens/{name}"),
            Role::Admin,
            tokens::revoke,
            told("revokeToken", "Revokes a token")
                .answers_nothing()
                .problems(&[404, 409]),
        ),
        Route::new(
            (Method::PUT, "/v1/secrets/{name}"),
            Role::Admin,
            changes::put_secret,
            told("putSecret", "Keeps a secret, which a row names state:NAME")
                .takes_text(&[TEXT], true)
                .answers_nothing()
                .problems(&[409, 503]),
        ),
    ]
}

/// A section of the tree, as paths name it and as documents do.
pub(super) trait Section: Send + Sync + 'static {
    type Row: Serialize + DeserializeOwned + ToSchema;
    const KEY: &'static str;
    const ALL: &'static str;
    const ONE: &'static str;

    fn rows(tree: &Tree) -> &BTreeMap<String, Self::Row>;
    fn rows_mut(tree: &mut Tree) -> &mut BTreeMap<String, Self::Row>;
}

struct Volumes;
struct Groups;
struct Targets;
struct Switches;

impl Section for Volumes {
    type Row = VolumeRow;
    const KEY: &'static str = "volume";
    const ALL: &'static str = "/v1/volumes";
    const ONE: &'static str = "/v1/volumes/{name}";

    fn rows(tree: &Tree) -> &BTreeMap<String, VolumeRow> {
        &tree.volume
    }

    fn rows_mut(tree: &mut Tree) -> &mut BTreeMap<String, VolumeRow> {
        &mut tree.volume
    }
}

impl Section for Groups {
    type Row = GroupRow;
    const KEY: &'static str = "group";
    const ALL: &'static str = "/v1/groups";
    const ONE: &'static str = "/v1/groups/{name}";

    fn rows(tree: &Tree) -> &BTreeMap<String, GroupRow> {
        &tree.group
    }

    fn rows_mut(tree: &mut Tree) -> &mut BTreeMap<String, GroupRow> {
        &mut tree.group
    }
}

impl Section for Targets {
    type Row = TargetRow;
    const KEY: &'static str = "target";
    const ALL: &'static str = "/v1/targets";
    const ONE: &'static str = "/v1/targets/{name}";

    fn rows(tree: &Tree) -> &BTreeMap<String, TargetRow> {
        &tree.target
    }

    fn rows_mut(tree: &mut Tree) -> &mut BTreeMap<String, TargetRow> {
        &mut tree.target
    }
}

impl Section for Switches {
    type Row = SwitchRow;
    const KEY: &'static str = "switch";
    const ALL: &'static str = "/v1/switches";
    const ONE: &'static str = "/v1/switches/{name}";

    fn rows(tree: &Tree) -> &BTreeMap<String, SwitchRow> {
        &tree.switch
    }

    fn rows_mut(tree: &mut Tree) -> &mut BTreeMap<String, SwitchRow> {
        &mut tree.switch
    }
}

fn section<S: Section>() -> Vec<Route> {
    let (first, rest) = S::KEY.split_at(1);
    let name = format!("{}{rest}", first.to_uppercase());
    let plural = rows::plural(&name);
    let one = |verb: &str, what| told(format!("{verb}{name}"), what);
    let all = told(format!("list{plural}"), "The rows of this kind, by name").maps::<S::Row>();
    vec![
        Route::look(S::ALL, rows::all::<S>, all.tagged()),
        Route::look(
            S::ONE,
            rows::one::<S>,
            one("get", "A row")
                .answers::<S::Row>()
                .tagged()
                .problems(&[404]),
        ),
        Route::change(
            (Method::PUT, S::ONE),
            rows::put::<S>,
            one("put", "Makes a row, or puts another in its place").takes::<S::Row>(),
        ),
        Route::change(
            (Method::PATCH, S::ONE),
            rows::patch::<S>,
            one("patch", "Changes a row by a merge patch (RFC 7396)")
                .takes_patch()
                .problems(&[404]),
        ),
        Route::change(
            (Method::DELETE, S::ONE),
            rows::remove::<S>,
            one("delete", "Removes a row").problems(&[404]),
        ),
    ]
}
