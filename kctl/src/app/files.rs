//! Objects in YAML and JSON files, and how they reach an API server.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use http::{Method, Request};
use kctl_runtime::{
    manifest::{self, Descriptions, Grant, KindSpec, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

/// An object and the file that it comes from.
pub(super) struct FromFile {
    pub(super) object: Value,
    pub(super) origin: String,
}

/// Installs the definitions of an app's kinds, and its role.
pub(crate) async fn install(
    client: &Client,
    kinds: &[KindSpec],
    grants: &[Grant],
    options: &RbacOptions,
) -> Result<()> {
    let mut objects = Vec::new();
    for crd in manifest::definitions(kinds, Descriptions::All)? {
        objects.push(serde_json::to_value(crd)?);
    }
    objects.extend(manifest::rbac_of(grants, options)?.into_iter().map(|manifest| manifest.object));
    let origin = || "generated manifests".to_owned();
    let files = objects.into_iter().map(|object| FromFile { object, origin: origin() });
    apply(client, &files.collect::<Vec<_>>()).await
}

/// Reads files, the `.yaml`, `.yml` and `.json` files of folders by name, and standard input for `-`.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<FromFile>> {
    let mut objects = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input")?;
            parse(&text, "standard input", &mut objects)?;
        } else if path.is_dir() {
            for file in files_of(path)? {
                read_file(&file, &mut objects)?;
            }
        } else {
            read_file(path, &mut objects)?;
        }
    }
    Ok(objects)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).context(folder.display())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| {
        file.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
    });
    files.sort();
    Ok(files)
}

fn read_file(path: &Path, objects: &mut Vec<FromFile>) -> Result<()> {
    let text = std::fs::read_to_string(path).context(path.display())?;
    parse(&text, &path.display().to_string(), objects)
}

fn parse(text: &str, origin: &str, objects: &mut Vec<FromFile>) -> Result<()> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context(origin)?;
    for object in documents.into_iter().filter(|document| !document.is_null()) {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none() {
                return Err(Error::from(format!("{origin}: an object has no `{}`", field[1..].replace('/', "."))));
            }
        }
        objects.push(FromFile { object, origin: origin.into() });
    }
    Ok(())
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

/// Applies objects as kubectl does, with defaults for the namespace.
pub(super) async fn apply(client: &Client, objects: &[FromFile]) -> Result<()> {
    for FromFile { object, origin } in objects {
        let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (field("/kind"), field("/metadata/name"));
        let path = path(client, object).await.context(format!("{origin}: {kind} {name}"))?;
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{path}/{name}?fieldManager=kctl-dev&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(serde_json::to_vec(object)?)?;
        let _applied: Value = client.request(request).await.context(format!("{origin}: {kind} {name}"))?;
    }
    Ok(())
}

/// Reads an object back.
pub(super) async fn get(client: &Client, object: &Value) -> Result<Value> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let path = path(client, object).await?;
    Ok(client.request(Request::get(format!("{path}/{name}")).body(Vec::new())?).await?)
}

async fn path(client: &Client, object: &Value) -> Result<String> {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (api, kind) = (field("/apiVersion"), field("/kind"));
    let root = if api.contains('/') { format!("/apis/{api}") } else { format!("/api/{api}") };
    let known = client.request::<Resources>(Request::get(&root).body(Vec::new())?).await;
    let known = known.context(format!("{api} is not served"))?;
    let mut of_kind = known.resources.iter().filter(|resource| resource.kind == kind && !resource.name.contains('/'));
    let Some(resource) = of_kind.next() else {
        return Err(Error::from(format!("no kind {kind} in {api}: is its CustomResourceDefinition missing?")));
    };
    if !resource.namespaced {
        return Ok(format!("{root}/{}", resource.name));
    }
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
    Ok(format!("{root}/namespaces/{namespace}/{}", resource.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_yaml_names_the_file_and_the_line() {
        let mut objects = Vec::new();
        let error = parse("a: 1\nb: [", "web.yaml", &mut objects).unwrap_err().to_string();
        assert!(error.starts_with("web.yaml: ") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn object_without_a_name_is_refused() {
        let mut objects = Vec::new();
        let error = parse("apiVersion: v1\nkind: Pod\n", "web.yaml", &mut objects).unwrap_err().to_string();
        assert_eq!(error, "web.yaml: an object has no `metadata.name`");
    }

    #[test]
    fn documents_of_a_stream_are_all_read() {
        let mut objects = Vec::new();
        let object = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
        parse(&format!("{object}---\n{object}"), "x", &mut objects).unwrap();
        assert_eq!(objects.len(), 2);
    }
}
