//! Everything inside a function body, as in documentation tests.
use kctl::prelude::App;

pub(crate) fn app() -> App {
    use kctl::prelude::*;

    #[resource(group = "example.com", version = "v1", kind = "Note", status = "NoteStatus")]
    pub(crate) struct NoteSpec {
        pub text: String,
    }

    #[schema]
    pub(crate) struct NoteStatus {
        pub length: usize,
    }

    #[controller(owns = ConfigMap)]
    async fn notes(note: Arc<Note>, cx: Context<notes>) -> Result<Action> {
        let _configs = cx.owned::<ConfigMap>();
        cx.patch_status(NoteStatus { length: note.spec.text.len() }).await?;
        Ok(Action::await_change())
    }

    #[controller(of = Node, name = "cluster-scoped", owns = Namespace)]
    struct Nodes;

    impl Reconcile for Nodes {
        async fn reconcile(&self, _node: Arc<Node>, _cx: Context<Self>) -> Result<Action> {
            Ok(Action::await_change())
        }
    }

    App::new("inside").controller::<notes>().controller_with(|_env| async { Ok(Nodes) })
}
