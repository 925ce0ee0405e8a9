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
	StatusDone     = 0 // ended as asked for
	StatusFailed   = 1 // could not go on
	StatusSettings = 2 // the settings can't work
)

// Program is a manager whose driver is made from settings, or from the clusters.
type Program struct {
	// Name of the program for --help and --version. If it is empty, it is that of its file.
	Name string
	// About is a sentence for --help. May be empty.
	About string
	// Args are the flags. Nil means those of the process.
	Args []string
	// Settings of the provider's own: a pointer to a struct with the tags of
	// github.com/alecthomas/kong. They are given as all others are, and are read before Driver is
	// called. Nil means none.
	Settings any
	// Driver returns what makes and deletes VMs, and groups of them for pools if
	// it, or a driver below it, is a pooldriver.Driver. It is called once; its error
	// ends the program, with StatusSettings if it is an ErrSettings. A driver
	// that has a method Run(context.Context) error is run as long as the
	// program, also while another one leads; it must return soon after its
	// context has ended.
	Driver func(Clusters) (driver.Driver, error)

	out, errs io.Writer // nil: those of the process
}

// Clusters are what a driver may need besides its settings.
type Clusters struct {
	Control *rest.Config // holds the objects
	Target  *rest.Config // machines join it; or nil
	Log     *slog.Logger
	// DryRun says that nothing may be changed, not by a driver's own work either. Calls that
	// change anything are not made then.
	DryRun bool
}

// Run runs a manager with a driver until it is told to end by a signal or by
// ctx, with the settings of the process. A driver that is a pooldriver.Driver
// too is used for pools. It is called once in a process. An error is for Exit.
func Run(ctx context.Context, d driver.Driver) error {
	return Program{Driver: func(Clusters) (driver.Driver, error) {
		if d == nil {
			return nil, errors.New("there is no driver")
		}
		return d, nil
	}}.Run(ctx)
}

// Run is Run for a program.
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

// Exit ends the process with the status of an error of Run, which it writes in one line to standard
// error. For nil it is StatusDone.
func Exit(err error) {
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", (&Program{}).name(), oneLine(err)) // there is no other place to report it
	}
	os.Exit(Status(err))
}

// Status returns the exit status of an error of Run.
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
