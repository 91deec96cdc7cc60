//! What a method of a path takes and answers, as the description of the API has it. It stands
//! beside the handler in the table of routes.

use std::collections::BTreeSet;

use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{Array, ObjectBuilder, Type};
use utoipa::openapi::{
    Content, HeaderBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
    SecurityRequirement,
};
use utoipa::{PartialSchema, ToSchema};

use super::caller::Role;
use crate::gate::Outcome;

/// Schemas by their names.
pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// What is told of a method of a path.
pub(super) struct Description {
    id: String,
    summary: &'static str,
    parameters: Vec<Parameter>,
    body: Option<RequestBody>,
    answers: Vec<(u16, Response)>,
    problems: BTreeSet<u16>,
    schemas: Schemas,
}

/// What can come of every request.
const ALWAYS: [u16; 3] = [401, 403, 500];

/// What can come of a request that has a body.
const OF_BODIES: [u16; 4] = [400, 408, 413, 415];

/// What can come of a request that changes what is served.
const OF_CHANGES: [u16; 5] = [400, 409, 412, 422, 503];

const JSON: &str = "application/json";

/// A description that is begun: the name of the operation, and what it does.
pub(super) fn told(id: impl Into<String>, summary: &'static str) -> Description {
    Description {
        id: id.into(),
        summary,
        parameters: Vec::new(),
        body: None,
        answers: Vec::new(),
        problems: ALWAYS.into(),
        schemas: Schemas::new(),
    }
}

impl Description {
    /// It answers a value.
    pub(super) fn answers<T: ToSchema>(self) -> Self {
        self.answers_with::<T>(200, reference::<T>())
    }

    /// It answers a list of values.
    pub(super) fn lists<T: ToSchema>(self) -> Self {
        self.answers_with::<T>(200, Array::new(reference::<T>()).into())
    }

