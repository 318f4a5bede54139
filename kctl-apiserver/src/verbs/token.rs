//! `POST serviceaccounts/NAME/token` (`pkg/registry/core/serviceaccount/storage/token.go`).
//!
//! The token is a JWT that the server signs. Its claims name the account, the bound object and the audiences; the
//! authenticator (`tokens`) checks them against the state at each request.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::VerbResponse;
use crate::{
    admission::{self, Attributes},
    apply,
    kinds::core::{node, pod, secret},
    registry::Kind,
    request::{Operation, RequestInfo},
    state::State,
    status::{FieldError, GroupResource, StatusError},
    store::Store,
    tokens::{Claims, ISSUER, Named, TokenClaims},
    write::precondition::{self, Subject},
};

/// The shortest lifetime of a token in seconds.
const SECONDS_MIN: i64 = 600;
/// The longest lifetime of a token in seconds (`ValidateTokenRequest`): about 136 years.
const SECONDS_MAX: i64 = 1 << 32;
/// The lifetime of a token whose request names none: one hour.
const SECONDS_DEFAULT: i64 = 3_600;
/// The lifetime that the projected volume of a Pod requests. Old clients do not renew such a token, so it lives for a
/// year (`WarnOnlyBoundTokenExpirationSeconds`).
const SECONDS_OF_MOUNTED: i64 = 3_607;
/// The lifetime of a token that old clients may not renew.
const SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

/// The version of `TokenRequest`.
const API_VERSION: &str = "authentication.k8s.io/v1";

/// Issues a token for a `ServiceAccount`. Admission sees the request twice: mutating admission before the account is
/// looked up, validating admission when everything but the token is known. Nothing is stored; the token contains all
/// that is needed to validate it. `status.expirationTimestamp` is the time that was requested, even if the token lives
/// longer for old clients.
///
/// # Errors
/// `NotFound` without the account or the bound object, `Invalid` for a lifetime out of bounds, `Conflict` for another
/// uid.
pub(super) fn create(state: &mut State, info: &RequestInfo, sent: Value) -> Result<VerbResponse, StatusError> {
    let mut attributes = Attributes::new(info, Operation::Create, &info.name, request_for_admission(state, info, sent));
    admission::mutate(state, &mut attributes)?;
    let mut request = attributes.object.take().unwrap_or_default();
    check_name(info, &request)?;
    let resource = &info.resource.id;
    let account =
        &state.store.get(resource, &info.key()).ok_or_else(|| StatusError::not_found(resource, &info.name))?;
    complete(&state.store, info, account, &mut request)?;
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(SECONDS_DEFAULT);
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        let why = format!("must be between {SECONDS_MIN} and {SECONDS_MAX}, inclusive");
        return Err(invalid("", "spec.expirationSeconds", &seconds.into(), &why));
    }
    attributes.object = Some(request);
    admission::validate(state, &attributes)?;
    let mut request = attributes.object.unwrap_or_default();
    let mut about = TokenClaims {
        namespace: info.namespace.clone(),
        serviceaccount: Named::from_object(account),
        ..bound_object(&state.store, info, &request["spec"]["boundObjectRef"])?
    };
    let audiences: Vec<String> = serde_json::from_value(request["spec"]["audiences"].clone()).unwrap_or_default();
    let now = state.store.clock.now();
    let mut life = seconds;
    if about.pod.is_some() && seconds == SECONDS_OF_MOUNTED && audiences == [ISSUER] {
        about.warnafter = Some(now.as_second() + seconds);
        life = SECONDS_EXTENDED;
    }
    let claims = Claims {
        aud: audiences,
        exp: now.as_second() + life,
        iat: now.as_second(),
        iss: ISSUER.into(),
        jti: state.store.rng.uid(),
        about,
        nbf: now.as_second(),
        sub: format!("system:serviceaccount:{}:{}", info.namespace, info.name),
    };
    let token = state.core.signer.get().and_then(|signer| signer.sign(&claims));
    let token =
        token.map_err(|why| StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why.to_string()))?;
    let expires = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    request["status"] = json!({ "token": token, "expirationTimestamp": kctl_apimachinery::time::seconds(expires) });
    Ok(VerbResponse { code: StatusCode::CREATED, ..VerbResponse::ok(request) })
}

/// Returns the request with defaults and managers, as webhooks see it. The token is empty for webhooks, so they cannot
/// record it.
fn request_for_admission(state: &State, info: &RequestInfo, mut request: Value) -> Value {
    if !request["spec"]["expirationSeconds"].is_i64() {
        request["spec"]["expirationSeconds"] = SECONDS_DEFAULT.into();
    }
    let manager = crate::write::FieldManager::from_request(info, state);
    let schema = crate::schema::Schema::built_in(API_VERSION, "TokenRequest");
    let writer = apply::Request { schema, api_version: API_VERSION, versions: &apply::ONE_FORM, ..manager.request() };
    apply::update(&writer, None, &mut request);
    // Go writes these fields even if they are null.
    for field in ["audiences", "boundObjectRef"] {
        request["spec"][field] = request["spec"][field].take();
    }
    request["status"] = json!({ "token": "", "expirationTimestamp": null });
    request
}

