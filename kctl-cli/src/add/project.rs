//! The project that is changed: the file with its app, and the kinds that it declares.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    Added,
    error::AddFailure,
    files::{read, rust_files, without_start},
    source::{self, Kind},
};

/// The project that is changed.
pub(super) struct Project {
    /// The folder with `Cargo.toml`, as the user named it.
    pub(super) folder: PathBuf,
    /// The file with `App::new(…)`, in `src` of the folder.
    pub(super) root: PathBuf,
    /// Kinds that `#[resource]` declares, in the order of files.
    pub(super) kinds: Vec<Kind>,
    /// The package's library, unless the app is in it.
    library: Option<Library>,
}

/// The library of a package whose app is in `main.rs`: another crate than the app's.
struct Library {
    /// The name of the crate.
    name: String,
    /// Modules that `lib.rs` declares and `main.rs` does not.
    modules: Vec<String>,
    /// The private ones among them, which other crates can't name.
    private_modules: Vec<String>,
}

impl Library {
    /// Finds the library of a package. Returns `None` if the package has only a program, or if the app is in the library.
    fn open(folder: &Path, root: &Path) -> Result<Option<Self>, AddFailure> {
        let file = folder.join("src/lib.rs");
        if file == root || !file.is_file() {
            return Ok(None);
        }
        let Some(name) = source::library_name(&read(&folder.join("Cargo.toml"))?) else { return Ok(None) };
        let (text, of_root) = (read(&file)?, source::modules(&read(root)?));
        let (mut modules, mut private_modules) = (source::modules(&text), source::private_modules(&text));
        modules.retain(|module| !of_root.contains(module));
        private_modules.retain(|module| !of_root.contains(module));
        Ok(Some(Self { name, modules, private_modules }))
    }

    /// Returns the path of the module in a file of `src`, `None` for a module of the app's crate.
    fn path(&self, stem: &str) -> Option<String> {
        if stem == "lib" {
            return Some(self.name.clone());
        }
        self.modules.iter().any(|module| module == stem).then(|| format!("{}::{stem}", self.name))
    }
}

impl Project {
    /// Finds the file with the app (`main.rs` before `lib.rs`) and the kinds that the files in `src/` declare.
    ///
    /// Kinds in the file with the app have the path `crate`, kinds of another file have `crate::` and its name. With the app in
    /// `main.rs`, kinds of the package's library have the name of that crate instead.
    pub(super) fn open(folder: &Path) -> Result<Self, AddFailure> {
        let source = folder.join("src");
        let mut root = None;
        for file in ["main.rs", "lib.rs"].map(|file| source.join(file)) {
            if root.is_none() && file.is_file() {
                let has_app = source::has_app(&read(&file)?);
                let has_app = has_app.map_err(|message| AddFailure::Syntax { path: file.clone(), message })?;
                root = has_app.then_some(file);
            }
        }
        let root = root.ok_or_else(|| AddFailure::NoApp(folder.into()))?;
        let library = Library::open(folder, &root)?;
        let mut kinds = Vec::new();
        for file in rust_files(&source)? {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let of_library = library.as_ref().and_then(|library| library.path(stem));
            let path =
                if file == root { "crate".to_owned() } else { of_library.unwrap_or_else(|| format!("crate::{stem}")) };
            let syntax = |message| AddFailure::Syntax { path: file.clone(), message };
            kinds.extend(source::kinds(without_start(&read(&file)?), &path).map_err(syntax)?);
        }
        Ok(Self { folder: folder.into(), root, kinds, library })
    }

    /// Returns the version of a kind that is stored, because a kind alone without it can't be served.
    ///
    /// If every version has `storage = false`, returns the first one.
    ///
    /// # Errors
    /// The kind is unknown or belongs to two groups, or the app's modules can't name its module.
    pub(super) fn kind(&self, kind: &str) -> Result<&Kind, AddFailure> {
        let mut versions = self.kinds.iter().filter(|known| known.name == kind);
        let stored = versions.clone().find(|version| version.is_stored);
        let unknown = || AddFailure::NoKind { kind: kind.into(), known: self.names() };
        let found = stored.or_else(|| versions.next()).ok_or_else(unknown)?;
        self.check_group(found)?;
        self.check_module(found)?;
        Ok(found)
    }

    /// Returns the kinds for an error message, sorted and without repeating one that has several versions.
    pub(super) fn names(&self) -> String {
        let mut names: Vec<_> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }

    /// Checks that no other group has a kind of this name.
    ///
    /// Arguments and generated modules name a kind without its group.
    ///
    /// # Errors
    /// Another group has one.
    fn check_group(&self, kind: &Kind) -> Result<(), AddFailure> {
        let place = |kind: &Kind| format!("`{}` in {}", kind.group, self.file_of(kind));
        match self.kinds.iter().find(|other| other.name == kind.name && other.group != kind.group) {
            Some(other) => {
                Err(AddFailure::TwoGroups { kind: kind.name.clone(), first: place(kind), second: place(other) })
            }
            None => Ok(()),
        }
    }

    /// Checks that the app's modules can name the module of a kind.
    ///
    /// # Errors
    /// The package's library keeps it private.
    fn check_module(&self, kind: &Kind) -> Result<(), AddFailure> {
        let module = kind.path.split_once("::").map(|(_crate, module)| module);
        let mut private = self.library.iter().flat_map(|library| &library.private_modules);
        match private.find(|name| module == Some(name.as_str())) {
            Some(name) => Err(AddFailure::Private { names: name.clone(), file: "src/lib.rs".into() }),
            None => Ok(()),
        }
    }

    /// Returns the file that declares a kind, relative to the project.
    pub(super) fn file_of(&self, kind: &Kind) -> String {
        match kind.path.split_once("::") {
            Some((_crate, module)) => format!("src/{module}.rs"),
            None if kind.path == "crate" => self.root_file(),
            None => "src/lib.rs".to_owned(),
        }
    }

    /// Returns the file with the app, relative to the project.
    pub(super) fn root_file(&self) -> String {
        self.root.strip_prefix(&self.folder).unwrap_or(&self.root).display().to_string()
    }

    /// Returns `true` if a path of the project exists. A symbolic link whose target is missing exists too,
    /// because a write would follow it.
    ///
    /// # Errors
    /// The path cannot be read, for example because a folder of it is a file.
    pub(super) fn exists(&self, path: &Path) -> Result<bool, AddFailure> {
        let path = self.folder.join(path);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(AddFailure::File { path, source }),
        }
    }

    /// Checks that no file and no module has the names of the new ones.
    ///
    /// # Errors
    /// A new file exists, the app's file declares a module with the name, or a folder in `src` has it.
    pub(super) fn check_names(&self, added: &Added, root: &str) -> Result<(), AddFailure> {
        for (file, _) in &added.files {
            if self.exists(file)? {
                return Err(AddFailure::Exists(file.clone()));
            }
        }
        let folder = format!("src/{}", added.module);
        let file = if self.exists(Path::new(&folder))? { folder } else { self.root_file() };
        if file == self.root_file() && !source::has_module(root, &added.module) {
            return Ok(());
        }
        Err(AddFailure::HasModule { module: added.module.clone(), file })
    }
}
