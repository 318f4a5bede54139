//! Checks names of finalizers: those that API servers reject, and those that may collide.

use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_qualified_name};

use super::ControllerSpec;

/// Groups of built-in kinds whose finalizers need a `/` (`pkg/apis/core/validation`,
/// `ValidateFinalizerName`, as kube-apiserver 1.36 answers). Kinds of other groups, such as Leases and
/// custom resources, take names without one.
const QUALIFIED: [&str; 5] = ["", "apps", "autoscaling", "batch", "rbac.authorization.k8s.io"];

/// Returns why API servers would reject the controller's finalizer, and what to write instead.
///
/// `None` if the controller has no finalizer or a valid one. `kctl::App` fails at the start with this message, because a rejected
/// finalizer would make every reconcile fail; a program that uses [`Manager`](crate::manager::Manager) checks it itself.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::spec::finalizer_problem;
///
/// let mut spec = Settings::spec();
/// spec.finalizer = Some("cleanup".into());
/// let (problem, help) = finalizer_problem(&spec).expect("a ConfigMap needs a domain");
/// assert_eq!(problem, "API servers reject the finalizer `cleanup` on a ConfigMap: it has no domain");
/// assert_eq!(help, "write `finalizer = \"example.com/name\"`");
///
/// spec.finalizer = Some("example.com/cleanup".into());
/// assert!(finalizer_problem(&spec).is_none());
/// ```
pub fn finalizer_problem(spec: &ControllerSpec) -> Option<(String, String)> {
    let finalizer = spec.finalizer.as_deref()?;
    let help = "write `finalizer = \"example.com/name\"`".to_owned();
    if !is_qualified_name(finalizer) {
        let allowed =
            format!("at most {LABEL_LEN_MAX} letters, digits, `-`, `_` and `.`, after a domain in lower case and `/`");
        return Some((format!("`{finalizer}` is not a valid finalizer name: {allowed}"), help));
    }
    let kind = &spec.primary.kind;
    let needs_domain = !finalizer.contains('/') && QUALIFIED.contains(&kind.group.as_str());
    needs_domain
        .then(|| (format!("API servers reject the finalizer `{finalizer}` on a {kind}: it has no domain"), help))
}

/// Returns a warning about a finalizer without a domain, which another controller may use as well.
///
/// Such names are valid for custom resources, and after a change, the old one remains on existing objects and blocks
/// their deletion. So it is a warning in the log at startup.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::spec::finalizer_warning;
///
/// let mut spec = Settings::spec();
/// spec.finalizer = Some("cleanup".into());
/// assert!(finalizer_warning(&spec).is_some_and(|warning| warning.contains("prefer `example.com/cleanup`")));
/// spec.finalizer = Some("example.com/cleanup".into());
/// assert_eq!(finalizer_warning(&spec), None);
/// ```
pub fn finalizer_warning(spec: &ControllerSpec) -> Option<String> {
    let finalizer = spec.finalizer.as_deref().filter(|finalizer| !finalizer.contains('/'))?;
    Some(format!(
        "the finalizer `{finalizer}` has no domain: another controller may use the same name; prefer `example.com/{finalizer}` unless \
         objects have it already"
    ))
}
