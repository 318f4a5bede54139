//! A temporary folder that is removed at the end of the test.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use kctl::Json;

/// A new temporary folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static N_FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kctl-deploy-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the objects of a YAML stream.
pub(crate) fn objects(yaml: &str) -> Vec<Json> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// Returns the objects that a kustomization lists, in its order.
pub(crate) fn kustomized(folder: &Path) -> Vec<Json> {
    let read = |file: &str| objects(&std::fs::read_to_string(folder.join(file)).unwrap());
    let files = read("kustomization.yaml").remove(0)["resources"].take();
    files.as_array().unwrap().iter().flat_map(|file| read(file.as_str().unwrap())).collect()
}
