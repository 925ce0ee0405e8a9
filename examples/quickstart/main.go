// Quickstart runs a fleet whose machines are processes of this computer. It creates machines, rolls
// them to a new version, loses one, disconnects the cluster for a few seconds, restarts its manager
// in the middle of a rollout, scales, and deletes everything. Tasks run on the machines. They are
// processes too, and are moved before a machine is deleted, as their disruption budget allows.
//
//	go -C examples run ./quickstart
//	go -C examples run ./quickstart -state DIR
//
// The second command keeps its store in DIR, and can be killed at any moment. Its processes run on,
// and the same command continues with them.
//
// To start a program of your own, copy examples/embed. Here fleet.go makes a store, a driver, a
// cluster, a drainer, a manager, and a deployment. steps.go changes them step by step, and
// quickstart.go runs the steps. Package procdriver is the driver, package agent is what runs in the
// processes it starts, and package roster knows which processes run. Packages heartbeat and workload
// stand for a cluster. Package demo prints everything, and counts processes without the library.
//
// The last line and the exit status say how it ended. The status is 0 only if every promise was
// kept. Without DIR nothing is left behind, even after Ctrl-C.
package main

import (
	"os"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
)

func main() {
	agent.Main() // if this process is a machine or a task
	os.Exit(demo.Main(usage, run))
}

// usage is what -h prints, before the flags.
const usage = `usage: quickstart [-state DIR]

Runs a fleet whose machines are processes of this computer through creation,
rollouts, losses and deletion, and counts what really runs. Takes half a minute.

`
