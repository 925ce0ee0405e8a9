// Package agent is what runs as a process: a machine, which sends heartbeats, and a task on a
// machine.
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

// Abandonment is how long a machine that outlives its program waits for another one. A program that
// starts within a minute finds its machines.
const Abandonment = 90 * time.Second

// beat is the time between two heartbeats.
const beat = 200 * time.Millisecond

// Machine is what a machine is started with.
type Machine struct {
	ProviderID string        `json:"providerID"`
	Version    string        `json:"version"` // of what it runs
	Boot       time.Duration `json:"boot"`    // how long it takes before the first heartbeat
	// Node is the name of the node that the machine becomes: its user data. If it is empty, the
	// machine joins no cluster.
	Node string `json:"node,omitempty"`
	// Program is the file that a program locks as long as it manages the machine. Outlives is how
	// long the machine goes on without one.
	Program  string        `json:"program"`
	Outlives time.Duration `json:"outlives"`
}

// Task is what a task is started with. A task serves until it is told to end, and ends by itself
// when its machine is gone.
type Task struct {
	Machine string        `json:"machine"` // the file of the machine's process
	Node    string        `json:"node"`
	Boot    time.Duration `json:"boot"`   // how long it takes until it serves
	Linger  time.Duration `json:"linger"` // how long it takes to end; it does not serve meanwhile
}

// Main makes this process what it was started for, and does not return. It returns if this process
// is the program itself. A program that starts machines calls Main first of all.
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

// runMachine boots, and sends heartbeats until no program manages the machine. A signal ends it: it
// has nothing to finish, because its tasks are moved before.
func runMachine() error {
	var order Machine
	self, err := roster.Join(&order)
	if err != nil {
		return err
	}
	time.Sleep(order.Boot)
	if err := self.Say(roster.Serving); err != nil {
		return err
	}
	for managed := time.Now(); ; time.Sleep(beat) {
		if err := self.Beat(); err != nil {
			return err // its entry was removed, and the machine with it
		}
		switch held, err := roster.Held(order.Program); {
		case err != nil:
			return err
		case held:
			managed = time.Now()
		case time.Since(managed) >= order.Outlives:
			return self.Say(roster.Abandoned)
		}
	}
}

// runTask boots and serves. A task that is told to end leaves the service at once, and takes its
// time.
func runTask() error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	var order Task
	self, err := roster.Join(&order)
	if err != nil {
		return err
	}
	time.Sleep(order.Boot)
	if err := self.Say(roster.Serving); err != nil {
		return err
	}
	for look := time.NewTicker(beat); ; {
		select {
		case <-told:
			err := self.Say(roster.Leaving)
			time.Sleep(order.Linger)
			return err
		case <-look.C:
		}
		if machine, err := roster.Read(order.Machine); err != nil || !machine.Alive {
			return err
		}
	}
}
