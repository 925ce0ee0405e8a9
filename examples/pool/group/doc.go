// Package group has the stored state of a group, and decides which of its agents to start and end. A
// group is the provider's side of a pool: a number of agents (package agent of the quickstart) that
// one supervisor keeps running.
//
// The state is in a file, the group's record, so it outlives the programs that read and write it.
// Driver and supervisor write it under one lock: the driver what is wanted, the supervisor what there
// is. The supervisor records an agent before it starts the agent, and removes the record after the
// agent has ended. So a new supervisor knows everything that an earlier one has begun.
package group
