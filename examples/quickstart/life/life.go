// Package life is what the processes of a fleet share, from their order to their exit status.
package life

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// Longest is the longest life of a process in any case.
const Longest = 15 * time.Minute

// These are the exit statuses.
const (
	Done    = 0
	Failed  = 1
	Misused = 64
	Turned  = 75 // another process has its place
)

// These are reasons why a process ends.
var (
	ErrTold    = errors.New("told to end")
	ErrLongest = errors.New("its longest lifetime is over")
)

// Environ returns the environment of a process that finds its order in a variable.
func Environ(variable string, order any) []string {
	text, _ := json.Marshal(order) // strings and numbers
	return []string{variable + "=" + string(text), "GOMAXPROCS=1"}
}

// Read reads an order, as text from a variable.
func Read(variable, text string, order any) error {
	if err := json.Unmarshal([]byte(text), order); err != nil {
		return fmt.Errorf("%s can't be read: %w", variable, err)
	}
	return nil
}

// Begin enters this process in a ledger. It does so before anything else.
func Begin(path, machine, instance string) (ledger.Hand, error) {
	self, err := procid.Self()
	if err != nil {
		return ledger.Hand{}, err
	}
	account := ledger.Hand{Path: path, Machine: machine, Instance: instance, ID: self}
	if err := account.Enter(ledger.Born, ""); err != nil {
		return ledger.Hand{}, err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // a terminal's, meant for the program
	return account, nil
}

// Misuse reports that an order is no good, and returns the exit status.
func Misuse(who string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
	return Misused
}

// End reports why a process has ended, and returns the exit status.
func End(who string, err error) int {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, registry.ErrSuperseded), errors.Is(err, registry.ErrHeld):
		return Turned
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
	return Failed
}
