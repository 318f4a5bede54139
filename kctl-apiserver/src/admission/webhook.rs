//! Mutating and validating webhooks: decides which are called, in which order and how often, and applies their
//! responses.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`.
//!
//! Calls are described here and sent elsewhere (`webhook_round`). Mutating webhooks are called one after the other,
//! since each sees the result of those before it; validating ones are independent and are sent together.

use std::{collections::HashSet, sync::Arc};

use http::StatusCode;
use serde_json::Value;

use super::{
    Attributes, Pass, Stage,
    matching::{self, Versioned},
    patch::{self, PatchError},
    redecode,
    review::{self, WebhookStatus, WebhookVerdict},
};
use crate::{
    cel::conditions::{self, MatchResult},
    client_config, conversion,
    kinds::admissionregistration::{mutating_webhook_configuration, validating_webhook_configuration},
    registry::Kind,
    request::RequestInfo,
    state::State,
    status::StatusError,
    store::Store,
    webhook_round::{WebhookCall, WebhookReply},
};

/// The default of `timeoutSeconds`.
const TIMEOUT_DEFAULT_SECONDS: u64 = 10;

/// One webhook of a configuration.
struct Webhook {
    /// The configuration, shared with the store.
    configuration: Arc<Value>,
    /// Its index in the configuration.
    index: usize,
}

impl Webhook {
    /// Returns its entry in the configuration.
    fn value(&self) -> &Value {
        &self.configuration["webhooks"][self.index]
    }

    /// Returns the name of the webhook.
    fn name(&self) -> &str {
        self.value()["name"].as_str().unwrap_or_default()
    }

    /// Returns `true` for `failurePolicy: Ignore`.
    fn ignores_failures(&self) -> bool {
        self.value()["failurePolicy"] == "Ignore"
    }
}

/// The reason why a webhook does not let a request pass.
enum WebhookFailure {
    /// The webhook denies the request, or its patch does not fit the object. `failurePolicy` does not apply.
    Final(StatusError),
    /// The call failed: `failurePolicy` decides. The message is completed with the name of the webhook.
    Call(String),
}

/// Returns all webhooks of a kind of configuration, by the names of the configurations, then in the order of their
/// lists.
fn webhooks(store: &Store, info: &RequestInfo, kind: &Kind) -> Vec<Webhook> {
    if !matching::takes_webhooks(info) {
        return Vec::new();
    }
    store
        .objects(&kind.group_resource(), None)
        .flat_map(|configuration| {
            let n_webhooks = configuration["webhooks"].as_array().map_or(0, Vec::len);
            (0..n_webhooks).map(move |index| Webhook { configuration: configuration.clone(), index })
        })
        .collect()
}

/// Returns the resource under which a webhook matches the request, and under which the review shows the object; `None`
/// if it does not match. Selectors come first, then rules, then match conditions, as in `ShouldCallHook`
/// (`k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go`).
///
/// # Errors
/// `Forbidden` if a match condition fails and `failurePolicy` is `Fail`.
fn matched_resource(
    store: &Store,
    webhook: &Webhook,
    attributes: &Attributes<'_>,
) -> Result<Option<Versioned>, StatusError> {
    let value = webhook.value();
    let match_policy = value["matchPolicy"].as_str().unwrap_or("Equivalent");
    if !matching::object_fits(&value["objectSelector"], attributes)
        || !matching::namespace_fits(store, &value["namespaceSelector"], attributes)
    {
        return Ok(None);
    }
    let Some(resource) = matching::matching_resource(store, &value["rules"], match_policy, attributes) else {
        return Ok(None);
    };
    match conditions::fits(&value["matchConditions"], || attributes.scope(store, &value["matchConditions"])) {
        MatchResult::Matches => Ok(Some(resource)),
        MatchResult::DoesNotMatch => Ok(None),
        MatchResult::Failed(_) if webhook.ignores_failures() => Ok(None),
        MatchResult::Failed(why) => Err(StatusError::forbidden(&attributes.info.resource.id, &attributes.name, &why)),
    }
}

