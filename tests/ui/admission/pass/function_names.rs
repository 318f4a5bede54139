//! Functions of all attributes with the names of variables in generated code.
use kctl::prelude::*;

pub(crate) mod controllers {
    use kctl::prelude::*;

    #[controller]
    pub(crate) async fn object(_config: Arc<ConfigMap>, _cx: Context<object>) -> Result<Action> {
        Ok(Action::await_change())
    }

    #[controller]
    pub(crate) async fn cx(_secret: Arc<Secret>, _cx: Context<cx>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

pub(crate) mod webhooks {
    use kctl::prelude::*;

    #[admission(mutate)]
    pub(crate) fn object(_config: &mut ConfigMap) {}

    #[admission(validate, timeout = 5)]
    pub(crate) fn options(_config: &ConfigMap) {}

    #[admission(mutate)]
    pub(crate) async fn definition(_secret: &mut Secret, _request: &Admission<Secret>) {}

    #[admission(validate)]
    pub(crate) fn request(_request: &Admission<Secret>) {}

    #[admission(validate)]
    pub(crate) fn probe(_service: &Service) {}
}

pub(crate) mod conversions {
    use kctl::prelude::*;

    pub(crate) mod v1 {
        use kctl::prelude::*;

        #[resource(group = "example.com", version = "v1", kind = "Raft", namespaced, storage = false)]
        pub(crate) struct RaftSpec {}
    }

    pub(crate) mod v2 {
        use kctl::prelude::*;

        #[resource(group = "example.com", version = "v2", kind = "Raft", namespaced)]
        pub(crate) struct RaftSpec {}
    }

    #[conversion]
    pub(crate) fn from(old: v1::Raft) -> v2::Raft {
        v2::Raft { metadata: old.metadata, spec: v2::RaftSpec {} }
    }

    #[conversion]
    pub(crate) fn object(new: v2::Raft) -> Result<v1::Raft> {
        Ok(v1::Raft { metadata: new.metadata, spec: v1::RaftSpec {} })
    }
}

pub(crate) mod interpreters {
    use kctl::{karmada::prelude::*, prelude::*};

    #[interpreter(op = InterpretHealth)]
    pub(crate) fn object(_job: &Job) -> bool {
        true
    }

    #[interpreter(op = Retain)]
    pub(crate) fn second(_desired: &mut Job, _observed: &Job) -> Result<()> {
        Ok(())
    }

    #[interpreter(op = InterpretReplica)]
    pub(crate) fn probe(_job: &Job) -> i32 {
        1
    }
}

pub(crate) fn app() -> App {
    use interpreters::{probe, second};
    use webhooks::{definition, options, request};

    App::new("names")
        .controller::<controllers::object>()
        .controller::<controllers::cx>()
        .admission::<(webhooks::object, options, definition, request, webhooks::probe)>()
        .conversion::<(conversions::from, conversions::object)>()
        .interpreter::<(interpreters::object, second, probe)>()
}
