//! `ResourceInterpreterCustomization`s for widely used kinds: included in the crate, or from a folder.
//!
//! [`bundled_customizations`] returns the crate's own scripts. They are not Karmada's: each was written for kctl from the documentation of its
//! kind. [`read`] reads a folder in Karmada's layout, `<group>/<version>/<Kind>/customizations.yaml`. It also reads Karmada's
//! own folder, `pkg/resourceinterpreter/default/thirdparty/resourcecustomizations`. Either becomes the layer
//! [`LayerKind::ThirdParty`](crate::chain::LayerKind::ThirdParty) of a [`Chain`](crate::chain::Chain).
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, LayerKind}, kind::Gvk, lua::{Limits, Pool}, operation::Operation, thirdparty};
//!
//! let chain = Chain::native().with(LayerKind::ThirdParty, thirdparty::bundled_customizations(Pool::new(Limits::default())));
//! let kind = Gvk { group: "argoproj.io".into(), version: "v1alpha1".into(), kind: "Rollout".into() };
//! assert!(chain.hook_enabled(Operation::InterpretHealth, &kind));
//! ```

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::lua::{Configurable, CustomizationError, Pool, Scripts};

/// Names of the files that are read: Karmada's (`configurableInterpreterFile` of its `thirdparty/manager.go`), and the
/// file of the scripts of this crate.
const FILES: [&str; 2] = ["customizations.yaml", "customization.yaml"];
/// Levels of folders below the one that is read. Karmada's layout has three; a link to a parent ends here.
const DEPTH_MAX: usize = 12;
/// Maximum number of entries of all folders together. A folder with more is probably not one of customizations.
const ENTRIES_MAX: usize = 100_000;
/// Maximum size of a file, in bytes. Reading a device file could never end.
const FILE_LEN_MAX: u64 = 16 << 20;

/// The files of the crate, by the folder of each.
const BUNDLED: [(&str, &str); 6] = [
    (
        "apps.kruise.io/v1alpha1/CloneSet",
        include_str!("../thirdparty/apps.kruise.io/v1alpha1/CloneSet/customization.yaml"),
    ),
    ("argoproj.io/v1alpha1/Rollout", include_str!("../thirdparty/argoproj.io/v1alpha1/Rollout/customization.yaml")),
    (
        "helm.toolkit.fluxcd.io/v2/HelmRelease",
        include_str!("../thirdparty/helm.toolkit.fluxcd.io/v2/HelmRelease/customization.yaml"),
    ),
    ("kubeflow.org/v1/PyTorchJob", include_str!("../thirdparty/kubeflow.org/v1/PyTorchJob/customization.yaml")),
    (
        "kustomize.toolkit.fluxcd.io/v1/Kustomization",
        include_str!("../thirdparty/kustomize.toolkit.fluxcd.io/v1/Kustomization/customization.yaml"),
    ),
    ("ray.io/v1/RayCluster", include_str!("../thirdparty/ray.io/v1/RayCluster/customization.yaml")),
];

/// A folder of customizations can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A file or folder can't be read.
    #[error("{}: can't be read: give the folder that holds <group>/<version>/<Kind>/customizations.yaml", path.display())]
    #[non_exhaustive]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file is not YAML.
    #[error("{}: not YAML: {problem}", path.display())]
    #[non_exhaustive]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        problem: String,
    },
    /// The folder has more entries than a folder of customizations, or links that lead back to it.
    #[error(
        "{}: more than {ENTRIES_MAX} entries: give the folder that holds <group>/<version>/<Kind>/customizations.yaml",
        path.display()
    )]
    #[non_exhaustive]
    TooMany {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has no customization with a script.
    #[error(
        "{}: no script in any customizations.yaml or customization.yaml below it: give the folder that holds \
         <group>/<version>/<Kind>/customizations.yaml",
        path.display()
    )]
    #[non_exhaustive]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// Customizations are wrong, or contradict one another.
    #[error("{}: {}", path.display(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    #[non_exhaustive]
    Invalid {
        /// The folder.
        path: PathBuf,
        /// All errors of the folder.
        errors: Vec<CustomizationError>,
    },
}

/// Returns the layer of the customizations that come with the crate.
pub fn bundled_customizations(pool: Pool) -> Configurable {
    // A test parses each document, so none is dropped here.
    let documents = BUNDLED.iter().filter_map(|(_folder, yaml)| serde_saphyr::from_str::<Value>(yaml).ok());
    Configurable::from_customizations(&documents.collect::<Vec<_>>(), pool)
}

