// Package safety holds the settings of what protects a fleet from harm that no machine, set or
// deployment can see by itself. Each subject is a package below:
//
//   - orphan: VMs without a machine, and groups without a pool, are deleted;
//   - ownerless: machines without their set, and sets without their deployment, are deleted;
//   - overshoot: a set that grows out of bounds freezes;
//   - reachability: while an API server does not answer, everything freezes;
//   - replacement: a budget for machines that are replaced for their health at a time;
//   - unmanaged: nodes without a machine are let go;
//   - backoff: a class whose creates the provider refuses is tried by one machine at a time.
//
// No subject knows another. Each but backoff has one entry point, Decide. It takes an observation,
// a [Policy] and the time, and returns a plan with its reason. It reads no clock, makes no calls
// and changes none of its arguments. The same arguments give the same plan. Only a caller's mistake
// is an error.
//
// # Carrying plans out
//
// All passes have the same form. Decide. If the plan asks for something, do it, update the
// observation as the plan's fields say, and decide again. Otherwise wait until the plan's At, or
// until something changes if At is zero. An error of a store ends the pass. After a conflict the
// pass starts again from fresh reads. The process keeps a plan's memory between passes. Losing it
// costs only time.
//
// The documentation of each subject says how often a pass is made, and about what.
package safety
