//! `generate-manifests --helm DIR`: a Helm chart of the app.
//!
//! The chart has what `generate-manifests` prints, with values in place of options. Most templates are generated from
//! the same objects ([`template`]), so that roles, webhooks, CRDs and alerts cannot differ. The Deployment and a few
//! others are files in the folder `helm`, because most of their fields are values.
//!
//! Files belong to the generator or to people:
//!
//! | File | A second run |
//! |---|---|
//! | `templates/…` that begin with the generator's comment, `values.schema.json` | are regenerated |
//! | `values.yaml` | gets values that it lacks; existing lines are kept ([`values::merge`]) |
//! | `README.md` | gets the table of values between its two comments; without these comments it is left alone |
//! | `Chart.yaml` | gets the `appVersion` of [`App::version`](super::App::version); the rest is kept |
//! | `.helmignore`, and every other file | are left alone |

mod fields;
mod files;
mod items;
mod line_ends;
mod readme;
mod roles;
mod template;
mod values;

#[cfg(feature = "webhook")]
use kctl_runtime::reconcile::ResultExt;
use kctl_runtime::{
    manifest::{self, Manifest, RbacOptions, Resources},
    reconcile::Result,
};
use serde_json::{Value, json};

pub(super) use self::files::{Mode, crd_folder, parse_crd, write_chart};
use self::{
    files::File,
    items::items,
    roles::add_roles,
    template::{LABELS, NAME, NAMESPACE, Template, with_uid},
    values::Item,
};
use super::App;

/// The settings of a chart that its values have as defaults.
///
/// They set the defaults of a new `values.yaml` alone. A value that the file has already wins over the option, and is
/// reported if it differs.
pub(super) struct ChartOptions {
    pub(super) name: String,
    /// The image with its tag or digest, if one was given.
    pub(super) image: Option<String>,
    /// The namespaces whose objects the program works on; empty for those that the controllers declare.
    pub(super) namespaces: Vec<String>,
    /// Leader election, shards and metrics.
    pub(super) manager: manifest::ManagerOptions,
    /// Requests and limits of the container.
    pub(super) resources: Resources,
    /// `true` to turn the values of monitoring on.
    pub(super) monitoring: bool,
    /// `true` to turn the values of cert-manager on.
    pub(super) cert_manager: bool,
}

/// A chart: its files, its values, and the CRDs that are compared with those before.
pub(super) struct Chart {
    /// Templates and notes. The files that depend on the user's copy are added when the chart is written.
    files: Vec<File>,
    /// The values that templates read, in the order of `values.yaml`.
    items: Vec<Item>,
    /// The name in `Chart.yaml`.
    name: String,
    version: Option<String>,
    /// `true` if the Pods wait for a Secret that a person has to create: see [`Parts::needs_secret`].
    needs_secret: bool,
    /// The CRDs as objects.
    pub(super) definitions: Vec<Manifest>,
}

