//! The permission to write a status comes from the declaration alone.
struct Mine;

impl<C: ?Sized> kctl::reconcile::bounds::WritableBy<C> for Mine {}

fn main() {}
