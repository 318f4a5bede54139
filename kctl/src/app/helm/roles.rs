//! The service account, roles and bindings of a chart.
//!
//! The value `watchNamespaces` limits the program to namespaces. The template of its roles has both forms: the
//! declared roles, and the roles for `run --namespace`, with a Role in each namespace of the value.

use kctl_runtime::{
    manifest::{self, Manifest, RbacOptions},
    reconcile::Result,
    spec::ControllerSpec,
};

use super::template::{Template, WATCHED};
use crate::app::App;

/// Adds the service account, roles and bindings.
///
/// The condition of each file is a value, because a user may switch leader election, shards or metrics on later. Roles
/// for all of them are in the chart, whichever options it was generated with.
pub(super) fn add_roles<'a>(
    app: &App,
    names: &RbacOptions,
    template: &impl Fn(&'a str) -> Template<'a>,
    add: &mut impl FnMut(&str, String),
) -> Result<()> {
    let (accounts, roles) = accounts_and_roles(&app.specs(), names)?;
    let account = template(".Values.serviceAccount.create").render(&accounts)?;
    let annotations = "  {{- with .Values.serviceAccount.annotations }}\n  annotations:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n";
    add("templates/serviceaccount.yaml", account.replacen("metadata:\n", &format!("metadata:\n{annotations}"), 1));
    add("templates/rbac/role.yaml", {
        template(".Values.rbac.create").file(&controller_roles(app, names, &roles, &template(""))?)
    });
    let user_roles = manifest::user_roles(&app.kinds(), names)?;
    if !user_roles.is_empty() {
        add("templates/rbac/user-roles.yaml", template(".Values.rbac.userRoles").render(&user_roles)?);
    }
    let elects = manifest::ManagerOptions::default().with_leader_election();
    add("templates/rbac/leader-election.yaml", {
        template("and .Values.rbac.create (include \"KCTL-CHART.elects\" .)")
            .render(&manifest::manager_rbac(names, elects)?)?
    });
    add("templates/rbac/shards.yaml", {
        template("and .Values.rbac.create (gt (int .Values.shards) 0)").file(include_str!("role-shards.yaml"))
    });
    let metrics = manifest::ManagerOptions::default().with_metrics();
    add("templates/rbac/metrics.yaml", {
        template("and .Values.rbac.create .Values.metrics.enabled").render(&manifest::manager_rbac(names, metrics)?)?
    });
    #[cfg(feature = "webhook")]
    if app.makes_certificate() {
        let role = manifest::webhook_rbac(names, &app.own_certificate(names)?)?;
        add("templates/rbac/webhook.yaml", {
            template("and .Values.rbac.create (not .Values.certManager.enabled)").render(&role)?
        });
    }
    Ok(())
}

/// Returns the `ServiceAccount` of the controllers, and their roles with the bindings.
fn accounts_and_roles(specs: &[ControllerSpec], names: &RbacOptions) -> Result<(Vec<Manifest>, Vec<Manifest>)> {
    let rbac = manifest::rbac(specs, names)?;
    Ok(rbac.into_iter().partition(|manifest| manifest.object["kind"] == "ServiceAccount"))
}

/// Returns the roles of controllers that are limited to one namespace.
fn roles_within(namespace: &str, app: &App, names: &RbacOptions) -> Result<Vec<Manifest>> {
    let mut specs = app.specs();
    for spec in &mut specs {
        spec.namespaces = vec![namespace.to_owned()];
    }
    Ok(accounts_and_roles(&specs, names)?.1)
}

