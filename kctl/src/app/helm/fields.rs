//! Fields of generated objects that values of the chart set: their placeholders, and the actions that replace these.
//!
//! A placeholder is a key in its object. Its name decides on which line it is, since keys are sorted: the first key of a
//! list item shares its line with the dash, so no placeholder may be the first one.

use serde_json::{Value, json};

/// Placeholder for all annotations of an object if each of them depends on a value. The key `annotations` is left out with the
/// last of them, because a key without a value is `null`.
pub(super) const ANNOTATIONS: &str = "KCTL-ANNOTATIONS";
/// Placeholder for the credentials, TLS settings, times and relabelings of an endpoint in a `ServiceMonitor`.
pub(super) const ENDPOINT: &str = "tlsConfig-KCTL";
/// Placeholder for the `failurePolicy` of an admission webhook.
pub(super) const FAILURE_POLICY: &str = "failurePolicy-KCTL";
/// Placeholder for the `namespaceSelector` of an admission webhook that declares none.
pub(super) const NAMESPACE_SELECTOR: &str = "namespaceSelector-KCTL";

/// An annotation that a value turns on.
pub(super) struct Annotation {
    /// The key that is replaced by it.
    pub(super) placeholder: &'static str,
    condition: &'static str,
    line: &'static str,
}

/// Helm's policy of keeping an object. Helm would delete a CRD with the release otherwise, and with it all objects of the
/// kind.
pub(super) const KEEP: Annotation =
    Annotation { placeholder: "KCTL-KEEP", condition: ".Values.crds.keep", line: "helm.sh/resource-policy: keep" };

/// cert-manager's injection of its CA.
pub(super) const INJECT: Annotation = Annotation {
    placeholder: "KCTL-INJECT",
    condition: ".Values.certManager.enabled",
    line: "cert-manager.io/inject-ca-from: {{ printf \"%s/%s-webhook-tls\" .Release.Namespace (include \
           \"KCTL-CHART.fullname\" .) | quote }}",
};

impl Annotation {
    /// Returns the lines of the annotation within its condition.
    pub(super) fn lines(&self, pad: &str) -> String {
        format!("{pad}{{{{- if {} }}}}\n{pad}{}\n{pad}{{{{- end }}}}\n", self.condition, self.line)
    }
}

/// Puts [`ANNOTATIONS`] into an object whose annotations are placeholders alone.
pub(super) fn join_annotations(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(annotations) = metadata.get("annotations").and_then(Value::as_object) else { return };
    let is_placeholder = |key: &String| [&KEEP, &INJECT].iter().any(|annotation| annotation.placeholder == key);
    if annotations.is_empty() || !annotations.keys().all(is_placeholder) {
        return;
    }
    let keys = annotations.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    metadata.remove("annotations");
    metadata.insert(ANNOTATIONS.to_owned(), keys.into());
}

/// Returns the lines for the placeholder [`ANNOTATIONS`] in this line.
pub(super) fn joined_annotations(line: &str, pad: &str) -> String {
    let annotations: Vec<_> = [INJECT, KEEP].into_iter().filter(|one| line.contains(one.placeholder)).collect();
    let inner_pad = format!("{pad}  ");
    let (condition, lines) = match &annotations[..] {
        [one] => (one.condition.to_owned(), format!("{inner_pad}{}\n", one.line)),
        all => {
            let conditions: Vec<_> = all.iter().map(|one| one.condition).collect();
            (format!("or {}", conditions.join(" ")), all.iter().map(|one| one.lines(&inner_pad)).collect())
        }
    };
    format!("{pad}{{{{- if {condition} }}}}\n{pad}annotations:\n{lines}{pad}{{{{- end }}}}\n")
}

/// Puts [`ENDPOINT`] into a `ServiceMonitor`. Its value is the file of the token.
pub(super) fn mark_endpoint(monitor: &mut Value) {
    if let Some(endpoint) = monitor["spec"]["endpoints"][0].as_object_mut() {
        let token_file = endpoint.remove("bearerTokenFile").unwrap_or_default();
        endpoint.remove("tlsConfig");
        endpoint.insert(ENDPOINT.to_owned(), token_file);
    }
}

/// Returns the lines for [`ENDPOINT`]. `authorization` takes the place of the file, which an operator with
/// `arbitraryFSAccessThroughSMs.deny` rejects.
pub(super) fn endpoint(token_file: &str, pad: &str) -> String {
    let with = |name: &str| format!("{pad}{{{{- with .Values.metrics.serviceMonitor.{name} }}}}\n{pad}{name}:");
    let indent = pad.len() + 2;
    let copied = |name: &str| format!("{}\n{pad}  {{{{- toYaml . | nindent {indent} }}}}\n", with(name));
    let quoted = |name: &str| format!("{} {{{{ . | quote }}}}\n", with(name));
    let end = format!("{pad}{{{{- end }}}}\n");
    [
        copied("authorization") + &format!("{pad}{{{{- else }}}}\n{pad}bearerTokenFile: {token_file}\n"),
        quoted("interval"),
        copied("metricRelabelings"),
        copied("relabelings"),
        quoted("scrapeTimeout"),
        copied("tlsConfig"),
    ]
    .map(|lines| lines + &end)
    .concat()
}