/// Returns the call of a webhook. If the address cannot be resolved, the call has failed.
fn call_for(
    state: &State,
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    resource: &Versioned,
) -> Result<WebhookCall, WebhookFailure> {
    let seconds = webhook.value()["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_DEFAULT_SECONDS);
    let requested = Versioned::for_resource(&attributes.info.resource);
    let request = if *resource == requested {
        review::request(attributes, resource, &attributes.kind())
    } else {
        in_version(state, attributes, resource).map_err(WebhookFailure::Final)?
    };
    let review = review::review(webhook.value(), &request);
    Ok(WebhookCall {
        review,
        ..client_config::resolve(state, &webhook.value()["clientConfig"], seconds)
            .map_err(|why| WebhookFailure::Call(format!("failed to call webhook: {why}")))?
    })
}

/// Returns the `request` of a review with objects in another version of the resource, if that is still served.
fn in_version(state: &State, attributes: &Attributes<'_>, resource: &Versioned) -> Result<Value, StatusError> {
    let shown = attributes.in_version(state, resource)?;
    let kind = shown.as_ref().and_then(|shown| shown.shown_as.as_ref()).map(|(_, kind)| kind.clone());
    let kind = kind.unwrap_or_else(|| attributes.kind());
    Ok(review::request(shown.as_ref().unwrap_or(attributes), resource, &kind))
}

/// Decodes a reply, and passes its warnings and annotations on, even if the webhook denies the request.
fn read_verdict(
    webhook: &Webhook,
    review: &Value,
    reply: &WebhookReply,
    attributes: &Attributes<'_>,
    stage: Stage,
) -> Result<WebhookVerdict, WebhookFailure> {
    let verdict = review::verdict(review, reply, stage).map_err(WebhookFailure::Call)?;
    let round = &attributes.info.round;
    verdict.warnings.iter().for_each(|text| round.warn(text));
    for (key, value) in &verdict.annotations {
        round.annotate(&format!("{}/{key}", webhook.name()), value.as_deref().unwrap_or_default());
    }
    if verdict.allowed { Ok(verdict) } else { Err(WebhookFailure::Final(denial_error(webhook.name(), verdict.status))) }
}

/// Returns the error of a webhook that denies the request, with the status of its response (`ToStatusErr`). Codes below
/// 400 are replaced by 400.
fn denial_error(name: &str, status: WebhookStatus) -> StatusError {
    let code = status.code.and_then(|code| u16::try_from(code.as_u64()?).ok()).filter(|code| *code >= 400);
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    let by = format!("admission webhook {name:?} denied the request");
    let reason = status.reason.unwrap_or_default();
    let message = match (status.message.unwrap_or_default().as_str(), reason.as_str()) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let mut error = StatusError::new(code, "", message);
    error.reason = reason.into();
    error.details = status.details.map_or(Value::Null, Value::Object);
    error
}

/// Returns the error of a failed webhook, or `Ok` if `failurePolicy` ignores it.
fn apply_failure_policy(webhook: &Webhook, failure: WebhookFailure) -> Result<(), StatusError> {
    match failure {
        WebhookFailure::Final(error) => Err(error),
        WebhookFailure::Call(_) if webhook.ignores_failures() => Ok(()),
        WebhookFailure::Call(why) => {
            Err(StatusError::internal(&format!("failed calling webhook {:?}: {why}", webhook.name())))
        }
    }
}

/// The mutating webhooks of a request. They run one after the other.
pub(super) struct Mutating {
    /// All mutating webhooks. Each is matched just before its call, because an earlier webhook may change labels.
    webhooks: Vec<Webhook>,
    /// The indexes of called webhooks with `reinvocationPolicy: IfNeeded` that saw the latest object.
    called: Vec<usize>,
    /// The indexes of webhooks that have to run again, because the object changed after them.
    due: HashSet<usize>,
}

impl Mutating {
    /// Collects the webhooks of a request.
    ///
    /// A request that waits for a webhook starts over after the response, with a new value.
    pub(super) fn new(store: &Store, info: &RequestInfo) -> Self {
        let webhooks = webhooks(store, info, &mutating_webhook_configuration::KIND);
        Self { webhooks, called: Vec::new(), due: HashSet::new() }
    }

    /// Records that a policy changed the object after the webhooks ran.
    pub(super) fn call_again(&mut self) {
        self.due.extend(self.called.drain(..));
    }

    /// Calls all webhooks in order, or in the second pass those that are due again. Returns `true` if one changed the
    /// object.
    ///
    /// A webhook with `reinvocationPolicy: IfNeeded` is due again if the object changed after its call. Each webhook
    /// runs at most twice, as upstream (`mutatingDispatcher.Dispatch`).
    ///
    /// # Errors
    /// Fails with the first webhook that denies the request or fails, or with [`StatusError::waiting`].
    pub(super) fn run(
        &mut self,
        state: &State,
        attributes: &mut Attributes<'_>,
        pass: Pass,
    ) -> Result<bool, StatusError> {
        let due = std::mem::take(&mut self.due);
        let mut any = false;
        for (index, webhook) in self.webhooks.iter().enumerate() {
            if pass == Pass::Reinvocation && !due.contains(&index) {
                continue;
            }
            let Some(resource) = matched_resource(&state.store, webhook, attributes)? else { continue };
            if call_mutating_webhook(state, webhook, attributes, &resource)? {
                self.due.extend(self.called.drain(..));
                any = true;
            }
            if webhook.value()["reinvocationPolicy"] == "IfNeeded" {
                self.called.push(index);
            }
        }
        Ok(any)
    }
}

/// Calls a webhook. Returns `true` if its patch changed the object. A patch that does not decode is a failed call; one
/// that does not apply, or that has no object, is an error.
fn call_mutating_webhook(
    state: &State,
    webhook: &Webhook,
    attributes: &mut Attributes<'_>,
    resource: &Versioned,
) -> Result<bool, StatusError> {
    let unchanged = |failure| apply_failure_policy(webhook, failure).map(|()| false);
    let webhook_call = match call_for(state, webhook, attributes, resource) {
        Ok(webhook_call) => webhook_call,
        Err(failure) => return unchanged(failure),
    };
    let review = webhook_call.review.clone();
    let reply = attributes.info.round.call(webhook_call)?;
    let verdict = match read_verdict(webhook, &review, &reply, attributes, Stage::Mutating) {
        Ok(verdict) => verdict,
        Err(failure) => return unchanged(failure),
    };
    if verdict.patch.is_empty() {
        return Ok(false);
    }
    let Some(object) = &attributes.object else {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(StatusError::internal(&format!("admission webhook {:?} {why}", webhook.name())));
    };
    // The patch applies to the object that the webhook has seen.
    let mut patched = review["request"]["object"].clone();
    match patch::apply(&mut patched, &verdict.patch) {
        Ok(()) => {}
        Err(PatchError::Undecodable(why)) => {
            let why = format!("received undecodable patch in webhook response: {why}");
            return unchanged(WebhookFailure::Call(why));
        }
        Err(PatchError::Inapplicable(why) | PatchError::TestFailed(why)) => return Err(StatusError::internal(&why)),
    }
    if *resource != Versioned::for_resource(&attributes.info.resource) {
        patched = conversion::convert(state, attributes.info, &attributes.info.resource, &patched)?;
    }
    redecode(attributes, &mut patched)?;
    let changed = patched != *object;
    attributes.object = Some(patched);
    Ok(changed)
}

/// Calls all validating webhooks that match, in parallel. Returns the first error in their order.
///
/// All calls of the request are pending together, so that a request with several webhooks runs only once more.
///
/// A failed match condition counts as an error of its webhook.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let mut calls = Vec::new();
    let mut errors = Vec::new();
    for webhook in webhooks(&state.store, attributes.info, &validating_webhook_configuration::KIND) {
        let resource = match matched_resource(&state.store, &webhook, attributes) {
            Ok(Some(resource)) => resource,
            Ok(None) => continue,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        match call_for(state, &webhook, attributes, &resource) {
            Ok(webhook_call) => calls.push((webhook, webhook_call)),
            Err(failure) => errors.extend(apply_failure_policy(&webhook, failure).err()),
        }
    }
    let webhook_calls = calls.iter().map(|(_, webhook_call)| webhook_call.clone()).collect();
    let replies = attributes.info.round.call_all(webhook_calls)?;
    for ((webhook, webhook_call), reply) in calls.iter().zip(&replies) {
        if let Err(failure) = read_verdict(webhook, &webhook_call.review, reply, attributes, Stage::Validating) {
            errors.extend(apply_failure_policy(webhook, failure).err());
        }
    }
    errors.into_iter().next().map_or(Ok(()), Err)
}
