//! The manifests in `deploy/` of a new project, written without compiling the project.
//!
//! They are those that `generate-manifests` writes for the template. The functions of `kctl_runtime::manifest` that the
//! program calls make them here too, except for the CRD and the permissions, which come from the declaration in the
//! template. The workflow of the project compares the folder with the code, and the step `new-project` runs that command.

use std::collections::BTreeSet;

use kctl_runtime::manifest::{
    ManagerOptions, Manifest, Permission, PermissionScope, PermissionTarget, RbacOptions, Resources, deployment,
    disruption_budget, kustomization, manager_rbac, rbac_of,
};
use serde_json::{Value, json};

use super::names::plural;

/// The folder of the manifests, as in the commands of README and workflow.
const FOLDER: &str = "deploy";

/// The names in the manifests.
pub(super) struct Names<'a> {
    /// The name of the project, and of its Deployment and roles.
    pub(super) name: &'a str,
    /// The API group of the kind.
    pub(super) group: &'a str,
    /// The version of the kind, such as `v1alpha1`.
    pub(super) version: &'a str,
    /// The kind, such as `WebSite`.
    pub(super) kind: &'a str,
}

/// Returns the manifests of the template for
/// `generate-manifests --leader-elect --image registry.example.com/NAME:1 --out deploy`, with their paths in the project.
pub(super) fn manifests(names: &Names<'_>) -> Result<Vec<(String, String)>, serde_saphyr::SerializeError> {
    let Names { name, group, kind, .. } = *names;
    let singular = kind.to_ascii_lowercase();
    let plural = plural(&singular);
    let (options, manager) = (RbacOptions::new(name, "default"), ManagerOptions::default().with_leader_election());
    let image = format!("registry.example.com/{name}:1");
    let mut all = vec![Manifest::new(format!("crds/{plural}.{group}.yaml"), crd(names, &singular, &plural))?];
    all.extend(rbac_of(&permissions(group, &singular, &plural), &options)?);
    all.extend(manager_rbac(&options, manager)?);
    all.push(deployment(&options, manager, &Resources::default(), &image)?);
    all.push(disruption_budget(&options)?);
    all.push(kustomization(&all)?);
    Ok(all.into_iter().map(|Manifest { file, yaml, .. }| (format!("{FOLDER}/{file}"), yaml)).collect())
}

/// Returns the CRD of the structs in the template. `kctl` derives it from their fields and comments.
fn crd(names: &Names<'_>, singular: &str, plural: &str) -> Value {
    let Names { group, version, kind, .. } = names;
    let desired = format!("Desired state of a `{kind}`.");
    let spec = json!({
        "type": "object",
        "description": desired,
        "properties": { "message": {
            "type": "string",
            "default": "",
            "description": "Value of the key `message` in the `ConfigMap`; if empty, there is no `ConfigMap`.",
        } },
    });
    let status = json!({
        "type": "object",
        "nullable": true,
        "description": format!("Observed state of a `{kind}`."),
        "properties": {
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "nullable": true,
                "description": "Generation of the spec that was last reconciled.",
            },
            "configMap": {
                "type": "string",
                "nullable": true,
                "description": "Name of the `ConfigMap`, if there is one.",
            },
        },
    });
    let schema = json!({
        "type": "object",
        "description": desired,
        "required": ["spec"],
        "properties": { "spec": spec, "status": status },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": kind, "singular": singular, "plural": plural },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            }],
        },
    })
}

/// Returns the permissions of the controller in the template, which is named after its kind in lower case.
fn permissions(group: &str, controller: &str, plural: &str) -> Vec<Permission> {
    let status = format!("{plural}/status");
    let declared: [(&str, &str, &[&str], String); 4] = [
        (
            "",
            "configmaps",
            &["list", "watch", "create", "patch", "delete"],
            format!("{controller}: owns = ConfigMap(apply, delete)"),
        ),
        (group, plural, &["list", "watch"], format!("{controller}: its primary")),
        (group, &status, &["patch"], format!("{controller}: the status of its primary")),
        ("events.k8s.io", "events", &["create", "patch"], "kctl: events".to_owned()),
    ];
    let permissions = declared.into_iter().flat_map(|(group, resource, verbs, because)| {
        let permission = move |verb: &&str| Permission {
            scope: PermissionScope::Everywhere,
            target: PermissionTarget::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                name: String::new(),
            },
            verb: (*verb).to_owned(),
            because: BTreeSet::from([because.clone()]),
            framework: false,
        };
        verbs.iter().map(permission)
    });
    permissions.collect()
}

