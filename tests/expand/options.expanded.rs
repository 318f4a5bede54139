//! What `options.rs` expands to.
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
    type __K1 = Secret;
    type __K2 = Node;
    type __K3 = Service;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Grant = __Grant;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs")
                .primary_when(is_changed)
                .primary(&["patch", "status"])
                .named("configs")
                .concurrency(4)
                .backoff(
                    __p::Duration::from_millis(1000u64),
                    __p::Duration::from_millis(90000u64),
                )
                .retries(5)
                .namespaces(["default", "other"])
                .resync(__p::Duration::from_millis(36000000u64))
                .timeout(__p::Duration::from_millis(30000u64))
                .rbac([("rbac(extra_rule())", extra_rule())])
                .relation(
                    __p::Relation::<
                        Self,
                        __K0,
                    >::owns("owns = Pod(fields = \"spec.nodeName=a\")")
                        .map(users_of)
                        .when(is_labelled)
                        .index(by_node, "by_node")
                        .selector("app")
                        .fields("spec.nodeName=a"),
                )
                .relation(
                    __p::Relation::<Self, __K1>::watches("watches = Secret(patch)")
                        .verbs(&["patch"])
                        .map(secrets_of),
                )
                .relation(
                    __p::Relation::<Self, __K2>::reads("reads = Node(patch)")
                        .verbs(&["patch"]),
                )
                .relation(
                    __p::Relation::<
                        Self,
                        __K3,
                    >::live_cluster("reads = Service(live(cluster))"),
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
    impl __p::HasRules for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    pub struct __Grant;
    impl __p::WritesStatus for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Caches<__Primary> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__Grant, configs, __Primary : patch status);
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
    impl __p::Caches<__K1> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Writes<__K1> for configs {
        type Grant = __G1;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G1, configs, __K1 : patch);
    pub struct __G2;
    impl __p::Caches<__K2> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Writes<__K2> for configs {
        type Grant = __G2;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G2, configs, __K2 : patch);
    pub struct __G3;
    impl __p::ReadsLive<__K3> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Writes<__K3> for configs {
        type Grant = __G3;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G3, configs, __K3 :);
};
