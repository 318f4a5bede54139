//! The struct form: state, a status, and a finalizer with its cleanup.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub(crate) struct GreetingSpec {
    pub name: String,
}

// As it is written for kube: what is derived anyway needs no import.
#[schema]
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GreetingStatus {
    pub text: String,
}

/// Greets in its language.
#[controller(of = Greeting, owns = ConfigMap(create), finalizer = "example.com/greetings")]
pub(crate) struct Greetings {
    pub(crate) hello: String,
}

impl Reconcile for Greetings {
    async fn reconcile(&self, greeting: Arc<Greeting>, cx: Context<Self>) -> Result<Action> {
        cx.owned::<ConfigMap>().create(ConfigMap::default()).await?;
        cx.patch_status(GreetingStatus { text: format!("{} {}", self.hello, greeting.spec.name) }).await?;
        Ok(Action::requeue(Duration::from_secs(60)))
    }
}

impl Finalize for Greetings {
    async fn finalize(&self, _greeting: Arc<Greeting>, _cx: Context<Self>) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn app() -> App {
    App::new("greeter").controller_with(|_env| async { Ok(Greetings { hello: "Hello".into() }) })
}
