//! Reviews of access and tokens: the response has a status, and nothing is stored.

use serde_json::{Value, json};

use crate::{
    admission, apply,
    authorizer::{self, Attributes},
    controllers,
    field_errors::text,
    registry::kind::Review,
    request::{Caller, Operation, RequestInfo, User},
    selector,
    state::State,
    status::StatusError,
    tokens,
    write::{self, FieldManager},
};

/// Returns `true` if the request creates a review. A `Binding` is created, not stored, but changes its Pod, so it does
/// not count.
pub(super) fn is_review(info: &RequestInfo) -> bool {
    info.resource.kind.requests.review.is_some_and(|review| review != Review::Binding)
}

/// Admits and validates a review, and returns it with its status. Nothing is stored. Webhooks see a zero status, as
/// kube-apiserver encodes it. Mutating webhooks can change what is reviewed. The response has the metadata that the
/// client sent, with managed fields as upstream adds them. Rules and self reviews return empty metadata.
///
/// # Errors
/// Fails if the review is invalid or admission rejects it. A denied access or an invalid token is a result, not an
/// error.
pub(super) fn review(state: &mut State, info: &RequestInfo, mut review: Value) -> Result<Value, StatusError> {
    write::default(info, &mut review, None);
    apply::update(&FieldManager::from_request(info, state).request(), None, &mut review);
    let mut attributes = admission::Attributes::new(info, Operation::Create, "", review);
    if admission::may_mutate(&state.store, info) {
        set_zero_status(info, attributes.object.as_mut());
        admission::mutate(state, &mut attributes)?;
    }
    validate_review(info, attributes.object.as_ref().unwrap_or(&Value::Null))?;
    admission::validate(state, &attributes)?;
    let mut review = attributes.object.unwrap_or_default();
    let spec = &review["spec"];
    match info.resource.kind.requests.review {
        Some(kind @ (Review::SelfSubjectAccess | Review::SubjectAccess | Review::LocalSubjectAccess)) => {
            let named = User { name: text(&spec["user"]).into(), groups: strings(&spec["groups"]) };
            let user = if kind == Review::SelfSubjectAccess { &info.caller.user } else { &named };
            review["status"] = access_status(state, user, spec);
        }
        Some(Review::SelfSubjectRules) => {
            let namespace = text(&spec["namespace"]);
            let (resources, others) = authorizer::rules_of(state, &info.caller.user, namespace);
            let missing = authorizer::missing_roles(state, &info.caller.user, namespace);
            review["metadata"] = json!({});
            review["spec"] = json!({});
            review["status"] = json!({ "resourceRules": resources, "nonResourceRules": others, "incomplete": false });
            if let Some(error) = missing {
                review["status"]["evaluationError"] = error.into();
                review["status"]["incomplete"] = true.into();
            }
        }
        Some(Review::SelfSubject) => {
            review["metadata"] = json!({ "creationTimestamp": state.store.clock.seconds() });
            review["status"] = json!({ "userInfo": info.caller.user_info() });
        }
        Some(Review::Token) => {
            let token = text(&spec["token"]);
            let authenticated = authenticate(state, token, strings(&spec["audiences"]));
            set_token_status(&mut review["status"], authenticated);
        }
        Some(Review::Binding) | None => return Err(StatusError::method_not_allowed()),
    }
    Ok(review)
}

/// Validates a review, before validating webhooks are called. Access reviews are `Invalid` with field errors; the
/// others `BadRequest`.
fn validate_review(info: &RequestInfo, review: &Value) -> Result<(), StatusError> {
    let spec = &review["spec"];
    match info.resource.kind.requests.review {
        Some(kind @ (Review::SelfSubjectAccess | Review::SubjectAccess | Review::LocalSubjectAccess)) => {
            let errors = crate::kinds::authorization::validation::errors(kind, review);
            // kube-apiserver names no kind here.
            StatusError::unless_valid(&info.resource.id.group, "", "", &errors)
        }
        Some(Review::SelfSubjectRules) if text(&spec["namespace"]).is_empty() => {
            Err(StatusError::bad_request("no namespace on request"))
        }
        Some(Review::Token) if text(&spec["token"]).is_empty() => {
            Err(StatusError::bad_request("token is required for TokenReview in authentication"))
        }
        _ => Ok(()),
    }
}

/// Sets the status to Go's zero value, which webhooks see.
fn set_zero_status(info: &RequestInfo, review: Option<&mut Value>) {
    let fields = match info.resource.kind.requests.review {
        Some(Review::SelfSubjectRules) => {
            json!({ "resourceRules": null, "nonResourceRules": null, "incomplete": false })
        }
        Some(Review::SelfSubject) => json!({ "userInfo": {} }),
        Some(Review::Token) => json!({ "user": {} }),
        _ => json!({ "allowed": false }),
    };
    let Some(review) = review else { return };
    for (field, value) in fields.as_object().into_iter().flatten() {
        if review["status"][field].is_null() {
            review["status"][field] = value.clone();
        }
    }
}

