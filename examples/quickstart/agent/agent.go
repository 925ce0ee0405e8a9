// Package agent is the program of the fleet's processes: machines, which send heartbeats, and tasks,
// which run on machines.
package agent

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// These are the roles of processes.
const (
	MachineRole = "machine"
	TaskRole    = "task"
)

// Abandonment is how long a machine runs on after its program has ended, until it ends itself. A
// program that starts within a minute still finds its machines.
const Abandonment = 90 * time.Second

// beat is the time between two heartbeats.
const beat = 200 * time.Millisecond

// Machine has the arguments of a machine's process.
type Machine struct {
	ProviderID string        `json:"providerID"`
	Version    string        `json:"version"` // of the software
	Boot       time.Duration `json:"boot"`    // time until the first heartbeat
	// Node is the machine's user data: the name of its node. If it is empty, the machine joins no
	// cluster.
	Node string `json:"node,omitempty"`
	// Program is the file that a program locks as long as it manages the machine. If no program has
	// locked it for longer than Outlives, the machine ends.
	Program  string        `json:"program"`
	Outlives time.Duration `json:"outlives"`
}

// Task has the arguments of a task's process. A task serves until it is told to end, and ends by
// itself when its machine has ended.
type Task struct {
	Machine string        `json:"machine"` // the roster's file of the machine's process
	Node    string        `json:"node"`
	Boot    time.Duration `json:"boot"`   // time until it serves
	Linger  time.Duration `json:"linger"` // time it takes to end, without serving
}

// Main runs a machine or a task and exits, if this process was started as one. Otherwise it returns. A
// program that starts machines must call it first.
func Main() {
	var err error
	switch roster.Role() {
	case MachineRole:
		err = runMachine()
	case TaskRole:
		err = runTask()
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runMachine boots, and sends heartbeats until no program manages the machine any more. SIGTERM ends it
// at once: there is nothing to finish, because its tasks have been moved before.
func runMachine() error {
	var args Machine
	self, err := roster.Join(&args)
	if err != nil {
		return err
	}
	time.Sleep(args.Boot)
	if err := self.SetState(roster.Serving); err != nil {
		return err
	}
	for managed := time.Now(); ; time.Sleep(beat) {
		if err := self.Beat(); err != nil {
			return err // the entry was removed: the machine must end
		}
		switch held, err := roster.Held(args.Program); {
		case err != nil:
			return err
		case held:
			managed = time.Now()
		case time.Since(managed) >= args.Outlives:
			return self.SetState(roster.Abandoned)
		}
	}
}

// runTask boots and serves. On SIGTERM the task stops serving at once, and ends after its linger time.
func runTask() error {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	var args Task
	self, err := roster.Join(&args)
	if err != nil {
		return err
	}
	time.Sleep(args.Boot)
	if err := self.SetState(roster.Serving); err != nil {
		return err
	}
	for ticker := time.NewTicker(beat); ; {
		select {
		case <-terminate:
			err := self.SetState(roster.Leaving)
			time.Sleep(args.Linger)
			return err
		case <-ticker.C:
		}
		if machine, err := roster.Read(args.Machine); err != nil || !machine.Alive {
			return err
		}
	}
}
