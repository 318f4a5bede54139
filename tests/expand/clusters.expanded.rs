//! What `clusters.rs` expands to.
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
    type __K0 = Secret;
    type __K1 = Pod;
    type __K2 = Secret;
    type __K3 = Node;
    type __M1 = Edge;
    type __M2 = regions::North;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Grant = __Grant;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs")
                .primary(&[])
                .primary_on(<Edge as __p::Cluster>::NAME)
                .relation(__p::Relation::<Self, __K0>::owns("owns = Secret(on = Edge)"))
                .relation(
                    __p::Relation::<
                        Self,
                        __K1,
                    >::watches("watches = Pod(patch, on = Edge)")
                        .verbs(&["patch"])
                        .map(configs_of)
                        .on_cluster::<__M1>(),
                )
                .relation(
                    __p::Relation::<
                        Self,
                        __K2,
                    >::live("reads = Secret(live, on = regions::North)")
                        .on_cluster::<__M2>(),
                )
                .relation(
                    __p::Relation::<Self, __K3>::reads("reads = Node(on = \"far\")")
                        .on("far"),
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
    impl __p::Caches<__K0> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Declares<__K0> for configs {
        type Grant = __G0;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G0, configs, __K0 : create update patch apply delete);
    pub struct __G1;
    impl __p::CachesOn<__M1, __K1> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::WritesOn<__M1, __K1> for configs {
        type Grant = __G1;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G1, configs, __K1 : patch);
    pub struct __G2;
    impl __p::ReadsLiveOn<__M2, __K2> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::WritesOn<__M2, __K2> for configs {
        type Grant = __G2;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G2, configs, __K2 :);
    pub struct __G3;
    impl __p::Caches<__K3> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Writes<__K3> for configs {
        type Grant = __G3;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G3, configs, __K3 :);
};
