// Pool runs a pool whose machines are processes of this computer. Its provider keeps groups of
// agents, each with a supervisor of its own, and decides itself which agents to add and remove. The
// example creates a pool, scales it, rolls it to a new version, loses an agent and then the
// supervisor, drains what the provider or the pool removes, and deletes everything.
//
//	go -C examples run ./pool
//	go -C examples run ./pool -state DIR
//
// The second one keeps all it knows in DIR, and can be killed at any moment. The same command goes
// on where it was, with the processes that have gone on meanwhile.
//
// Begin a program of your own with fleet.go: a store, a pool driver, a cluster, a drainer, a
// manager, and a pool. acts.go is what happens to them. Package groupdriver is the driver, package
// supervisor the provider behind it. Agents, cluster and workload are those of the quickstart. The
// rest shows it, and counts processes without the library and the provider.
//
// The last line and the exit status say how it ended. The status is 0 only if every promise was
// kept. Without DIR nothing is left behind, even after Ctrl-C.
package main

import (
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/command"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

var example = command.Command{Name: "pool", Usage: usage, State: stateUsage, Limit: 3 * time.Minute, Play: perform}

func main() {
	switch {
	case task.Ordered():
		os.Exit(task.Main()) // this process is what runs on a machine
	case agent.Ordered():
		os.Exit(agent.Main()) // this process is a machine
	case supervisor.Ordered():
		os.Exit(supervisor.Main()) // this process keeps a group of them
	}
	os.Exit(example.Main())
}

// usage is what -h says, before the flags.
const usage = `usage: pool [-state DIR]

Runs a pool whose machines are processes of this computer through creation,
changes, losses and deletion, and counts what really runs. Takes a quarter of a
minute.

`

const stateUsage = `keep the store, a bbolt file, and all else that is to last in DIR, which is made
if needed and must be empty or of an earlier run. Then the group outlives this
program: after Ctrl-C, a crash or kill -9 the same command goes on where it was, if
it comes within a minute; later all processes have ended by themselves, and it
begins again. DIR is empty again after a run that has come to its end. Its path may
have at most 101 bytes.`
