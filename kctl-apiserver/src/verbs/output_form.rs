//! The form in which a client requests objects: as they are, as a table, or as metadata only. Read from `Accept`.
//!
//! kubectl requests tables, metadata informers `PartialObjectMetadata`, other clients the objects. Protobuf and YAML
//! are encodings of the same forms and are applied by `serve`.

use serde_json::{Value, json};

use super::read::in_version;
use crate::{
    registry::{Resource, kind::Subresource},
    request::{Clause, RequestInfo, Verb, clauses},
    status::StatusError,
    table::{self, Include},
};

/// The form of a response, from the `Accept` header (`k8s.io/apiserver/pkg/endpoints/handlers/response.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// The object or list itself.
    Plain,
    /// `as=Table`: rows for `kubectl get`. The fields are the part of the object that each row includes, and the
    /// version of the table.
    Table(Include, MetaVersion),
    /// `as=PartialObjectMetadata`.
    Partial(MetaVersion),
    /// `as=PartialObjectMetadataList`.
    PartialList(MetaVersion),
}

/// The place of an event in its watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventOrder {
    /// The first event. Its table has the column definitions.
    First,
    /// An event after the first one.
    Later,
}

/// The annotation of the bookmark after the initial events of a watch (`metav1.InitialEventsAnnotationKey`). The
/// client's informer is synced from this event on.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The version of `meta.k8s.io` in which a table or metadata is written: `v1`, or `v1beta1` for old versions of
/// kubectl. They differ only in `apiVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetaVersion(&'static str);

impl MetaVersion {
    /// Returns the version with this name.
    fn from_name(name: &str) -> Option<Self> {
        ["v1", "v1beta1"].into_iter().find(|version| *version == name).map(Self)
    }

    /// Changes an object of version 1 to this version. Rows and items that are `PartialObjectMetadata` are renamed as
    /// well.
    fn convert(self, mut response: Value) -> Value {
        if self.0 == "v1beta1" {
            let rows = response.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
            rows.for_each(|row| rename(&mut row["object"]));
            let items = response.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
            items.for_each(rename);
            rename(&mut response);
        }
        response
    }
}

/// Changes `apiVersion`, except of a whole object in a table.
fn rename(object: &mut Value) {
    if object["apiVersion"] == "meta.k8s.io/v1" {
        object["apiVersion"] = "meta.k8s.io/v1beta1".into();
    }
}

/// Returns `true` if the client prefers YAML.
pub(crate) fn wants_yaml(info: &RequestInfo) -> bool {
    OutputForm::with_clause(info).is_ok_and(|(_, clause)| clause.is_some_and(|clause| clause.is_yaml()))
}

impl OutputForm {
    /// Returns the first form in `Accept` that the server supports. Quality values are honoured: clauses are visited in
    /// the order of preference.
    ///
    /// # Errors
    /// `NotAcceptable` if the server supports none of the forms.
    pub(crate) fn negotiate(info: &RequestInfo) -> Result<Self, StatusError> {
        Self::with_clause(info).map(|(form, _)| form)
    }

    /// Returns the form like [`Self::negotiate`], with the clause of the header that names it. An empty header, and
    /// plain `application/json`, are the fast path. A built-in kind returns 406 without details for unknown media
    /// types, as go-restful's router does.
    fn with_clause(info: &RequestInfo) -> Result<(Self, Option<Clause<'_>>), StatusError> {
        const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let accept = info.header("accept");
        if ["", "application/json"].contains(&accept) {
            return Ok((Self::Plain, None));
        }
        let clauses = clauses(accept);
        let has_parameters =
            |clause: &Clause<'_>| ["as", "stream"].iter().any(|name| !clause.parameter(name).is_empty());
        let is_acceptable = clauses.iter().any(|clause| clause.is_known() || has_parameters(clause));
        // Requests for custom resources do not pass go-restful's router, which rejects unknown media types of
        // built-in kinds.
        let is_routed = clauses.iter().any(|clause| clause.is_routed(FORMS)) && is_acceptable;
        if info.resource.custom.is_none() && !is_routed {
            return Err(StatusError::not_acceptable(FORMS).with_empty_details());
        }
        for clause in clauses.into_iter().filter(Clause::is_known) {
            let version =
                MetaVersion::from_name(clause.parameter("v")).filter(|_| clause.parameter("g") == "meta.k8s.io");
            let form = match (clause.parameter("as"), version) {
                ("", _) => Self::Plain,
                ("Table", Some(version)) if has_columns(info) => Self::Table(include(info)?, version),
                ("PartialObjectMetadata", Some(version)) => Self::Partial(version),
                ("PartialObjectMetadataList", Some(version)) => Self::PartialList(version),
                _ => continue,
            };
            return Ok((form, Some(clause)));
        }
        Err(StatusError::not_acceptable(FORMS))
    }

    /// Checks that the form fits the verb: metadata of an object for an object, and of a list for a list.
    ///
    /// # Errors
    /// `NotAcceptable`, or 500 for a custom resource, as upstream.
    pub(crate) fn check_verb(self, info: &RequestInfo) -> Result<(), StatusError> {
        match (self, info.verb) {
            (Self::PartialList(_), Verb::Get | Verb::Create | Verb::Update | Verb::Patch) => {
                if info.resource.custom.is_some() {
                    return Err(StatusError::server_error("the object is not a list"));
                }
                Err(StatusError::not_acceptable("PartialObjectMetadata"))
            }
            (Self::Partial(_), Verb::List) => Err(StatusError::not_acceptable("PartialObjectMetadataList")),
            _ => Ok(()),
        }
    }

