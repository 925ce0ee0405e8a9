// Quickstart runs a fleet whose machines are processes of this computer. It creates machines, rolls
// them to a new version, loses one, disconnects the cluster for a few seconds, restarts its manager
// in the middle of a rollout, scales, and deletes everything. Tasks run on the machines. They are
// processes too, and are moved before a machine is deleted, as their disruption budget allows.
//
//	go -C examples run ./quickstart
//	go -C examples run ./quickstart -state DIR
//
// The second one keeps its store in DIR, and can be killed at any moment. The same command goes on
// where it was, with the processes that have gone on meanwhile.
//
// Start a program of your own from examples/embed. fleet.go has what is there and more: a store, a
// driver, a cluster, a drainer, a manager, and a deployment. acts.go is what happens to them,
// play.go what goes on all the while. Package procdriver is the driver, package agent what it
// starts, package roster says which processes run. Packages heartbeat and workload stand for a
// cluster. Package stage shows it all, and counts processes without the library.
//
// The last line and the exit status say how it ended. The status is 0 only if every promise was
// kept. Without DIR nothing is left behind, even after Ctrl-C.
package main

import (
	"os"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
)

func main() {
	agent.Main() // if this process is a machine or a task
	os.Exit(stage.Main(usage, perform))
}

// usage is what -h says, before the flags.
const usage = `usage: quickstart [-state DIR]

Runs a fleet whose machines are processes of this computer through creation,
rollouts, losses and deletion, and counts what really runs. Takes half a minute.

`
