package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/driver"
)

// These are the exit statuses of a program.
const (
	StatusDone     = 0 // ended by a signal or ctx; also after --help and --version
	StatusFailed   = 1 // failed
	StatusSettings = 2 // the settings are invalid
)

// Program is a manager whose driver needs settings of its own, or access to the clusters. For other
// drivers there is the function Run.
type Program struct {
	// Name is the program's name for --help and --version. Empty means the name of its file.
	Name string
	// About is a sentence for --help. It may be empty.
	About string
	// Args are the command-line arguments. Nil means those of the process.
	Args []string
	// Settings is a pointer to a struct with the provider's own settings, which has tags of
	// github.com/alecthomas/kong. Users set them like the other settings. They are read before Driver is
	// called. Nil means none.
	Settings any
	// Driver returns the driver. It is called once. An error ends the program, with StatusSettings if it
	// wraps ErrSettings. If the driver, or one that it wraps, is a pooldriver.Driver, too, it is used for
	// pools. If the driver has a method Run(context.Context) error, that is run in the background, also
	// while another process is the leader. Run must return soon after its context has ended.
	Driver func(Clusters) (driver.Driver, error)

	out, errs io.Writer // nil: os.Stdout and os.Stderr
}

// Clusters has what a driver may need besides its settings.
type Clusters struct {
	Control *rest.Config // of the cluster with the machine objects
	Target  *rest.Config // of the cluster that machines join; nil: they join none
	Log     *slog.Logger
	// DryRun says that nothing may be changed. The manager makes no calls that change anything then. The
	// driver's Run must change nothing either.
	DryRun bool
}

// Run runs a manager with a driver, until a signal or ctx ends it. The settings are those of the process.
// A driver that is a pooldriver.Driver, too, is used for pools. Run may be called once in a process. Pass
// its error to Exit.
func Run(ctx context.Context, d driver.Driver) error {
	return Program{Driver: func(Clusters) (driver.Driver, error) {
		if d == nil {
			return nil, errors.New("there is no driver")
		}
		return d, nil
	}}.Run(ctx)
}

// Run runs the program like the function Run.
func (p Program) Run(ctx context.Context) error {
	p.complete()
	r, err := newReading(&p, p.Args, p.out)
	if err != nil {
		return err
	}
	if err := r.read(); err != nil || r.ended {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends it at once
	log := r.settings.newLog(p.out, p.errs)
	for _, name := range r.unknownVariables() {
		log.Warn("an environment variable is no setting", slog.String("variable", name))
	}
	return r.manage(ctx, &p, log)
}

// complete sets the defaults.
func (p *Program) complete() {
	if p.Args == nil {
		p.Args = os.Args[1:]
	}
	if p.out == nil {
		p.out = os.Stdout
	}
	if p.errs == nil {
		p.errs = os.Stderr
	}
}

// Exit ends the process. It writes an error of Run to standard error, in one line. The exit status is
// Status(err).
func Exit(err error) {
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", (&Program{}).name(), oneLine(err)) // there is no other place to report it
	}
	os.Exit(Status(err))
}

// Status returns the exit status for an error of Run. For nil it is StatusDone.
func Status(err error) int {
	switch {
	case err == nil:
		return StatusDone
	case errors.Is(err, ErrSettings):
		return StatusSettings
	}
	return StatusFailed
}

func version() string {
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" {
		return built.Main.Version
	}
	return "unknown"
}
