//! Writes the new files, and inserts lines into the user's files.

use std::path::{Path, PathBuf};

use super::{
    Added,
    error::AddFailure,
    files::{read, replace, without_start, write_new},
    project::Project,
    source::{self, Insertion},
};
use crate::new::{format_file, format_source, remove_empty};

/// A file of the user that gets another text.
struct Change {
    path: PathBuf,
    old: String,
    new: String,
}

impl Change {
    /// Writes the old text again if the file has the new one.
    fn undo(&self) {
        if read(&self.path).is_ok_and(|text| text == self.new) {
            let _unchanged = replace(&self.path, &self.old);
        }
    }
}

impl Project {
    /// Writes the new files, and inserts the lines into the user's files.
    ///
    /// Nothing is written if one of the new files exists. If a write fails, the new files and their new folders are removed,
    /// because a second run would reject the files, and changed files get their old text. The changed source must parse, else
    /// its lines are left to the user. A wrong guess in someone's file costs more than two lines to copy.
    pub(super) fn apply(&self, added: &Added) -> Result<(), AddFailure> {
        let mut by_hand = Vec::new();
        let whole = read(&self.root)?;
        let root = without_start(&whole);
        let start = &whole[..whole.len() - root.len()];
        self.check_names(added, root)?;
        let changed_root = self.changed_root(root, added).map(|text| Change {
            path: self.root.clone(),
            old: whole.clone(),
            new: format!("{start}{text}"),
        });
        let changed_manifest = self.changed_manifest(added, &mut by_hand)?;
        let changed: Vec<Change> = [changed_manifest, changed_root].into_iter().flatten().collect();
        let (absent, mut created) = (self.absent_folders(added), Vec::new());
        self.write_all(added, &changed, &mut created).inspect_err(|_error| {
            for path in &created {
                let _absent = std::fs::remove_file(path);
            }
            changed.iter().for_each(Change::undo);
            remove_empty(absent.iter().map(PathBuf::as_path));
        })?;
        for path in &created {
            say!("created {}", path.display());
        }
        for change in &changed {
            say!("changed {}", change.path.display());
        }
        if !changed.iter().any(|change| change.path == self.root) {
            by_hand.insert(0, {
                let Added { module, call, .. } = added;
                format!("{}:\nmod {module};  // next to `App::new(…)`\n{call}  // on the app", self.root.display())
            });
        }
        if let Some(command) = self.generate_command() {
            say!("deploy/ does not have the addition yet. Generate it again: {command}");
        }
        if !by_hand.is_empty() {
            return Err(AddFailure::ByHand(by_hand.join("\n")));
        }
        say!("Try it: {}", added.next);
        Ok(())
    }

    /// Returns the folders that the new files need and that do not exist, the inner ones first.
    fn absent_folders(&self, added: &Added) -> Vec<PathBuf> {
        let absent_of = |(file, _text): &(PathBuf, String)| -> Vec<PathBuf> {
            let path = self.folder.join(file);
            path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_path_buf).collect()
        };
        added.files.iter().flat_map(absent_of).collect()
    }

    /// Writes the new files, whose paths are added to `created`, and then the changed ones.
    ///
    /// New files come first, because a declaration of a missing module breaks the project, and a file that nothing declares
    /// does not. The file with that declaration is the last one.
    fn write_all(&self, added: &Added, changed: &[Change], created: &mut Vec<PathBuf>) -> Result<(), AddFailure> {
        for (file, text) in &added.files {
            let path = self.folder.join(file);
            write_new(&path, text)?;
            if path.extension().is_some_and(|extension| extension == "rs") {
                format_file(&path);
            }
            created.push(path);
        }
        changed.iter().try_for_each(|change| replace(&change.path, &change.new))
    }

    /// Returns the command that generates `deploy/` again, as the README of the project has it; `None` without the folder.
    ///
    /// A README without the command gives one without options, since only the user knows them.
    fn generate_command(&self) -> Option<String> {
        if !self.folder.join("deploy/kustomization.yaml").is_file() {
            return None;
        }
        let readme = read(&self.folder.join("README.md")).unwrap_or_default();
        let mut lines = readme.lines().map(str::trim);
        let documented = lines.find(|line| line.starts_with("cargo run") && line.contains(" generate-manifests "));
        Some(documented.map_or_else(|| "cargo run -- generate-manifests … --out deploy".to_owned(), str::to_owned))
    }

    /// Returns the source of the app with the module and the call, or `None` without a place for them.
    fn changed_root(&self, root: &str, added: &Added) -> Option<String> {
        let module = |text: &str| source::module(text, &added.module);
        let call = |text: &str| source::find_call_site(text, &added.call);
        let text = insert(root, module).and_then(|text| insert(&text, call)).filter(|text| source::parses(text))?;
        // A formatted file is formatted again; the layout of any other file is the user's.
        let format = |text: &str| format_source(text, &self.root);
        let is_formatted = format(root).is_some_and(|formatted| formatted == root);
        Some(is_formatted.then(|| format(&text)).flatten().unwrap_or(text))
    }

    /// Returns the change of `Cargo.toml` that adds the features of the new code, `None` if it has them. Lines without a place
    /// are added to `by_hand`.
    fn changed_manifest(&self, added: &Added, by_hand: &mut Vec<String>) -> Result<Option<Change>, AddFailure> {
        let path = self.folder.join("Cargo.toml");
        let old = read(&path)?;
        let mut text = old.clone();
        for feature in added.features {
            match source::feature(&text, feature) {
                source::Feature::Present => {}
                source::Feature::Missing(insertion) => text = insertion.apply(&text),
                source::Feature::Tabled(manifest) => text = manifest,
                source::Feature::Unknown => {
                    by_hand.push(format!("{}:\nkctl = {{ …, features = [\"{feature}\"] }}", path.display()));
                }
            }
        }
        Ok((text != old).then_some(Change { path, old, new: text }))
    }
}

/// Returns the source with an insertion, or `None` without a place for it.
fn insert(text: &str, find: impl Fn(&str) -> Option<Insertion>) -> Option<String> {
    Some(find(text)?.apply(text))
}
