//! Customizations for widely used kinds, which come with the crate: the folder `thirdparty`, a folder a kind.
//!
//! Each was written from the documentation of its kind. A folder of the same shape holds your own: [`read`] takes it.
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, Place}, kind::Gvk, lua::{Limits, Pool}, operation::Operation, thirdparty};
//!
//! let chain = Chain::native().with(Place::ThirdParty, thirdparty::bundled(Pool::new(Limits::default())));
//! let kind = Gvk { group: "argoproj.io".into(), version: "v1alpha1".into(), kind: "Rollout".into() };
//! assert!(chain.hook_enabled(Operation::InterpretHealth, &kind));
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::lua::{Configurable, CustomizationError, Pool, Scripts};

/// The file of a kind that holds its customization.
const FILE: &str = "customization.yaml";
/// Folders in one another below the one that is read: group, version and kind.
const DEPTH: usize = 3;
/// Kinds in one folder.
const KINDS_MAX: usize = 10_000;

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

/// Why a folder of customizations can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A file or folder can't be read.
    #[error("{}: can't be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is no YAML.
    #[error("{}: it is no YAML: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There are more kinds than anybody has.
    #[error("{}: more than {KINDS_MAX} kinds: name the folder that holds the groups", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
    },
    /// Customizations are wrong, or contradict one another.
    #[error("{}: {}", path.display(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// The folder.
        path: PathBuf,
        /// What is wrong, all of it.
        errors: Vec<CustomizationError>,
    },
}

/// Returns the layer of the customizations that come with the crate.
pub fn bundled(pool: Pool) -> Configurable {
    // A test reads each of them, so that none is left out here.
    let documents = BUNDLED.iter().filter_map(|(_folder, yaml)| serde_saphyr::from_str::<Value>(yaml).ok());
    Configurable::of_control_plane(&documents.collect::<Vec<_>>(), pool)
}

/// Reads the `customization.yaml` of every `<group>/<version>/<kind>` in a folder.
///
/// # Errors
/// A file can't be read, or Karmada's webhook would refuse the customizations; the error names the file.
pub fn read(folder: &Path) -> Result<Scripts, FolderError> {
    let mut documents = Vec::new();
    for path in files(folder)? {
        let text =
            fs::read_to_string(&path).map_err(|source| FolderError::Unreadable { path: path.clone(), source })?;
        let parsed = serde_saphyr::from_str::<Value>(&text);
        documents.push(parsed.map_err(|error| FolderError::Malformed { path, problem: error.to_string() })?);
    }
    Scripts::parse(&documents).map_err(|errors| FolderError::Refused { path: folder.to_owned(), errors })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut level = vec![folder.to_owned()];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for path in level {
            let unreadable = |source| FolderError::Unreadable { path: path.clone(), source };
            for entry in fs::read_dir(&path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?.path();
                next.extend(Some(entry).filter(|entry| entry.is_dir()));
            }
            if next.len() > KINDS_MAX {
                return Err(FolderError::TooMany { path: folder.to_owned() });
            }
        }
        level = next;
    }
    level.sort();
    let files = level.into_iter().map(|folder| folder.join(FILE));
    Ok(files.filter(|file| file.is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_customization_is_in_force_and_none_of_the_folder_is_forgotten() {
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
    fn a_folder_that_can_not_be_used_is_named_with_its_file() {
        let folder = std::env::temp_dir().join(format!("kctl-thirdparty-{}", std::process::id()));
        let kind = folder.join("a.io/v1/A");
        fs::create_dir_all(&kind).unwrap();
        assert!(!read(&folder).unwrap().has("a.io/v1", "A", "InterpretHealth"), "a folder without a file is empty");
        let half =
            "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n";
        for (yaml, expected) in
            [(": :", "customization.yaml: it is no YAML: "), (half, "spec.target.apiVersion: it is missing")]
        {
            fs::write(kind.join(FILE), yaml).unwrap();
            let error = read(&folder).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap_err().to_string().ends_with("can't be read"));
    }
}
