//! Keeps the objects of a store in the folder of `--data`: loads them at the start, and writes each change to the
//! journal.
//!
//! A server with a folder starts in this order: open the folder, load its objects or write the objects of a new server,
//! then `set_folder`. From then on each change is appended before its watches see it.

use std::{io, path::Path, sync::Arc};

use super::{
    Key, Object, Store,
    journal::{Journal, JournalObjects},
    owners::Owners,
};
use crate::status::GroupResource;

/// A folder that is locked for this server, with the objects that its journal had.
pub(crate) struct Folder {
    /// The open file, which holds the lock of the folder.
    journal: Journal,
    /// The objects as they were written; `load` takes them.
    objects: JournalObjects,
    /// The revision of the last line of the journal.
    revision: u64,
}

impl Folder {
    /// Opens a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails if the folder can't be written, if its objects can't be read, or if another server uses it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let (journal, objects, revision) = Journal::open(folder)?;
        Ok(Self { journal, objects, revision })
    }

    /// Returns `true` if no server has kept objects in the folder before.
    pub(crate) fn is_new(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Store {
    /// Writes the present objects to a new folder.
    pub(crate) fn write_to(&self, folder: &mut Folder) -> io::Result<()> {
        let objects = self.tables.iter().flat_map(|(resource, table)| {
            table.objects.iter().map(move |(key, object)| (resource, key, object.written_json()))
        });
        folder.journal.replace(objects, self.revision)
    }

    /// Replaces the present objects by the objects of a folder. Their history is gone: watches from before the restart
    /// get 410. The revision continues from the folder's revision, so resource versions never repeat.
    pub(crate) fn load(&mut self, folder: &mut Folder) {
        self.tables.clear();
        self.owners = Owners::new(self.kinds);
        self.revision = folder.revision;
        self.compacted = folder.revision;
        for ((resource, key), object) in std::mem::take(&mut folder.objects) {
            self.owners.update(&self.registry, &resource, &key, None, Some(&object));
            let table = self.table(&resource);
            table.objects.insert(key, Arc::new(Object::new(&Arc::new(object))));
            table.last_change = folder.revision;
        }
        self.rebuild_registry();
    }

    /// Decodes all custom objects with the present schemas of their CRDs. Called after a load, when the CRDs are known:
    /// the journal has objects as they were written.
    pub(crate) fn redecode_all(&mut self) {
        let resources: Vec<_> = self.registry.all().cloned().collect();
        for resource in resources {
            self.redecode(&resource);
        }
    }

    /// Writes each change to a folder from now on.
    pub(crate) fn set_folder(&mut self, folder: Folder) {
        self.journal = Some(folder.journal);
    }

    /// Returns the folder in which the objects are kept.
    #[cfg(feature = "serve")]
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(Journal::folder)
    }

    /// Appends a change to the journal, and compacts the journal if most of its lines are outdated.
    pub(super) fn append_to_journal(&mut self, resource: &GroupResource, key: &Key, object: Option<&Object>) {
        let revision = self.revision;
        let Some(journal) = &mut self.journal else { return };
        journal.append(resource, key, revision, object.map(Object::text));
        journal.compact_if_needed(self.tables.values().map(|table| table.objects.len()).sum());
    }

    /// Returns the journal, so that a test can break it.
    #[cfg(test)]
    pub(super) fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().unwrap()
    }

    /// Checks that changes can be written to the journal, if there is one.
    ///
    /// # Errors
    /// Fails if the disk rejects writes, or if an earlier change could not be written.
    pub(crate) fn check_storage(&self) -> io::Result<()> {
        self.journal.as_ref().map_or(Ok(()), Journal::check)
    }

    /// Writes changes to the journal that the disk rejected earlier.
    ///
    /// # Errors
    /// Fails if the disk still rejects them: further changes would be lost when the process ends.
    pub(crate) fn write_missed(&mut self) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        while let Some((resource, key)) = journal.first_unwritten() {
            let object = self.tables.get(&resource).and_then(|table| table.objects.get(&key));
            journal.write_missed(&resource, &key, self.revision, object.map(|object| object.written_json()))?;
        }
        Ok(())
    }
}
