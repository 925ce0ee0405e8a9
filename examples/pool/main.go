// Pool runs a pool whose machines are processes of this computer, called agents. The provider keeps
// agents in groups, each with a supervisor, and decides itself which agents to add and remove. The
// example creates a pool, scales it, rolls it to a new version, loses an agent and then the
// supervisor, drains the machines that are removed, and deletes everything.
//
//	go -C examples run ./pool
//	go -C examples run ./pool -state DIR
//
// The second command keeps its state in DIR, and can be killed at any moment. Its processes run on,
// and the same command continues with them.
//
// To write a program of your own, begin with fleet.go: it makes a store, a pool driver, a cluster, a
// drainer, a manager, and a pool. steps.go changes them step by step, and demo.go runs the steps.
// Package groupdriver is the driver, and package supervisor is the provider behind it. Agents,
// cluster, workload and package demo are those of the quickstart.
//
// The last line and the exit status say how it ended. The status is 0 only if every promise was
// kept. Without DIR nothing is left behind, even after Ctrl-C.
package main

import (
	"os"

	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
)

func main() {
	agent.Main()      // if this process is a machine or a task
	supervisor.Main() // if this process is a group's supervisor
	os.Exit(demo.Main(usage, run))
}

// usage is what -h prints, before the flags.
const usage = `usage: pool [-state DIR]

Runs a pool whose machines are processes of this computer through creation,
changes, losses and deletion, and counts what really runs. Takes a quarter of a
minute.

`
