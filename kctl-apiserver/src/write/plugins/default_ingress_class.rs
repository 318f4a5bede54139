//! `DefaultIngressClass`: a new Ingress without a class gets the default `IngressClass`.
//!
//! Upstream: `classDefaulterPlugin.Admit` in `plugin/pkg/admission/network/defaultingressclass/admission.go`.

use super::{Mutation, default_class::default_class};
use crate::{
    kinds::networking::{ingress, ingress_class},
    state::State,
    status::StatusError,
};

/// The annotation that marks the default `IngressClass`.
const IS_DEFAULT: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];

/// Sets the class of a new Ingress without one. The deprecated annotation counts as a class.
///
/// A class that does not exist is not an error.
pub(super) fn admit(state: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let ingress = &*mutation.object;
    let has_class = ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class").is_some()
        || !ingress["spec"]["ingressClassName"].is_null();
    if !mutation.creates(&ingress::KIND) || has_class {
        return Ok(());
    }
    if let Some(name) = default_class(state, &ingress_class::KIND, IS_DEFAULT) {
        mutation.object["spec"]["ingressClassName"] = name;
    }
    Ok(())
}
