//! `ResourceInterpreterContext` of `config.karmada.io/v1alpha1`: what travels, field by field.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use crate::{
    kind::Gvk,
    operation::{AggregatedStatusItem, Component, DependentReference, ReplicaRequirements},
};

/// The group and version of the types here, and of the configuration.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The kind of the envelope.
pub(super) const KIND: &str = "ResourceInterpreterContext";

/// The envelope of a request. What else is in it is not looked at, as in Karmada's own server.
#[derive(Debug, Deserialize)]
pub(super) struct RequestContext {
    #[serde(default, deserialize_with = "no_list")]
    pub(super) request: Option<Request>,
}

/// What Karmada asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) kind: RequestKind,
    #[serde(default)]
    pub(super) operation: String,
    #[serde(default, deserialize_with = "absent_or_null")]
    pub(super) object: Option<Value>,
    #[serde(default, deserialize_with = "absent_or_null")]
    pub(super) observed_object: Option<Value>,
    /// Always there, also where the operation does not take it: the operation is not told by it.
    #[serde(default)]
    pub(super) replicas: Option<i32>,
    #[serde(default)]
    pub(super) aggregated_status: Option<Vec<AggregatedStatusItem>>,
}

/// serde reads a list as the fields of a struct in their order, of which an empty list has none.
fn no_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Request>, D::Error> {
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

fn absent_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Some(Value::deserialize(deserializer)?).filter(|value| !value.is_null()))
}

/// The kind of the object.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestKind {
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

/// The envelope of an answer. Karmada accepts it without the first two; with them they must be right.
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

/// The answer to one request.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    /// That of the request: Karmada checks it before it reads anything else.
    pub(super) uid: String,
    pub(super) successful: bool,
    pub(super) status: Status,
    /// A JSON patch in base64, together with its type or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replica_requirements: Option<ReplicaRequirements>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) components: Vec<Component>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dependencies: Vec<DependentReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) healthy: Option<bool>,
}

/// How it went; required by Karmada where it went wrong.
#[derive(Debug, Default, Serialize)]
pub(super) struct Status {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    pub(super) code: u16,
}

impl Response {
    pub(super) fn succeeded() -> Self {
        Self { successful: true, status: Status { message: String::new(), code: 200 }, ..Self::default() }
    }

    pub(super) fn failed(code: u16, message: String) -> Self {
        Self { status: Status { message, code }, ..Self::default() }
    }
}
