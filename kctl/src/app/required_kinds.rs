//! Checks before a run that the API servers of tests and `dev` serve the kinds of an app, since a cache waits for a missing one.

use kctl_runtime::{
    object::Kind,
    reconcile::{Error, Result},
    source::Presence,
};
use kube::Client;
use serde_json::Value;

use super::{
    App,
    files::{self, FromFile},
};

/// The way in which a user adds a CRD that no type of the app has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// `TestServer::start_with`.
    StartWith,
    /// `Scenario::objects`.
    #[cfg(feature = "sim")]
    Objects,
    /// The files of `dev`.
    #[cfg(feature = "dev")]
    Files,
}

impl Remedy {
    fn text(self) -> &'static str {
        match self {
            Self::StartWith => "or give `TestServer::start_with` its CustomResourceDefinition",
            #[cfg(feature = "sim")]
            Self::Objects => "or its CustomResourceDefinition with `Scenario::objects`",
            #[cfg(feature = "dev")]
            Self::Files => "or pass the file of its CustomResourceDefinition with `-f`",
        }
    }
}

/// Checks that the API server of each cluster serves the kinds that the app declares for it. A kind may also be defined
/// by one of the objects to be applied there. Optional kinds are left out.
///
/// # Errors
/// A kind is missing: the error names the declaration, the kind, and what to do.
pub(crate) async fn check_kinds(
    app: &App,
    client_of: impl Fn(&str) -> Client,
    objects: &[FromFile],
    remedy: Remedy,
) -> Result<()> {
    for spec in app.specs() {
        let relations = std::iter::once(&spec.primary).chain(&spec.relations);
        for relation in relations.filter(|relation| relation.presence == Presence::Required) {
            let is_defined =
                relation.cluster.is_empty() && objects.iter().any(|file| defines(&file.object, &relation.kind));
            if is_defined || files::has_kind(&client_of(&relation.cluster), &relation.kind).await? {
                continue;
            }
            let Kind { kind, .. } = &relation.kind;
            let text = if relation.text.is_empty() { "the primary" } else { &relation.text };
            let (location, api) = (&spec.location, relation.kind.api_version());
            return Err(Error::from(format!(
                "{location}: `{text}` needs the kind {kind} of {api}, which the API server does not have\n\
                 help: add `.kind::<{kind}>()` to the app, {}",
                remedy.text()
            )));
        }
    }
    Ok(())
}

/// Returns `true` for the CRD of a kind that serves its version.
fn defines(object: &Value, kind: &Kind) -> bool {
    let spec = &object["spec"];
    let serves = |version: &Value| version["name"] == kind.version.as_str() && version["served"] == true;
    object["kind"] == "CustomResourceDefinition"
        && spec["group"] == kind.group.as_str()
        && spec["names"]["plural"] == kind.plural.as_str()
        && spec["versions"].as_array().is_some_and(|versions| versions.iter().any(serves))
}
