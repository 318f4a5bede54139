//! Objects in YAML and JSON files, and how they are applied to an API server.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_runtime::{
    manifest::{self, Grant, RbacOptions},
    object::Kind,
    reconcile::{Error, Result, ResultExt},
};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

/// An object, and the file that it comes from, which error messages name.
pub(crate) struct FromFile {
    pub(crate) object: Value,
    pub(crate) origin: String,
}

/// Installs the CRDs of an app's kinds, and its role.
pub(crate) async fn install(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    grants: &[Grant],
    options: &RbacOptions,
) -> Result<()> {
    let mut objects = Vec::new();
    for definition in definitions {
        objects.push(serde_json::to_value(definition)?);
    }
    objects.extend(manifest::rbac_of(grants, options)?.into_iter().map(|manifest| manifest.object));
    let origin = || "generated manifests".to_owned();
    let files = objects.into_iter().map(|object| FromFile { object, origin: origin() });
    apply(client, &files.collect::<Vec<_>>()).await
}

/// Reads files, the `.yaml`, `.yml` and `.json` files of folders sorted by name, and standard input
/// for `-`.
///
/// # Errors
/// A path can't be read, is not YAML or JSON, or has no objects; kubectl rejects an empty file as
/// well.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<FromFile>> {
    let mut objects = Vec::new();
    for path in paths {
        let before = objects.len();
        if path.as_os_str() == "-" {
            let mut text = String::new();
            bounded(std::io::stdin(), "standard input", &mut text)?;
            parse(&text, "standard input", &mut objects)?;
        } else if path.is_dir() {
            for file in files_of(path)? {
                read_file(&file, &mut objects)?;
            }
        } else {
            read_file(path, &mut objects)?;
        }
        if objects.len() == before {
            return Err(Error::from(nothing_in(path)));
        }
    }
    Ok(objects)
}

/// Returns the error message for a path without objects.
fn nothing_in(path: &Path) -> String {
    match (path.is_dir(), path.as_os_str() == "-") {
        (true, _) => format!("{}: no objects in it: name a folder with .yaml, .yml or .json files", path.display()),
        (false, true) => "standard input: no objects in it".to_owned(),
        (false, false) => format!("{}: no objects in it", path.display()),
    }
}

/// Reads files, or the app's own objects if no files are named.
#[cfg(feature = "dev")]
pub(super) fn read_or(paths: &[PathBuf], yaml: Option<&str>) -> Result<Vec<FromFile>> {
    let mut objects = read(paths)?;
    if let Some(yaml) = yaml.filter(|_| paths.is_empty()) {
        parse(yaml, "the objects of the app", &mut objects)?;
    }
    Ok(objects)
}

/// Returns the manifests of a folder by name, without those of its subfolders, as `kubectl apply -f DIR`.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).context(folder.display())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| {
        file.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|extension| ending == *extension))
    });
    files.sort();
    Ok(files)
}

/// Maximum number of bytes of a file or of standard input. Devices and pipes may have no end.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Reads a file that the user has named.
fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    bounded(std::fs::File::open(path).context(path.display())?, &path.display().to_string(), &mut text)?;
    Ok(text)
}

/// Reads a string of at most [`FILE_LEN_MAX`] bytes.
///
/// # Errors
/// The source is longer, can't be read, or is not UTF-8.
fn bounded(source: impl Read, origin: &str, text: &mut String) -> Result<()> {
    let len = source.take(FILE_LEN_MAX + 1).read_to_string(text).context(origin)?;
    if len as u64 > FILE_LEN_MAX {
        return Err(Error::from(format!("{origin}: longer than {FILE_LEN_MAX} bytes; is it a device?")));
    }
    Ok(())
}

fn read_file(path: &Path, objects: &mut Vec<FromFile>) -> Result<()> {
    let text = text_of(path)?;
    parse(&text, &path.display().to_string(), objects)
}

