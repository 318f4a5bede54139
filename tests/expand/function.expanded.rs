//! What `function.rs` expands to.
#[allow(
    clippy::unused_async,
    reason = "a reconcile function is async, whether it waits or not"
)]
/// Does nothing.
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
/// Does nothing.
#[allow(non_camel_case_types, reason = "it has the name of its function")]
struct configs {}
const _: () = {
    use ::kctl::__private as __p;
    type __Primary = ConfigMap;
    type __K0 = Pod;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Grant = __Grant;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs")
                .relation(__p::Relation::<Self, __K0>::owns("owns = Pod"))
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
    __p::writes_nothing!(configs);
    pub struct __G0;
    impl __p::Caches<__K0> for configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Declares<__K0> for configs {
        type Grant = __G0;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G0, configs, __K0 : create update patch apply delete);
};