/// Checks the name of the account in the body, which may be empty. Upstream does this before it reads the account
/// (`TokenREST.Create` in `pkg/registry/core/serviceaccount/storage/token.go`).
fn check_name(info: &RequestInfo, request: &Value) -> Result<(), StatusError> {
    let name = request["metadata"]["name"].as_str().unwrap_or_default();
    if ["", info.name.as_str()].contains(&name) {
        return Ok(());
    }
    Err(invalid(&info.name, "metadata.name", &name.into(), "must match the service account name if specified"))
}

/// Fills in the fields that the request omits from its account, and rejects another uid. The default audience is the
/// server itself.
fn complete(store: &Store, info: &RequestInfo, account: &Value, request: &mut Value) -> Result<(), StatusError> {
    let resource = &GroupResource::new("authentication.k8s.io", "TokenRequest");
    let subject = Subject { resource, name: &info.name };
    precondition::check_uid(subject, &request["metadata"]["uid"], &account["metadata"]["uid"])?;
    for field in ["name", "namespace", "uid"] {
        request["metadata"][field] = account["metadata"][field].clone();
    }
    request["metadata"]["creationTimestamp"] = store.clock.seconds().into();
    if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
        request["spec"]["audiences"] = json!([ISSUER]);
    }
    // Go writes the field even if it is null.
    request["spec"]["boundObjectRef"] = request["spec"]["boundObjectRef"].take();
    Ok(())
}

/// Returns the error of one invalid field. `name` is empty where upstream has no name at that point.
fn invalid(name: &str, field: &str, value: &Value, why: &str) -> StatusError {
    StatusError::invalid("authentication.k8s.io", "TokenRequest", name, &[FieldError::invalid(field, value, why)])
}

/// The kind of an object to which a token can be bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BoundKind {
    Pod,
    Secret,
    Node,
}

impl BoundKind {
    /// Returns the kind whose table has the bound objects.
    fn rules(self) -> &'static Kind {
        match self {
            Self::Pod => &pod::KIND,
            Self::Secret => &secret::KIND,
            Self::Node => &node::KIND,
        }
    }
}

/// Returns the object to which a token is bound: the token is valid only while the object exists. A Pod must run as the
/// account. The bound Pod's node is recorded with it, with an empty uid if the Node does not exist.
fn bound_object(store: &Store, info: &RequestInfo, reference: &Value) -> Result<TokenClaims, StatusError> {
    let mut about = TokenClaims::default();
    if reference.is_null() {
        return Ok(about);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, api_version, name) = (text("kind"), text("apiVersion"), text("name"));
    let find = |kind: &Kind, namespace: &str, name: &str| -> Result<Arc<Value>, StatusError> {
        let resource = kind.group_resource();
        store.get(&resource, &(namespace.into(), name.into())).ok_or_else(|| StatusError::not_found(&resource, name))
    };
    let group = match api_version.split_once('/') {
        // An invalid version counts as absent (`FromAPIVersionAndKind`).
        Some((group, version)) if !version.contains('/') => group,
        _ => "",
    };
    let kinds = [BoundKind::Pod, BoundKind::Secret, BoundKind::Node].into_iter();
    let Some(bound_kind) = kinds.filter(|_| group.is_empty()).find(|bound_kind| bound_kind.rules().kind == kind) else {
        let why = format!("spec.boundObjectRef: must be a Pod, Secret or Node, found {kind:?} of {api_version:?}");
        return Err(StatusError::bad_request(why));
    };
    let namespace = if bound_kind == BoundKind::Node { "" } else { info.namespace.as_str() };
    if name.is_empty() {
        return Err(StatusError::bad_request("Name parameter required."));
    }
    let object = find(bound_kind.rules(), namespace, name)?;
    let named = Named::from_object(&object);
    if bound_kind == BoundKind::Pod && object["spec"]["serviceAccountName"] != info.name.as_str() {
        let why = format!("spec.boundObjectRef: pod {name:?} does not run as service account {:?}", info.name);
        return Err(StatusError::bad_request(why));
    }
    let subject = Subject { resource: &GroupResource::new(group, kind), name };
    precondition::check_uid(subject, &reference["uid"], &object["metadata"]["uid"])?;
    match bound_kind {
        BoundKind::Pod => {
            let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
            let existing = find(&node::KIND, "", node).map(|node| Named::from_object(&node));
            let unknown = |_| Named { name: node.to_owned(), uid: String::new() };
            about.node = (!node.is_empty()).then(|| existing.unwrap_or_else(unknown));
            about.pod = Some(named);
        }
        BoundKind::Secret => about.secret = Some(named),
        BoundKind::Node => about.node = Some(named),
    }
    Ok(about)
}