/// Generates the chart of an app.
///
/// Nothing is read or written here. The result depends on the app and the options alone, so two runs give the same
/// files and `--check` can compare them.
///
/// # Errors
/// A CRD is invalid, or `#[resource]` names the Service of a conversion, whose name comes from the release here.
pub(super) fn chart(app: &App, options: ChartOptions) -> Result<Chart> {
    let mut names = RbacOptions::new(NAME, NAMESPACE);
    names.labels.insert(LABELS.to_owned(), String::new());
    let parts = Parts::for_app(app, &names)?;
    let template = |when| Template { chart: &options.name, when, more_labels: None };
    let mut files = Vec::new();
    let mut add = |path: &str, text: String| files.push(File { path: path.to_owned(), text });
    add("templates/_helpers.tpl", template("").file(include_str!("helm/helpers.tpl")));
    for crd in &parts.definitions {
        let file = crd.file.strip_prefix("crds/").unwrap_or(&crd.file);
        add(&format!("templates/crds/{file}"), template(".Values.crds.enabled").render(std::slice::from_ref(crd))?);
    }
    add("templates/deployment.yaml", deployment(app, &options.name, &parts)?);
    add("templates/poddisruptionbudget.yaml", {
        template(".Values.podDisruptionBudget.enabled").file(include_str!("helm/poddisruptionbudget.yaml"))
    });
    let ingress = if parts.webhooks.is_empty() { "" } else { WEBHOOK_INGRESS };
    let policy = include_str!("helm/networkpolicy.yaml").replace("KCTL-WEBHOOK-INGRESS\n", ingress);
    add("templates/networkpolicy.yaml", template(".Values.networkPolicy.enabled").file(&policy));
    add_roles(app, &names, &template, &mut add)?;
    add("templates/metrics-service.yaml", {
        template(".Values.metrics.enabled").render(&[manifest::metrics_service(&names)?])?
    });
    add_monitoring(&names, &options.name, &mut add)?;
    for webhook in &parts.webhooks {
        let when = match webhook.object["kind"].as_str() {
            Some("Certificate") => ".Values.certManager.enabled",
            Some("Issuer") => "and .Values.certManager.enabled (not .Values.certManager.issuerRef)",
            _ => "",
        };
        let file = webhook.file.strip_prefix("webhook/").unwrap_or(&webhook.file);
        let file = file.replace(&format!("-{NAME}"), "");
        add(&format!("templates/webhook/{file}"), template(when).render(std::slice::from_ref(webhook))?);
    }
    #[cfg(feature = "webhook")]
    if app.makes_certificate() {
        add("templates/webhook/secret.yaml", {
            template("not .Values.certManager.enabled").file(include_str!("helm/secret.yaml"))
        });
    }
    add("templates/NOTES.txt", notes(app, &options.name, &parts));
    let (items, needs_secret) = (items(&options, &parts), parts.needs_secret());
    let Parts { definitions, .. } = parts;
    Ok(Chart { files, items, name: options.name, version: app.version.clone(), needs_secret, definitions })
}

