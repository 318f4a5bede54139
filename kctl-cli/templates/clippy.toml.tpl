# The role is printed from the declaration of the controller. Other clients would need permissions that the role does not have, and would
# reach a real cluster while `dev` or a test runs.
disallowed-types = [
  { path = "kube_client::Client", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
]
disallowed-methods = [
  { path = "tokio::spawn", reason = "await the work within the reconcile: a task outlives it, and the leadership", allow-invalid = true },
  { path = "kctl_runtime::connection::client", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kctl_runtime::connection::builder", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kube_client::Client::try_default", reason = "use `Context`: this connects to the cluster of the environment", allow-invalid = true },
  { path = "kube_client::Config::infer", reason = "use `Context`: this connects to the cluster of the environment", allow-invalid = true },
  { path = "kube_client::Config::from_kubeconfig", reason = "use `Context`: this connects to the cluster of the environment", allow-invalid = true },
  { path = "kube_client::Config::from_custom_kubeconfig", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster_env", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster_dns", reason = "use `Context`: its permissions are in the role", allow-invalid = true },
  { path = "kube_client::config::Kubeconfig::read", reason = "use `Context`: this connects to the cluster of the environment", allow-invalid = true },
  { path = "kube_client::config::Kubeconfig::from_env", reason = "use `Context`: this connects to the cluster of the environment", allow-invalid = true },
]
