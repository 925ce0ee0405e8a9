package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// ttl is that of the lease. It is short, so that the play is. For a real fleet, lead.DefaultTTL is better.
const ttl = 3 * time.Second

// candidate manages the fleet whenever it leads.
func candidate(ctx context.Context, o *options, out io.Writer) error {
	db, err := openStore(ctx, o.store)
	if err != nil {
		return err
	}
	defer db.Close()
	election := lead.Options{ID: o.candidate, TTL: ttl, Notify: func(e lead.Event) {
		_, _ = fmt.Fprintln(out, e.Kind) // the stage reads it
	}}
	return db.Lead(ctx, election, func(term *lead.Held) error {
		options := db.ManagerOptions(term)
		options.Cluster = db.Cluster(term)
		options.Driver = driver.Intercept(newDriver(o.dir), driver.Deadline(driver.Timeouts{Default: 20 * time.Second}))
		options.Policies.Machine, options.Policies.Safety = machinePolicy(), safetyPolicy()
		options.Log = slog.New(slog.DiscardHandler)
		m, err := manager.New(options)
		if err != nil {
			return err
		}
		return m.Run(ctx)
	})
}

// newDriver returns the driver of all candidates. The machines live as long as the stage.
func newDriver(dir string) *procdriver.Driver {
	return procdriver.New(procdriver.Options{Dir: dir, Lock: filepath.Join(dir, lockFile), Outlives: agent.Abandonment})
}

// machinePolicy returns a policy that replaces no machine because this computer is slow.
func machinePolicy() *machine.Policy {
	p := machine.DefaultPolicy()
	p.CreationTimeout, p.HealthTimeout = 2*time.Minute, 2*time.Minute
	return p
}

// safetyPolicy returns a policy that looks for orphans every few seconds. Everything else has its default.
func safetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.OrphanPeriod, p.OrphanSoon, p.OrphanGap = 5*time.Second, object.Off, time.Second
	return p
}
