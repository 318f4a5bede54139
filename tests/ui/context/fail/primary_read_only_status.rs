//! `primary(read_only)` does not allow `patch_status`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Note", namespaced, status = "NoteStatus")]
pub struct NoteSpec {
    pub text: String,
}

#[schema]
pub struct NoteStatus {
    pub length: usize,
}

#[controller(primary(read_only))]
async fn notes(note: Arc<Note>, cx: Context<notes>) -> Result<Action> {
    cx.patch_status(NoteStatus { length: note.spec.text.len() }).await?;
    Ok(Action::await_change())
}

fn main() {}
