//! Updates and deletes of stored objects, the same for verbs and for controllers: no-op writes, finalizers, grace
//! periods, and the field managers of the server itself.

mod companion;
mod delete;
mod update;
mod writer;

pub(crate) use self::{
    delete::{Deleted, Deletion, delete, seconds_of_pod},
    update::{update, update_with_unread_fields},
    writer::Writer,
};