    /// It answers values by their names.
    pub(super) fn maps<T: ToSchema>(self) -> Self {
        let map = ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(reference::<T>()));
        self.answers_with::<T>(200, map.into())
    }

    /// It makes something, and answers what.
    pub(super) fn creates<T: ToSchema>(self) -> Self {
        self.answers_with::<T>(201, reference::<T>())
    }

    fn answers_with<T: ToSchema>(mut self, status: u16, schema: RefOr<Schema>) -> Self {
        self.collect::<T>();
        self.answer(status, JSON, schema)
    }

    /// It answers a text of this kind.
    pub(super) fn answers_text(self, kind: &str) -> Self {
        self.answer(200, kind, text())
    }

    /// It answers an object of any kind.
    pub(super) fn answers_any(self) -> Self {
        self.answer(
            200,
            JSON,
            ObjectBuilder::new().schema_type(Type::Object).into(),
        )
    }

    /// It does what it is told, and answers nothing.
    pub(super) fn answers_nothing(mut self) -> Self {
        self.answers.push((204, Response::new("It is done")));
        self
    }

    /// The answer has the generation in `ETag`.
    pub(super) fn tagged(mut self) -> Self {
        if let Some((_, answer)) = self.answers.last_mut() {
            let tag = HeaderBuilder::new()
                .schema(Some(text()))
                .description(Some("The generation, as `If-Match` takes it"));
            answer.headers.insert("ETag".to_owned(), tag.build().into());
        }
        self
    }

    /// A kind of content beside others of one status.
    fn answer(mut self, status: u16, kind: &str, schema: RefOr<Schema>) -> Self {
        let content = Content::new(Some(schema));
        let mut answers = self.answers.iter_mut();
        if let Some((_, answer)) = answers.find(|(known, _)| *known == status) {
            answer.content.insert(kind.to_owned(), content.into());
            return self;
        }
        let answer = ResponseBuilder::new()
            .description(self.summary)
            .content(kind, content);
        self.answers.push((status, answer.build()));
        self
    }

    /// Its body is a value in JSON.
    pub(super) fn takes<T: ToSchema>(mut self) -> Self {
        self.collect::<T>();
        self.body(&[JSON], Required::True, reference::<T>())
    }

    /// Its body is an object in JSON of which each member changes one of a row (RFC 7396).
    pub(super) fn takes_patch(self) -> Self {
        let any = ObjectBuilder::new().schema_type(Type::Object);
        let kinds = ["application/merge-patch+json", JSON];
        self.body(&kinds, Required::True, any.into())
    }

    /// Its body is a text of one of these kinds.
    pub(super) fn takes_text(self, kinds: &[&str], is_needed: bool) -> Self {
        let required = if is_needed {
            Required::True
        } else {
            Required::False
        };
        self.body(kinds, required, text())
    }

    fn body(mut self, kinds: &[&str], required: Required, schema: RefOr<Schema>) -> Self {
        let body = RequestBodyBuilder::new().required(Some(required));
        let content = Content::new(Some(schema));
        let body = kinds
            .iter()
            .fold(body, |body, kind| body.content(*kind, content.clone()));
        self.body = Some(body.build());
        self.problems(&OF_BODIES)
    }

    /// It takes this in its query.
    pub(super) fn query(self, name: &str, what: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(ParameterIn::Query, name, what, schema)
            .problems(&[400])
    }

    fn parameter(
        mut self,
        place: ParameterIn,
        name: &str,
        what: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        let required = match place {
            ParameterIn::Path => Required::True,
            _ => Required::False,
        };
        let parameter = ParameterBuilder::new()
            .parameter_in(place)
            .name(name)
            .required(required)
            .description(Some(what))
            .schema(Some(schema));
        self.parameters.push(parameter.build());
        self
    }

    /// Problems that can come of it, by their status.
    pub(super) fn problems(mut self, statuses: &[u16]) -> Self {
        self.problems.extend(statuses);
        self
    }

    /// It goes through the gate: what that asks for, and the plan that it answers.
    pub(super) fn changes(self) -> Self {
        let flag = || {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .max_length(Some(0))
        };
        let allow = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(ALLOW))
            .examples(["cuts", "cuts,loses=volume.db"]);
        let tag = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(IF_MATCH));
        let generation = "Refuse it if another generation is served: that of an `ETag`";
        self.query(
            "dry-run",
            "Only tell the plan. The role view is enough",
            flag(),
        )
        .query(
            "absent-ok",
            "Volumes may come that cannot be opened now",
            flag(),
        )
        .query(
            "allow",
            "What may come of it beside what hosts do not mind",
            allow,
        )
        .parameter(ParameterIn::Header, "If-Match", generation, tag)
        .problems(&OF_CHANGES)
        .answers::<Outcome>()
    }

    /// The schema of a type, and of all that it names.
    fn collect<T: ToSchema>(&mut self) {
        T::schemas(&mut self.schemas);
        self.schemas.push((T::name().into_owned(), T::schema()));
    }

    /// The operation at a path for those with a role, and the schemas that it names.
    pub(super) fn operation(
        mut self,
        path: &str,
        least: Role,
        is_change: bool,
    ) -> (OperationBuilder, Schemas) {
        for name in path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split('}').next())
        {
            self = self.in_path(name);
        }
        let may_look = if is_change {
            ", or view for a dry run"
        } else {
            ""
        };
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .description(Some(format!("Role: {}{may_look}.", least.name())))
            .request_body(self.body)
            .security(SecurityRequirement::new("token", [least.name()]));
        for parameter in self.parameters {
            operation = operation.parameter(parameter);
        }
        for (status, answer) in self.answers {
            operation = operation.response(status.to_string(), answer);
        }
        for status in self.problems {
            let problem = Ref::from_response_name(status.to_string());
            operation = operation.response(status.to_string(), problem);
        }
        (operation, self.schemas)
    }

    fn in_path(self, name: &str) -> Self {
        let (what, schema) = match name {
            "generation" => ("The number of a generation", u64::schema()),
            "id" => ("The number of a session", u16::schema()),
            _ => ("The name of a row, a secret or a token", text()),
        };
        self.parameter(ParameterIn::Path, name, what, schema)
            .problems(&[400])
    }
}

/// What `If-Match` takes: a generation, as `ETag` has it or without quotes.
const IF_MATCH: &str = "^(\"[0-9]{1,19}\"|[0-9]{1,19})$";

/// What `allow` takes.
const ALLOW: &str = "^(cuts|loses=[^,]+)(,(cuts|loses=[^,]+))*$";

fn text() -> RefOr<Schema> {
    String::schema()
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}
