// Package supervisor is the program that keeps a group. It is one process that runs as many agents
// as the group's record asks for, replaces one that is lost, and replaces them one by one, or within
// the bounds of the pool, if they are to be made from something else.
//
// It can be killed at any moment. Its agents go on, and the next supervisor takes them over.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// Role is the role of a supervisor's process.
const Role = "supervisor"

const (
	look  = 20 * time.Millisecond // how often it looks at record and agents
	again = time.Second           // after a failure to start or to end an agent
	spare = 2 * time.Second       // how much longer than the supervisor its agents go on alone
)

// Order is what a supervisor is started with. It holds no secret.
type Order struct {
	Root    string `json:"root"` // the provider's directory
	Cluster string `json:"cluster"`
	Group   string `json:"group"` // name of the group's record
	// Provider is the file that the provider's program has locked. Alone is how long the group goes
	// on without one. Then the group ends.
	Provider string        `json:"provider"`
	Alone    time.Duration `json:"alone"`
}

// Groups returns the directory of the records of a cluster's groups.
func Groups(root, cluster string) string { return filepath.Join(root, "groups", cluster) }

// Agents returns the directory of the rosters of agents, one a cluster.
func Agents(root string) string { return filepath.Join(root, "agents") }

// Supervisors returns the directory of the roster of supervisors.
func Supervisors(root string) string { return filepath.Join(root, "supervisors") }

type supervisor struct {
	Order
	self   roster.Self
	dir    *group.Dir
	driver *procdriver.Driver

	provided time.Time // when there last was a provider
	held     time.Time // until then nothing that failed is tried again
	left     bool      // there was no provider for too long
}

// Main makes this process a supervisor if it was started as one, and does not return then.
func Main() {
	if roster.Role() != Role {
		return
	}
	if err := run(); err != nil && !errors.Is(err, fs.ErrNotExist) { // agents without a directory end by themselves
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run goes on until the group is gone. If a pass fails, another one follows as long as there is a
// provider.
func run() error {
	s := &supervisor{provided: time.Now()}
	var err error
	if s.self, err = roster.Join(&s.Order); err != nil {
		return err
	}
	s.dir = group.At(Groups(s.Root, s.Cluster))
	s.driver = procdriver.New(procdriver.Options{Dir: Agents(s.Root), Lock: s.Provider, Outlives: s.Alone + spare})
	errOver := errors.New("the group is gone")
	err = roster.Every(context.Background(), look, func(ctx context.Context) error {
		over, err := s.pass(ctx)
		if over {
			return errOver
		}
		if s.left || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// abandoned notes whether there was no provider for too long. Then the group ends, and the roster
// has the reason.
func (s *supervisor) abandoned() error {
	held, err := roster.Held(s.Provider)
	if err != nil {
		return err
	}
	now := time.Now()
	if held {
		s.provided = now
	}
	if s.left || now.Sub(s.provided) <= s.Alone {
		return nil
	}
	s.left = true
	return s.self.Say(roster.Abandoned)
}
