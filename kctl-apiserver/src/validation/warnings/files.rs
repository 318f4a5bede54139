//! Warnings about files of one volume with overlapping paths.
//!
//! Two keys that are mapped to the same path, or one path below another, cannot both exist as files. The kubelet either
//! uses one of them or fails to mount. Validation accepts such volumes, apart from duplicates in a projection.

use serde_json::Value;

use crate::{
    limits::WARNINGS_MAX,
    validation::warnings::{entries, text},
};

/// The number of files of a volume that are compared with each other.
const FILES_COMPARED_MAX: usize = 1000;

/// A file of a volume, and its source if the volume has several.
struct File<'a> {
    /// The path within the volume, without slashes at its end. Empty paths never overlap.
    path: &'a str,
    /// Kind and name of the object in a projected volume, such as `ConfigMap "a"`; `None` if the volume has one source.
    /// Equal warnings are sent once, so without the source a response would have fewer warnings than upstream's.
    source: Option<String>,
}

impl File<'_> {
    /// Returns the path in quotes, and the source in parentheses if there is one.
    fn describe(&self) -> String {
        match &self.source {
            Some(source) => format!("{:?} ({source})", self.path),
            None => format!("{:?}", self.path),
        }
    }

    /// Returns `true` if one path equals the other or is below it: `a/b` overlaps `a`, `ab` does not.
    fn overlaps(&self, other: &Self) -> bool {
        let is_in = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let are_there = !self.path.is_empty() && !other.path.is_empty();
        are_there && (is_in(self.path, other.path) || is_in(other.path, self.path))
    }
}

/// Adds the warnings about all volumes of a Pod: each file is compared with those before it in the same volume, up to
/// [`FILES_COMPARED_MAX`] files. A projected volume compares the files of all its sources.
pub(super) fn warn_about_overlaps(spec: &Value, texts: &mut Vec<String>) {
    for (_, volume) in entries(&spec["volumes"]) {
        let name = text(&volume["name"]);
        let mut tell = |volume_source: &str, files: &[File<'_>]| {
            for (index, file) in files.iter().take(FILES_COMPARED_MAX).enumerate() {
                if texts.len() > WARNINGS_MAX {
                    return;
                }
                for other in files[..index].iter().filter(|other| file.overlaps(other)) {
                    let (file, other) = (file.describe(), other.describe());
                    texts.push(format!("volume {name:?} ({volume_source}): overlapping paths: {file} with {other}"));
                }
            }
        };
        tell(&format!("ConfigMap {:?}", text(&volume["configMap"]["name"])), &files(&volume["configMap"], None));
        tell(&format!("Secret {:?}", text(&volume["secret"]["secretName"])), &files(&volume["secret"], None));
        tell("DownwardAPI", &files(&volume["downwardAPI"], None));
        let sources = || entries(&volume["projected"]["sources"]).map(|(_, source)| source);
        let all: Vec<File<'_>> = sources().flat_map(projected_files).collect();
        tell("Projected", &all);
        for _ in sources().filter(|source| source.as_object().is_some_and(serde_json::Map::is_empty)) {
            texts.push(format!("volume {name:?} (Projected) has no sources provided"));
        }
    }
}

/// Returns the files that `items` of a source lists. Without items, all keys become files, and the server does not know
/// them.
fn files<'a>(source: &'a Value, from: Option<&str>) -> Vec<File<'a>> {
    let path = |item: &'a Value| text(&item["path"]).trim_end_matches('/');
    entries(&source["items"]).map(|(_, item)| File { path: path(item), source: from.map(str::to_owned) }).collect()
}

/// Returns the files of one source of a projected volume. Only the first member with files counts, in upstream's order.
/// Trust bundles and certificates have no files here.
fn projected_files(source: &Value) -> Vec<File<'_>> {
    let named = |kind: &str, name: &str| format!("{kind} {:?}", text(&source[name]["name"]));
    if source["configMap"]["items"].is_array() {
        files(&source["configMap"], Some(&named("ConfigMap", "configMap")))
    } else if source["secret"]["items"].is_array() {
        files(&source["secret"], Some(&named("Secret", "secret")))
    } else if source["downwardAPI"]["items"].is_array() {
        files(&source["downwardAPI"], Some("DownwardAPI"))
    } else if source["serviceAccountToken"].is_object() {
        let path = text(&source["serviceAccountToken"]["path"]).trim_end_matches('/');
        vec![File { path, source: Some("ServiceAccountToken".to_owned()) }]
    } else {
        Vec::new()
    }
}
