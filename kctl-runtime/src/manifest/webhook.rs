//! Permissions of a program that creates the certificate of its webhooks: one Secret, and the places that
//! trust its CA.
//!
//! cert-manager is the alternative. Then the program only reads mounted files and needs none of these.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Manifest, Permission, PermissionScope, PermissionTarget, RbacOptions, rbac::bound_roles};

/// The reason, as roles and log lines name it.
const CERTIFICATE_REASON: &str = "kctl: the certificate of webhooks";

/// Returns the permissions to keep the certificate in a Secret of the program's namespace, and to write its
/// CA into webhook configurations and CRDs.
///
/// Each rule names its objects: a create by server-side apply has a name, so it can be limited too.
/// `configurations` are the manifests of webhook configurations, `definitions` the names of CRDs.
///
/// ```
/// use kctl_runtime::manifest::webhook_permissions;
/// use serde_json::json;
///
/// let configuration = json!({
///     "kind": "ValidatingWebhookConfiguration",
///     "metadata": { "name": "settings" },
/// });
/// let permissions = webhook_permissions("shop", "settings-webhook", &[configuration], &[]);
/// let needed: Vec<String> = permissions.iter().map(ToString::to_string).collect();
/// assert!(needed.contains(&"get secrets settings-webhook in namespace shop".to_owned()));
/// assert!(needed.contains(&"patch validatingwebhookconfigurations.admissionregistration.k8s.io settings".to_owned()));
/// ```
pub fn webhook_permissions(
    namespace: &str,
    secret: &str,
    configurations: &[Value],
    definitions: &[String],
) -> Vec<Permission> {
    let permissions = |scope: PermissionScope, group: &str, resource: String, name: &str, verbs: &[&'static str]| {
        let target = PermissionTarget::Resource { group: group.into(), resource, name: name.into() };
        let because = BTreeSet::from([CERTIFICATE_REASON.to_owned()]);
        let permission = |verb: &&str| Permission {
            scope: scope.clone(),
            target: target.clone(),
            verb: (*verb).into(),
            because: because.clone(),
            framework: true,
        };
        verbs.iter().map(permission).collect::<Vec<_>>()
    };
    let scope = PermissionScope::Namespace(namespace.into());
    let mut all = permissions(scope, "", "secrets".into(), secret, &["create", "get", "patch"]);
    let verbs = ["get", "patch"];
    for configuration in configurations {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (resource, name) =
            (format!("{}s", text(&configuration["kind"]).to_lowercase()), text(&configuration["metadata"]["name"]));
        all.extend(permissions(PermissionScope::Everywhere, "admissionregistration.k8s.io", resource, &name, &verbs));
    }
    for name in definitions {
        let resource = "customresourcedefinitions".into();
        all.extend(permissions(PermissionScope::Everywhere, "apiextensions.k8s.io", resource, name, &verbs));
    }
    all
}

/// Returns separate roles and bindings for [`webhook_permissions`], named `NAME-webhook`.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn webhook_rbac(
    options: &RbacOptions,
    permissions: &[Permission],
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let name = format!("{}-webhook", options.name);
    // The Role, which allows the Secret, comes before the ClusterRole.
    Ok(bound_roles(&name, options, permissions)?.into_iter().rev().flatten().collect())
}
