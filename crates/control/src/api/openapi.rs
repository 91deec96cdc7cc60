//! The description of the API, as OpenAPI 3.1 has it: made of the table of routes, and of the types
//! that are sent.

use std::collections::BTreeMap;

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{HttpMethod, Paths};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::Problem;
use super::problem::STATUSES;
use super::routes;

/// The description of the API, as JSON in lines.
#[must_use]
pub fn openapi() -> String {
    let text = serde_json::to_string_pretty(&document());
    format!("{}\n", text.unwrap_or_default())
}

pub(super) async fn answer() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi()).into_response()
}

pub(super) fn document() -> OpenApi {
    let mut paths = Paths::new();
    let mut named = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut named);
    let mut schemas: BTreeMap<_, _> = named.into_iter().collect();
    for route in routes::all() {
        let (operation, named) =
            route
                .description
                .operation(route.path, route.least, route.is_change);
        schemas.extend(named);
        paths.add_path_operation(route.path, vec![method(&route.method)], operation);
    }
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme("token", SecurityScheme::Http(token()));
    for (status, meaning) in STATUSES {
        let problem = Ref::from_schema_name(Problem::name());
        let response = ResponseBuilder::new()
            .description(*meaning)
            .content("application/problem+json", Content::new(Some(problem)));
        components = components.response(status.to_string(), response);
    }
    OpenApiBuilder::new()
        .info(info())
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

fn info() -> InfoBuilder {
    let license = LicenseBuilder::new()
        .name("MIT OR Apache-2.0")
        .identifier(Some("MIT OR Apache-2.0"));
    InfoBuilder::new()
        .title("Lunar")
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(license.build()))
        .description(Some(ABOUT))
}

const ABOUT: &str = "The control plane of a storage area network. It is asked over the Unix socket \
                     of lunar daemon, where the kernel tells who asks, or over TCP with a token. \
                     Every answer that is not a success is a problem of RFC 9457; its title says \
                     which one. A method that a path does not take is answered by 405.";

fn token() -> utoipa::openapi::security::Http {
    HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A token, over TCP. What stands behind it in a method is the role that is needed: \
             view, operate or admin. On the Unix socket the role goes by the user that asks.",
        ))
        .build()
}

fn method(method: &Method) -> HttpMethod {
    match *method {
        Method::PUT => HttpMethod::Put,
        Method::POST => HttpMethod::Post,
        Method::PATCH => HttpMethod::Patch,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

#[cfg(test)]
mod tests;
