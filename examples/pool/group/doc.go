// Package group is what is on record of a group of agents, and what follows from
// it. A group is a number of agents (package agent of the quickstart) that one
// supervisor keeps: the provider's side of a pool.
//
// The record is a file, so it outlives whoever reads and writes it. Driver and
// supervisor write it under one lock: the driver what is wanted, the supervisor
// what has come of it. A supervisor enters an agent before it starts it and
// strikes it off after it has ended, so that another one finds on record
// whatever an earlier one has begun.
package group