/// Reads every `customizations.yaml` and `customization.yaml` below a folder, with all YAML documents of each.
///
/// The kinds come from `spec.target` of the documents, as in Karmada; names of folders don't matter. Other files, such as
/// Karmada's `testdata`, and entries whose names start with a dot are skipped. At most 12 levels of folders are read.
///
/// # Errors
/// - [`FolderError::Empty`]: no file has a script, so the folder is probably not the one that was meant.
/// - [`FolderError::Unreadable`] and [`FolderError::Malformed`]: a file or folder can't be read; the error names it.
/// - [`FolderError::TooMany`]: the folder and those below it have more than 100,000 entries.
/// - [`FolderError::Invalid`]: Karmada's webhook would reject the customizations; the error names each field.
pub fn read(folder: &Path) -> Result<Scripts, FolderError> {
    let mut documents = Vec::new();
    for path in files(folder)? {
        let text = read_limited(&path).map_err(|source| FolderError::Unreadable { path: path.clone(), source })?;
        let parsed = serde_saphyr::from_multiple::<Value>(&text);
        documents.extend(parsed.map_err(|error| FolderError::Malformed { path, problem: error.to_string() })?);
    }
    let scripts = Scripts::parse(documents.iter().filter(|document| !document.is_null()))
        .map_err(|errors| FolderError::Invalid { path: folder.to_owned(), errors })?;
    if scripts.is_empty() {
        return Err(FolderError::Empty { path: folder.to_owned() });
    }
    Ok(scripts)
}

/// Returns the text of a file of at most [`FILE_LEN_MAX`] bytes.
fn read_limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let len = fs::File::open(path)?.take(FILE_LEN_MAX + 1).read_to_string(&mut text)?;
    if len as u64 > FILE_LEN_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {FILE_LEN_MAX} bytes")));
    }
    Ok(text)
}

/// Returns the paths of the customizations below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let (mut level, mut files, mut n_entries) = (vec![folder.to_owned()], Vec::new(), 0_usize);
    for _ in 0..=DEPTH_MAX {
        let mut next = Vec::new();
        for path in level {
            let unreadable = |source| FolderError::Unreadable { path: path.clone(), source };
            for entry in fs::read_dir(&path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                n_entries += 1;
                if n_entries > ENTRIES_MAX {
                    return Err(FolderError::TooMany { path: folder.to_owned() });
                }
                // A mounted ConfigMap has each file twice: behind a link, and in a folder whose name starts with a dot.
                let name = entry.file_name();
                if name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let path = entry.path();
                if path.is_dir() {
                    next.push(path);
                } else if FILES.iter().any(|file| name == *file) {
                    files.push(path);
                }
            }
        }
        level = next;
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn file_without_end_is_rejected() {
        let folder = std::env::temp_dir().join(format!("kctl-thirdparty-endless-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("customizations.yaml");
        fs::File::create(&file).unwrap().set_len(FILE_LEN_MAX + 1).unwrap();
        let error = read(&folder).unwrap_err();
        let is_too_long = |source: &io::Error| source.to_string() == "longer than 16777216 bytes";
        assert!(matches!(&error, FolderError::Unreadable { source, .. } if is_too_long(source)), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_file_of_the_folder_is_bundled() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("thirdparty");
        let found = files(&folder).unwrap();
        let found: Vec<_> = found.iter().map(|file| file.parent().unwrap().strip_prefix(&folder).unwrap()).collect();
        assert_eq!(found, BUNDLED.map(|(path, _yaml)| Path::new(path)));
        let scripts = read(&folder).unwrap();
        for (path, yaml) in BUNDLED {
            let (api_version, kind) = path.rsplit_once('/').unwrap();
            assert!(scripts.has(api_version, kind, "InterpretHealth"), "{path}");
            assert!(serde_saphyr::from_str::<Value>(yaml).is_ok(), "{path}");
        }
    }

    #[test]
    fn unusable_folder_is_named_with_its_file() {
        let folder = std::env::temp_dir().join(format!("kctl-thirdparty-{}", std::process::id()));
        let kind = folder.join("a.io/v1/A");
        fs::create_dir_all(&kind).unwrap();
        let message = read(&folder).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("{}: no script in any customizations.yaml", folder.display())),
            "{message}"
        );
        let half =
            "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n";
        let unscripted = format!("{half}spec: {{target: {{apiVersion: a.io/v1, kind: A}}, customizations: {{}}}}\n");
        for (yaml, expected) in [
            (": :", "customizations.yaml: not YAML: "),
            (half, "spec.target.apiVersion: it is missing"),
            (unscripted.as_str(), ": no script in any customizations.yaml"),
        ] {
            fs::write(kind.join(FILES[0]), yaml).unwrap();
            let error = read(&folder).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains("can't be read: give the folder"));
    }
}
