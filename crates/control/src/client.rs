//! The other end of the API: what verbs and the shell ask a daemon.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use http_body_util::{BodyExt, Full};
pub use hyper::Method;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::api::{BODY_BYTES, Problem};

/// A daemon's API.
#[derive(Clone, Debug)]
pub struct ApiClient {
    socket: PathBuf,
    /// What asks, for history and log: `lunar set`.
    by: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Nothing listens at the socket.
    #[error(
        "no daemon listens on {socket} ({cause}): start one with lunar daemon or systemctl start \
         lunar, or name its --socket"
    )]
    NoDaemon {
        /// The socket.
        socket: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// The socket is not for this user.
    #[error("{socket}: {cause}: ask as root, or as a member of the group that the daemon lets in")]
    Denied {
        /// The socket.
        socket: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// The daemon has closed the connection and said nothing.
    #[error(
        "the daemon on {0} does not answer, and has closed the connection: ask again later, as \
         others may hold all the connections that it takes; if it is about to end, its log says why"
    )]
    Closed(String),
    /// The daemon would not read all of the request.
    #[error("this has {0} bytes, and a daemon takes {BODY_BYTES} at most")]
    TooLarge(usize),
    /// The daemon says no.
    #[error("{}", refusal(.0))]
    Refused(Box<Problem>),
    /// What comes is not an answer.
    #[error("the daemon on {0} does not answer as it should: {1}")]
    Odd(String, String),
}

/// Place, cause and way out in one line; of a plan that is refused, the options that allow it.
fn refusal(problem: &Problem) -> String {
    if let Some(outcome) = &problem.outcome {
        return format!("this needs {}", outcome.plan.way_out());
    }
    let way_out = problem.way_out.as_deref();
    let parts = [problem.at.as_deref(), Some(&*problem.detail), way_out];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// The path with its query: `/v1/apply?allow=cuts`.
    pub path: String,
    /// The body, if there is one.
    pub body: Option<String>,
    /// The generation that was seen.
    pub based_on: Option<u64>,
}

impl ApiRequest {
    /// A request without a body.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

impl ApiClient {
    /// The API at a socket, asked by a program of this name.
    #[must_use]
    pub fn new(socket: &Path, by: impl Into<String>) -> Self {
        Self {
            socket: socket.to_owned(),
            by: by.into(),
        }
    }

    /// Asks for JSON.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no.
    pub fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        request: &ApiRequest,
    ) -> Result<T, ApiError> {
        let text = self.text(method, request)?;
        serde_json::from_str(&text).map_err(|cause| self.odd(cause))
    }

    /// Asks for a text.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no.
    pub fn text(&self, method: Method, request: &ApiRequest) -> Result<String, ApiError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|cause| self.odd(cause))?;
        let (status, text) = runtime.block_on(self.exchange(method, request))?;
        if status.is_success() {
            return Ok(text);
        }
        match serde_json::from_str(&text) {
            Ok(problem) => Err(ApiError::Refused(Box::new(problem))),
            Err(_) => Err(self.odd(format!("{status}: {text}"))),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        asked: &ApiRequest,
    ) -> Result<(StatusCode, String), ApiError> {
        let body = asked.body.clone().unwrap_or_default();
        if body.len() > BODY_BYTES {
            return Err(ApiError::TooLarge(body.len()));
        }
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|cause| {
            let socket = self.socket.display().to_string();
            match cause.kind() {
                io::ErrorKind::PermissionDenied => ApiError::Denied { socket, cause },
                _ => ApiError::NoDaemon { socket, cause },
            }
        })?;
        let connected = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(|cause| self.odd(cause))?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(&asked.path)
            .header("host", "lunar")
            .header("user-agent", &self.by);
        if let Some(generation) = asked.based_on {
            request = request.header("if-match", format!("\"{generation}\""));
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|cause| self.odd(cause))?;
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|cause| self.unanswered(&cause))?;
        let status = answer.status();
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|cause| self.odd(cause))?;
        Ok((
            status,
            String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        ))
    }

    fn unanswered(&self, cause: &hyper::Error) -> ApiError {
        let io = cause
            .source()
            .and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_cut = io.is_some_and(|cause| {
            use io::ErrorKind::{BrokenPipe, ConnectionReset};
            matches!(cause.kind(), BrokenPipe | ConnectionReset)
        });
        if is_cut || cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed() {
            return ApiError::Closed(self.socket.display().to_string());
        }
        self.odd(cause)
    }

    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    fn odd(&self, cause: impl ToString) -> ApiError {
        ApiError::Odd(self.socket.display().to_string(), cause.to_string())
    }
}