#[cfg(test)]
mod tests {
    use super::{super::FIRST_VERSION, *};

    const NAMES: Names<'_> =
        Names { name: "policy-guard", group: "apps.example.com", version: FIRST_VERSION, kind: "Policy" };

    fn text(ending: &str) -> String {
        let files = manifests(&NAMES).unwrap();
        let found = files.into_iter().find(|(file, _)| file.ends_with(ending));
        found.unwrap_or_else(|| panic!("no file {ending}")).1
    }

    #[test]
    fn kustomization_lists_every_other_file() {
        let files: Vec<String> = manifests(&NAMES).unwrap().into_iter().map(|(file, _)| file).collect();
        let kustomization: Value = serde_saphyr::from_str(&text("deploy/kustomization.yaml")).unwrap();
        let listed = kustomization["resources"].as_array().unwrap().iter();
        let listed: Vec<String> = listed.map(|file| format!("deploy/{}", file.as_str().unwrap())).collect();
        assert_eq!(listed, files[..files.len() - 1]);
        assert_eq!(files[0], "deploy/crds/policies.apps.example.com.yaml");
    }

    /// The descriptions of the CRD are the comments of the template, whose lines rustdoc joins.
    #[test]
    fn crd_describes_fields_as_the_template() {
        let template = super::super::main_template().replace("{{kind}}", NAMES.kind);
        let (structs, _) = template.split_once("/// Keeps a").unwrap();
        let crd = text("crds/policies.apps.example.com.yaml");
        let crd: Value = serde_saphyr::from_str(&crd).unwrap();
        let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].to_string();
        let comments: Vec<_> = structs.lines().filter_map(|line| line.trim_start().strip_prefix("/// ")).collect();
        assert_eq!(comments.len(), 5, "{comments:?}");
        for comment in comments {
            assert!(schema.contains(comment), "{comment}: {schema}");
        }
    }

    #[test]
    fn role_has_the_permissions_of_the_template() {
        let role = text("rbac/clusterrole-policy-guard.yaml");
        let rules: Value = serde_saphyr::from_str(&role).unwrap();
        let rule = |group: &str, resource: &str, verbs: &[&str]| json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
        let expected = json!([
            rule("", "configmaps", &["create", "delete", "list", "patch", "watch"]),
            rule("apps.example.com", "policies", &["list", "watch"]),
            rule("apps.example.com", "policies/status", &["patch"]),
            rule("events.k8s.io", "events", &["create", "patch"]),
        ]);
        assert_eq!(rules["rules"], expected);
        let (attribute, comment) =
            ("#[controller(owns = ConfigMap(apply, delete))]", "# policy: owns = ConfigMap(apply, delete)\n");
        assert!(super::super::main_template().contains(attribute) && role.contains(comment), "{role}");
    }

    #[test]
    fn deployment_has_the_image_of_readme_command() {
        let deployment: Value = serde_saphyr::from_str(&text("manager/deployment-policy-guard.yaml")).unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let readme = include_str!("../../templates/README.md.tpl").replace("{{name}}", NAMES.name);
        let line = readme.lines().find(|line| line.contains("generate-manifests")).unwrap();
        assert!(line.contains(&format!("--image {} ", container["image"].as_str().unwrap())), "{line}");
        assert_eq!(line.contains("--leader-elect"), container["args"].to_string().contains("--leader-elect\""));
        assert!(line.ends_with(&format!("--out {FOLDER}")), "{line}");
    }
}
