//! What of the state is kept in a folder.

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{DEFINITIONS, Key, Object, State, definitions, journal::Journal, owners::Owners};
use crate::{status::GroupResource, tokens::Signer};

impl State {
    /// Keeps all objects in a folder from now on; those that are in it already replace the present ones.
    pub(crate) fn keep_in(&mut self, folder: &Path) -> io::Result<()> {
        let (mut journal, kept, revision) = Journal::open(folder)?;
        self.signer = Arc::new(OnceLock::from(Signer::kept_in(folder).map_err(io::Error::other)?));
        if kept.is_empty() {
            let objects = self
                .tables
                .iter()
                .flat_map(|(of, table)| table.objects.iter().map(move |(key, object)| (of, key, object.written())));
            journal.begin(objects, self.revision)?;
        } else {
            self.tables.clear();
            self.grants.forget();
            self.owners = Owners::default();
            self.revision = revision;
            self.compacted = revision;
            for ((of, key), object) in kept {
                self.owners.changed(&self.registry, (&of, &key), None, Some(&object));
                let table = self.table(&of);
                table.objects.insert(key, Arc::new(Object::new(&Arc::new(object))));
                table.last_change = revision;
            }
            self.rebuild_registry();
            self.names_freed = definitions::groups_that_wait(self.table(&DEFINITIONS));
            crate::bootstrap::objects(self);
            let resources: Vec<_> = self.registry.all().cloned().collect();
            for resource in resources {
                self.read_anew(&resource);
            }
        }
        self.journal = Some(journal);
        Ok(())
    }

    /// The folder that objects are kept in.
    #[cfg(feature = "serve")]
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(Journal::folder)
    }

    /// Writes to the journal.
    pub(super) fn keep(&mut self, of: &GroupResource, key: &Key, object: Option<&Object>) {
        let revision = self.revision;
        let Some(journal) = &mut self.journal else { return };
        journal.append(of, key, revision, object.map(Object::text));
        journal.tidy(self.tables.values().map(|table| table.objects.len()).sum());
    }

    /// The file of all changes, to break it.
    #[cfg(test)]
    pub(super) fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().unwrap()
    }

    /// Checks that changes can be kept; without a folder they need not be.
    ///
    /// # Errors
    /// The disk takes nothing, or has not taken what was changed before.
    pub(crate) fn check_storage(&self) -> io::Result<()> {
        self.journal.as_ref().map_or(Ok(()), Journal::check)
    }

    /// Writes to the journal what a disk that failed has not taken.
    ///
    /// # Errors
    /// It still fails: what is changed now would be lost with this process.
    pub(crate) fn make_up(&mut self) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        while let Some(missed) = journal.missed() {
            let (of, key) = &missed;
            let object = self.tables.get(of).and_then(|table| table.objects.get(key));
            journal.make_up(&missed, self.revision, object.map(|object| object.written()))?;
        }
        Ok(())
    }
}
