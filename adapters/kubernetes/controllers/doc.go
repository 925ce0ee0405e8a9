// Package controllers runs the library's reconcilers in a manager of
// controller-runtime, with its objects on the manager's API server.
//
// The reconcilers keep their own caches of the objects, in the form that they decide on, and their
// own queues. They take the configuration, the leader election, the events and the health checks
// from the manager. They act while the manager is the leader, and while no other manager is
// alive (see Options.OtherManagers).
package controllers