    /// Returns an object or a list in this form, or `None` if it is sent unchanged. A `Status` and kinds other than the
    /// resource's are never transformed. `now` is for columns with ages.
    pub(crate) fn shape(self, info: &RequestInfo, response: &Value, now: jiff::Timestamp) -> Option<Value> {
        let resource = &info.resource;
        let list = response["kind"] == resource.list_kind.as_str() && response["items"].is_array();
        let object = response["kind"] == resource.kind_name();
        let scale = info.subresource == Subresource::Scale && response["kind"] == "Scale";
        match self {
            _ if !list && !object && !scale => None,
            Self::Table(include, version) if scale => {
                Some(version.convert(table::scale_table(resource, response, now, include)))
            }
            Self::Plain if object => in_version(resource, response),
            Self::Plain => None,
            Self::Partial(version) | Self::PartialList(version) if !list => {
                Some(version.convert(table::partial(response)))
            }
            Self::Partial(version) | Self::PartialList(version) => Some(version.convert(partial_list(response))),
            Self::Table(include, version) => {
                // The object of a dry run has no `resourceVersion`.
                let (objects, meta) = match &response["metadata"]["resourceVersion"] {
                    _ if list => (typed_items(resource, response), list_meta(response)),
                    Value::Null => (vec![response.clone()], json!({})),
                    version => (vec![response.clone()], json!({ "resourceVersion": version })),
                };
                Some(version.convert(rows(resource, &objects, now, include, meta)))
            }
        }
    }

    /// Changes a watch event to this form. Returns `false` if the form cannot have objects
    /// (`PartialObjectMetadataList`): kube-apiserver ends the watch there. `ERROR` events keep their `Status`. Rows of
    /// later events have no column definitions, as clients know them from the first.
    pub(crate) fn shape_event(
        self,
        resource: &Resource,
        event: &mut Value,
        now: jiff::Timestamp,
        order: EventOrder,
    ) -> bool {
        let object = event["object"].take();
        let is_end = event["type"] == "BOOKMARK" && !object["metadata"]["annotations"][INITIAL_EVENTS_END].is_null();
        event["object"] = match self {
            _ if object["kind"] == "Status" => object,
            Self::Plain => object,
            Self::PartialList(_) => return false,
            Self::Partial(version) => version.convert(table::partial(&object)),
            Self::Table(include, version) => {
                // The annotation of the final bookmark is in its object, so the object is included.
                let include = if is_end && include == Include::None { Include::Metadata } else { include };
                let meta = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
                let mut rows = rows(resource, &[object], now, include, meta);
                if order == EventOrder::Later {
                    rows["columnDefinitions"] = Value::Null;
                }
                version.convert(rows)
            }
        };
        true
    }
}

/// Returns `true` if the response may be a table. Objects that are only returned, such as reviews, tokens, bindings and
/// evictions, have no table (`AllowsMediaTypeTransform` of `k8s.io/apiserver/pkg/endpoints/handlers`). `Table` clauses
/// for such requests are skipped, so the next clause of the header applies.
fn has_columns(info: &RequestInfo) -> bool {
    let requests = &info.resource.kind.requests;
    requests.review.is_none() && !requests.created_subresources.contains(&info.subresource)
}

/// Returns the part of each object that the rows of a table include. Fails with 400 for an unknown value.
fn include(info: &RequestInfo) -> Result<Include, StatusError> {
    match info.params.text("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => {
            Err(StatusError::bad_request(format!("includeObject: must be Metadata, Object or None, found {other:?}")))
        }
    }
}

/// Returns the metadata of a list without an empty `continue` and without `shardInfo`, which these forms omit.
fn list_meta(list: &Value) -> Value {
    let mut meta = list["metadata"].clone();
    if let Some(fields) = meta.as_object_mut() {
        fields.retain(|name, value| name != "shardInfo" && (name != "continue" || *value != ""));
    }
    meta
}

/// Returns the metadata of the items of a list.
fn partial_list(list: &Value) -> Value {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    table::partial_list(items, list_meta(list))
}

/// Returns items with the `kind` and `apiVersion` that lists of built-in kinds omit.
fn typed_items(resource: &Resource, list: &Value) -> Vec<Value> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let typed = |mut item: Value| {
        item["kind"] = resource.kind_name().into();
        item["apiVersion"] = resource.api_version().into();
        item
    };
    items.into_iter().map(typed).collect()
}

/// Returns a table of these objects.
fn rows(resource: &Resource, objects: &[Value], now: jiff::Timestamp, include: Include, meta: Value) -> Value {
    match &resource.custom {
        Some(custom) => {
            let columns = custom.version["additionalPrinterColumns"].as_array();
            table::custom_table(columns.map_or(&[][..], Vec::as_slice), objects, now, include, meta)
        }
        None => table::table(resource.kind, objects, now, include, meta),
    }
}
