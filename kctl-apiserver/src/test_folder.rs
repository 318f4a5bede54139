//! Temporary folders of unit tests, removed at their end.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
};

/// An empty folder that is removed when it is dropped.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    /// Creates a folder. Tests of one process need different names.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kctl-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Deref for TestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _absent = fs::remove_dir_all(&self.0);
    }
}
