//! Expansion of `relations.rs`.
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
    type __K1 = Secret;
    type __K2 = Node;
    type __K3 = Service;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs"; __K0 __K1 __K2 __K3)
                .owns::<__K0>("owns = Pod(block_owner_deletion)")
                .map(users_of)
                .when(is_labelled)
                .index(by_node)
                .selector("app")
                .block_owner_deletion()
                .watches::<__K1>("watches = Secret(patch)")
                .verbs(&["patch"])
                .map(secrets_of)
                .reads::<__K2>("reads = Node(optional, fields = \"metadata.name=a\")")
                .fields("metadata.name=a")
                .optional()
                .live_cluster::<__K3>("reads = Service(live(cluster))")
                .build()
        }
    }
    __p::function!(
        configs, __Primary : | object, cx | __p::outcome(configs(object, cx). await)
    );
    __p::primary!(pub struct __Verbs; configs, __Primary :);
    __p::has!(configs : WritesStatus);
    __p::permission!(
        pub struct __Verbs0; configs : Caches < __K0 >, Declares < __K0 > : create update
        patch apply delete
    );
    __p::permission!(
        pub struct __Verbs1; configs : Caches < __K1 >, Writes < __K1 > : patch
    );
    __p::permission!(pub struct __Verbs2; configs : Caches < __K2 >, Writes < __K2 > :);
    __p::has!(configs : ReadsLive < __K3 >);
};
