//! `DeleteOptions`: decodes them from the body or the query, and validates them.
//!
//! A body takes precedence: with a body, options in the query are ignored. kubectl sends a body, client-go as well. The
//! query is for plain HTTP clients.

use serde_json::{Value, json};

use crate::{
    decode::{self, Integers},
    deletion::{Grace, Propagation},
    field_errors::Errors,
    request::RequestInfo,
    schema::Schema,
    status::StatusError,
    write::body::{self, identity},
};

/// The kind of the options.
const KIND: &str = "DeleteOptions";
/// The values of `propagationPolicy`, in the order in which the error for an unknown one lists them.
const POLICIES: [(&str, Propagation); 3] =
    [("Foreground", Propagation::Foreground), ("Background", Propagation::Background), ("Orphan", Propagation::Orphan)];

/// Valid options of a delete. Created by `Options::from_request` from a request, or by `Options::read` from the options
/// inside an eviction.
pub(in crate::verbs) struct Options {
    /// The options as JSON, for admission.
    pub(in crate::verbs) value: Value,
    /// `true` for `dryRun: All`.
    pub(in crate::verbs) is_dry: bool,
    /// `propagationPolicy`, or the deprecated `orphanDependents`. `Propagation::Default` leaves the choice to the kind.
    pub(in crate::verbs) propagation: Propagation,
    /// `gracePeriodSeconds`. `Grace::Default` leaves the choice to the object.
    pub(in crate::verbs) grace: Grace,
}

impl Options {
    /// Returns the options in the body, or else those in the query. `BadRequest` for a body or parameter that does not
    /// decode, `Invalid` for values that do not fit.
    pub(super) fn from_request(info: &RequestInfo) -> Result<Self, StatusError> {
        Self::read(if info.body.is_empty() { from_query(info)? } else { from_body(info)? })
    }

    /// Validates options (`ValidateDeleteOptions`). `propagationPolicy` and `orphanDependents` exclude each other. All
    /// field errors are reported together, with the group `meta.k8s.io`.
    pub(in crate::verbs) fn read(value: Value) -> Result<Self, StatusError> {
        let policy = value["propagationPolicy"].as_str();
        let found = policy.map(|policy| POLICIES.iter().find(|(name, _)| *name == policy));
        let runs: Vec<&Value> = value["dryRun"].as_array().into_iter().flatten().collect();
        let mut errors = Errors::default();
        if policy.is_some() && !value["orphanDependents"].is_null() {
            let detail = "must not be set together with orphanDependents";
            errors.invalid("propagationPolicy", &value["propagationPolicy"], detail);
        }
        if found == Some(None) {
            let supported = POLICIES.map(|(name, _)| name);
            errors.unsupported("propagationPolicy", &value["propagationPolicy"], &supported);
        }
        if runs.iter().any(|run| **run != "All") {
            errors.unsupported("dryRun", &value["dryRun"], &["All"]);
        }
        StatusError::unless_valid("meta.k8s.io", KIND, "", &errors)?;
        let propagation = match (&value["orphanDependents"], found.flatten()) {
            (Value::Bool(true), _) => Propagation::Orphan,
            (Value::Bool(false), _) => Propagation::NoOrphans,
            (_, Some((_, propagation))) => *propagation,
            (_, None) => Propagation::Default,
        };
        // A negative grace period is 1 second, as in `BeforeDelete` upstream.
        let seconds = value["gracePeriodSeconds"].as_i64().map(|seconds| if seconds < 0 { 1 } else { seconds });
        let grace = seconds.map_or(Grace::Default, Grace::Seconds);
        Ok(Self { is_dry: !runs.is_empty(), propagation, grace, value })
    }
}

/// Decodes the options in the query. Strings of flags follow Go's conversion of query parameters: any value but `false`
/// and `0` is true.
fn from_query(info: &RequestInfo) -> Result<Value, StatusError> {
    let mut value = json!({});
    if info.params.is_present("propagationPolicy") {
        value["propagationPolicy"] = info.params.text("propagationPolicy").into();
    }
    if info.params.is_present("orphanDependents") {
        value["orphanDependents"] = info.params.flag("orphanDependents").into();
    }
    if info.params.is_present("dryRun") {
        value["dryRun"] = info.params.values("dryRun").into();
    }
    if let Some(seconds) = info.params.number("gracePeriodSeconds")? {
        value["gracePeriodSeconds"] = seconds.into();
    }
    Ok(value)
}

/// Decodes the options in the body.
fn from_body(info: &RequestInfo) -> Result<Value, StatusError> {
    let value = body::read_built_in(info, KIND)?;
    let (kind, version) = (identity::type_meta_field(&value, "kind"), identity::type_meta_field(&value, "apiVersion"));
    identity::read_version(version)?;
    if !["", KIND].contains(&kind) {
        return Err(StatusError::bad_request(format!("kind: must be {KIND}, found {kind:?}")));
    }
    if let Some(schema) =
        Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").filter(|_| value.is_object())
    {
        decode::decode_typed(schema, &mut value.clone(), None, Integers::InRange).map_err(StatusError::bad_request)?;
    }
    Ok(value)
}
