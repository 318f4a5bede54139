//! Expansion of `function.rs`.
#[allow(clippy::unused_async, reason = "a reconcile function is async")]
/// Does nothing.
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
/// Does nothing.
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
struct configs {}
const _: () = {
    use ::kctl::__private_0_1 as __p;
    type __Primary = ConfigMap;
    type __K0 = Pod;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs"; __K0).owns::<__K0>("owns = Pod").build()
        }
    }
    __p::function!(
        configs, __Primary : | object, cx | __p::outcome(configs(object, cx). await)
    );
    __p::primary!(pub struct __Verbs; configs, __Primary :);
    __p::has!(configs : WritesStatus);
    __p::writes_nothing!(configs);
    __p::permission!(
        pub struct __Verbs0; configs : Caches < __K0 >, Declares < __K0 > : create update
        patch apply delete
    );
};
