//! The attributes of kctl.
