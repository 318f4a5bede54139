//! Admission functions and conversions of every form: plain or `Result`, waiting or not, with and without the request.
use kctl::prelude::*;

pub(crate) mod v1alpha1 {
    use kctl::prelude::*;

    #[resource(group = "example.com", version = "v1alpha1", kind = "Ship", namespaced, storage = false)]
    pub(crate) struct ShipSpec {
        pub size: i32,
    }
}

#[resource(group = "example.com", version = "v1", kind = "Ship", namespaced, status = "ShipStatus")]
pub(crate) struct ShipSpec {
    pub length: i32,
}

#[schema]
#[derive(Default)]
pub(crate) struct ShipStatus {
    pub afloat: bool,
}

/// Plain.
#[admission(mutate, reinvocation = IfNeeded, match_policy = Exact)]
fn longer(ship: &mut Ship) {
    ship.spec.length = ship.spec.length.max(1);
}

#[admission(
    validate,
    operations(create, update, delete),
    failure_policy = Ignore,
    side_effects = NoneOnDryRun,
    timeout = 5,
    namespace_selector = "fleet in (north, south)",
    object_selector = "!unchecked",
    match_conditions("not-system" = "!request.userInfo.username.startsWith('system:')"),
)]
async fn seaworthy(ship: &Ship, request: &Admission<Ship>) -> Result<()> {
    let mut invalid = Invalid::default();
    if ship.spec.length < 3 {
        invalid.field("spec.length", ship.spec.length, "too short");
    }
    request.audit("length", ship.spec.length.to_string());
    Ok(invalid.finish()?)
}

/// An error of any kind rejects.
#[admission(validate, subresources(status))]
fn afloat(ship: &Ship) -> Result<(), std::num::ParseIntError> {
    ship.metadata.name.as_deref().unwrap_or("0").parse::<i32>().map(drop)
}

#[admission(validate, operations(connect), subresources(exec, attach))]
fn no_shell(request: &Admission<Pod>) -> Result<()> {
    request.warn("no user should need a shell");
    Err(Denial::because("not here").into())
}

type Vessel = Ship;

/// One kind under two names, and a lifetime.
#[admission(mutate, subresources(status))]
fn sunk<'a>(ship: &'a mut Vessel, request: &'a Admission<self::Ship>) {
    ship.status = request.old.as_ref().and_then(|old| old.status.clone());
}

#[conversion]
fn up(old: v1alpha1::Ship) -> Result<Ship> {
    let (metadata, length) = (old.metadata, old.spec.size);
    Ok(Ship { metadata, spec: ShipSpec { length }, status: None })
}

/// A conversion whose versions are arguments of a macro.
macro_rules! conversion_to {
    ($to:ty: $name:ident, |$from:ident: $of:ty| $converted:expr) => {
        #[conversion]
        async fn $name($from: $of) -> $to {
            $converted
        }
    };
}

conversion_to!(v1alpha1::Ship: down, |new: Ship| v1alpha1::Ship {
    metadata: new.metadata,
    spec: v1alpha1::ShipSpec { size: new.spec.length },
});

pub(crate) fn app() -> App {
    App::new("fleet").admission::<(longer, seaworthy, (afloat, no_shell, sunk))>().conversion::<(up, down)>()
}
