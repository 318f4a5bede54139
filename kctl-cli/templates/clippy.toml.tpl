# The role is printed from what the controller declares: a client of its own would do what the role does not say.
disallowed-types = [
  { path = "kube_client::Client", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
]
disallowed-methods = [
  { path = "kctl_runtime::connection::client", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
]
