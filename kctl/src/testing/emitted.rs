//! Compares the printed role with what the types of a controller grant: two products of one declaration.

use std::{collections::BTreeSet, marker::PhantomData};

use kctl_runtime::{
    manifest::{Grant, On, grants, verbs_of},
    object::{Kind, Object},
    reconcile::{Allows, Controller, Error, Result},
};

/// A test that the printed role of a controller is what its types grant. After the controller stand the kinds beside its
/// primary: `owns` or `uses` (what it watches and reads), and `live`.
///
/// ```
/// # use kctl::prelude::*;
/// #[controller(owns = Pod(create), reads = Node(patch), reads = Secret(live))]
/// async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// kctl::grants_test!(configs; owns Pod, uses Node, live Secret);
/// ```
#[macro_export]
macro_rules! grants_test {
    ($controller:ty $(; $($role:ident $kind:ty),+)?) => {
        #[test]
        fn printed_role_is_what_the_types_grant() {
            let granted = [
                $crate::grants_test!(@verbs <$controller as $crate::reconcile::Controller>::Grant,
                    $controller, <$controller as $crate::reconcile::Controller>::Primary),
                $($($crate::grants_test!(@$role $controller, $kind)),+)?
            ];
            $crate::testing::check_grants::<$controller>(&granted.concat()).unwrap();
        }
    };
    (@owns $controller:ty, $kind:ty) => {
        $crate::grants_test!(@verbs <$controller as $crate::reconcile::Declares<$kind>>::Grant, $controller, $kind)
    };
    (@uses $controller:ty, $kind:ty) => {
        $crate::grants_test!(@verbs <$controller as $crate::reconcile::Writes<$kind>>::Grant, $controller, $kind)
    };
    (@live $controller:ty, $kind:ty) => {{
        let mut granted = $crate::grants_test!(@uses $controller, $kind);
        granted.extend($crate::testing::Emitted::live::<$controller, $kind>());
        granted
    }};
    (@verbs $grant:ty, $controller:ty, $kind:ty) => {
        $crate::grants_test!(@each $grant, $controller, $kind;
            get list watch create update patch apply delete deletecollection status scale eviction binding token)
    };
    (@each $grant:ty, $controller:ty, $kind:ty; $($verb:ident)*) => {{
        #[allow(unused_imports, reason = "which one is used depends on the grants")]
        use $crate::testing::{Granted as _, Refused as _};
        let mut granted: ::std::vec::Vec<$crate::testing::Emitted> = ::std::vec::Vec::new();
        $(
            let probe = $crate::testing::Probe::<$grant, $crate::reconcile::verb::$verb, $controller, $kind>::NEW;
            granted.extend((&&probe).emitted(::core::stringify!($verb)));
        )*
        granted
    }};
}

/// A verb on a kind that the types of a controller grant.
#[derive(Debug, Clone)]
pub struct Emitted {
    kind: Kind,
    verb: &'static str,
}

impl Emitted {
    /// What `live` grants.
    pub fn live<C: kctl_runtime::reconcile::ReadsLive<K>, K: Object>() -> Option<Self> {
        Some(Self { kind: Kind::of::<K>(), verb: "get" })
    }
}

/// Finds whether a grant has a verb: method lookup on `&&Probe` tries [`Granted`], then [`Refused`].
pub struct Probe<G, V, C, K>(PhantomData<(G, V, C, K)>);

impl<G, V, C, K> Probe<G, V, C, K> {
    /// The probe.
    pub const NEW: Self = Self(PhantomData);
}

/// The grant has the verb.
pub trait Granted {
    /// What it grants.
    fn emitted(&self, verb: &'static str) -> Option<Emitted>;
}

impl<G: Allows<V, C, K>, V, C, K: Object> Granted for &Probe<G, V, C, K> {
    fn emitted(&self, verb: &'static str) -> Option<Emitted> {
        Some(Emitted { kind: Kind::of::<K>(), verb })
    }
}

/// The grant does not have the verb.
pub trait Refused {
    /// Nothing.
    fn emitted(&self, _verb: &'static str) -> Option<Emitted> {
        None
    }
}

impl<G, V, C, K> Refused for Probe<G, V, C, K> {}

/// Compares the role of a controller with what its types grant; extra rules and what kctl itself needs are left aside.
///
/// # Errors
/// When they differ: it names what is only in one of them.
pub fn check_grants<C: Controller>(granted: &[Emitted]) -> Result<()> {
    let spec = C::spec();
    let text =
        |kind: &Kind, subresource: &str, verb: &str| format!("{verb} {}{subresource}.{}", kind.plural, kind.group);
    let mut typed = BTreeSet::new();
    for Emitted { kind, verb } in granted {
        let (subresource, verbs) = verbs_of(verb);
        typed.extend(verbs.iter().map(|verb| text(kind, subresource, verb)));
    }
    let kind = &spec.primary.kind;
    typed.extend(spec.has_status.then(|| text(kind, "/status", "patch")));
    typed.extend(spec.finalizer.is_some().then(|| text(kind, "", "patch")));

    let clusters: BTreeSet<String> = spec.relations.iter().chain([&spec.primary]).map(|r| r.cluster.clone()).collect();
    let role: Vec<Grant> = clusters.iter().flat_map(|cluster| grants(std::slice::from_ref(&spec), cluster)).collect();
    let resource = |grant: &Grant| match &grant.on {
        On::Resource { group, resource, .. } => Some(format!("{} {resource}.{group}", grant.verb)),
        On::Url(_) => None,
    };
    let own: BTreeSet<String> = role.iter().filter(|grant| grant.framework).filter_map(resource).collect();
    let extra = |grant: &&Grant| grant.because.iter().all(|because| because.ends_with("rbac(…)"));
    let printed: BTreeSet<String> =
        role.iter().filter(|grant| !grant.framework && !extra(grant)).filter_map(resource).collect();
    let typed: BTreeSet<String> = typed.difference(&own).cloned().collect();
    if printed == typed {
        return Ok(());
    }
    Err(Error::from(format!(
        "the role and the types of `{}` differ: only printed {:?}, only granted {:?}",
        spec.name,
        printed.difference(&typed).collect::<Vec<_>>(),
        typed.difference(&printed).collect::<Vec<_>>(),
    )))
}
