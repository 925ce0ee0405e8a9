// Package task is what runs on a machine of the quickstart: a task is a child process of the
// machine's agent. It serves until it is told to end, and ends by itself when its agent is gone.
// Orders and reports are in a directory of the node, the desk.
package task

import (
	"errors"
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/life"
)

// environment is the variable that makes a program a task.
const environment = "MILLWRIGHT_TASK"

// Order is what a task gets when it is started.
type Order struct {
	Name   string `json:"name"`   // of the task; a later process may have the same
	UID    string `json:"uid"`    // unique to this process
	Ledger string `json:"ledger"` // path of the tasks' ledger; if empty, none is kept
	// Volume is the path of the file that the task locks before anything else. If it is empty, the
	// task needs none. The file must exist: it is attached.
	Volume string `json:"volume,omitempty"`
	// Boot is how long the task takes until it serves.
	Boot time.Duration `json:"boot"`
	// Linger is how long it takes to end when it is told to. It does not serve meanwhile.
	Linger time.Duration `json:"linger"`
}

// Environ returns the environment of a task with this order.
func (o Order) Environ() []string { return life.Environ(environment, o) }

// Ordered reports whether this process was started as a task. A program that can be one calls it
// first of all, and then Main.
func Ordered() bool { return os.Getenv(environment) != "" }

func readOrder(text string) (Order, error) {
	var o Order
	if err := life.Read(environment, text, &o); err != nil {
		return Order{}, err
	}
	return o, o.validate()
}

func (o Order) validate() error {
	switch {
	case o.Name == "" || o.UID == "":
		return errors.New("an order needs a name and a UID")
	case o.Boot < 0 || o.Linger < 0:
		return errors.New("an order's times must not be negative")
	}
	return nil
}

// These are the reports of a task. It makes one report, on its first descriptor beyond the standard
// ones.
const (
	reportFD      = 3
	reportServing = "serving"
)
