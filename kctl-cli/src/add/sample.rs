//! Objects of a kind in the files of `samples/`, which generated tests create.

use std::path::Path;

use kctl_runtime::manifest::is_built_in_group;
use serde_json::Value;

use super::{files::read, project::Project, source::Kind};
use crate::new::fill_template;

/// An object that generated tests create.
struct Sample {
    /// The path of the file, relative to `src`.
    file: String,
    /// The name of the object.
    object: String,
}

/// Returns the name of the first object of a kind and version in YAML documents.
///
/// Objects in other namespaces than `default` are skipped, because the tests read objects there. Documents with other custom
/// kinds, or other versions of the kind, have none: the app of a generated test doesn't register them, so its server would
/// reject these objects.
fn object_of(text: &str, kind: &Kind) -> Option<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).ok()?;
    let api_version = format!("{}/{}", kind.group, kind.version);
    let is_of_kind = |object: &Value| object["apiVersion"] == api_version && object["kind"] == kind.name;
    if documents.iter().any(|object| is_custom(object) && !is_of_kind(object)) {
        return None;
    }
    let is_in_default = |object: &Value| object["metadata"]["namespace"].as_str().is_none_or(|it| it == "default");
    let object = documents.iter().find(|object| is_of_kind(object) && is_in_default(object))?;
    object["metadata"]["name"].as_str().map(ToOwned::to_owned)
}

/// Returns `true` for an object in a group without built-in kinds, such as `gateway.networking.k8s.io`.
fn is_custom(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|api_version| Some(api_version.split_once('/')?.0));
    group.is_some_and(|group| !is_built_in_group(group))
}

impl Project {
    /// Returns an object of a kind for generated tests: from the sample of the module, `sample.yaml`, or another file in
    /// `samples/`.
    ///
    /// Folders that can't be read have no samples.
    fn sample(&self, kind: &Kind) -> Option<Sample> {
        let module = kind.path.rsplit("::").next().unwrap_or_default().replace('_', "-");
        let folder = std::fs::read_dir(self.folder.join("samples")).into_iter().flatten().flatten();
        let mut others: Vec<String> = folder
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "yaml"))
            .map(|name| format!("samples/{name}"))
            .collect();
        others.sort();
        let first = [format!("samples/{module}.yaml"), "sample.yaml".to_owned()];
        first.into_iter().chain(others).find_map(|file| {
            let text = read(&self.folder.join(&file)).ok()?;
            Some(Sample { object: object_of(&text, kind)?, file: format!("../{file}") })
        })
    }

    /// Fills a template whose tests need an object of the kind. Without a sample, the tests are left out: the values of the
    /// required fields are unknown.
    pub(super) fn with_sample(&self, kind: &Kind, template: &str, names: &[(&str, &str)]) -> String {
        let api = if kind.is_namespaced { "Api::default_namespaced" } else { "Api::all" };
        let Some(Sample { file, object }) = self.sample(kind) else {
            let code = template.split_once("\n#[cfg(test)]").map_or(template, |(code, _tests)| code);
            say!(
                "no tests were generated, because no file in samples/ has a {} and no other custom kind: write one, and a test with \
                 it",
                kind.name
            );
            return fill_template(code, names);
        };
        let sample = [("sample", file.as_str()), ("object", object.as_str()), ("api", api)];
        fill_template(template, &[names, &sample].concat())
    }
}