/// Puts [`FAILURE_POLICY`] and [`NAMESPACE_SELECTOR`] into a configuration of admission webhooks.
pub(super) fn mark_webhooks(configuration: &mut Value) {
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        let Some(fields) = webhook.as_object_mut() else { continue };
        let declared_policy = fields.remove("failurePolicy").unwrap_or_else(|| json!("Fail"));
        fields.insert(FAILURE_POLICY.to_owned(), declared_policy);
        if !fields.contains_key("namespaceSelector") {
            fields.insert(NAMESPACE_SELECTOR.to_owned(), "".into());
        }
    }
}

/// Returns the line for [`FAILURE_POLICY`].
pub(super) fn failure_policy(declared_policy: &str, pad: &str) -> String {
    format!("{pad}failurePolicy: {{{{ default \"{declared_policy}\" .Values.webhooks.failurePolicy }}}}\n")
}

/// Returns the lines for [`NAMESPACE_SELECTOR`].
pub(super) fn namespace_selector(pad: &str) -> String {
    let indent = pad.len() + 2;
    format!(
        "{pad}{{{{- with .Values.webhooks.namespaceSelector }}}}\n{pad}namespaceSelector:\n{pad}  {{{{- toYaml . | nindent {indent} \
         }}}}\n{pad}{{{{- end }}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_key_is_within_their_conditions() {
        let keep = "  {{- if .Values.crds.keep }}\n  annotations:\n    helm.sh/resource-policy: keep\n  {{- end }}\n";
        assert_eq!(joined_annotations("  KCTL-ANNOTATIONS: KCTL-KEEP", "  "), keep);
        let both = joined_annotations("  KCTL-ANNOTATIONS: KCTL-INJECT KCTL-KEEP", "  ");
        let start = "  {{- if or .Values.certManager.enabled .Values.crds.keep }}\n  annotations:\n    {{- if .Values.certManager.enabled }}\n";
        assert!(both.starts_with(start) && both.ends_with("    {{- end }}\n  {{- end }}\n"), "{both}");
    }

    #[test]
    fn annotations_of_the_kind_remain_a_map() {
        let crd = |annotations: Value| json!({ "metadata": { "annotations": annotations } });
        let mut own = crd(json!({ "KCTL-KEEP": "", "example.com/team": "storage" }));
        let expected = own.clone();
        join_annotations(&mut own);
        assert_eq!(own, expected);
        let mut conditional = crd(json!({ "KCTL-KEEP": "", "KCTL-INJECT": "" }));
        join_annotations(&mut conditional);
        assert!(conditional["metadata"].get("annotations").is_none(), "{conditional}");
        assert!(conditional["metadata"][ANNOTATIONS].is_string(), "{conditional}");
    }

    #[test]
    fn webhook_values_replace_the_default_selector() {
        let selector = json!({ "matchLabels": { "team": "shop" } });
        let mut configuration = json!({ "webhooks": [
            { "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "namespaceSelector": selector },
            { "admissionReviewVersions": ["v1"], "failurePolicy": "Fail" },
        ] });
        mark_webhooks(&mut configuration);
        let [declared, open] = &configuration["webhooks"].as_array().unwrap()[..] else { panic!("{configuration}") };
        assert_eq!((&declared[FAILURE_POLICY], &declared["namespaceSelector"]), (&json!("Ignore"), &selector));
        assert!(declared.get(NAMESPACE_SELECTOR).is_none() && open.get(NAMESPACE_SELECTOR).is_some());
        assert_eq!(
            failure_policy("Ignore", "  "),
            "  failurePolicy: {{ default \"Ignore\" .Values.webhooks.failurePolicy }}\n"
        );
    }

    #[test]
    fn authorization_takes_the_place_of_the_token_file() {
        let lines = endpoint("/token", "    ");
        let start = "    {{- with .Values.metrics.serviceMonitor.authorization }}\n    authorization:\n      {{- toYaml . | nindent 6 }}\n    \
                     {{- else }}\n    bearerTokenFile: /token\n    {{- end }}\n";
        assert!(lines.starts_with(start), "{lines}");
        assert!(lines.contains("    scrapeTimeout: {{ . | quote }}\n    {{- end }}\n"), "{lines}");
    }
}
