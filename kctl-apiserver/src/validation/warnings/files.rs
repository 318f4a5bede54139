//! Warnings about files of one volume with overlapping paths: `spec` of a Pod → warnings.

use serde_json::Value;

use crate::validation::warnings::{entries, text};

/// A file of a volume, and where it comes from when the volume has several sources.
struct File<'a> {
    path: &'a str,
    source: Option<String>,
}

impl File<'_> {
    fn shown(&self) -> String {
        match &self.source {
            Some(source) => format!("{:?} ({source})", self.path),
            None => format!("{:?}", self.path),
        }
    }

    /// Returns `true` if one path equals the other or is below it.
    fn overlaps(&self, other: &Self) -> bool {
        let is_in = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        let are_there = !self.path.is_empty() && !other.path.is_empty();
        are_there && (is_in(self.path, other.path) || is_in(other.path, self.path))
    }
}

pub(super) fn overlapping(spec: &Value, texts: &mut Vec<String>) {
    for (_, volume) in entries(&spec["volumes"]) {
        let name = text(&volume["name"]);
        let mut tell = |of: &str, files: &[File<'_>]| {
            for (index, file) in files.iter().enumerate() {
                for other in files[..index].iter().filter(|other| file.overlaps(other)) {
                    let (file, other) = (file.shown(), other.shown());
                    texts.push(format!("volume {name:?} ({of}): overlapping paths: {file} with {other}"));
                }
            }
        };
        tell(&format!("ConfigMap {:?}", text(&volume["configMap"]["name"])), &files(&volume["configMap"], None));
        tell(&format!("Secret {:?}", text(&volume["secret"]["secretName"])), &files(&volume["secret"], None));
        tell("DownwardAPI", &files(&volume["downwardAPI"], None));
        let sources = || entries(&volume["projected"]["sources"]).map(|(_, source)| source);
        let all: Vec<File<'_>> = sources().flat_map(projected).collect();
        tell("Projected", &all);
        for _ in sources().filter(|source| source.as_object().is_some_and(serde_json::Map::is_empty)) {
            texts.push(format!("volume {name:?} (Projected) has no sources provided"));
        }
    }
}

fn files<'a>(source: &'a Value, from: Option<&str>) -> Vec<File<'a>> {
    let path = |item: &'a Value| text(&item["path"]).trim_end_matches('/');
    entries(&source["items"]).map(|(_, item)| File { path: path(item), source: from.map(str::to_owned) }).collect()
}

fn projected(source: &Value) -> Vec<File<'_>> {
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