/// Authenticates a token. It is parsed like the value of an `Authorization` header (`AuthenticateRequest` of
/// `k8s.io/apiserver/pkg/authentication/request/bearertoken`). An empty token is the anonymous user, who is
/// authenticated. A legacy token of a Secret is labelled as used, as in a request.
fn authenticate(state: &mut State, sent: &str, audiences: Vec<String>) -> Result<(Caller, Vec<String>), String> {
    let header = format!("Bearer {sent}");
    let token = header.trim().split(' ').nth(1).unwrap_or_default();
    if token.is_empty() {
        let audiences = if audiences.is_empty() { vec![tokens::ISSUER.to_owned()] } else { audiences };
        return Ok((User::anonymous().into(), audiences));
    }
    let bearer = tokens::bearer(&state.store, &state.core.signer, token, &audiences)?;
    if let Some(secret) = &bearer.secret {
        controllers::tokens::label_used(&mut state.store, secret);
    }
    Ok((bearer.caller, bearer.audiences))
}

/// Writes the result of a token review into the status. Other fields that the client sent are kept. A failure removes
/// `authenticated`, because an omitted field means `false`, and sets `error`.
fn set_token_status(status: &mut Value, authenticated: Result<(Caller, Vec<String>), String>) {
    if !status.is_object() {
        *status = json!({});
    }
    match authenticated {
        Ok((caller, audiences)) => {
            status["authenticated"] = true.into();
            status["user"] = caller.user_info();
            status["audiences"] = audiences.into();
        }
        Err(why) => {
            status.as_object_mut().map(|status| status.remove("authenticated"));
            status["error"] = why.into();
        }
    }
    if status["user"].is_null() {
        status["user"] = json!({});
    }
}

/// Returns a list of strings.
fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the status of an access review. A denial has a `reason` if roles are bound to the user but do not exist.
/// `denied` is never set: RBAC allows or has no opinion. Field and label selectors cannot restrict an RBAC decision;
/// invalid ones are reported in `evaluationError`. `resourceAttributes` and `nonResourceAttributes` exclude each other;
/// validation has checked that one is set.
fn access_status(state: &State, user: &User, spec: &Value) -> Value {
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let (namespace, is_allowed) = if other.is_object() {
        ("", authorizer::allows_path(state, user, text(&other["verb"]), text(&other["path"])))
    } else {
        let attributes = Attributes {
            verb: text(&resource["verb"]),
            group: text(&resource["group"]),
            resource: text(&resource["resource"]),
            subresource: text(&resource["subresource"]),
            namespace: text(&resource["namespace"]),
            name: text(&resource["name"]),
        };
        (attributes.namespace, authorizer::is_allowed(state, user, &attributes))
    };
    let reason = if is_allowed {
        authorizer::allow_reason(user).to_owned()
    } else {
        authorizer::missing_roles(state, user, namespace).unwrap_or_default()
    };
    let mut status = json!({ "allowed": is_allowed });
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    let selectors = ["fieldSelector", "labelSelector"].into_iter();
    let errors: Vec<String> = selectors.filter_map(|field| selector_error(resource, field)).collect();
    if !errors.is_empty() {
        status["evaluationError"] = errors.join("; ").into();
    }
    status
}

/// Returns the error of an invalid selector of a `SubjectAccessReview`. RBAC ignores selectors, so the decision is the
/// same as without it. A field is compared with exactly one value (`fieldSelectorAsSelector`), and has no operators for
/// existence.
fn selector_error(attributes: &Value, field: &str) -> Option<String> {
    let (selector, is_field_selector) = (&attributes[field], field == "fieldSelector");
    let is_valid_requirement = |requirement: &Value| match text(&requirement["operator"]) {
        "In" | "NotIn" => {
            !is_field_selector || requirement["values"].as_array().is_some_and(|values| values.len() == 1)
        }
        operator => !is_field_selector && ["Exists", "DoesNotExist"].contains(&operator),
    };
    let is_valid = match text(&selector["rawSelector"]) {
        "" => selector["requirements"].as_array().into_iter().flatten().all(is_valid_requirement),
        raw if is_field_selector => selector::is_field_selector(raw),
        raw => kctl_apimachinery::labels::parse(raw).is_some(),
    };
    (!is_valid).then(|| format!("spec.resourceAttributes.{field} is invalid and was ignored"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::ApiServer;

    /// Objects that are not stored have no columns, as in kube-apiserver.
    #[tokio::test(start_paused = true)]
    async fn reviews_are_not_served_as_tables() {
        let server = ApiServer::new();
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        for (accept, code) in [(table, 406), (&format!("{table},application/json"), 201), (metadata, 201)] {
            for (path, spec) in [
                (
                    "authorization.k8s.io/v1/selfsubjectaccessreviews",
                    json!({ "nonResourceAttributes": { "path": "/" } }),
                ),
                ("authorization.k8s.io/v1/selfsubjectrulesreviews", json!({ "namespace": "default" })),
                ("authentication.k8s.io/v1/selfsubjectreviews", Value::Null),
                ("authentication.k8s.io/v1/tokenreviews", json!({ "token": "x" })),
            ] {
                let request = Request::post(format!("/apis/{path}")).header("accept", accept);
                let response = server.service().send_request(request, json!({ "spec": spec }).to_string()).await;
                assert_eq!(response.status(), code, "{path}: {accept}");
            }
        }
    }
}
