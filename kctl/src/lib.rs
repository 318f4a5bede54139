//! A declarative Kubernetes controller framework.
