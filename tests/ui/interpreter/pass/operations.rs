//! Interpreters of every operation: plain or `Result`, waiting or not, on custom and built-in kinds.
use kctl::{
    karmada::{function::Functions, prelude::*},
    prelude::*,
};

#[resource(group = "example.com", version = "v1", kind = "Fleet", namespaced, status = "FleetStatus")]
pub(crate) struct FleetSpec {
    pub ships: i32,
}

#[schema]
#[derive(Default)]
pub(crate) struct FleetStatus {
    pub ready: i32,
}

/// Counts ships.
#[interpreter(op = InterpretReplica)]
fn replicas(fleet: &Fleet) -> Result<Replicas> {
    Ok(Replicas { replicas: fleet.spec.ships, requirements: None })
}

#[interpreter(op = InterpretComponent)]
async fn components(_fleet: &Fleet) -> Vec<Component> {
    Vec::new()
}

#[interpreter(op = ReviseReplica)]
pub(crate) fn revise(fleet: &mut Fleet, replicas: core::primitive::i32) {
    fleet.spec.ships = replicas;
}

#[interpreter(op = Retain)]
async fn retain(desired: &mut Fleet, observed: &self::Fleet) -> Result<(), std::fmt::Error> {
    desired.spec.ships = observed.spec.ships;
    Ok(())
}

#[interpreter(op = InterpretStatus)]
fn status(fleet: &Fleet) -> Option<FleetStatus> {
    fleet.status.clone()
}

#[interpreter(op = AggregateStatus)]
fn aggregate(fleet: &mut Fleet, items: &[ClusterStatus<FleetStatus>]) -> Result<()> {
    let ready = items.iter().filter_map(|item| item.status.as_ref()).map(|status| status.ready).sum();
    fleet.status = Some(FleetStatus { ready });
    Ok(())
}

#[interpreter(op = InterpretDependency)]
fn dependencies(_fleet: &Fleet) -> std::result::Result<Vec<DependentReference>, String> {
    Err("no port is known".into())
}

#[interpreter(op = InterpretHealth, crate = kctl)]
fn health(fleet: &Fleet) -> bool {
    fleet.status.as_ref().is_some_and(|status| status.ready == fleet.spec.ships)
}

#[interpreter(op = Prune)]
fn prune(fleet: &mut Fleet) {
    fleet.status = None;
}

/// The same operation on a second kind.
#[interpreter(op = InterpretReplica)]
fn jobs(_job: &Job) -> i32 {
    1
}

#[interpreter(op = AggregateStatus)]
fn raw(_deployment: &mut Deployment, _items: &[AggregatedStatusItem]) {}

pub(crate) fn app() -> App {
    App::new("fleet").interpreter::<(replicas, components, revise, retain, (status, aggregate, dependencies, health))>()
}

pub(crate) fn in_process() -> Functions {
    fn inside() -> Functions {
        #[interpreter(op = InterpretHealth)]
        fn well(_job: &Job) -> bool {
            true
        }
        Functions::of::<well>().unwrap()
    }
    let (all, inside) = (Functions::of::<(replicas, prune, jobs, raw)>().unwrap(), inside());
    let rules = all.rules().iter().chain(inside.rules()).cloned();
    Functions::new(rules.collect()).unwrap()
}
