//! An operator that runs Jobs and Deployments, whose Pods the simulator creates.

use kctl::{
    k8s::api::{apps::v1::Deployment, batch::v1::Job},
    kube::{Api, api::PostParams},
    prelude::*,
    testing::{Scenario, Sim, Snapshot, TestServer, Trial},
};

/// A database that is filled once, and served.
#[resource(group = "sim.example.com", version = "v1", kind = "Database", namespaced, status = "DatabaseStatus")]
pub(crate) struct DatabaseSpec {
    pub replicas: i32,
}

#[schema]
#[derive(PartialEq, Eq)]
pub(crate) struct DatabaseStatus {
    pub is_filled: bool,
    pub n_serving: i32,
}

#[controller(owns = Job(create), owns = Deployment(create))]
async fn databases(database: Arc<Database>, cx: Context<databases>) -> Result<Action> {
    let (jobs, deployments) = (cx.owned::<Job>(), cx.owned::<Deployment>());
    if jobs.is_empty() {
        jobs.create(kctl::from_json::<Job>(filling(&database))?).or_get().await?;
    }
    let is_filled = jobs.iter().any(|job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1)));
    if is_filled && deployments.is_empty() {
        deployments.create(kctl::from_json::<Deployment>(serving(&database))?).or_get().await?;
    }
    let ready = deployments.iter().filter_map(|deployment| deployment.status.as_ref()?.ready_replicas);
    cx.patch_status(DatabaseStatus { is_filled, n_serving: ready.sum() }).await?;
    Ok(Action::await_change())
}

fn filling(database: &Database) -> serde_json::Value {
    kctl::json!({
        "metadata": { "name": format!("{}-fill", database.name_any()) },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "fill", "image": "example.com/fill" }],
        } } },
    })
}

fn serving(database: &Database) -> serde_json::Value {
    let labels = kctl::json!({ "database": database.name_any() });
    kctl::json!({
        "metadata": { "name": database.name_any() },
        "spec": {
            "replicas": database.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{ "name": "serve", "image": "example.com/serve" }],
                },
            },
        },
    })
}

fn app() -> App {
    App::new("databases").controller::<databases>()
}

const DATABASE: &str = "
apiVersion: sim.example.com/v1
kind: Database
metadata: { name: orders }
spec: { replicas: 2 }
";

fn scenario() -> Scenario {
    Scenario::new(app).objects(DATABASE)
}

fn serves(snapshot: &Snapshot) -> Result<(), String> {
    let status = snapshot.get::<Database>("default", "orders").and_then(|database| database.status);
    if status == Some(DatabaseStatus { is_filled: true, n_serving: 2 }) {
        return Ok(());
    }
    Err(format!("{status:?}"))
}

#[test]
fn operator_of_jobs_and_deployments_survives_simulated_faults() {
    let scenario = scenario().with_workloads().settled("the database is served", serves);
    let report = Sim::from_env(24).unwrap().run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    assert!(report.injected() > 0);
}

#[test]
fn jobs_make_no_pods_unless_requested() {
    let report = Sim::seeds(0..1).run(&scenario().settled("the database is served", serves)).unwrap();
    let failure = report.failure().expect("no controller runs the Job");
    assert_eq!((failure.checker(), failure.seed()), ("the database is served", "none"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn test_server_makes_pods_of_jobs_on_request() -> Result<()> {
    let server = TestServer::start(app()).await?;
    let databases = Api::<Database>::default_namespaced(server.client());
    databases.create(&PostParams::default(), &kctl::from_yaml(DATABASE)?).await?;
    server.idle().await?;
    let status = async || Ok::<_, kctl::Error>(databases.get("orders").await?.status.map(|status| status.n_serving));
    assert_eq!(status().await?, Some(0));
    server.simulate_workloads();
    server.idle().await?;
    assert_eq!(status().await?, Some(2));
    Ok(())
}

async fn database_is_filled_and_served(trial: &Trial) -> Result<()> {
    trial.simulate_workloads();
    let databases = Api::<Database>::default_namespaced(trial.client());
    databases.create(&PostParams::default(), &kctl::from_yaml(DATABASE)?).await?;
    trial.idle().await?;
    let status = databases.get("orders").await?.status;
    assert_eq!(status, Some(DatabaseStatus { is_filled: true, n_serving: 2 }));
    Ok(())
}

kctl::role_tests!(app, database_is_filled_and_served);

/// Runs a Job once and deletes it. `keeps_pods` orphans its Pods.
#[controller(of = Database, owns = Job(create, delete), name = "passing")]
struct Passing {
    keeps_pods: bool,
}

impl Reconcile for Passing {
    async fn reconcile(&self, database: Arc<Database>, cx: Context<Self>) -> Result<Action> {
        let jobs = cx.owned::<Job>();
        if database.status.is_none() && jobs.is_empty() {
            jobs.create(kctl::from_json::<Job>(filling(&database))?).or_get().await?;
        }
        let has_succeeded = |job: &&Arc<Job>| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
        for job in jobs.into_iter().filter(has_succeeded) {
            cx.patch_status(DatabaseStatus { is_filled: true, n_serving: 0 }).await?;
            let delete = jobs.delete(job);
            if self.keeps_pods { delete.orphan() } else { delete }.await?;
        }
        Ok(Action::await_change())
    }
}

#[test]
fn pods_outliving_the_apps_job_are_leaked() {
    for keeps_pods in [false, true] {
        let app =
            move || App::new("passing").controller_with(move |_env| std::future::ready(Ok(Passing { keeps_pods })));
        let scenario = Scenario::new(app).objects(DATABASE).with_workloads();
        let report = Sim::seeds(0..4).run(&scenario).unwrap();
        let Some(failure) = report.failure() else {
            assert!(!keeps_pods, "the pods are not found");
            continue;
        };
        assert!(keeps_pods, "{failure}");
        assert_eq!((failure.checker(), failure.seed()), ("no leaked objects", "none"), "{failure}");
        let (message, maker) = (failure.message(), " for Job orders-fill)");
        assert!(message.contains("pods default/orders-fill-") && message.contains(maker), "{message}");
        let kept = Sim::seeds(0..1).run(&scenario.clone().keeping("pods")).unwrap();
        assert!(kept.failure().is_none(), "what is kept on purpose is named: {}", kept.failure().unwrap());
    }
}
