//! From the body of a request to its response: the protocol without the network.
//!
//! Every error is a response with `successful: false`. Karmada does not read the body of an HTTP
//! error (`callHook` in `pkg/resourceinterpreter/customized/webhook/customized.go`), so its message would be lost.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use kctl_webhook::{
    error_chain::error_chain,
    server::{self, uid_of},
};
use serde_json::Value;

use super::{
    metrics::{Metrics, Running},
    wire::{Request, RequestContext, Response},
};
use crate::{
    chain::LayerError,
    function::{FunctionError, Functions, Rule},
    kind::Gvk,
    operation::{
        Inputs, InterpretComponent, InterpretDependency, InterpretHealth, InterpretReplica, InterpretStatus, Op,
        Operation,
    },
};

/// The code of an invalid request, of one that no function answers, and of one whose object the function's type can't
/// read.
const BAD_REQUEST: u16 = 400;
/// The code of a function that failed or panicked, and of an answer that can't be serialized.
const INTERNAL_ERROR: u16 = 500;

/// A request in progress. Its function is measured, not the request, so that durations have no waits.
pub(super) type RequestState = server::RequestState<()>;

pub(super) async fn respond(
    functions: &Functions,
    metrics: &Metrics,
    body: &[u8],
    state: &mut RequestState,
) -> Response {
    let request = match decode_request(body) {
        Ok(request) => request,
        Err(rejected) => {
            metrics.count_rejected(rejected.status.code);
            return *rejected;
        }
    };
    let uid = request.uid.clone();
    state.uid.clone_from(&uid);
    let response = call_and_count(functions, metrics, request, state).await;
    Response { uid, ..response.unwrap_or_else(|failed| failed) }
}

/// Decodes a request: JSON, or YAML as Karmada's own server does (`ServeHTTP` in `pkg/webhook/interpreter/http.go`).
fn decode_request(body: &[u8]) -> Result<Request, Box<Response>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Box::new(Response::failure(BAD_REQUEST, "there is no content to decode".into())));
    }
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let context: Result<RequestContext, String> = if is_json {
        serde_json::from_slice(body).map_err(|error| error.to_string())
    } else {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string());
        // The other lines of the error show the position. The response has room for one line.
        let first_line = |error: serde_saphyr::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        text.and_then(|text| serde_saphyr::from_str(text).map_err(first_line))
    };
    match context {
        Ok(RequestContext { request: Some(request) }) => Ok(request),
        Ok(_) => Err(Box::new(Response::failure(BAD_REQUEST, "there is no content to decode: no request".into()))),
        Err(error) => {
            let what = "the request can't be decoded as a ResourceInterpreterContext";
            Err(Box::new(Response { uid: uid_of(body), ..Response::decode_failure(what, &error) }))
        }
    }
}

/// Finds the function, calls it, and counts the call. A request without a function is counted
/// without labels, so that a client can't create label values.
async fn call_and_count(
    functions: &Functions,
    metrics: &Metrics,
    request: Request,
    state: &RequestState,
) -> Result<Response, Response> {
    let (rule, inputs) = match function_and_inputs(functions, request) {
        Ok(called) => called,
        Err(rejected) => {
            metrics.count_rejected(rejected.status.code);
            return Err(*rejected);
        }
    };
    let mut measurement = metrics.begin(rule);
    let operation = rule.function_info().operation;
    *state.running.lock() = Some(format!("{} for {operation} of {}", rule.function_info(), inputs.object_name()));
    let inputs = Arc::new(inputs);
    let response = match call_function(rule, inputs.clone(), measurement.running(&state.running), state).await {
        Ok(answer) => respond_with(operation, inputs.desired.as_ref().unwrap_or(&Value::Null), answer)
            .map_err(|error| Response::failure(INTERNAL_ERROR, format!("{operation} of {}: {error}", rule.kind()))),
        Err(failed) => Err(failed),
    };
    measurement.record_response(response.as_ref().unwrap_or_else(|failed| failed));
    response
}

