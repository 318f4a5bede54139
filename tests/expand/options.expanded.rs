//! Expansion of `options.rs`.
#[allow(clippy::unused_async, reason = "a reconcile function is async")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
struct configs {}
const _: () = {
    use ::kctl::__private_0_1 as __p;
    type __Primary = ConfigMap;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs")
                .primary_when(is_changed)
                .primary(&["patch", "status"])
                .named("configs")
                .concurrency(4)
                .backoff(__p::millis(1000), __p::millis(90000))
                .retries(5)
                .namespaces(["default", "other"])
                .resync(__p::millis(36000000))
                .timeout(__p::millis(30000))
                .rbac("rbac(extra_rule())", extra_rule())
                .build()
        }
        __p::converged!(converged : __p::ConvergedFn < Self > = is_as_wanted);
    }
    __p::function!(
        configs, __Primary : | object, cx | __p::outcome(configs(object, cx). await)
    );
    __p::primary!(pub struct __Verbs; configs, __Primary : patch status);
    __p::has!(configs : WritesStatus, HasRules);
    __p::owns_nothing!(configs);
    __p::writes_nothing!(configs);
};
