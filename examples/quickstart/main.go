// Quickstart runs a fleet whose machines are processes of this computer. It creates machines, rolls
// them to a new version, loses one, disconnects the cluster for a few seconds, restarts its manager
// in the middle of a rollout, scales, and deletes everything. Tasks run on the machines. They are
// processes too, and are moved before a machine is deleted: as their disruption budget allows, and
// one of them with its volume.
//
//	go -C examples run ./quickstart
//	go -C examples run ./quickstart -state DIR
//
// The second one keeps its store in DIR, and can be killed at any moment. The same command goes on
// where it was, with the processes that have gone on meanwhile.
//
// Start a program of your own from examples/embed. fleet.go has what is there and more: a store, a
// driver, a cluster, a drainer, a manager, and a deployment. acts.go, strangers.go and outage.go are
// what happens to them, place.go is what lasts. Package workload stands for what an API server knows
// of pods. The rest shows it, and counts processes without the library.
//
// The last line and the exit status say how it ended. The status is 0 only if every promise was
// kept. Without DIR nothing is left behind, even after Ctrl-C.
package main

import (
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/command"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

var example = command.Command{Name: "quickstart", Usage: usage, State: stateUsage, Limit: 3 * time.Minute, Play: perform}

func main() {
	if task.Ordered() {
		os.Exit(task.Main()) // this process is what runs on a machine
	}
	if agent.Ordered() {
		os.Exit(agent.Main()) // this process is a machine
	}
	os.Exit(example.Main())
}

// usage is what -h says, before the flags.
const usage = `usage: quickstart [-state DIR]

Runs a fleet whose machines are processes of this computer through creation,
rollouts, losses and deletion, and counts what really runs. Takes half a minute.

`

const stateUsage = `keep the store, a bbolt file, and all else that is to last in DIR, which is made
if needed and must be empty or of an earlier run. Then the machines outlive this
program: after Ctrl-C, a crash or kill -9 the same command goes on where it was, if
it comes within a minute; later the machines have ended by themselves, and it
begins again. Two programs can't use DIR at a time. DIR is empty again after a run
that has come to its end. Removing it ends all processes. Its path may have at most
101 bytes.`
