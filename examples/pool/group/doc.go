// Package group holds the record of a group of agents, and what follows from it. A group is a
// number of agents (package agent of the quickstart) that one supervisor keeps: the provider's side
// of a pool.
//
// The record is a file, so it outlives the programs that read and write it. Driver and supervisor
// write it under one lock: the driver the target, the supervisor the result. A supervisor enters an
// agent before it starts it and removes the entry after the agent has ended. So the next supervisor
// finds on record all that an earlier one has begun.
package group
