// Package safety holds the settings of the packages below it. They protect a fleet from harm that no
// single machine, set or deployment can notice:
//
//   - orphan: VMs without a machine, and groups without a pool, are deleted;
//   - ownerless: machines without their set, and sets without their deployment, are deleted;
//   - overshoot: a set that grows out of bounds freezes;
//   - reachability: while an API server does not answer, everything freezes;
//   - replacement: a budget limits how many machines are replaced for their health at a time;
//   - unmanaged: nodes without a machine lose the library's finalizer and are marked;
//   - backoff: while the provider refuses to create machines of a class, they are tried one at a time.
//
// None of these packages uses another. Each except backoff has one entry point, Decide. It takes an
// observation, a [Policy] and the time, and returns a plan with its reason. It reads no clock, makes
// no calls and changes none of its arguments. The same arguments give the same plan. Only a caller's
// mistake is an error.
//
// # Carrying plans out
//
// All passes have the same form. Decide. If the plan asks for something, do it, update the
// observation as the plan's fields say, and decide again. Otherwise wait until the plan's At; if At
// is zero, wait until something changes. An error of a store ends the pass. After a conflict the
// pass starts again from fresh reads. The process keeps the memory that plans return between passes.
// Losing it costs only time, except that the brakes (Policy.Brake) begin again.
//
// The documentation of each package says what a pass is about.
package safety
