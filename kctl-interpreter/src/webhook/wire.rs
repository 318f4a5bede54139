//! `ResourceInterpreterContext` of `config.karmada.io/v1alpha1`, the JSON of requests and
//! responses.

use std::fmt;

use axum::http::StatusCode;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use crate::{
    kind::Gvk,
    operation::{AggregatedStatusItem, Component, DependentReference, ReplicaRequirements},
};

/// `apiVersion` of requests, responses and the configuration.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// `kind` of requests and responses.
pub(super) const KIND: &str = "ResourceInterpreterContext";

/// The envelope of a request. Its `apiVersion` and `kind` are ignored, as in Karmada's own server (`ServeHTTP` in
/// `pkg/webhook/interpreter/http.go`).
#[derive(Debug, Deserialize)]
pub(super) struct RequestContext {
    /// The request. Without one the call is an error.
    #[serde(default, deserialize_with = "object_or_null")]
    pub(super) request: Option<Request>,
}

/// A request of Karmada.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    /// The uid, which the response must repeat.
    #[serde(default)]
    pub(super) uid: String,
    /// Group, version and kind of the object. The function is chosen by it.
    #[serde(default)]
    pub(super) kind: RequestKind,
    #[serde(default)]
    pub(super) operation: String,
    /// The object; null counts as absent.
    #[serde(default, deserialize_with = "optional_value")]
    pub(super) object: Option<Value>,
    /// The object of the member cluster, for `Retain`.
    #[serde(default, deserialize_with = "optional_value")]
    pub(super) observed_object: Option<Value>,
    /// The number for `ReviseReplica`. Karmada sends it with every operation, as 0
    /// (`CreateV1alpha1ResourceInterpreterContext` in
    /// `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).
    #[serde(default)]
    pub(super) replicas: Option<i32>,
    /// The reported statuses, for `AggregateStatus`.
    #[serde(default)]
    pub(super) aggregated_status: Option<Vec<AggregatedStatusItem>>,
}

/// Reads a request or null. Serde alone would also accept a list with the fields in order, and an
/// empty list as a request without fields.
fn object_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Request>, D::Error> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Option<Request>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a request")
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
            Request::deserialize(MapAccessDeserializer::new(fields)).map(Some)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Fields)
}

/// Reads null as absent.
fn optional_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Some(Value::deserialize(deserializer)?).filter(|value| !value.is_null()))
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestKind {
    /// The API group; empty for the core group.
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
}

impl From<RequestKind> for Gvk {
    fn from(RequestKind { group, version, kind }: RequestKind) -> Self {
        Self { group, version, kind }
    }
}

/// The envelope of a response. Karmada accepts one without `apiVersion` and `kind`, but rejects
/// wrong ones (`VerifyResourceInterpreterContext` in
/// `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseContext {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

impl From<Response> for ResponseContext {
    fn from(response: Response) -> Self {
        Self { api_version: API_VERSION, kind: KIND, response }
    }
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    /// The uid of the request. Karmada checks it before anything else.
    pub(super) uid: String,
    /// `false` for an error, which is then in `status`.
    pub(super) successful: bool,
    /// The code and message.
    pub(super) status: Status,
    /// The message for the log, if the response's message may contain values of the object.
    #[serde(skip)]
    pub(super) logged: Option<String>,
    /// A JSON patch in base64, always together with its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    /// `JSONPatch` if there is a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    /// The requirements of one replica, for `InterpretReplica`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replica_requirements: Option<ReplicaRequirements>,
    /// The number of replicas, for `InterpretReplica`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i32>,
    /// The list of `InterpretComponent`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) components: Vec<Component>,
    /// The list of `InterpretDependency`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dependencies: Vec<DependentReference>,
    /// The status of `InterpretStatus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_status: Option<Value>,
    /// The result of `InterpretHealth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) healthy: Option<bool>,
}

/// The result of a call. Karmada requires it for errors (`VerifyResourceInterpreterContext`).
#[derive(Debug, Default, Serialize)]
pub(super) struct Status {
    /// The error message, which Karmada logs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    /// An HTTP status code.
    pub(super) code: u16,
}

impl Response {
    /// Returns a successful response without content.
    pub(super) fn success() -> Self {
        Self { successful: true, status: Status { message: String::new(), code: 200 }, ..Self::default() }
    }

    /// Returns an error with an HTTP status code.
    pub(super) fn failure(code: u16, message: String) -> Self {
        Self { status: Status { message, code }, ..Self::default() }
    }

    /// Creates an unsuccessful response for something that can't be read. The log gets no `error`: an error of a
    /// deserializer quotes the value, which may be a password.
    pub(super) fn decode_failure(what: &str, error: &dyn std::fmt::Display) -> Self {
        let logged = Some(format!("{what}; the response has the reason"));
        Self { logged, ..Self::failure(StatusCode::BAD_REQUEST.as_u16(), format!("{what}: {error}")) }
    }
}