fn function_and_inputs(functions: &Functions, request: Request) -> Result<(&Rule, Inputs), Box<Response>> {
    let bad = |text: String| Box::new(Response::failure(BAD_REQUEST, text));
    let operation: Operation =
        request.operation.parse().map_err(|_| bad(format!("wrong request operation type: {}", request.operation)))?;
    let object = request.object.ok_or_else(|| bad("there is no content to decode: no object".into()))?;
    let kind = Gvk::from(request.kind);
    let rule = functions.rule(operation, &kind);
    let rule = rule.ok_or_else(|| Box::new(error_response(&FunctionError::Missing { operation, kind })))?;
    let inputs = Inputs {
        desired: Some(object),
        observed: request.observed_object,
        replicas: request.replicas.map(i64::from),
        status_items: Some(request.aggregated_status.unwrap_or_default()),
    };
    Ok((rule, inputs))
}

/// Calls a function in its own task. On a multi-threaded runtime, a blocking function delays neither its timeout nor
/// other requests. It counts as running until it ends, even if its request is given up.
async fn call_function(
    rule: &Rule,
    inputs: Arc<Inputs>,
    running: Running,
    state: &RequestState,
) -> Result<Value, Response> {
    let rule = rule.clone();
    let called = state.in_own_task(async move {
        let answer = rule.call(&inputs).await;
        drop(running);
        answer
    });
    match called.await {
        Ok(answer) => answer.map_err(|error| match error.downcast_ref::<FunctionError>() {
            Some(error) => error_response(error),
            None => Response::failure(INTERNAL_ERROR, error_chain(error.as_ref())),
        }),
        // A panic of the function was turned into its result. This one is in kctl, or the process is ending.
        Err(error) => Err(Response::failure(INTERNAL_ERROR, error.to_string())),
    }
}

/// Returns the response for an error of the call: 400 if another request could succeed, 500 if the program is wrong.
fn error_response(error: &FunctionError) -> Response {
    match error {
        FunctionError::InputUnreadable { source, .. } => Response::decode_failure(&error.to_string(), source),
        FunctionError::Missing { .. } | FunctionError::InputMissing { .. } => {
            Response::failure(BAD_REQUEST, error_chain(error))
        }
        FunctionError::Panicked { .. }
        | FunctionError::ObjectUnwritable { .. }
        | FunctionError::AnswerInvalid { .. } => Response::failure(INTERNAL_ERROR, error_chain(error)),
    }
}

/// Returns the response of an operation for its answer. An operation that changes the object
/// answers with a JSON patch, or with neither patch nor type if nothing changed: Karmada rejects an
/// empty patch (`verifyResourceInterpreterContextWithPatch` in
/// `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).
fn respond_with(operation: Operation, object: &Value, mut answer: Value) -> Result<Response, LayerError> {
    let mut response = Response::success();
    match operation {
        Operation::InterpretReplica => {
            let output = InterpretReplica::decode(answer)?;
            response.replicas = Some(output.replicas);
            response.replica_requirements = output.requirements;
        }
        Operation::InterpretComponent => {
            response.components = InterpretComponent::decode(answer)?.unwrap_or_default();
        }
        Operation::InterpretDependency => {
            response.dependencies = InterpretDependency::decode(answer)?.unwrap_or_default();
        }
        Operation::InterpretStatus => response.raw_status = Some(InterpretStatus::decode(answer)?),
        Operation::InterpretHealth => response.healthy = Some(InterpretHealth::decode(answer)?),
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus | Operation::Prune => {
            let changed = answer.as_object_mut().and_then(|answer| answer.values_mut().next().map(Value::take));
            let patch = json_patch::diff(object, &changed.unwrap_or_default());
            // An unchanged object gets neither a patch nor a patch type: Karmada rejects an empty patch.
            if !patch.0.is_empty() {
                response.patch = Some(STANDARD.encode(serde_json::to_vec(&patch)?));
                response.patch_type = Some("JSONPatch");
            }
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_unreadable_object_are_not_logged() {
        let envelope = decode_request(br#"{"request":{"uid":"1","operation":"Retain","kind":"hunter2"}}"#).unwrap_err();
        let source = serde_json::from_str::<i32>("\"hunter2\"").unwrap_err();
        let object = error_response(&FunctionError::InputUnreadable {
            operation: Operation::Retain,
            object: "Deployment d/web".into(),
            input: "the object".into(),
            wanted: "Deployment".into(),
            source,
        });
        for response in [*envelope, object] {
            let logged = response.logged.unwrap();
            assert!(response.status.message.contains("hunter2"), "{}", response.status.message);
            assert!(!logged.contains("hunter2") && logged.ends_with("the response has the reason"), "{logged}");
        }
    }
}