/// The ingress of the webhooks in the `NetworkPolicy`.
///
/// `networkpolicy.yaml` has a placeholder line for it, which is removed for an app without webhooks.
const WEBHOOK_INGRESS: &str = "    # The API server, whose address differs from cluster to cluster.
    - ports:
        - port: webhook
          protocol: TCP
      {{- with .Values.networkPolicy.webhookFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
";

/// Adds the `ServiceMonitor`, the alerts and the dashboard.
///
/// Alerts of leader election and of shards are within conditions in the same `PrometheusRule`. They are found by generating the
/// rule with and without them. The chart has one dashboard for each case, since the panels are one string.
fn add_monitoring(names: &RbacOptions, chart: &str, add: &mut impl FnMut(&str, String)) -> Result<()> {
    let of = |leader_elect, shards| {
        let mut manager = manifest::ManagerOptions::default().with_metrics();
        (manager.leader_elect, manager.shards) = (leader_elect, shards);
        manifest::monitoring(names, manager)
    };
    let (without, elected, sharded) = (of(false, None)?, of(true, None)?, of(false, Some(1))?);
    for (index, manifest) in of(true, Some(1))?.into_iter().enumerate() {
        let (file, value) = match manifest.object["kind"].as_str() {
            Some("ServiceMonitor") => ("servicemonitor", "serviceMonitor"),
            Some("PrometheusRule") => ("prometheusrule", "prometheusRule"),
            _ => ("dashboard", "dashboard"),
        };
        let (when, labels) = (
            format!("and .Values.metrics.enabled .Values.metrics.{value}.enabled"),
            format!(".Values.metrics.{value}.labels"),
        );
        let template = Template { chart, when: &when, more_labels: Some(&labels) };
        let text = match file {
            "prometheusrule" => {
                let always = template::yaml(&without[index])?;
                let mut lines = template.lines(&always);
                for (when, all) in [
                    ("include \"KCTL-CHART.elects\" .", &elected[index]),
                    ("gt (int .Values.shards) 0", &sharded[index]),
                ] {
                    let all = template::yaml(all)?;
                    // The alerts of this condition come last, so the alerts of every program are a prefix.
                    let more = all.strip_prefix(&always).unwrap_or_default();
                    debug_assert!(!more.is_empty(), "alerts of {when} come last");
                    lines += &format!("{{{{- if {when} }}}}\n{}{{{{- end }}}}\n", template.lines(more));
                }
                template.file(&lines)
            }
            "dashboard" => {
                let variant = |all: &[manifest::Manifest]| -> Result<String> {
                    Ok(template.lines(&template::yaml(&with_uid(all[index].clone())?)?))
                };
                let (sharded, elected, without) = (variant(&sharded)?, variant(&elected)?, variant(&without)?);
                template.file(&format!(
                    "{{{{- if gt (int .Values.shards) 0 }}}}\n{sharded}{{{{- else if include \"KCTL-CHART.elects\" . }}}}\n{elected}{{{{- \
                     else }}}}\n{without}{{{{- end }}}}\n"
                ))
            }
            _ => template.render(&[manifest])?,
        };
        add(&format!("templates/monitoring/{file}.yaml"), text);
    }
    Ok(())
}

/// Returns the `NOTES.txt` that Helm prints after an install. The comment of other templates would be printed too.
///
/// `helm install` shows the whole file, so the generator's comment trims the white space around it. A CRD that is kept
/// after an uninstall refers to a conversion webhook that no longer exists. So the notes say how to turn conversion
/// off.
///
/// An app without kinds has no values `crds.…`, and Helm fails on a field of a missing section.
fn notes(app: &App, chart: &str, parts: &Parts) -> String {
    let definitions = &parts.definitions;
    let converts = |crd: &&Manifest| crd.object["spec"]["conversion"]["strategy"] == "Webhook";
    let names = definitions.iter().filter(converts).filter_map(|crd| crd.object["metadata"]["name"].as_str());
    let patch = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
    let patches: String = names
        .map(|name| format!("  kubectl patch crd {name} --type merge --patch '{patch}'\n"))
        .collect::<Vec<_>>()
        .concat();
    let conversions = if patches.is_empty() { String::new() } else { format!("{CONVERSIONS}\n{patches}") };
    let crds = if definitions.is_empty() { String::new() } else { CRDS.replace("KCTL-CONVERSIONS\n", &conversions) };
    let secret = if parts.needs_secret() { SECRET } else { "" };
    let text = include_str!("helm/NOTES.txt").replace("KCTL-SECRET\n", secret).replace("KCTL-CRDS\n", &crds);
    let text = text.replace("KCTL-CHART.", &format!("{chart}.")).replace("KCTL-APP", &app.name);
    format!("{} */ -}}}}\n{text}", template::GENERATED)
}

/// The note about the Secret of a certificate that neither the program nor the chart makes.
const SECRET: &str = "{{- if not .Values.certManager.enabled }}

The Pods start when you have created the Secret of their certificate, which has to be valid for the host
{{ include \"KCTL-CHART.fullname\" . }}.{{ .Release.Namespace }}.svc:

  kubectl --namespace {{ .Release.Namespace }} create secret tls {{ include \"KCTL-CHART.fullname\" . }}-webhook-tls --cert tls.crt --key tls.key

With certManager.enabled, cert-manager creates a Secret instead.
{{- end }}
";

/// The note about CRDs, with a placeholder for [`CONVERSIONS`].
const CRDS: &str = "{{- if and .Values.crds.enabled .Values.crds.keep }}

`helm uninstall` keeps the CustomResourceDefinitions with their objects (crds.keep).
KCTL-CONVERSIONS
{{- end }}
";

/// The note about CRDs with several versions. The patches follow.
const CONVERSIONS: &str = "The API server then finds no webhook for conversions, and can't return objects in other versions than the stored one.
Turn conversion off, and with Helm 4 add --force-conflicts to the next `helm install`:
";

/// Parts of the Deployment that depend on the issuer of the webhooks' certificate.
///
/// The Deployment is generated twice, for a certificate made by the program and for one of cert-manager. The template
/// has both sets of fields, behind the value `certManager.enabled`.
#[derive(Default)]
struct Issuance {
    /// The arguments for webhooks.
    args: Vec<String>,
    liveness: Value,
    readiness: Value,
    /// The volumes of the Pod, such as the one with the certificate.
    volumes: Vec<Value>,
    mounts: Vec<Value>,
}

impl Issuance {
    fn from_container(container: &Value, pod: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let args = list(&container["args"]).into_iter().filter_map(|arg| arg.as_str().map(ToOwned::to_owned));
        Self {
            args: args.filter(|arg| arg.starts_with("--webhook-")).collect(),
            liveness: container["livenessProbe"].clone(),
            readiness: container["readinessProbe"].clone(),
            volumes: list(&pod["volumes"]),
            mounts: list(&container["volumeMounts"]),
        }
    }
}

/// Manifests of the app from which templates are made.
struct Parts {
    /// The CRDs of the app's kinds.
    definitions: Vec<Manifest>,
    /// Webhook configurations, their Service, and the objects of cert-manager.
    webhooks: Vec<Manifest>,
    /// `true` if the app has controllers, which may be limited to namespaces.
    has_controllers: bool,
    /// The pod of the Deployment with metrics, and the certificate made by the program.
    pod: Value,
    /// The fields when the program creates and renews the certificate.
    own: Issuance,
    /// The fields when cert-manager issues the certificate.
    by_cert_manager: Issuance,
}

impl Parts {
    fn for_app(app: &App, names: &RbacOptions) -> Result<Self> {
        let generated = |cert_manager: bool| {
            let manager = manifest::ManagerOptions::default().with_metrics();
            let mut all = manifest::crd_manifests(&app.kinds(), manifest::Descriptions::Own)?;
            all.push(manifest::deployment(names, manager, &Resources::default(), "image")?);
            let n_others = all.len();
            #[cfg(feature = "webhook")]
            {
                use super::webhook::{CertificateIssuer, RegisterOptions};
                let issued = if cert_manager { CertificateIssuer::Elsewhere } else { CertificateIssuer::Here };
                let help = "in a chart, the Service of the webhooks has the name of the release: \
                            leave `conversion(…)` out of #[resource]";
                app.webhook_manifests(names, &RegisterOptions::default(), issued, &mut all).context(help)?;
            }
            #[cfg(not(feature = "webhook"))]
            let _ = cert_manager;
            let mut webhooks = all.split_off(n_others);
            webhooks.retain(|manifest| !is_karmada_object(manifest) && !manifest.file.starts_with("rbac/"));
            let deployment = all.pop().map(|manifest| manifest.object).unwrap_or_default();
            Ok::<_, kctl_runtime::reconcile::Error>((all, webhooks, deployment["spec"]["template"]["spec"].clone()))
        };
        let (_, _, own_pod) = generated(false)?;
        let (definitions, webhooks, pod) = generated(true)?;
        Ok(Self {
            definitions: definitions.into_iter().filter(|manifest| !is_karmada_object(manifest)).collect(),
            webhooks,
            has_controllers: !app.controllers.is_empty(),
            own: Issuance::from_container(&own_pod["containers"][0], &own_pod),
            by_cert_manager: Issuance::from_container(&pod["containers"][0], &pod),
            pod: own_pod,
        })
    }

    /// Returns `true` if the Pods mount a Secret that nothing creates without cert-manager.
    ///
    /// The program makes certificates for admission functions and conversions alone: it writes its CA into their configurations. The
    /// configuration of interpreters is in Karmada's control plane, which is another API server.
    fn needs_secret(&self) -> bool {
        let makes_certificate = self.own.args.iter().any(|arg| arg.starts_with("--webhook-secret="));
        !self.webhooks.is_empty() && !makes_certificate
    }
}

/// Returns `true` for objects of Karmada's API groups, which belong to another API server.
///
/// A release installs into one cluster, and these objects would be rejected there.
fn is_karmada_object(manifest: &Manifest) -> bool {
    manifest.object["apiVersion"].as_str().is_some_and(|api| api.contains(".karmada.io/"))
}

/// Returns a list item or a mapping as lines at an indentation.
fn lines(value: &Value, indent: usize) -> Result<String> {
    let pad = " ".repeat(indent);
    let lines = serde_saphyr::to_string(value)?;
    Ok(lines.lines().fold(String::new(), |text, line| text + &pad + line + "\n"))
}

/// Returns arguments of the container as items of its list.
fn arguments<'a>(args: impl Iterator<Item = &'a str>) -> String {
    args.fold(String::new(), |text, arg| text + "            - " + arg + "\n")
}

/// Returns lines for both ways to issue a certificate, or the lines once where they are the same.
fn lines_for_issuers(own: String, by_cert_manager: String, indent: usize) -> String {
    if own == by_cert_manager {
        return own;
    }
    let pad = " ".repeat(indent);
    let (when, otherwise) = if own.is_empty() {
        (by_cert_manager, String::new())
    } else {
        (by_cert_manager, format!("{pad}{{{{- else }}}}\n{own}"))
    };
    format!("{pad}{{{{- if .Values.certManager.enabled }}}}\n{when}{otherwise}{pad}{{{{- end }}}}\n")
}

/// Returns the probes of the container. The template has what they ask, and their times are values.
fn probes(of: &Issuance) -> Result<String> {
    let mut text = String::new();
    for (name, probe) in [("livenessProbe", &of.liveness), ("readinessProbe", &of.readiness)] {
        text += &lines(&json!({ name: { "httpGet": probe["httpGet"] } }), 10)?;
        text += &format!(
            "            {{{{- with .Values.{name} }}}}\n            {{{{- toYaml . | nindent 12 }}}}\n            {{{{- end }}}}\n"
        );
    }
    Ok(text)
}

/// The arguments that limit the controllers to namespaces.
const WATCH_ARGS: &str = "            {{- range .Values.watchNamespaces }}
            - --namespace={{ include \"KCTL-CHART.string\" . }}
            {{- end }}
";

fn deployment(app: &App, chart: &str, parts: &Parts) -> Result<String> {
    let template = Template { chart, when: "", more_labels: None };
    let Parts { pod, own, by_cert_manager, .. } = parts;
    let container = &pod["containers"][0];
    let args: Vec<&str> = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let arg = |prefix: &str| arguments(args.iter().copied().filter(|arg| arg.starts_with(prefix)));
    let webhook_args = |of: &Issuance| arguments(of.args.iter().map(String::as_str));
    let all = |values: &[Value], indent: usize| {
        if values.is_empty() { Ok(String::new()) } else { lines(&json!(values), indent) }
    };
    let mounts = lines_for_issuers(all(&own.mounts, 12)?, all(&by_cert_manager.mounts, 12)?, 12);
    let volumes = lines_for_issuers(all(&own.volumes, 8)?, all(&by_cert_manager.volumes, 8)?, 8);
    let has_mounts = match (own.mounts.is_empty(), by_cert_manager.mounts.is_empty()) {
        (true, true) => "",
        (true, false) => "or .Values.certManager.enabled ",
        (false, _) => "or true ",
    };
    // An app with `App::sharded` shares its keys unless `--shards=0` is given.
    let no_shards = match app.shards {
        Some(_) => "            {{- else }}\n            - --shards=0\n",
        None => "",
    };
    let mut text = include_str!("helm/deployment.yaml").to_owned();
    for (marker, lines) in [
        ("KCTL-PROBES-ARG\n", arg("--health-probe-bind-address")),
        ("KCTL-NO-SHARDS\n", no_shards.to_owned()),
        ("KCTL-METRICS-ARG\n", arg("--metrics-bind-address")),
        ("KCTL-WATCH-ARGS\n", if parts.has_controllers { WATCH_ARGS.to_owned() } else { String::new() }),
        ("KCTL-WEBHOOK-ARGS\n", lines_for_issuers(webhook_args(own), webhook_args(by_cert_manager), 12)),
        ("KCTL-PORTS\n", container_ports(container)?),
        ("KCTL-PROBES\n", lines_for_issuers(probes(own)?, probes(by_cert_manager)?, 10)),
        ("KCTL-MOUNTS\n", mounts),
        ("KCTL-VOLUMES\n", volumes),
        ("KCTL-HAS-MOUNTS ", has_mounts.to_owned()),
        ("KCTL-ROLLS ", if app.controllers.is_empty() { "true ".to_owned() } else { String::new() }),
    ] {
        let lines = if lines.contains(NAME) { name_actions(&lines) } else { lines };
        text = text.replace(marker, &lines);
    }
    if app.controllers.is_empty() {
        // Removes the check at the beginning: replicas that only serve webhooks can't work against each other.
        text = text.split_once("{{- end }}\n").map_or(text.clone(), |(_, rest)| rest.to_owned());
    }
    Ok(template.file(&text))
}

/// Returns the ports of the container. The metrics port depends on a value of the chart.
fn container_ports(container: &Value) -> Result<String> {
    let mut ports = String::new();
    for port in container["ports"].as_array().into_iter().flatten() {
        let text = lines(&json!([port]), 12)?;
        ports += &if port["name"] == "metrics" {
            format!("            {{{{- if .Values.metrics.enabled }}}}\n{text}            {{{{- end }}}}\n")
        } else {
            text
        };
    }
    Ok(ports)
}

/// Replaces the name in lines that have actions already.
fn name_actions(lines: &str) -> String {
    lines.replace(NAME, "{{ include \"KCTL-CHART.fullname\" . }}")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use k8s_openapi::{
        api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    };
    use kctl_runtime::reconcile::{Action, Context};
    use kube::core::GroupVersionKind;

    use super::*;

    #[crate::controller(crate = crate)]
    async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
        Ok(Action::await_change())
    }

    /// Returns the CRD of a kind without a controller.
    fn lid_crd() -> CustomResourceDefinition {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
        serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "lids.x.io" },
            "spec": {
                "group": "x.io",
                "names": { "kind": "Lid", "plural": "lids", "singular": "lid" },
                "scope": "Namespaced",
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
            },
        }))
        .unwrap()
    }

    fn lid() -> manifest::KindSpec {
        let kind = GroupVersionKind::gvk("x.io", "v1", "Lid");
        manifest::KindSpec::new("helm.rs", kind, lid_crd)
    }

    fn chart_of(app: &App) -> Chart {
        let options = ChartOptions {
            name: "web".into(),
            image: None,
            namespaces: Vec::new(),
            manager: manifest::ManagerOptions::default(),
            resources: Resources::default(),
            monitoring: false,
            cert_manager: false,
        };
        chart(app, options).unwrap()
    }

    /// Returns the paths of values that a template reads, such as `crds.enabled`.
    fn read_values(template: &str) -> BTreeSet<&str> {
        let ends = |c: char| !c.is_ascii_alphanumeric() && c != '.';
        template.split(".Values.").skip(1).filter_map(|rest| rest.split(ends).next()).collect()
    }

    /// Returns `true` if `path` is `other` or a part of it. A template may read a whole section, such as
    /// `with .Values.resources`.
    fn is_within(path: &str, other: &str) -> bool {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Checks that the templates of an app's chart read all values, and no others.
    fn check_values(app: &App) {
        let chart = chart_of(app);
        let rows = values::rows(&chart.items, &Value::Null);
        let read: BTreeSet<_> = chart.files.iter().flat_map(|file| read_values(&file.text)).collect();
        let unknown: Vec<_> = read.iter().filter(|path| !rows.iter().any(|row| is_within(&row.key, path))).collect();
        let without_effect: Vec<_> =
            rows.iter().filter(|row| !read.iter().any(|path| is_within(&row.key, path))).map(|row| &row.key).collect();
        assert!(unknown.is_empty() && without_effect.is_empty(), "{unknown:?} {without_effect:?}");
    }

    #[test]
    fn templates_read_exactly_the_values() {
        let mut without_controller = App::new("web");
        without_controller.kinds.push(lid());
        for app in [App::new("web"), App::new("web").controller::<idle>(), without_controller] {
            check_values(&app);
        }
    }

    /// Returns the comment on `certManager.enabled`, the notes and the `README.md` of a chart.
    #[cfg(feature = "karmada")]
    fn certificate_texts(chart: &Chart) -> [String; 3] {
        let rows = values::rows(&chart.items, &Value::Null);
        let doc = rows.into_iter().find(|row| row.key == "certManager.enabled").unwrap().doc;
        let notes = chart.files.iter().find(|file| file.path == "templates/NOTES.txt").unwrap().text.clone();
        [doc, notes, readme::readme(chart, None, &Value::Null).unwrap()]
    }

    #[cfg(feature = "karmada")]
    #[test]
    fn chart_of_interpreters_names_their_secret() {
        use k8s_openapi::api::apps::v1::Deployment;
        use kctl_interpreter::{
            function::{FunctionInfo, IntoHealth, Rule},
            operation::Operation,
        };

        let about = FunctionInfo::new(Operation::InterpretHealth, "health", file!(), line!());
        let rule = Rule::read::<Deployment, _, _>(about, |_object| async { IntoHealth::into_result(true) });
        let mut app = App::new("web");
        app.interpreters.push(rule);
        check_values(&app);
        let chart = chart_of(&app);
        let mounts = |file: &File| file.text.contains("secretName: {{ include \"web.fullname\" . }}-webhook-tls\n");
        assert!(chart.files.iter().any(mounts) && !chart.files.iter().any(|file| file.text.contains("kind: Secret")));
        let [doc, notes, readme] = certificate_texts(&chart);
        assert!(doc.ends_with("the Secret `NAME-webhook-tls` with tls.crt and tls.key."), "{doc}");
        let note = "tls {{ include \"web.fullname\" . }}-webhook-tls --cert tls.crt --key tls.key\n";
        assert!(notes.contains("{{- if not .Values.certManager.enabled }}\n") && notes.contains(note), "{notes}");
        assert!(readme.contains("create secret tls web-webhook-tls --cert tls.crt --key tls.key\n"), "{readme}");
    }

    #[cfg(feature = "karmada")]
    #[test]
    fn chart_of_admission_functions_creates_the_secret() {
        use kctl_webhook::{
            FunctionInfo,
            admission::{Action, Options, Webhook},
        };

        let about = FunctionInfo::new("any", file!(), line!());
        let rule =
            Webhook::object::<ConfigMap, _, _>(about, Options::new(Action::Validate), |config, _| async { Ok(config) });
        let mut app = App::new("web");
        app.webhook_functions.admission.push(rule);
        check_values(&app);
        let chart = chart_of(&app);
        assert!(chart.files.iter().any(|file| file.text.contains("kind: Secret")));
        let [doc, notes, readme] = certificate_texts(&chart);
        assert!(doc.ends_with("Otherwise the program creates and renews it in a Secret."), "{doc}");
        assert!(!notes.contains("create secret") && !readme.contains("create secret"), "{notes}\n{readme}");
    }
}
