// Command bench measures the controllers with a real API server on the same computer. It prints a table:
// how long the creation, a rollout and the deletion of fleets take, and how many writes they need.
//
// The server is that of test/kubelab. The provider takes 50 ms to create a VM, 500 ms to boot it, and
// 50 ms to delete it. Writes are those of the controllers, without events, secrets and leases. What VMs
// write as kubelets is not counted.
//
// With -against COMMIT it builds the commands millwright-manager of this tree and of the commit, and lets
// both live the same lives in turns: each creates, rolls and deletes the same fleets on the same server.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

func main() {
	small := flag.Int("small", 100, "machines of the fleet that is created, rolled and deleted")
	large := flag.Int("large", 1000, "machines of the fleet that is created; 0: none")
	settled := flag.Int("settled", 5000, "machines of the fleet that is measured at rest; 0: none")
	quiet := flag.Duration("quiet", time.Minute, "how long the fleet at rest is measured")
	against := flag.String("against", "", "a commit: compare the manager of this tree with the commit's, in turns, with fleets of -small and -large machines")
	rounds := flag.Int("rounds", 5, "with -against: how often each lives")
	verbose := flag.Bool("v", false, "show the controllers' log, and writes by kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	b := &bench{log: log, verbose: *verbose}
	measure := func() error { return b.all(ctx, *small, *large, *settled, *quiet) }
	if *against != "" {
		measure = func() error { return b.compare(ctx, *against, *rounds, *small, *large) }
	}
	if err := run(ctx, b, measure); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run starts a server, measures with it, and stops it.
func run(ctx context.Context, b *bench, measure func() error) (err error) {
	server, err := lab.Start()
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = stopped
		}
	}()
	if err := b.prepare(ctx, server.Config); err != nil {
		return err
	}
	b.server = server
	fmt.Printf("%s/%s, %d processors, %s; the server shares them\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	return measure()
}

// all prints the table of fleets of three sizes.
func (b *bench) all(ctx context.Context, small, large, settled int, quiet time.Duration) error {
	fmt.Printf("%-28s %8s %8s   %s\n", "", "seconds", "limit", "writes a machine: machines and nodes (limit), sets and deployments")
	if err := b.life(ctx, small); err != nil {
		return err
	}
	if large > 0 {
		if err := b.creation(ctx, large, 25); err != nil {
			return err
		}
	}
	if settled > 0 {
		if err := b.rest(ctx, settled, quiet); err != nil {
			return err
		}
	}
	if len(b.over) > 0 {
		return fmt.Errorf("more writes a machine than the limit: %s", strings.Join(b.over, ", "))
	}
	return nil
}