/// Returns the template of the controllers' roles. `declared` has those without `watchNamespaces`.
///
/// Events about cluster-scoped objects are in the namespace `default`, whose Role they share if the program also watches
/// that namespace: two objects of one kind and name can't be in a chart.
fn controller_roles(app: &App, names: &RbacOptions, declared: &[Manifest], template: &Template<'_>) -> Result<String> {
    if app.controllers.is_empty() {
        return template.documents(declared);
    }
    let (mut cluster, mut default, mut watched) = (Vec::new(), Vec::new(), Vec::new());
    for manifest in roles_within(WATCHED, app, names)? {
        match manifest.object["metadata"]["namespace"].as_str() {
            None => cluster.push(manifest),
            Some(WATCHED) => watched.push(manifest),
            Some(_) => default.push(manifest),
        }
    }
    let more = |manifests: &[Manifest]| -> Result<String> {
        Ok(if manifests.is_empty() { String::new() } else { format!("---\n{}", template.documents(manifests)?) })
    };
    let (in_each, in_default) = (more(&watched)?, more(&default)?);
    let mut text = format!("{{{{- if .Values.watchNamespaces }}}}\n{}", template.documents(&cluster)?);
    if watched.is_empty() {
        text += &in_default;
    } else if default.is_empty() {
        text += &for_each_namespace(&in_each);
    } else {
        let mut shared = roles_within("default", app, names)?;
        shared.retain(|manifest| manifest.object["metadata"]["namespace"] == "default");
        text += &for_each_namespace(&format!(
            "{{{{- if eq (include \"KCTL-CHART.string\" $namespace) \"default\" }}}}\n{}{{{{- else }}}}\n{in_each}{{{{- end }}}}\n",
            more(&shared)?
        ));
        text += &format!("{{{{- if not (has \"default\" .Values.watchNamespaces) }}}}\n{in_default}{{{{- end }}}}\n");
    }
    Ok(format!("{text}{{{{- else }}}}\n{}{{{{- end }}}}\n", template.documents(declared)?))
}

/// Returns lines for each namespace of the value, which they read as `$namespace`. `range` sets the dot to the element, and
/// `with` sets it back.
fn for_each_namespace(lines: &str) -> String {
    format!(
        "{{{{- range $namespace := .Values.watchNamespaces }}}}\n{{{{- with $ }}}}\n{lines}{{{{- end }}}}\n{{{{- end }}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::{ConfigMap, Node};
    use kctl_runtime::reconcile::{Action, Context};

    use super::{
        super::template::{LABELS, NAME, NAMESPACE},
        *,
    };

    #[crate::controller(crate = crate)]
    async fn keeper(_config: Arc<ConfigMap>, _cx: Context<keeper>) -> Result<Action> {
        Ok(Action::await_change())
    }

    #[crate::controller(crate = crate, reads = ConfigMap)]
    async fn nodes(_node: Arc<Node>, _cx: Context<nodes>) -> Result<Action> {
        Ok(Action::await_change())
    }

    /// Returns the lines of the template with watched namespaces that are actions, kinds or namespaces.
    fn outline(app: &App) -> Vec<String> {
        let mut names = RbacOptions::new(NAME, NAMESPACE);
        names.labels.insert(LABELS.to_owned(), String::new());
        let template = Template { chart: "web", when: "", more_labels: None };
        let (_, declared) = accounts_and_roles(&app.specs(), &names).unwrap();
        let text = template.file(&controller_roles(app, &names, &declared, &template).unwrap());
        let (limited, _) = text.split_once("{{- else }}\napiVersion").unwrap();
        let is_shown = |line: &&str| {
            line.starts_with("{{- ") || ["kind: ", "  namespace: "].iter().any(|start| line.starts_with(start))
        };
        let lines = limited.lines().filter(|line| !line.contains("include \"web.labels\"")).filter(is_shown);
        lines.skip(1).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn watched_namespaces_have_roles_without_cluster_role() {
        let found = outline(&App::new("web").controller::<keeper>());
        let expected = [
            "{{- if .Values.watchNamespaces }}",
            "{{- range $namespace := .Values.watchNamespaces }}",
            "{{- with $ }}",
            "kind: Role",
            "namespace: {{ include \"web.string\" $namespace | quote }}",
            "kind: RoleBinding",
            "namespace: {{ include \"web.string\" $namespace | quote }}",
            "namespace: {{ .Release.Namespace | quote }}",
            "{{- end }}",
            "{{- end }}",
        ];
        // The subject of a binding is a list item, whose lines are indented by two as well.
        assert_eq!(found, expected);
    }

    #[test]
    fn default_namespace_has_one_role() {
        let found = outline(&App::new("web").controller::<nodes>());
        let count = |line: &str| found.iter().filter(|found| *found == line).count();
        assert_eq!((count("kind: ClusterRole"), count("kind: ClusterRoleBinding")), (1, 1), "{found:#?}");
        // For another namespace, for `default` among others, and for the events if `default` is not among them.
        assert_eq!((count("kind: Role"), count("kind: RoleBinding")), (3, 3), "{found:#?}");
        for condition in [
            "{{- if eq (include \"web.string\" $namespace) \"default\" }}",
            "{{- if not (has \"default\" .Values.watchNamespaces) }}",
        ] {
            assert_eq!(count(condition), 1, "{condition}\n{found:#?}");
        }
    }
}
