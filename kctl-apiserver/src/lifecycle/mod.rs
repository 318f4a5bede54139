//! Writes objects to the store as the API server does for verbs and controllers: updates, deletes and field managers.

mod companion;
mod delete;
mod update;
mod writer;

pub(crate) use self::{
    delete::{Deleted, Deletion, delete, seconds_of_pod},
    update::{update, update_with_unread_fields},
    writer::Writer,
};
