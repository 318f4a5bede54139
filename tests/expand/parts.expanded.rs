//! What `parts.rs` expands to.
#[allow(
    clippy::unused_async,
    reason = "a reconcile function is async, whether it waits or not"
)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
#[allow(non_camel_case_types, reason = "it has the name of its function")]
struct configs {}
const _: () = {
    use ::kctl::__private as __p;
    type __Primary = ConfigMap;
    type __K0 = Pod;
    type __K1 = Node;
    type __V0 = __p::PartialObjectMeta<__K0>;
    type __V1 = Zone;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Grant = __Grant;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs")
                .relation(
                    __p::Relation::<Self, __V0>::owns("owns = Pod(metadata)").metadata(),
                )
                .relation(
                    __p::Relation::<
                        Self,
                        __K1,
                    >::watches("watches = Node(as = Zone, patch)")
                        .view::<__V1>()
                        .verbs(&["patch"])
                        .map(of_zone),
                )
                .build()
        }
    }
    impl __p::Reconcile for configs {
        async fn reconcile(
            &self,
            object: __p::Arc<__Primary>,
            cx: __p::Context<Self>,
        ) -> __p::Result<__p::Action> {
            __p::outcome(configs(object, cx).await)
        }
    }
    impl __p::FunctionController for configs {
        fn instance() -> Self {
            Self {}
        }
    }
    impl __p::Whole for configs {}
    pub struct __Grant;
    impl __p::WritesStatus for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Caches<__Primary> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__Grant, configs, __Primary :);
    pub struct __G0;
    impl __p::Caches<__V0> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Declares<__V0> for configs {
        type Grant = __G0;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G0, configs, __V0 : patch apply delete);
    __p::reads_metadata!(configs, __K0, __V0);
    pub struct __G1;
    impl __p::Caches<__V1> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Writes<__K1> for configs {
        type Grant = __G1;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G1, configs, __K1 : patch);
    type __W1 = __p::PartialObjectMeta<__K1>;
    impl __p::Writes<__W1> for configs {
        type Grant = __G1;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G1, configs, __W1 : patch);
    __p::reads_a_view!(configs, __K1, __V1);
};
