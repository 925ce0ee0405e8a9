// Package supervisor is the program that keeps a group. It is one process that runs as many agents
// as the group's record asks for, replaces one that is lost, and replaces them one by one if they
// are to be made from something else.
//
// It can be killed at any moment. Its agents go on, and the next supervisor takes them over.
package supervisor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/life"
)

// environment is the variable that makes a program a supervisor.
const environment = "MILLWRIGHT_SUPERVISOR"

// Order is what a supervisor gets when it is started. It holds no secret.
type Order struct {
	Root     string `json:"root"` // the provider's directory
	Cluster  string `json:"cluster"`
	Group    string `json:"group"`    // name of the group's record
	Instance string `json:"instance"` // unique to this process
	Program  string `json:"program"`  // path of the program that agents run
	Ledger   string `json:"ledger"`   // path of the ledger of supervisors; if empty, none is kept
	Agents   string `json:"agents"`   // the same for agents
	// Tasks is where agents find their tasks (procdriver.HostOptions).
	Tasks string `json:"tasks,omitempty"`
	// Env is added to the environment of agents.
	Env []string `json:"env,omitempty"`
	// Alone is how long the group goes on without a provider. Then the group ends. Zero means
	// agent.Abandonment.
	Alone time.Duration `json:"alone,omitempty"`
	// Grace is how long an agent may take to end before it is killed. Zero means the default of
	// package procdriver.
	Grace time.Duration `json:"grace,omitempty"`
}

// Environ returns the environment of a supervisor with this order.
func (o Order) Environ() []string { return life.Environ(environment, o) }

func (o Order) alone() time.Duration { return cmp.Or(o.Alone, agent.Abandonment) }

// Ordered reports whether this process was started as a supervisor. A program that can be one calls
// it first of all, and then Main.
func Ordered() bool { return os.Getenv(environment) != "" }

func readOrder() (Order, error) {
	var o Order
	if err := life.Read(environment, os.Getenv(environment), &o); err != nil {
		return Order{}, err
	}
	if o.Root == "" || o.Cluster == "" || o.Group == "" || o.Instance == "" {
		return Order{}, fmt.Errorf("%s names no directory, no cluster, no group or no instance", environment)
	}
	return o, nil
}

// Groups returns the directory of the records of a cluster's groups.
func Groups(root, cluster string) string { return filepath.Join(root, "groups", cluster) }

// Agents returns the directory of the records of agents, of all clusters.
func Agents(root string) string { return filepath.Join(root, "agents") }

// Provider returns the file that says which program is the provider.
func Provider(root string) string { return filepath.Join(root, "provider") }

// AgentsOf returns the directory of the records of a cluster's agents.
func AgentsOf(root, cluster string) string { return filepath.Join(Agents(root), cluster) }
