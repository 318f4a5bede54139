//! Expansion of `parts.rs`.
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
    type __K0 = Pod;
    type __K1 = Node;
    type __V0 = __p::PartialObjectMeta<__K0>;
    type __V1 = Zone;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs"; __K0 __K1)
                .owns::<__V0>("owns = Pod(metadata)")
                .metadata()
                .verbs(&["patch", "apply", "delete"])
                .watches::<__K1>("watches = Node(as = Zone, patch)")
                .view::<__V1>()
                .verbs(&["patch"])
                .map(of_zone)
                .build()
        }
    }
    __p::function!(
        configs, __Primary : | object, cx | __p::outcome(configs(object, cx). await)
    );
    __p::primary!(pub struct __Verbs; configs, __Primary :);
    __p::has!(configs : WritesStatus);
    __p::permission!(
        pub struct __Verbs0; configs : Caches < __V0 >, Declares < __V0 > : patch apply
        delete
    );
    __p::reads_metadata!(configs, __K0, __V0);
    __p::permission!(
        pub struct __Verbs1; configs : Caches < __V1 >, Writes < __K1 > : patch
    );
    type __W1 = __p::PartialObjectMeta<__K1>;
    __p::permission!(__Verbs1, configs; Writes < __W1 > : patch);
    __p::reads_a_view!(configs, __K1, __V1);
};
