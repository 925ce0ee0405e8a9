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

	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
)

func main() {
	agent.Main()      // if this process is a machine or a task
	supervisor.Main() // if it keeps a group of machines
	os.Exit(stage.Main(usage, perform))
}

// usage is what -h says, before the flags.
const usage = `usage: pool [-state DIR]

Runs a pool whose machines are processes of this computer through creation,
changes, losses and deletion, and counts what really runs. Takes a quarter of a
minute.

`
