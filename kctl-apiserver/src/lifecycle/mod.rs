//! Updates and deletes of stored objects, the same for verbs and for controllers: no-op writes, finalizers, grace
//! periods, and the field managers of the server itself.
//!
//! Admission, validation and authorization are not here: verbs perform them before they call this module, and
//! controllers are trusted to write valid objects. All of it runs under the lock of the store, so the state cannot
//! change between a read and a write.

mod delete;
mod update;
mod writer;

pub(crate) use self::{
    delete::{DeleteOutcome, Deletion, delete},
    update::update,
    writer::Writer,
};
