// Package agent is the program that a machine of the quickstart is: a process that has one seat and
// sends heartbeats. It ends when it is told to, when it is no longer wanted, or when the program
// that started it is gone.
package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/life"
)

// environment is the variable that makes a program an agent.
const environment = "MILLWRIGHT_AGENT"

// Order is what an agent gets when it is started. It holds no secret.
type Order struct {
	Machine    string        `json:"machine"`
	Instance   string        `json:"instance"` // unique to this process
	ProviderID string        `json:"providerID"`
	Registry   string        `json:"registry"` // directory of the cluster's records
	Ledger     string        `json:"ledger"`   // path; if empty, no ledger is kept
	Boot       time.Duration `json:"boot"`     // how long it takes before the first heartbeat
	// Outlives says that the agent goes on when the program that started it is gone, so that
	// another one can take it over. It still ends once its heartbeats were not taken for
	// Abandonment, or for Alone if that is not zero.
	Outlives bool          `json:"outlives,omitempty"`
	Alone    time.Duration `json:"alone,omitempty"`
	// Tasks is the directory in which the machine finds its tasks (task.Desk). If it is empty, the
	// machine runs none.
	Tasks string `json:"tasks,omitempty"`
}

// Environ returns the environment of an agent with this order.
func (o Order) Environ() []string { return life.Environ(environment, o) }

// abandonment returns how long the agent goes on while its heartbeats are not taken.
func (o Order) abandonment() time.Duration { return cmp.Or(o.Alone, Abandonment) }

// Ordered reports whether this process was started as an agent. A program that can be one calls it
// first of all, and then Main.
func Ordered() bool { return os.Getenv(environment) != "" }

func readOrder() (Order, error) {
	var o Order
	if err := life.Read(environment, os.Getenv(environment), &o); err != nil {
		return Order{}, err
	}
	if o.Machine == "" || o.Instance == "" || o.Registry == "" {
		return Order{}, fmt.Errorf("%s names no machine, no instance or no registry", environment)
	}
	return o, nil
}

// These are the reports of an agent. It makes one report, on its first descriptor beyond the
// standard ones.
const (
	ReportFD     = 3
	ReportSeated = "seated"
	ReportTurned = "turned away"
)

// PresenceFD is a descriptor that an agent with Tasks keeps, and passes on to them, so that the
// program that started it sees when all of them have ended.
const PresenceFD = 4

// letter is the first line of an agent's standard input. The user data in it is a secret, so it is
// in neither arguments nor environment.
type letter struct {
	UserData []byte `json:"userData"`
}

// Send writes what an agent expects at the beginning of its standard input, which must stay open as
// long as the agent is to live.
func Send(w io.Writer, userData []byte) error {
	text, err := json.Marshal(letter{userData})
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
