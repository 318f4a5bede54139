//! Defaults of `ResourceClaim`s and of device taints. Upstream: `pkg/apis/resource/v1/defaults.go`.

use serde_json::Value;

use crate::{
    defaulting::{fill, is_text, items, part},
    registry::kind::Environment,
};

/// Fills in the defaults of a claim: the defaults of its requests, and the operators of tolerations in its allocation.
pub(crate) fn claim(object: &mut Value) {
    spec(part(object, "spec"));
    if let Some(devices) = object.pointer_mut("/status/allocation/devices") {
        items(devices, "results").for_each(tolerations);
    }
}

/// Fills in the defaults of the claim in a template, which is at `spec.spec`.
pub(crate) fn claim_template(object: &mut Value) {
    spec(part(part(object, "spec"), "spec"));
}

/// Fills in the defaults of each request, and of its alternatives (`firstAvailable`).
fn spec(spec: &mut Value) {
    for request in items(part(spec, "devices"), "requests") {
        if let Some(exactly) = request.get_mut("exactly").filter(|exactly| exactly.is_object()) {
            default_request(exactly);
        }
        items(request, "firstAvailable").for_each(default_request);
    }
}

/// Sets the defaults of a request: exactly one device. With the mode `All`, the count is 0, so the field is absent.
fn default_request(request: &mut Value) {
    fill(request, "allocationMode", "ExactCount");
    if is_text(request, "allocationMode", "ExactCount") {
        fill(request, "count", 1);
    }
    tolerations(request);
}

/// Fills in the operator `Equal` of each toleration that has no operator.
fn tolerations(request: &mut Value) {
    items(request, "tolerations").for_each(|toleration| fill(toleration, "operator", "Equal"));
}

/// Sets the time of a taint that was sent without one (`SetDefaults_DeviceTaint`). It is not a default, because the
/// time depends on the clock: a second decoding must not change it.
pub(crate) fn taint_time(environment: &dyn Environment, taint: &mut Value) {
    if taint["timeAdded"].is_null() {
        taint["timeAdded"] = environment.now().into();
    }
}