/// Parses a stream of documents, and checks that each has `apiVersion`, `kind` and `metadata.name`.
pub(crate) fn parse(text: &str, origin: &str, objects: &mut Vec<FromFile>) -> Result<()> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context(origin)?;
    for object in documents.into_iter().flat_map(listed).filter(|document| !document.is_null()) {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none() {
                return Err(Error::from(format!("{origin}: an object has no `{}`", field[1..].replace('/', "."))));
            }
        }
        objects.push(FromFile { object, origin: origin.into() });
    }
    Ok(())
}

/// Returns the items of a list, as `kubectl get -o yaml` prints several objects; other documents as
/// they are.
fn listed(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

/// The answer of a discovery request for one group and version.
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

/// Applies objects with server-side apply, like `kubectl apply --server-side --force-conflicts`.
/// Without a namespace they go to `default`.
pub(crate) async fn apply(client: &Client, objects: &[FromFile]) -> Result<()> {
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

/// Reads an object back from the server.
pub(super) async fn get(client: &Client, object: &Value) -> Result<Value> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let path = path(client, object).await?;
    Ok(client.request(Request::get(format!("{path}/{name}")).body(Vec::new())?).await?)
}

/// Returns `true` if an API server serves a kind.
///
/// # Errors
/// The server answers with an error other than 404.
pub(super) async fn has_kind(client: &Client, kind: &Kind) -> Result<bool> {
    let Kind { group, version, plural, .. } = kind;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match client.request::<Resources>(Request::get(&root).body(Vec::new())?).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == *plural)),
        Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the URL path of the collection that an object belongs to, by discovery.
pub(crate) async fn path(client: &Client, object: &Value) -> Result<String> {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (api, kind) = (field("/apiVersion"), field("/kind"));
    let root = if api.contains('/') { format!("/apis/{api}") } else { format!("/api/{api}") };
    let served = client.request::<Resources>(Request::get(&root).body(Vec::new())?).await;
    let served = match served {
        Err(kube::Error::Api(refused)) if refused.code == 404 => {
            let what = format!("{api} is not served; apply its CRD first, or write a kind of this program");
            return Err(Error::from(format!("{what}, which `generate-crds` prints")));
        }
        served => served.context(root.clone())?,
    };
    let mut of_kind = served.resources.iter().filter(|resource| resource.kind == kind && !resource.name.contains('/'));
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
    fn objects_of_a_list_are_read_as_documents_are() {
        let mut objects = Vec::new();
        let pod = |name: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}}}");
        let list = format!("apiVersion: v1\nkind: List\nitems: [{}, {}]\n---\n{}", pod("a"), pod("b"), pod("c"));
        parse(&list, "x", &mut objects).unwrap();
        let names: Vec<_> = objects.iter().map(|file| file.object["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        // A kind of the user's with a field of that name.
        parse("{apiVersion: a.b/v1, kind: Cart, metadata: {name: a}, items: [1]}", "x", &mut objects).unwrap();
        assert_eq!(objects[3].object["items"], serde_json::json!([1]));
    }

    #[test]
    fn input_without_objects_is_rejected_by_name() {
        let folder = std::env::temp_dir().join(format!("kctl-files-{}", std::process::id()));
        let (empty, other) = (folder.join("empty.yaml"), folder.join("other"));
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(&empty, "---\n# nothing\n").unwrap();
        for (path, expected) in [(&empty, "no objects in it"), (&other, "a folder with .yaml, .yml or .json files")] {
            let error = read(std::slice::from_ref(path)).err().unwrap().to_string();
            assert!(error.starts_with(&path.display().to_string()) && error.ends_with(expected), "{error}");
        }
        std::fs::write(other.join("a.yml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: a}").unwrap();
        assert_eq!(read(&[other]).unwrap().len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn documents_of_a_stream_are_all_read() {
        let mut objects = Vec::new();
        let object = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
        parse(&format!("{object}---\n{object}"), "x", &mut objects).unwrap();
        assert_eq!(objects.len(), 2);
    }
}
