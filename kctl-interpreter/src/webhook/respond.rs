//! The body of a request → the body of its answer: the protocol without the network.

use std::{any::Any, error::Error, future::poll_fn, panic::AssertUnwindSafe, pin::pin};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    metrics::Metrics,
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

const BAD_REQUEST: u16 = 400;
const INTERNAL_ERROR: u16 = 500;

/// Answers a request. Whatever goes wrong is an answer too: of an HTTP error Karmada would not read the text.
pub(super) async fn respond(functions: &Functions, metrics: &Metrics, body: &[u8]) -> Response {
    let request = match decoded(body) {
        Ok(request) => request,
        Err(refused) => {
            metrics.refused(refused.status.code);
            return *refused;
        }
    };
    let uid = request.uid.clone();
    let answer = answer(functions, metrics, request).await;
    Response { uid, ..answer.unwrap_or_else(|failed| failed) }
}

/// Reads a request: JSON, or YAML as Karmada's own server does.
fn decoded(body: &[u8]) -> Result<Request, Box<Response>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Box::new(Response::failed(BAD_REQUEST, "there is no content to decode".into())));
    }
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let context: Result<RequestContext, String> = if is_json {
        serde_json::from_slice(body).map_err(|error| error.to_string())
    } else {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string());
        // The rest of the error shows the place in many lines; the answer has room for one.
        let said = |error: serde_saphyr::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        text.and_then(|text| serde_saphyr::from_str(text).map_err(said))
    };
    match context {
        Ok(RequestContext { request: Some(request) }) => Ok(request),
        Ok(_) => Err(Box::new(Response::failed(BAD_REQUEST, "there is no content to decode: no request".into()))),
        Err(error) => {
            let text = format!("the request can't be decoded as a ResourceInterpreterContext: {error}");
            Err(Box::new(Response { uid: uid_of(body), ..Response::failed(BAD_REQUEST, text) }))
        }
    }
}

/// The uid of a request that has something else wrong with it: without it, Karmada would only say that it is missing.
fn uid_of(body: &[u8]) -> String {
    let context: Option<Value> = serde_json::from_slice(body).ok();
    let uid = context.as_ref().and_then(|context| context.pointer("/request/uid")?.as_str());
    uid.unwrap_or_default().to_owned()
}

/// Finds the function, and counts what it does; a request without a function is counted without its names.
async fn answer(functions: &Functions, metrics: &Metrics, request: Request) -> Result<Response, Response> {
    let (rule, inputs) = match asked(functions, request) {
        Ok(asked) => asked,
        Err(refused) => {
            metrics.refused(refused.status.code);
            return Err(*refused);
        }
    };
    let mut running = metrics.begin(rule);
    let response = match call(rule, &inputs).await {
        Ok(answer) => {
            let object = inputs.desired.unwrap_or_default();
            let operation = rule.about().operation;
            respond_with(operation, &object, answer)
                .map_err(|error| Response::failed(INTERNAL_ERROR, format!("{operation} of {}: {error}", rule.kind())))
        }
        Err(failed) => Err(failed),
    };
    running.answered(response.as_ref().unwrap_or_else(|failed| failed));
    response
}

fn asked(functions: &Functions, request: Request) -> Result<(&Rule, Inputs), Box<Response>> {
    let bad = |text: String| Box::new(Response::failed(BAD_REQUEST, text));
    let operation: Operation =
        request.operation.parse().map_err(|_| bad(format!("wrong request operation type: {}", request.operation)))?;
    let object = request.object.ok_or_else(|| bad("there is no content to decode: no object".into()))?;
    let kind = Gvk::from(request.kind);
    let rule = functions.rule(operation, &kind);
    let rule = rule.ok_or_else(|| Box::new(failure(&FunctionError::Missing { operation, kind })))?;
    let inputs = Inputs {
        desired: Some(object),
        observed: request.observed_object,
        replicas: request.replicas.map(i64::from),
        status_items: Some(request.aggregated_status.unwrap_or_default()),
    };
    Ok((rule, inputs))
}

/// Calls a function; its panic is its error.
async fn call(rule: &Rule, inputs: &Inputs) -> Result<Value, Response> {
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| rule.call(inputs)));
    let mut called = pin!(caught.map_err(|panic| panicked(rule, panic.as_ref()))?);
    let polled = poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(panicked(rule, panic.as_ref()))),
    });
    polled.await?.map_err(|error| match error.downcast_ref::<FunctionError>() {
        Some(error) => failure(error),
        None => Response::failed(INTERNAL_ERROR, chained(error.as_ref())),
    })
}

fn panicked(rule: &Rule, panic: &(dyn Any + Send)) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let about = rule.about();
    let text = format!("panic in `{}` ({}): {}", about.name, about.location(), text.unwrap_or("without a text"));
    tracing::error!(operation = %about.operation, kind = %rule.kind(), "{text}");
    Response::failed(INTERNAL_ERROR, text)
}

fn failure(error: &FunctionError) -> Response {
    Response::failed(BAD_REQUEST, chained(error))
}

/// An error with its causes in one line: it is all that the operator of the control plane sees.
fn chained(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn respond_with(operation: Operation, object: &Value, mut answer: Value) -> Result<Response, LayerError> {
    let mut response = Response::succeeded();
    match operation {
        Operation::InterpretReplica => {
            let output = InterpretReplica::output(answer)?;
            response.replicas = Some(output.replicas);
            response.replica_requirements = output.requirements;
        }
        Operation::InterpretComponent => {
            response.components = InterpretComponent::output(answer)?.unwrap_or_default();
        }
        Operation::InterpretDependency => {
            response.dependencies = InterpretDependency::output(answer)?.unwrap_or_default();
        }
        Operation::InterpretStatus => response.raw_status = Some(InterpretStatus::output(answer)?),
        Operation::InterpretHealth => response.healthy = Some(InterpretHealth::output(answer)?),
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus | Operation::Prune => {
            let changed = answer.as_object_mut().and_then(|answer| answer.values_mut().next().map(Value::take));
            let patch = json_patch::diff(object, &changed.unwrap_or_default());
            // Without a difference there is neither a patch nor a type: an empty patch is an error in Karmada.
            if !patch.0.is_empty() {
                response.patch = Some(STANDARD.encode(serde_json::to_vec(&patch)?));
                response.patch_type = Some("JSONPatch");
            }
        }
    }
    Ok(response)
}
