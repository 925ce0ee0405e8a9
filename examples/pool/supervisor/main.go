// Package supervisor is the program of a group's supervisor. It runs as many agents as the group's
// record asks for, and replaces lost agents. If the record has a new spec, it replaces all agents, one
// by one or within the bounds of the pool.
//
// It can be killed at any moment. Its agents run on, and the next supervisor takes them over.
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
	interval = 20 * time.Millisecond // between two passes
	retry    = time.Second           // after a failure to start or to end an agent
	spare    = 2 * time.Second       // how much longer than the supervisor its agents run without a provider
)

// Args has the arguments of a supervisor. It holds no secret.
type Args struct {
	Root    string `json:"root"` // the provider's directory
	Cluster string `json:"cluster"`
	Group   string `json:"group"` // the name of the group
	// Provider is the file that the provider's program has locked. If no program has locked it for longer
	// than Alone, the group ends.
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
	Args
	self   roster.Self
	dir    *group.Dir
	driver *procdriver.Driver

	lastProvider time.Time // when a provider's program was last seen
	retryAt      time.Time // no agent is started or ended before
	abandoned    bool      // there was no provider for too long
}

// Main runs a supervisor and exits, if this process was started as one. Otherwise it returns.
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

// run makes passes until the group is gone. A failed pass is repeated, unless there is no provider for
// too long, or the directory is gone.
func run() error {
	s := &supervisor{lastProvider: time.Now()}
	var err error
	if s.self, err = roster.Join(&s.Args); err != nil {
		return err
	}
	s.dir = group.At(Groups(s.Root, s.Cluster))
	s.driver = procdriver.New(procdriver.Options{Dir: Agents(s.Root), Lock: s.Provider, Outlives: s.Alone + spare})
	errGroupGone := errors.New("the group is gone")
	err = roster.Every(context.Background(), interval, func(ctx context.Context) error {
		gone, err := s.pass(ctx)
		if gone {
			return errGroupGone
		}
		if s.abandoned || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if errors.Is(err, errGroupGone) {
		return nil
	}
	return err
}

// checkProvider sets s.abandoned if there was no provider for too long, and records that in the
// roster. pass then deletes the group.
func (s *supervisor) checkProvider() error {
	held, err := roster.Held(s.Provider)
	if err != nil {
		return err
	}
	now := time.Now()
	if held {
		s.lastProvider = now
	}
	if s.abandoned || now.Sub(s.lastProvider) <= s.Alone {
		return nil
	}
	s.abandoned = true
	return s.self.SetState(roster.Abandoned)
}
